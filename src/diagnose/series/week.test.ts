/** A service watched for a week at one reading a minute, as a whole verdict: days come and go, its workers are
 * replaced at a deploy, hours are missing. */
import { expect, test } from "vitest";
import type { Pid } from "../../model/base/units.js";
import type { Metric } from "../../model/profile/series.js";
import { noise } from "../evidence/evidence.fixture.js";
import type { Evidence, ProcessEvidence } from "../evidence/evidence.js";
import { diagnose } from "../verdict/verdict.js";

const MIB = 2 ** 20;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = 1_700_000_000_000;
/** The old workers end at the deploy, and new ones start. */
const DEPLOY = 2.6 * DAY;
/** The recorder itself was not running. */
const GAP = [4.1 * DAY, 4.4 * DAY] as const;

interface Life {
  readonly pid: Pid;
  readonly from: number;
  readonly to: number;
  readonly mib: number;
  /** MiB more at noon than at midnight. */
  readonly load: number;
  readonly mibPerHour?: number;
}

function processOf({ pid, from, to, mib, load, mibPerHour = 0 }: Life): ProcessEvidence {
  const times: number[] = [];
  const values: number[] = [];
  for (let ms = from; ms < to; ms += MINUTE) {
    if (ms < GAP[0] || ms > GAP[1]) {
      const day = (load / 2) * (1 - Math.cos((2 * Math.PI * ms) / DAY));
      // An hour of warm-up after every start.
      const warm = Math.min(1, (ms - from) / HOUR);
      times.push(START + ms);
      values.push(
        MIB * (mib * warm + day + noise(ms + pid) * 15 + (mibPerHour * (ms - from)) / HOUR),
      );
    }
  }
  const column = Float64Array.from(values);
  const metrics: readonly Metric[] = ["rssBytes", "anonRssBytes"];
  return {
    pid,
    parentPid: pid === 1000 ? 1 : 1000,
    command: ["gunicorn", "app:app"],
    python: "3.12.1",
    profiled: false,
    startedMs: START + from,
    endedMs: to < 7 * DAY ? START + to : null,
    series: {
      pid,
      timesMs: Float64Array.from(times),
      values: new Map(metrics.map((metric) => [metric, column])),
    },
  };
}

function week(mibPerHour: number, targetMibPerHour = 0): Evidence {
  const life = { from: 0, to: 7 * DAY, mib: 400, load: 0 };
  return {
    target: { pid: 1000, command: ["gunicorn"], python: "3.12.1", startedMs: START },
    window: { startMs: START, endMs: START + 7 * DAY },
    processes: [
      { ...life, pid: 1000, load: 250, mibPerHour: targetMibPerHour },
      { ...life, pid: 1001, to: DEPLOY, load: 300, mibPerHour },
      { ...life, pid: 1002, to: DEPLOY, load: 300, mibPerHour },
      { ...life, pid: 2001, from: DEPLOY, load: 300, mibPerHour },
      { ...life, pid: 2002, from: DEPLOY, load: 300, mibPerHour },
    ].map(processOf),
    events: [],
    limits: [],
  };
}

test("daily cycles, a deploy and a gap are not a leak", () => {
  const { verdict, evidence } = diagnose(week(0));
  expect(["steady", "warm-up"]).toContain(verdict.kind);
  expect(evidence.filter(({ says }) => says === "leak")).toEqual([]);
});

test("workers that grow between deploys are found despite daily cycles and restarts", () => {
  const { verdict, evidence } = diagnose(week(2));
  expect(verdict.kind).toBe("child-growth");
  expect(evidence.find(({ rule }) => rule === "children")?.detail).toMatch(
    /([1-9] of|All) [2-4] child/,
  );
});

test("the growth of the process itself is reported, too, at its rate", () => {
  const { evidence, growth } = diagnose(week(0, 3));
  expect(evidence.find(({ rule }) => rule === "trend")?.says).toBe("leak");
  expect(growth.bytesPerHour / MIB).toBeCloseTo(3, 0);
});
