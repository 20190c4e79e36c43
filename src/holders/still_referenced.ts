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

/** Passes at different moments: a container may move during each of them. */
const PASSES = 6;
/** Larger memory is not searched that often, so nothing is concluded. */
const LARGEST: Bytes = 2 ** 28;
/** If words refer to this share of the objects, their container exists, and the others are in it as well. */
const ENOUGH = 0.5;

/**
 * The addresses that some word in the program's memory refers to now. All of them if the program ended or its memory is
 * too large, because then nothing shows that no word does.
 */
export function stillReferenced(
  memory: Memory,
  objects: ReadonlySet<Address>,
): ReadonlySet<Address> {
  const found = new Set<Address>();
  for (let pass = 0; pass < PASSES && found.size < ENOUGH * objects.size; pass++) {
    if (pass > 0) {
      pause();
    }
    if (!memory.refresh()) {
      return objects;
    }
    const ranges = copyRanges(memory, []);
    if (sumOf(ranges) > LARGEST) {
      return objects;
    }
    const missing = [...objects].filter((address) => !found.has(address));
    const wanted = new Map(missing.map((address, row) => [address, row]));
    for (const { row } of wordsTo(contentsOf(memory, ranges), wanted)) {
      found.add(missing[row] ?? 0);
    }
  }
  return found;
}
