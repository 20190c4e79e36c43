import { expect, test } from "vitest";
import { CpuBudget } from "../budget/cpu_budget.js";
import { LookupTiming } from "./lookup_timing.js";

const MIB = 2 ** 20;
const SECOND = 1_000;
const LATE =
  "The holders were looked up 64 s after the start, and not earlier: a lookup would have exceeded the recorder's CPU budget.";

/** A program whose lookup costs more than the budget has left, and that leaks from the start. */
function leaking(endsMs: number | null) {
  let elapsedMs = 0;
  const budget = new CpuBudget({ elapsedMs: () => elapsedMs, spentMs: () => 900 });
  const timing = new LookupTiming(budget, endsMs);
  timing.anonymousBytes = 300 * MIB;
  return {
    timing,
    isAffordedAt(ms: number, isLast = false): boolean {
      elapsedMs = ms;
      return timing.affordedMs(ms, { isUrgent: true, isLast }) !== null;
    },
  };
}

/** The seconds at which a lookup is afforded for the first time, and what is noted at the end. */
function play(endsMs: number | null, lengthMs: number) {
  const { timing, isAffordedAt } = leaking(endsMs);
  for (let ms = 8 * SECOND; ms < lengthMs; ms += SECOND) {
    if (isAffordedAt(ms)) {
      timing.asked(ms);
      return [ms / SECOND, timing.delay(lengthMs, { lookedUp: true, isBusy: false })];
    }
  }
  const isAtEnd = endsMs !== null && isAffordedAt(lengthMs, true);
  if (isAtEnd) {
    timing.asked(lengthMs);
  }
  return [
    isAtEnd ? "at the end" : null,
    timing.delay(lengthMs, { lookedUp: isAtEnd, isBusy: false }),
  ];
}

test("a program that may end at any time is looked up after seconds, whatever the budget has left", () => {
  expect(play(null, 120 * SECOND)).toEqual([12, null]);
});

test("a program that runs on at the end is looked up after the first minute, or at the end if that is near", () => {
  expect(play(Number.POSITIVE_INFINITY, 300 * SECOND)).toEqual([60, expect.any(String)]);
  expect(play(300 * SECOND, 300 * SECOND)[0]).toBe(60);
  const [when, said] = play(64 * SECOND, 64 * SECOND);
  expect([when, said]).toEqual(["at the end", LATE]);
  expect(play(120 * SECOND, 120 * SECOND)[0]).toBe("at the end");
});

test("a lookup that may take longer than the budget has left waits for the end, if there is one", () => {
  // 1.25 s are expected, and 1.3 s are left.
  const isAfforded = (endsMs: number | null) => {
    const budget = new CpuBudget({ elapsedMs: () => 59_990, spentMs: () => 0 });
    const timing = new LookupTiming(budget, endsMs);
    timing.anonymousBytes = 300 * MIB;
    return timing.affordedMs(59_990, { isUrgent: true, isLast: false }) !== null;
  };
  expect([null, 64 * SECOND].map(isAfforded)).toEqual([true, false]);
});

test("a program that ends while its lookup waits is reported", () => {
  expect(play(Number.POSITIVE_INFINITY, 40 * SECOND)[0]).toBe("at the end");
  const { timing, isAffordedAt } = leaking(Number.POSITIVE_INFINITY);
  expect([8, 20, 40].map((second) => isAffordedAt(second * SECOND))).toEqual([false, false, false]);
  expect(timing.delay(41 * SECOND, { lookedUp: false, isBusy: false })).toMatch(
    /^No holders were looked up: a lookup would have exceeded/,
  );
});
