/** What each rule finds, and what it leaves alone. */
import { describe, expect, test } from "vitest";
import type { FleetDiagnosisJson } from "../../model/documents/fleet_diagnosis_document.js";
import type { ProcessLife } from "../../store/index.js";
import { findingsOf, unheard } from "./findings.js";
import { type AlertRule, RULE, rulesOf } from "./rules.js";

const MIB = 2 ** 20;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOW = Date.UTC(2026, 10, 20, 12);

const ruleOf = (written: object): AlertRule => rulesOf([RULE.parse(written)])[0] as AlertRule;
const line = { function: "keep", file: "/srv/shop/app.py", line: 9, kind: "python" } as const;

function diagnosis(some: Partial<FleetDiagnosisJson> = {}): FleetDiagnosisJson {
  const rate = { growthBytesPerHour: 10 * MIB, low: 9 * MIB, high: 11 * MIB };
  return {
    schema: "tidemark.fleetDiagnosis/1",
    service: "shop",
    window: { startMs: 0, endMs: NOW },
    verdict: { kind: "python-leak", confidence: 0.9, summary: "shop leaks." },
    leak: { ...rate, version: "43", since: "42", affectedInstances: 2, runningInstances: 2 },
    versions: [
      {
        ...rate,
        version: "41",
        instances: 2,
        shape: "flat",
        windowMs: HOUR,
        levelBytes: 100 * MIB,
      },
      {
        ...rate,
        version: "43",
        instances: 2,
        shape: "leaking",
        windowMs: HOUR,
        levelBytes: 200 * MIB,
      },
    ],
    oddInstances: [],
    suspects: [{ ...rate, rank: 1, share: 1, liveBytes: MIB, stack: [line], line }],
    forecast: [
      {
        process: "p",
        instance: "a",
        version: "43",
        msToLimit: 10 * HOUR,
        earliestMs: 9 * HOUR,
        latestMs: 0,
      },
    ],
    evidence: [],
    limits: [],
    ...some,
  };
}

function life(some: Partial<ProcessLife> = {}): ProcessLife {
  return {
    ...{ process: "p", service: "shop", version: "42", host: "h", pod: "", startedMs: NOW - HOUR },
    ...{ endedMs: null, exitCode: null, lastMs: NOW, killsMs: [], fragmentation: null },
    ...some,
  };
}

const AT = { nowMs: NOW, listeningMs: NOW - 24 * HOUR };
const ofDiagnosis = (when: object, ...diagnoses: FleetDiagnosisJson[]) =>
  findingsOf([ruleOf({ when })], { ...AT, diagnoses, lives: [life({ version: "43" })] });
const ofLives = (when: object, ...lives: ProcessLife[]) =>
  findingsOf([ruleOf({ when })], { ...AT, diagnoses: [], lives });
const holds = (found: ReturnType<typeof ofLives>) => found.map((each) => each.holds);

describe("rules about growth", () => {
  test("name the first version, the line, the rate and the forecast", () => {
    expect(ofDiagnosis({ verdict: "*leak" }, diagnosis())).toMatchObject([
      {
        ...{ service: "shop", version: "42", cause: "growth", holds: "fully", line },
        growth: { growthBytesPerHour: 10 * MIB },
        forecast: { msToLimit: 10 * HOUR },
      },
    ]);
    expect(ofDiagnosis({ verdict: ["native*", "gpu*"] }, diagnosis())).toEqual([]);
  });

  test("compare the lower end of the interval, in bytes or as a share of the level", () => {
    expect(holds(ofDiagnosis({ growth: "9MiB/h" }, diagnosis()))).toEqual(["fully"]);
    expect(holds(ofDiagnosis({ growth: "10MiB/h" }, diagnosis()))).toEqual(["nearly"]);
    expect(holds(ofDiagnosis({ growth: "12MiB/h" }, diagnosis()))).toEqual([]);
    expect(holds(ofDiagnosis({ growth: "4%/h" }, diagnosis()))).toEqual(["fully"]);
    const { leak: _, ...calm } = diagnosis();
    const flat = { ...calm, versions: calm.versions.slice(0, 1) };
    expect(ofDiagnosis({ growth: "1MiB/h" }, flat)).toEqual([]);
  });

  test("compare the time of the first instance; no limit is no alert", () => {
    expect(holds(ofDiagnosis({ time_to_limit: "12h" }, diagnosis()))).toEqual(["fully"]);
    expect(holds(ofDiagnosis({ time_to_limit: "8h" }, diagnosis()))).toEqual(["nearly"]);
    expect(holds(ofDiagnosis({ time_to_limit: "4h" }, diagnosis()))).toEqual([]);
    const never = {
      process: "p",
      instance: "a",
      version: "43",
      msToLimit: 0,
      earliestMs: 0,
      latestMs: 0,
    };
    expect(ofDiagnosis({ time_to_limit: "12h" }, diagnosis({ forecast: [never] }))).toEqual([]);
  });

  test("a version that needs a fifth more is a regression, a smaller rise or a fall is none", () => {
    const { leak: _, ...calm } = diagnosis();
    const changed = (low: number, kind: "growth" | "level" = "level") => ({
      ...calm,
      change: {
        ...{ version: "43", against: "41", kind, levelBytes: low + MIB, low, high: low + 2 * MIB },
        growth: { growthBytesPerHour: MIB, low: MIB, high: MIB },
      },
    });
    const [found] = ofDiagnosis({ regression: "any" }, changed(30 * MIB));
    expect(found).toMatchObject({ cause: "level", version: "43", holds: "fully" });
    expect(found?.summary).toContain("31.0 MiB more on each instance than version 41");
    expect(holds(ofDiagnosis({ regression: "level" }, changed(17 * MIB)))).toEqual(["nearly"]);
    expect(ofDiagnosis({ regression: "level" }, changed(5 * MIB))).toEqual([]);
    expect(ofDiagnosis({ regression: "level" }, changed(-50 * MIB))).toEqual([]);
    expect(ofDiagnosis({ regression: "growth" }, changed(30 * MIB))).toEqual([]);
    expect(ofDiagnosis({ regression: "growth" }, changed(0, "growth"))).toHaveLength(1);
  });

  test("do not hold for a version that was rolled back", () => {
    const gone = { ...diagnosis(), leak: { ...diagnosis().leak, runningInstances: 0 } };
    const change = {
      ...{ version: "44", against: "41", kind: "level" as const, levelBytes: 1, low: 1, high: 1 },
      growth: { growthBytesPerHour: 0, low: 0, high: 0 },
    };
    const after = { ...gone, change: { ...change, low: 90 * MIB } } as FleetDiagnosisJson;
    for (const when of [{ verdict: "*" }, { growth: "1MiB/h" }, { time_to_limit: "12h" }]) {
      expect(ofDiagnosis(when, after)).toEqual([]);
    }
    expect(ofDiagnosis({ regression: "any" }, after)).toEqual([]);
  });

  test("apply to the services and versions that they match", () => {
    const rule = ruleOf({ when: { verdict: "*" }, match: { service: "pay*" } });
    const facts = {
      ...AT,
      lives: [],
      diagnoses: [diagnosis(), diagnosis({ service: "pay" })],
    };
    expect(findingsOf([rule], facts).map(({ service }) => service)).toEqual(["pay"]);
  });
});

describe("rules about processes", () => {
  test("count OOM kills within their time", () => {
    const kills = [NOW - 3 * HOUR, NOW - 20 * MINUTE, NOW - MINUTE];
    const [found] = ofLives({ oom_kills: 2 }, life({ killsMs: kills, pod: "shop-1" }));
    expect(found).toMatchObject({ cause: "oom-kill", service: "shop", version: "42" });
    expect(found?.summary).toMatch(
      /^The OOM killer ended 2 processes of shop 42 .* on shop-1 at 2026/,
    );
    expect(ofLives({ oom_kills: 3 }, life({ killsMs: kills }))).toEqual([]);
    expect(ofLives({ oom_kills: 3, within: "4h" }, life({ killsMs: kills }))).toHaveLength(1);
  });

  test("take the most fragmented device of a process that runs", () => {
    expect(holds(ofLives({ gpu_fragmentation: "40%" }, life({ fragmentation: 0.5 })))).toEqual([
      "fully",
    ]);
    expect(holds(ofLives({ gpu_fragmentation: "40%" }, life({ fragmentation: 0.33 })))).toEqual([
      "nearly",
    ]);
    const ended = life({ fragmentation: 0.9, endedMs: NOW - MINUTE });
    expect(ofLives({ gpu_fragmentation: "40%" }, ended, life())).toEqual([]);
  });

  const restarted = (gaps: readonly number[], lengths: readonly number[]) => {
    let startedMs = NOW - 55 * MINUTE;
    return gaps.map((gap, n) => {
      const endedMs = startedMs + (lengths[n] ?? MINUTE);
      const one = life({ startedMs, endedMs, lastMs: endedMs, pod: "shop-1" });
      startedMs = endedMs + gap;
      return one;
    });
  };

  test("a process that repeatedly follows its own end is a restart loop", () => {
    const gaps = [10, 20, 40, 80, 160, 300].map((seconds) => seconds * 1000);
    const loop = restarted(gaps, [63_000, 41_000, 77_000, 52_000, 66_000, 48_000]);
    expect(ofLives({ restarts: 5 }, ...loop)).toMatchObject([{ cause: "restart-loop" }]);
    expect(ofLives({ restarts: 6 }, ...loop)).toEqual([]);
  });

  test("a job that ends with exit code 0 is no restart loop, however irregular its starts are", () => {
    const lengths = [3000, 5000, 2000, 4000, 3000, 6000, 2000, 5000];
    const job = restarted(Array(8).fill(25_000), lengths);
    const ended = (code: (n: number) => number | null) =>
      ofLives({ restarts: 5 }, ...job.map((one, n) => ({ ...one, exitCode: code(n) })));
    expect(ended(() => 0)).toEqual([]);
    // One failure of a job is no loop; a program that fails each time is.
    expect(ended((n) => (n === 3 ? 1 : 0))).toEqual([]);
    for (const code of [1, null]) {
      expect(ended(() => code)).toMatchObject([{ cause: "restart-loop" }]);
    }
  });

  test("a job that a clock starts, and instances side by side, are no restart loop", () => {
    const lengths = [20_000, 35_000, 28_000, 31_000, 22_000, 30_000, 26_000];
    const every = lengths.map((length) => 5 * MINUTE - length);
    expect(ofLives({ restarts: 3 }, ...restarted(every, lengths))).toEqual([]);
    const beside = Array.from({ length: 9 }, (_, n) => life({ startedMs: NOW - MINUTE + n * 977 }));
    expect(ofLives({ restarts: 3 }, ...beside)).toEqual([]);
  });

  test("a host that is not heard is silent; one whose processes ended is not", () => {
    const quiet = life({ host: "a", lastMs: NOW - HOUR });
    const ended = life({ host: "b", lastMs: NOW - HOUR, endedMs: NOW - HOUR });
    const found = ofLives({ silent: "10min" }, quiet, ended, life({ host: "c" }));
    expect(found).toMatchObject([{ cause: "silence", host: "a", service: "" }]);
    expect(ofLives({ silent: "2h" }, quiet)).toEqual([]);
    const all = ofLives({ silent: "10min" }, quiet, ended, life({ host: "c", lastMs: 0 }));
    expect(all.map((each) => [each.host, each.holds])).toEqual([
      ["", "fully"],
      ["a", "nearly"],
      ["c", "nearly"],
    ]);
    expect(all[0]?.summary).toContain("No host sends anything");
  });

  test("a host is not silent before the server has listened for as long", () => {
    const lives = [life({ lastMs: NOW - HOUR })];
    const facts = { nowMs: NOW, listeningMs: NOW - MINUTE, diagnoses: [], lives };
    expect(holds(findingsOf([ruleOf({ when: { silent: "10min" } })], facts))).toEqual(["nearly"]);
  });

  test("a host is silent for the services that the rule matches", () => {
    const rule = ruleOf({ when: { silent: "10min" }, match: { service: "pay*" } });
    const lives = [life({ host: "a", lastMs: 0 }), life({ host: "b", lastMs: 0, service: "pay" })];
    const found = findingsOf([rule], { ...AT, diagnoses: [], lives });
    expect(found.map(({ host }) => host)).toEqual(["b"]);
  });

  test("a service is not heard if none of its open processes is", () => {
    const old = { lastMs: NOW - HOUR };
    const lives = [life(old), life({ ...old, service: "pay" }), life({ service: "pay" })];
    const facts = { ...AT, diagnoses: [], lives };
    expect([...unheard(facts, 10 * MINUTE)]).toEqual(["shop"]);
  });
});
