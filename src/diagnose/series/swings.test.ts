import { expect, test } from "vitest";
import { isWithinSwings, swingsOf, swingsText } from "./swings.js";

const MIB = 2 ** 20;

/** A reading each second, in MiB. */
function textOf(values: readonly number[]): string | null {
  const readings = {
    times: values.map((_, n) => n * 1000),
    values: values.map((value) => value * MIB),
  };
  const swings = swingsOf(readings);
  return swings === null ? null : swingsText(swings, (values.at(-1) as number) * MIB);
}

const line = (from: number, to: number, seconds: number) =>
  Array.from({ length: seconds }, (_, n) => from + ((to - from) * n) / seconds);

test("a backlog that drains, batches that are released, a buffer that is flushed", () => {
  expect(textOf([...line(14.5, 46.4, 35), ...line(46.4, 15.1, 20), 15.1])).toBe(
    "rose to 46 MiB and fell back to 15 MiB",
  );
  const sawtooth = Array.from({ length: 60 }, (_, n) => 15 + ((n % 10) * 11) / 9);
  expect(textOf(sawtooth)).toBe("swings between 15 MiB and 26 MiB");
  expect(textOf([...line(131, 131, 20), ...line(162, 162, 10), ...line(131, 131, 20)])).toBe(
    "rose to 162 MiB and fell back to 131 MiB",
  );
  expect(textOf([...line(60, 60, 30), ...line(20, 20, 20)])).toBe(
    "began at 60 MiB and fell back to 20 MiB",
  );
  expect(textOf([...line(10, 40, 20), 40, ...line(12, 12, 10), ...line(12, 30, 20), 30])).toBe(
    "rose to 40 MiB, fell to 12 MiB and rose again to 30 MiB",
  );
});

test("growth, a level, noise, and memory that only the start needed do not swing", () => {
  expect(textOf(line(10, 60, 60))).toBeNull();
  expect(textOf(line(50, 50, 60))).toBeNull();
  expect(textOf(Array.from({ length: 60 }, (_, n) => 500 + (n % 2) * 2))).toBeNull();
  expect(textOf([...line(20, 200, 5), ...line(90, 90, 55)])).toBeNull();
  expect(textOf([])).toBeNull();
});

test("the rise of a swing is not growth, unless it goes beyond the swings before", () => {
  const within = (values: readonly number[]) =>
    isWithinSwings({
      times: values.map((_, n) => n * 1000),
      values: values.map((value) => value * MIB),
    });
  const tooth = (high: number) => [...line(12, high, 18), high, 12];
  expect(within([...tooth(19), ...tooth(19), ...tooth(19)])).toBe(true);
  expect(within([...tooth(19), ...tooth(19), ...line(12, 18, 20)])).toBe(true);
  expect(within([...tooth(19), ...tooth(19), ...line(12, 30, 20)])).toBe(false);
  expect(within(line(10, 60, 60))).toBe(false);
});
