/** The search for the largest batch and the longest sequence that fit. */

export interface Search {
  readonly fits: (value: number) => boolean;
  /** About how much of the device a value takes, as a share of it: where the search starts. */
  readonly shareOf: (value: number) => number;
  /** A row of a table, which has many: large numbers are rounded down to 5 bits, and fewer smaller ones are tried. */
  readonly isRow: boolean;
  /** Called where a smaller number than the largest one found does not fit. @param found the latter, which is not returned */
  readonly onHole?: (found: number) => void;
}

/**
 * The largest whole number up to `limit` that fits, next to one that does not; 0 where 1 does not fit. All smaller numbers
 * fit, too: gaps of the allocator come and go with sizes, so that one that fits may lie behind one that does not.
 */
export function largest(limit: number, search: Search): number {
  if (!search.fits(1)) {
    return 0;
  }
  const found = border(limit, search);
  const most = withoutHoles(found, search);
  if (most < found) {
    search.onHole?.(found);
  }
  return most;
}

/** Of the steps of a row: 1 up to 31, 2 up to 63, 4 up to 127. */
const ROW_STEPS = 16;

/** A number that fits next to one that does not. */
function border(limit: number, { fits, shareOf, isRow }: Search): number {
  const rough = guessed(limit, shareOf);
  const grain = isRow ? 2 ** Math.max(0, Math.floor(Math.log2(rough / ROW_STEPS))) : 1;
  const guess = Math.floor(rough / grain) * grain;
  let low = 1;
  let high = limit + 1;
  let step = grain;
  if (guess === 1 || fits(guess)) {
    low = guess;
    while (low < limit && fits(Math.min(limit, low + step))) {
      low = Math.min(limit, low + step);
      step *= 2;
    }
    high = Math.min(limit + 1, low + step);
  } else {
    high = guess;
    while (high - step > 1 && !fits(high - step)) {
      high -= step;
      step *= 2;
    }
    low = Math.max(1, high - step);
  }
  while (high - low > grain) {
    const middle = low + grain * Math.max(1, Math.floor((high - low) / (2 * grain)));
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Below this share of what the border's tensors take, gaps do not decide. */
const SURE_SHARE = 0.85;

/** Smaller numbers that are tried below the border: all of them, if there are no more. */
const TRIED = 64;
const TRIED_OF_ROW = 2;

function withoutHoles(found: number, { fits, shareOf, isRow }: Search): number {
  const tried = isRow ? TRIED_OF_ROW : TRIED;
  const sure = shareOf(found) * SURE_SHARE;
  const stride = Math.max(1, Math.floor(found / tried));
  let low = found;
  for (let value = found - stride; value >= 1 && shareOf(value) > sure; value -= stride) {
    if (!fits(value)) {
      low = value - 1;
      while (low > 1 && !fits(low)) {
        low -= 1;
      }
      value = low;
    }
  }
  return low;
}

/** Where tensors usually end on a full device: the allocator's gaps take the rest. */
const USUAL_SHARE = 0.96;

/** Doubles until it is too much, then interpolates. */
function guessed(limit: number, shareOf: (value: number) => number): number {
  let low = 1;
  let below = shareOf(1);
  while (low < limit) {
    const high = Math.min(limit, low * 2);
    const above = shareOf(high);
    if (above > USUAL_SHARE) {
      const share = (USUAL_SHARE - below) / (above - below);
      return Math.max(1, Math.floor(low + share * (high - low)));
    }
    low = high;
    below = above;
  }
  return limit;
}
