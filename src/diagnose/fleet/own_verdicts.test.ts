/** While a service is too young to be judged, the answer says what its single processes show. */
import { expect, test } from "vitest";
import { diagnoseService } from "./diagnose_fleet.js";
import { DAY, END, HOUR, MIB, processOf } from "./fleet_evidence.fixture.js";

const MINUTE = 60_000;

/** A process of 16 minutes, read once a minute, that grows by this in an hour. */
function young(instance: number, mibPerHour: number, limitBytes: number) {
  const startedMs = END - 16 * MINUTE;
  const times = Array.from({ length: 16 }, (_, minute) => startedMs + minute * MINUTE);
  const values = times.map((time) => MIB * (40 + (mibPerHour * (time - startedMs)) / HOUR));
  const life = { instance, version: "7", fromDaysAgo: 1, mib: () => 0 };
  return { ...processOf(life), startedMs, limitBytes, rss: { times, values } };
}

const diagnosed = (...processes: ReturnType<typeof young>[]) =>
  diagnoseService(
    { service: "shop", window: { startMs: END - 14 * DAY, endMs: END }, processes },
    7,
  );
const leaking = { kind: "python-leak", growthBytesPerHour: 6684 * MIB } as const;

test("the verdict of the process is shown until that of the service, which needs hours", () => {
  const found = diagnosed({ ...young(0, 6684, 0), ...leaking });
  expect(found.verdict.kind).toBe("insufficient-evidence");
  expect(found.own).toEqual({ ...leaking, instances: 1, running: 1 });
  expect(found.verdict.summary).not.toContain("too few readings");
  expect(found.verdict.summary).toContain("has not run long enough for the fleet's verdict");
  expect(found.limits.join(" ")).toContain("No memory limit of its processes is known.");
});

test("several processes are counted, those that ended and calm ones are not", () => {
  const ended = { ...young(2, 6684, 0), ...leaking, endedMs: END - MINUTE };
  const calm = { ...young(1, 0, 0), kind: "steady" } as const;
  const found = diagnosed(
    calm,
    ended,
    ...[3, 4].map((n) => ({ ...young(n, 6684, 0), ...leaking })),
  );
  expect(found.own).toMatchObject({ kind: "python-leak", instances: 2, running: 3 });
  const { own } = diagnosed(calm, { ...young(5, 0, 0), kind: "cache-plateau" });
  expect(own).toBeUndefined();
});

test("with a limit, the rise that decides is named; growth that has risen so far is decided", () => {
  const slow = diagnosed({ ...young(0, 60, 4096 * MIB), ...leaking });
  expect(slow.verdict.kind).toBe("insufficient-evidence");
  expect(slow.limits.join(" ")).toContain("819 MiB (20 % of the limit)");
  const fast = diagnosed({ ...young(0, 6684, 4096 * MIB), ...leaking });
  expect(fast.verdict.kind).toBe("python-leak");
  expect(fast.own).toBeUndefined();
});
