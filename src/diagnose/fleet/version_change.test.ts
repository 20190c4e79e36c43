/** The level of a version against that of the one before, which a page and an alert state in MiB. */
import { describe, expect, test } from "vitest";
import { diagnoseService } from "./diagnose_fleet.js";
import { DAY, diagnosisOf, END, flat, MIB, processOf, three } from "./fleet_evidence.fixture.js";

/** Readings only from this many days ago on: Tidemark was installed while the old version ran. */
function seenFrom(daysAgo: number, lives: Parameters<typeof diagnosisOf>[0]) {
  const processes = lives.map(processOf).map((process) => {
    const { times, values } = process.rss;
    const from = times.findIndex((time) => time >= END - daysAgo * DAY);
    return { ...process, rss: { times: times.slice(from), values: values.slice(from) } };
  });
  return diagnoseService(
    { service: "shop", window: { startMs: END - 14 * DAY, endMs: END }, processes },
    50,
  );
}

describe("versions whose memory is alike", () => {
  test.each([1, 3, 8, 20, 40, 70])("no difference, %i hours after the deploy", (hours) => {
    const days = hours / 24;
    for (const seenDays of [days + 1.1, days + 2.2, days + 6, 12]) {
      const found = seenFrom(seenDays, [
        ...three({ version: "1.0", fromDaysAgo: 10, toDaysAgo: days, mib: flat }),
        ...three({ version: "1.1", fromDaysAgo: days, mib: flat }),
      ]);
      expect(found.change, `${hours} h, seen for ${seenDays} days`).toBeUndefined();
      expect(found.verdict.summary).not.toContain("It uses");
    }
  });

  test("requests that move memory are no level, however much of it follows them", () => {
    const busy = (hours: number) => 400 + 300 * Math.sin((2 * Math.PI * hours) / 24 + 1);
    const byLoad = (share: number) => (hours: number) => 600 + (share * busy(hours)) / 4;
    const own = { requestsPerSecond: busy };
    const found = diagnosisOf([
      ...three({ version: "1.0", fromDaysAgo: 8, toDaysAgo: 4, mib: byLoad(1), ...own }),
      ...three({ version: "1.1", fromDaysAgo: 4, mib: (hours) => byLoad(1.3)(hours) + 60, ...own }),
    ]);
    expect(found.change?.kind).not.toBe("growth");
    // At the usual load: 60 MiB, and 30 % more of about 100 MiB.
    const level = (found.change?.levelBytes ?? 0) / MIB;
    expect(level).toBeGreaterThan(50);
    expect(level).toBeLessThan(130);
    expect(found.verdict.summary).toMatch(/ more than version 1\.0 at the usual load\./);
  });
});

test("a version that has run for too short a time has no level yet", () => {
  const found = diagnosisOf([
    ...three({ version: "1.0", fromDaysAgo: 6, toDaysAgo: 0.02, mib: flat }),
    ...three({ version: "1.1", fromDaysAgo: 0.02, mib: () => 200 }),
  ]);
  expect(found.verdict.summary).toContain("has not run long enough");
  expect(found.change).toBeUndefined();
});

describe("after a leak", () => {
  const leaking = { version: "1.0", fromDaysAgo: 6, mib: (hours: number) => 2 * hours };
  const verdictAfter = (hours: number, mib: (hours: number) => number) =>
    diagnosisOf([
      ...three({ ...leaking, toDaysAgo: hours / 24 }),
      ...three({ version: "1.1", fromDaysAgo: hours / 24, mib }),
    ]).verdict;

  test("the first hours of the next version do not show that it is repaired", () => {
    const early = verdictAfter(2, (hours) => 2 * hours);
    expect(early.kind).toBe("python-leak");
    expect(early.summary).toMatch(
      /^shop leaked .* in version 1\.0; that version no longer runs, and it is too early to say whether 1\.1 leaks\.$/,
    );
  });

  test("a day without growth does", () => {
    expect(verdictAfter(40, flat)).toMatchObject({
      kind: "steady",
      summary: expect.stringContaining("Version 1.1 of shop does not grow"),
    });
  });
});

describe("the sentence of a leak", () => {
  const old = three({ version: "1.0", fromDaysAgo: 10, toDaysAgo: 4, mib: flat });
  const leak = { version: "1.1", fromDaysAgo: 4, mib: (hours: number) => 2 * hours };

  test("of one instance does not say 'each'", () => {
    const { verdict } = diagnosisOf([...old, { ...leak, instance: 0 }]);
    expect(verdict.summary).toMatch(
      /^shop leaks [\d.]+ MiB\/h on its only instance since version 1\.1/,
    );
  });

  test("states the rate of the instance that comes first, where it is another one", () => {
    const { verdict, forecast } = diagnosisOf([
      ...old,
      ...three(leak),
      ...[3, 4, 5].map((instance) => ({ ...leak, instance })),
      { ...leak, instance: 6, mib: (hours) => 4 * hours },
    ]);
    const [first] = forecast;
    expect((first?.growthBytesPerHour ?? 0) / MIB).toBeCloseTo(4, 0);
    expect(verdict.summary).toMatch(
      /; the first instance, which grows by [34]\.\d+ MiB\/h, reaches its limit in /,
    );
  });

  test("of processes that are restarted every night has no time to the limit", () => {
    const nights = [4, 3, 2, 1].flatMap((from) =>
      three({
        ...leak,
        fromDaysAgo: from,
        ...(from === 1 ? {} : { toDaysAgo: from - 1 }),
        mib: (hours) => 6 * hours,
      }),
    );
    const { verdict, forecast } = diagnosisOf([...old, ...nights]);
    expect(verdict.summary).toMatch(/; its processes are restarted before they reach the limit\.$/);
    expect(forecast).toEqual([]);
  });
});
