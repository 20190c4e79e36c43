/** Suggestions for a mistyped word. */

/**
 * Names similar to `word`, most similar first: names that begin with it (three letters or more), then names
 * within an edit distance of a third of its length, 3 at most. Upper and lower case count as equal.
 */
export function nearNames(word: string, names: Iterable<string>): string[] {
  const wanted = word.toLowerCase();
  const allowed = Math.min(3, Math.max(1, Math.floor(wanted.length / 3)));
  const near: { name: string; distance: number }[] = [];
  for (const name of new Set(names)) {
    const candidate = name.toLowerCase();
    if (wanted.length >= 3 && candidate.startsWith(wanted)) {
      near.push({ name, distance: 0.5 });
    } else if (Math.abs(candidate.length - wanted.length) <= allowed) {
      const distance = editDistance(wanted, candidate);
      // A short name must share a part with the word: `-x` is not a mistyped `-q`.
      if (distance <= allowed && distance < Math.max(wanted.length, candidate.length) / 2) {
        near.push({ name, distance });
      }
    }
  }
  return near
    .sort((a, b) => a.distance - b.distance || a.name.length - b.name.length)
    .map(({ name }) => name);
}

/** "; did you mean X?" for a message, "" if nothing is similar. */
export function didYouMean(word: string, names: Iterable<string>): string {
  const [nearest] = nearNames(word, names);
  return nearest === undefined ? "" : `did you mean ${nearest}?`;
}

/** Insertions, deletions, substitutions and swaps of neighbours between two words (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let distance = Math.min(
        (last[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (last[column - 1] as number) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        distance = Math.min(distance, (beforeLast[column - 2] as number) + 1);
      }
      current.push(distance);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] as number;
}
