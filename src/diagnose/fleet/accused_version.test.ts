import { expect, test } from "vitest";
import { diagnoseService } from "./diagnose_fleet.js";
import { DAY, END, MIB, processOf, three } from "./fleet_evidence.fixture.js";

/** After how many days a line is accused, in steps of three hours. */
function daysUntilAccused(limitMib: number, withSites = false): number {
  const isAccused = (days: number) => {
    const lives = three({ version: "1.0", fromDaysAgo: days, mib: (hours) => 1.2 * hours });
    const processes = lives.map((life) => ({
      ...processOf({ ...life, withSites }),
      limitBytes: limitMib * MIB,
    }));
    const window = { startMs: END - 14 * DAY, endMs: END };
    return diagnoseService({ service: "app", window, processes }, 1).verdict.kind === "python-leak";
  };
  const days = Array.from({ length: 40 }, (_, at) => (at + 1) / 8);
  return days.find(isAccused) ?? Number.NaN;
}

test("RSS alone accuses a version that leaks slowly only after it has done so for six hours", () => {
  const fast = daysUntilAccused(280);
  const slow = daysUntilAccused(4096);
  expect(slow).toBeGreaterThanOrEqual(fast + 0.25);
  expect(slow).toBeLessThan(fast + 1);
  expect(daysUntilAccused(4096, true)).toBeLessThanOrEqual(fast);
});
