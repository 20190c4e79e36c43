import { describe, expect, test } from "vitest";
import type { SuspectJson } from "../model/documents/diagnosis_document.js";
import { formatBaseline, parseBaseline } from "./baseline.js";
import { type Gates, judge } from "./judge.js";
import { exactly, group, growing, MIB, measured } from "./measured.fixture.js";
import type { Measured } from "./measured.js";

const none: Gates = { leak: false, allowUndecided: false };
const one = (gates: Partial<Gates>, of = measured()) => {
  const [gate, ...others] = judge({ ...none, ...gates }, of);
  expect(others).toEqual([]);
  if (gate === undefined) {
    throw new Error("no gate was judged");
  }
  return gate;
};

describe("peak", () => {
  test("over and under the limit", () => {
    expect(one({ peakBytes: 100 * MIB })).toMatchObject({ passed: true, decided: true });
    const over = one({ peakBytes: 99 * MIB });
    expect(over).toMatchObject({ passed: false, decided: true, value: 100 * MIB });
    expect(over.reason).toBe("100 MiB RSS, over 99.0 MiB");
    expect(over.line).toMatchObject({ frame: { function: "load", line: 12 }, bytes: 80 * MIB });
    expect(over.holder).toBe("nothing any more: it was freed before the end");
  });

  test("memory from the line that is still live at the end is shown as held", () => {
    const of = measured({ groups: [group("load", 12, 80 * MIB, 80 * MIB)] });
    expect(one({ peakBytes: MIB }, of).holder).toBe("80.0 MiB of it live at the end");
  });

  test("of several processes the limit may lie between PSS and the sum of RSS", () => {
    const tree = measured({
      processes: 4,
      peak: { value: 100 * MIB, low: 100 * MIB, high: 300 * MIB },
    });
    expect(one({ peakBytes: 200 * MIB }, tree)).toMatchObject({ passed: true });
    expect(one({ peakBytes: 200 * MIB }, tree).reason).toMatch(/4 processes.*within the noise of/);
    expect(one({ peakBytes: 99 * MIB }, tree)).toMatchObject({ passed: false });
  });

  test("without a reading it is not decided, and that is a finding", () => {
    const of = measured({ peak: null });
    expect(one({ peakBytes: MIB }, of)).toMatchObject({ passed: false, decided: false });
    expect(one({ peakBytes: MIB, allowUndecided: true }, of)).toMatchObject({
      passed: true,
      decided: false,
    });
  });
});

describe("growth", () => {
  const sixty = { value: 60 * MIB, low: 59 * MIB, high: 61 * MIB };
  const grows = growing(sixty);
  const limit = { growthBytesPerHour: 10 * MIB };

  test("beyond its interval fails, within it passes and reports the noise", () => {
    const leak = measured({ growth: grows, verdict: "python-leak" });
    expect(one(limit, leak)).toMatchObject({ passed: false, decided: true });
    expect(one(limit, leak).reason).toBe("+60.0 MiB/h (+59.0 to +61.0), over +10.0 MiB/h");
    const noisy = measured({ growth: growing({ value: 5 * MIB, low: -MIB, high: 60 * MIB }) });
    expect(one(limit, noisy)).toMatchObject({ passed: true, decided: true });
    expect(one(limit, noisy).reason).toMatch(/within the noise/);
  });

  test.each(["warm-up", "cache-plateau", "steady"] as const)("%s is no growth", (verdict) => {
    const ended = measured({ growth: growing(sixty, exactly(0)), verdict });
    expect(one(limit, ended)).toMatchObject({ passed: true, decided: true });
    expect(one(limit, ended).reason).toBe(
      "+60.0 MiB/h (+59.0 to +61.0), but none in the last third of the run: one sentence.",
    );
  });

  test.each([
    ["steady", false],
    ["warm-up", false],
    ["insufficient-evidence", false],
    ["cache-plateau", true], // a cache that is not full yet
  ] as const)(
    "that goes on to the end fails, although the verdict is %s: passed %s",
    (verdict, passed) => {
      expect(one(limit, measured({ growth: grows, verdict }))).toMatchObject({
        passed,
        decided: true,
      });
    },
  );

  test("without a suspect names the line that grew most", () => {
    const frame = { function: "handle", file: "/srv/app.py", line: 7, kind: "python" as const };
    const site = {
      stack: [frame],
      liveBytesB: MIB,
      growthBytes: MIB / 2,
      standardErrorBytes: 50 * 1024,
    } as unknown as ReturnType<Measured["mostGrown"]>;
    expect(one(limit, measured({ growth: grows, mostGrown: () => site }))).toMatchObject({
      line: { frame, bytes: MIB },
      holder: "not known; 512 KiB ±100 KiB of it since the first third of the run",
    });
  });

  test("of a few pages, or with single jumps, does not continue", () => {
    const pages = { value: 20 * MIB, low: 19 * MIB, high: 21 * MIB };
    const few = one(limit, measured({ growth: growing(sixty, pages) }));
    expect(few).toMatchObject({ passed: true, decided: true });
    expect(few.reason).toMatch(/, but only 114 KiB in the last third of the run: one sentence\.$/);
    const jumps = { ...grows, isSteady: false };
    expect(one(limit, measured({ growth: jumps }))).toMatchObject({ passed: true });
  });

  test("a short program is not decided unless its whole interval is below the limit", () => {
    const short = { durationMs: 4000, verdict: "insufficient-evidence" } as const;
    for (const growth of [null, grows, growing({ value: 0, low: -90 * MIB, high: 90 * MIB })]) {
      const gate = one(limit, measured({ ...short, growth }));
      expect(gate).toMatchObject({ passed: false, decided: false });
      expect(gate.reason).toMatch(/it ran 4\.0 s, and growth cannot be distinguished/);
    }
    const flat = measured({ ...short, growth: growing(exactly(0)) });
    expect(one(limit, flat)).toMatchObject({ passed: true, decided: true });
  });

  test("growth that does not continue, with an open verdict, leaves the gate undecided", () => {
    const growth = growing(sixty, exactly(0));
    const open = measured({ growth, verdict: "insufficient-evidence" });
    expect(one(limit, open)).toMatchObject({ passed: false, decided: false });
  });
});

describe("leak", () => {
  test.each([
    ["python-leak", false, true],
    ["native-leak", false, true],
    ["handle-leak", false, true],
    ["steady", true, true],
    ["allocator-retention", true, true],
    ["insufficient-evidence", false, false],
  ] as const)("%s", (verdict, passed, decided) => {
    expect(one({ leak: true }, measured({ verdict }))).toMatchObject({ passed, decided });
  });

  test("names the suspect's line and holder", () => {
    const frame = { function: "record", file: "/srv/app.py", line: 41, kind: "python" as const };
    const suspects = [
      {
        stack: [frame],
        liveBytes: 5 * MIB,
        holder: { path: ["module app", "seen"], type: "list", retainedBytes: MIB, entries: 1200 },
      },
    ] as unknown as SuspectJson[];
    expect(one({ leak: true }, measured({ verdict: "python-leak", suspects }))).toMatchObject({
      line: { frame, bytes: 5 * MIB },
      holder: "module app → seen (1,200 entries, 1.00 MiB)",
    });
  });
});

describe("baseline", () => {
  const baseline = parseBaseline(formatBaseline(measured()), "memory.txt");

  test("the same program passes, and so does one that takes less", () => {
    const names = judge({ ...none, baseline }, measured()).map(({ gate, passed }) => [
      gate,
      passed,
    ]);
    expect(names).toEqual([
      ["baseline-peak", true],
      ["baseline-live", true],
      ["baseline-growth", true],
    ]);
    const less = measured({ peak: exactly(10 * MIB), live: exactly(MIB) });
    expect(judge({ ...none, baseline }, less).every(({ passed }) => passed)).toBe(true);
  });

  test("a figure above its range fails, and the output names the added line", () => {
    const more = measured({
      peak: exactly(150 * MIB),
      live: exactly(130 * MIB),
      groups: [group("load", 14, 80 * MIB), group("index", 30, 50 * MIB)],
    });
    const [peak, live, growth] = judge({ ...none, baseline }, more);
    expect([peak?.passed, live?.passed, growth?.passed]).toEqual([false, false, true]);
    expect(peak?.line?.frame).toMatchObject({ function: "index", line: 30 });
  });
});
