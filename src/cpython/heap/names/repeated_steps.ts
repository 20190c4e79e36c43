/** The steps along a chain (tracebacks, linked nodes) are the same, often thousands of times. */
const LONGEST_PERIOD = 3;
const FEWEST_REPEATS = 4;

/** The steps once, and how many repetitions follow. */
export function withoutRepeats(words: readonly string[]): string[] {
  const shown: string[] = [];
  for (let at = 0; at < words.length; ) {
    let [length, times] = [1, 1];
    for (let period = 1; period <= LONGEST_PERIOD; period++) {
      let same = 0;
      while (
        words[at + period + same] !== undefined &&
        words[at + period + same] === words[at + same]
      ) {
        same += 1;
      }
      const repeats = 1 + Math.floor(same / period);
      if (repeats >= FEWEST_REPEATS && repeats * period > length * times) {
        [length, times] = [period, repeats];
      }
    }
    shown.push(...words.slice(at, at + length));
    if (times > 1) {
      shown.push(`${times - 1} more of the same`);
    }
    at += length * times;
  }
  return shown;
}
