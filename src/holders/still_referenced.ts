/**
 * Whether anything in a program refers to objects for which a lookup found no holder. A container that the program
 * replaces all the time is in no copy together with its items, so the items seem to have no holder; their addresses are
 * in the program's memory nevertheless, at any moment:
 *
 *   copy      [ container, freed since ]      items without a holder
 *   program   [ container, newer ] ──> items  referred to: the holder was not found
 *   program                            items  nothing refers to them: C code has counted one reference too many
 */

import { copyRanges, sumOf } from "../cpython/heap/memory/copy_plan.js";
import { pause } from "../linux/hold/pause.js";
import type { Memory } from "../linux/memory/memory.js";
import type { Address, Bytes } from "../model/base/units.js";
import { contentsOf, wordsTo } from "./words_to.js";

/** Passes at different moments: a container may be moved during one. */
const MOST_PASSES = 3;
/** Memory that is searched more than once. */
const LARGEST_AGAIN: Bytes = 2 ** 27;

/** The addresses that some word in the program's memory refers to now. */
export function stillReferenced(
  memory: Memory,
  objects: ReadonlySet<Address>,
): ReadonlySet<Address> {
  const found = new Set<Address>();
  for (let pass = 0; pass < MOST_PASSES && found.size < objects.size; pass++) {
    if (pass > 0) {
      pause();
    }
    if (!memory.refresh()) {
      break;
    }
    const missing = [...objects].filter((address) => !found.has(address));
    const ranges = copyRanges(memory, []);
    const wanted = new Map(missing.map((address, row) => [address, row]));
    for (const { row } of wordsTo(contentsOf(memory, ranges), wanted)) {
      found.add(missing[row] ?? 0);
    }
    if (sumOf(ranges) > LARGEST_AGAIN) {
      break;
    }
  }
  return found;
}
