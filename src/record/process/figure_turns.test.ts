import { expect, test } from "vitest";
import { parseStat } from "../../linux/process/process.js";
import { present } from "../../model/base/present.js";
import type { Metric } from "../../model/profile/series.js";
import { FigureTurns } from "./figure_turns.js";

const EVERY_MS = 20_000;

/** A stat line with these figures. */
function stat({ vms = 1000, threads = 1, stack = 140000 } = {}) {
  return present(
    parseStat(
      `42 (a) S 7 42 42 0 -1 0 1 2 3 4 150 25 0 0 20 0 ${threads} 0 9876 ${vms} 50 0 1 2 ${stack} 0 0\n`,
    ),
  );
}

/** Polls at which all figures were read. */
function polledFully(
  polls: readonly {
    readonly now?: ReturnType<typeof stat>;
    readonly rss?: number;
    readonly openFiles?: number;
  }[],
  everyMs = EVERY_MS,
): number[] {
  const turns = new FigureTurns();
  return polls.flatMap(({ now = stat(), rss = 50, openFiles = 3 }, at) => {
    const timeMs = 1_700_000_000_000 + at * everyMs;
    if (!turns.isDue(now, rss, timeMs)) {
      return [];
    }
    const figures = new Map<Metric, number>([
      ["rssBytes", rss],
      ["openFiles", openFiles],
    ]);
    turns.read(now, figures, timeMs);
    return [at];
  });
}

const flat = (count: number) => Array.from({ length: count }, () => ({}));

test("all figures of a process that does not change are read at most every five polls", () => {
  expect(polledFully(flat(25))).toEqual([0, 1, 3, 7, 12, 17, 22]);
});

test("they are never read more than 100 seconds apart", () => {
  expect(polledFully(flat(6), 60_000)).toEqual([0, 1, 3, 5]);
  expect(polledFully(flat(4), 100_000)).toEqual([0, 1, 2, 3]);
});

test.each([
  ["RSS", { rss: 51 }],
  ["mappings", { now: stat({ vms: 1001 }) }],
  ["threads", { now: stat({ threads: 2 }) }],
  ["an exec", { now: stat({ stack: 140001 }) }],
])(
  "%s: a change is followed by a full reading at the same poll, and short distances",
  (_, changed) => {
    const polls = [...flat(20), ...Array.from({ length: 5 }, () => changed)];
    expect(polledFully(polls)).toEqual([0, 1, 3, 7, 12, 17, 20, 21, 23]);
  },
);

test("a process that grows is read at each poll", () => {
  const polls = Array.from({ length: 8 }, (_, at) => ({ rss: 50 + at }));
  expect(polledFully(polls)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

test("figures that only a full reading shows return to short distances, too", () => {
  const polls = [...flat(17), ...Array.from({ length: 6 }, (_, at) => ({ openFiles: 4 + at }))];
  expect(polledFully(polls)).toEqual([0, 1, 3, 7, 12, 17, 18, 19, 20, 21, 22]);
});
