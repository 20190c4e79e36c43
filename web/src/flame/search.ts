/** The rectangles that a search finds, and their share of the total. */
import { float64At, uint32At } from "../../../src/model/base/columns.js";
import type { FlameLayout } from "./layout.js";

export interface SearchMatches {
  readonly nodes: number;
  /** Share of the total, 0 to 1; nested matches count once. */
  readonly share: number;
  /** First matching position, or -1. */
  readonly first: number;
  /** Matches among positions [from, to). */
  countBetween(from: number, to: number): number;
  /** The next match after a position, wrapping around; -1 if there is none. */
  next(position: number, step: 1 | -1): number;
}

/** `frameMatches` by frame; `frameOf` by position. */
export function findMatches(
  layout: FlameLayout,
  frameOf: (position: number) => number,
  frameMatches: Uint8Array,
): SearchMatches {
  const positions = layout.node.length;
  const before = new Uint32Array(positions + 1);
  /** 1 if the rectangle or one of its ancestors matches, so that its width is already counted. */
  const covered = new Uint8Array(positions);
  let matchedWidth = 0;
  for (let at = 0; at < positions; at++) {
    // The root is not a frame, so it never matches.
    const matches = at > 0 && frameMatches[frameOf(at)] === 1;
    before[at + 1] = uint32At(before, at) + (matches ? 1 : 0);
    const inside = at > 0 && covered[uint32At(layout.parent, at)] === 1;
    if (matches && !inside) {
      matchedWidth += float64At(layout.end, at) - float64At(layout.start, at);
    }
    covered[at] = matches || inside ? 1 : 0;
  }
  const total = positions > 0 ? float64At(layout.end, 0) - float64At(layout.start, 0) : 0;
  const isMatch = (at: number) => uint32At(before, at + 1) > uint32At(before, at);

  return {
    nodes: uint32At(before, positions),
    share: total > 0 ? matchedWidth / total : 0,
    first: firstWithCount(1),
    countBetween: (from, to) => uint32At(before, to) - uint32At(before, from),
    next(position, step) {
      const count = uint32At(before, positions);
      if (count === 0) {
        return -1;
      }
      const rank =
        uint32At(before, Math.max(position, 0)) + (position >= 0 && isMatch(position) ? 1 : 0);
      const wanted = step === 1 ? rank + 1 : rank - (position >= 0 && isMatch(position) ? 1 : 0);
      return firstWithCount(((wanted - 1 + count) % count) + 1);
    },
  };

  /** Position of the `count`-th match, by binary search in the ascending counts. */
  function firstWithCount(count: number): number {
    if (count < 1 || count > uint32At(before, positions)) {
      return -1;
    }
    let low = 0;
    let high = positions;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (uint32At(before, middle) < count) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }
}
