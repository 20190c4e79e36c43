import { expect, test } from "vitest";
import { diagnoseService } from "./diagnose_fleet.js";
import { rightSize, type SizedProcess } from "./right_size.js";

const MIB = 2 ** 20;
const HOUR = 3_600_000;
const END = Date.UTC(2026, 2, 25);
const MARGIN = 0.2;

interface Life {
  readonly version?: string;
  readonly fromHoursAgo?: number;
  readonly toHoursAgo?: number;
  readonly limitMib?: number;
  readonly killed?: boolean;
  readonly besideMib?: number;
  /** The peak of an hour, counted from the start. */
  readonly mib?: (hour: number) => number;
}

function processOf(
  {
    version = "1",
    fromHoursAgo = 240,
    toHoursAgo = 0,
    limitMib = 1024,
    killed = false,
    besideMib = 0,
    mib = () => 100,
  }: Life,
  instance: number,
): SizedProcess {
  const hours = [...Array(fromHoursAgo - toHoursAgo).keys()];
  const startedMs = END - fromHoursAgo * HOUR;
  const endedMs = END - toHoursAgo * HOUR;
  return {
    instance: `app-${instance}`,
    version,
    endedMs: toHoursAgo === 0 ? null : endedMs,
    limitBytes: limitMib * MIB,
    peaks: {
      times: hours.map((hour) => startedMs + hour * HOUR),
      values: hours.map((hour) => mib(hour) * MIB),
    },
    besideBytes: besideMib * MIB,
    killsMs: killed ? [endedMs] : [],
  };
}

const sizeOf = (lives: readonly Life[], leaks = false) => {
  const window = { startMs: END - 14 * 24 * HOUR, endMs: END };
  const growing = lives.map((life, instance) => {
    const { peaks, besideBytes: _, killsMs: __, ...process } = processOf(life, instance);
    return { ...process, process: String(instance), startedMs: peaks.times[0] ?? 0, rss: peaks };
  });
  const diagnosis = diagnoseService(
    {
      ...{ service: "shop", window },
      processes: growing.map((each) => ({
        ...each,
        ...{ requests: null, sites: [], kind: null, holders: [] },
      })),
    },
    1,
  );
  expect(diagnosis.leak !== undefined).toBe(leaks);
  return rightSize({ service: "shop", window, processes: lives.map(processOf) }, diagnosis, MARGIN);
};
const many = (count: number, life: Life) => Array.from({ length: count }, () => life);
/** Peaks at noon. */
const daily = (hour: number) => (hour % 24 === 12 ? 300 : 100);

test("the limit covers the daily peak with a margin, and the request what an instance usually needs", () => {
  const size = sizeOf(many(3, { mib: daily }));
  expect(size).toMatchObject({
    state: "lower",
    instances: 3,
    limitBytes: 1024 * MIB,
    peakBytes: 300 * MIB,
    // 300 MiB and 20 %, in steps of 16 MiB; one hour of a day is above the request.
    needs: { limitBytes: 368 * MIB, requestBytes: 112 * MIB },
    savedBytes: 3 * (1024 - 368) * MIB,
    cautions: [],
  });
  expect(size.summary).toBe(
    "A limit of 368 MiB is enough, instead of 1.00 GiB: 99 % of the daily peaks of an instance are at most 300 MiB.",
  );
});

test("a single peak above the limit that is proposed is a caution with its size", () => {
  const once = (hour: number) => (hour === 30 ? 900 : 100);
  const size = sizeOf([...many(20, {}), { mib: once }]);
  expect(size.needs?.limitBytes).toBe(128 * MIB);
  expect(size.cautions[0]).toMatch(
    /^On 1 of 210 days of an instance its peak was above 128 MiB, up to 900 MiB/,
  );
});

test("what an earlier version needed does not count once the new one has run for a day", () => {
  const old = many(3, { version: "1", toHoursAgo: 48, mib: () => 700 });
  const runs = (fromHoursAgo: number) => many(3, { version: "2", fromHoursAgo });
  expect(sizeOf([...old, ...runs(48)])).toMatchObject({
    ...{ versions: ["2"], earlierVersions: false, peakBytes: 100 * MIB },
  });
  const young = sizeOf([...old, ...runs(20)]);
  expect(young).toMatchObject({ earlierVersions: true, peakBytes: 700 * MIB });
  expect(young.cautions).toContainEqual(expect.stringMatching(/earlier versions/));
});

test("killed for memory: at least half as much again, since its real peak was cut off", () => {
  const lives = many(3, { limitMib: 256, mib: () => 200 });
  const killed = { limitMib: 256, toHoursAgo: 24, mib: () => 250, killed: true };
  const size = sizeOf([...lives, killed]);
  expect(size).toMatchObject({ state: "higher", kills: 1, needs: { limitBytes: 384 * MIB } });
  expect(size.savedBytes).toBe(-3 * 128 * MIB);
});

test("no figure for what leaks, has run for hours only, or does not run", () => {
  const leaking = sizeOf(many(3, { mib: (hour) => 100 + 2 * hour }), true);
  expect(leaking).toMatchObject({ state: "leaks", savedBytes: 0 });
  expect(leaking.needs).toBeUndefined();
  expect(sizeOf(many(3, { fromHoursAgo: 10 }))).toMatchObject({ state: "unknown", savedBytes: 0 });
  expect(sizeOf(many(3, { toHoursAgo: 30 }))).toMatchObject({
    ...{ state: "unknown", summary: "No instance runs." },
  });
});

test("no limit, a limit that fits, and other users of the cgroup are named", () => {
  expect(sizeOf(many(2, { limitMib: 0 }))).toMatchObject({ state: "unlimited", savedBytes: 0 });
  expect(sizeOf(many(2, { limitMib: 130 }))).toMatchObject({ state: "fits", savedBytes: 0 });
  const beside = sizeOf(many(2, { besideMib: 60 }));
  expect(beside.cautions[0]).toMatch(/^Its cgroup uses 60.0 MiB beside the program/);
});
