/** A readable holder path: a chain of a thousand nodes is shown as one step and a count. */
import { formatExactCount } from "../../model/base/numbers.js";

/** Most steps that form one link of a chain: ".next", or ".next" and "dict[...]" and so on. */
const LONGEST_LINK = 4;
const FEWEST_LINKS = 3;
/** Most steps if no chain repeats; both ends are kept, because readers start there. */
const MOST_STEPS = 24;

export function shortPath(path: readonly string[]): string[] {
  const short: string[] = [];
  for (let at = 0; at < path.length; ) {
    const { length, links } = chainAt(path, at);
    if (links >= FEWEST_LINKS) {
      short.push(`${path.slice(at, at + length).join(" → ")} × ${formatExactCount(links)}`);
      at += length * links;
    } else {
      short.push(path[at] as string);
      at += 1;
    }
  }
  if (short.length <= MOST_STEPS) {
    return short;
  }
  const half = MOST_STEPS / 2;
  const left = short.length - MOST_STEPS + 1;
  return [...short.slice(0, half), `… ${left} steps …`, ...short.slice(1 - half)];
}

/** The longest run of equal links that begins here; among equally long runs, the one with the shortest link. */
function chainAt(path: readonly string[], at: number): { length: number; links: number } {
  let best = { length: 1, links: 1 };
  for (let length = 1; length <= LONGEST_LINK; length++) {
    let links = 1;
    while (sameLink(path, at, at + links * length, length)) {
      links += 1;
    }
    if (links >= FEWEST_LINKS && links * length > best.links * best.length) {
      best = { length, links };
    }
  }
  return best;
}

function sameLink(path: readonly string[], first: number, other: number, length: number): boolean {
  for (let i = 0; i < length; i++) {
    if (other + i >= path.length || path[first + i] !== path[other + i]) {
      return false;
    }
  }
  return true;
}

/** Whether one path is a prefix of the other. */
export function isSamePlace(a: readonly string[] = [], b: readonly string[] = []): boolean {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  return short.length > 0 && short.every((step, n) => step === long[n]);
}
