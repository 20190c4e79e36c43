import { describe, expect, test } from "vitest";
import { swellingOf } from "./swelling.js";

const MIB = 2 ** 20;

/** Snapshots are a second apart. */
function swelling(live: readonly number[]) {
  const largeBytes = Float64Array.from(live, (mib) => mib * MIB);
  const snapshotTimes = live.map((_, snapshot) => snapshot * 1000);
  return swellingOf({ largeBytes }, { snapshotTimes }, 0);
}

describe("a block that is replaced by larger ones", () => {
  /** A snapshot taken while a new block is created contains both blocks; numpy.concatenate, fifty times a second. */
  const concatenated = [
    0, 9, 11, 13, 30, 17, 37, 40, 22, 48, 26, 28, 31, 34, 72, 40, 87, 48, 105, 115,
  ];

  test("is found, although the last snapshots contain the old and the new block", () => {
    const found = swelling(concatenated);
    expect((found?.keptBytes ?? 0) / MIB).toBeGreaterThan(25);
    expect((found?.keptBytes ?? 0) / MIB).toBeLessThan(45);
  });

  test.each([
    [
      "always of one size, whatever moment the snapshot catches",
      concatenated.map((_, n) => (n % 2 === 0 ? 20 : 40)),
    ],
    ["filled and emptied again", concatenated.map((_, n) => 5 + (n % 5) * 10)],
    [
      "twice as large all at once, and so from then on",
      concatenated.map((_, n) => (n < 15 ? 20 : 40)),
    ],
  ])("%s: not swelling", (_name, live) => {
    expect(swelling(live)).toBeNull();
  });
});
