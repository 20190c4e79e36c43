import { describe, expect, test } from "vitest";
import { doublingOf } from "./doubling.js";

const MIB = 2 ** 20;
/** Seconds from the start; the recorder's snapshots become rarer. */
const LOOKS = [0.3, 1.5, 1.8, 2.9, 4.4, 6.6, 10.3, 13.8, 17.2, 20.6, 23.7, 26.7, 30, 34, 38.6];

/** A site with one block, whose size in MiB changes at each of the given times. */
function doubling(steps: readonly (readonly [seconds: number, mib: number])[], snapshots = LOOKS) {
  const snapshotTimes = snapshots.map((snapshot) => snapshot * 1000);
  const largeBytes = Float64Array.from(
    snapshots,
    (snapshot) => (steps.findLast(([seconds]) => seconds <= snapshot)?.[1] ?? 0) * MIB,
  );
  return doublingOf({ largeBytes }, { snapshotTimes });
}

describe("a block that is replaced by a several times larger one whenever it is full", () => {
  test("is recognized by its regularity; it fills at one rate", () => {
    const table = [
      [3, 2.5],
      [4, 5],
      [6, 10],
      [9, 20],
      [15, 40],
      [26, 80],
    ] as const;
    const found = doubling(table);
    expect(found?.keptBytes).toBe(75 * MIB);
    expect(((found?.slope ?? 0) * 1000) / MIB).toBeGreaterThan(1.2);
    expect(((found?.slope ?? 0) * 1000) / MIB).toBeLessThan(2.5);
  });

  test("with a growth factor of 1.5", () => {
    const vector = [2, 3, 4.5, 6.75, 10.1, 15.2, 22.8, 34.2, 51.3].map(
      (mib) => [mib / 1.5, mib * 2] as const,
    );
    expect(doubling(vector)?.keptBytes).toBeGreaterThan(10 * MIB);
  });

  test.each([
    [
      "a start that loads in steps",
      [
        [0, 2],
        [1, 5],
        [2, 10],
        [3, 20],
        [4, 40],
      ],
    ],
    [
      "as large as the largest request so far",
      [
        [1, 3],
        [4, 4.5],
        [10, 11],
        [14, 40],
        [30, 60],
      ],
    ],
    [
      "as much more each time",
      [
        [1, 10],
        [8, 20],
        [15, 30],
        [22, 40],
        [29, 50],
      ],
    ],
    [
      "that doubled and went back",
      [
        [3, 2.5],
        [4, 5],
        [6, 10],
        [9, 20],
        [15, 40],
        [26, 5],
      ],
    ],
    [
      "three times: it may be a start",
      [
        [6, 10],
        [9, 20],
        [15, 40],
        [26, 80],
      ],
    ],
  ] as const)("%s: not doubling", (_name, steps) => {
    expect(doubling(steps)).toBeNull();
  });

  test("not if the next step is long overdue", () => {
    const table = [
      [1, 2.5],
      [1.5, 5],
      [2.5, 10],
      [4, 20],
      [6, 40],
    ] as const;
    expect(doubling(table)).toBeNull();
  });
});
