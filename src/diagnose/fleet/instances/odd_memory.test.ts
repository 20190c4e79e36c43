import { expect, it } from "vitest";
import { oddMemory } from "./odd_memory.js";

const MIB = 2 ** 20;

/** Courses around 200 MiB that differ by a few MiB, changed by `change`. */
function courses(
  count: number,
  change: (instance: number, step: number, usual: number) => number | null,
): (number | null)[][] {
  return Array.from({ length: count }, (_, instance) =>
    Array.from({ length: 40 }, (_, step) =>
      change(instance, step, (200 + ((instance * 7 + step * 3) % 11)) * MIB),
    ),
  );
}

it("finds the instance that needs more or less than the others, and by how much", () => {
  const found = oddMemory(
    courses(30, (instance, _, usual) =>
      instance === 4 ? usual + 90 * MIB : instance === 9 ? usual - 60 * MIB : usual,
    ),
  );
  expect(found.map(({ index }) => index)).toEqual([4, 9]);
  expect((found[0]?.differenceBytes ?? 0) / MIB).toBeCloseTo(90, -1);
  expect((found[1]?.differenceBytes ?? 0) / MIB).toBeCloseTo(-60, -1);
  expect(found[0]?.siblings).toBe(29);
});

it("finds one that began to grow near the end", () => {
  const found = oddMemory(
    courses(12, (instance, step, usual) =>
      instance === 3 ? usual + Math.max(0, step - 28) * 12 * MIB : usual,
    ),
  );
  expect(found.map(({ index }) => index)).toEqual([3]);
});

it("accuses none if all differ, if all leak from different starts, or if there are too few", () => {
  const spread = courses(30, (instance, _, usual) => usual + instance * 20 * MIB);
  expect(oddMemory(spread)).toEqual([]);
  const leak = courses(30, (instance, step, usual) => usual + ((step + instance) % 30) * 10 * MIB);
  expect(oddMemory(leak)).toEqual([]);
  const halves = courses(30, (instance, _, usual) => usual * (instance < 15 ? 1 : 3));
  expect(oddMemory(halves)).toEqual([]);
  const few = courses(4, (instance, _, usual) => (instance === 0 ? 5 : 1) * usual);
  expect(oddMemory(few)).toEqual([]);
  expect(oddMemory([])).toEqual([]);
});

it("ignores small differences, and compares only those that ran at the same time", () => {
  expect(
    oddMemory(courses(30, (instance, _, usual) => usual + (instance === 2 ? 15 * MIB : 0))),
  ).toEqual([]);
  // The first half ran with half of the memory, before the others began.
  const apart = courses(20, (instance, step, usual) =>
    instance < 10 === step < 20 ? usual * (instance < 10 ? 0.5 : 1) : null,
  );
  expect(oddMemory(apart)).toEqual([]);
});
