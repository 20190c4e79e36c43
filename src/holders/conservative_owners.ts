/**
 * Finds the object behind a malloc block without a known owner, by following words that could be pointers.
 *
 *     block <── word in a Python object                                    a buffer of that object
 *     block <── word in some structure <── ... <── word in a Python object   a tensor's storage
 *
 * Each pass scans the copy of the heap once for words that point to a wanted address. A word outside any object
 * is in a C structure with an unknown start, so the next pass searches for pointers to any of the addresses
 * shortly before it. A block without an object after a few passes has none within reach.
 */

import { nodeAt, type ObjectGraph } from "../cpython/heap/index.js";
import type { Address } from "../model/base/units.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import { wordsTo } from "./words_to.js";

/** Storage, tensor, object: a tensor's buffer is three steps away; only memory kept by a graph is further. */
const MOST_PASSES = 3;
/** Largest offset of a pointer within a structure. */
const STRUCTURE_BYTES = 160;
/** Offsets in a block at which a target may begin: after headers, and aligned. */
const BLOCK_STARTS = [0, 16, 32, 48, 64];
/** Most words that may point to one address; more are a coincidence. */
const MOST_LEADS = 24;

/** For each address the object that leads to it; 0 if there is none. */
export function conservativeOwners(
  objects: ObjectGraph,
  addresses: readonly Address[],
): readonly NodeId[] {
  const owners = new Uint32Array(addresses.length);
  let wanted = new Map<Address, number>();
  addresses.forEach((address, row) => {
    for (const start of BLOCK_STARTS) {
      wanted.set(address + start, row);
    }
  });
  for (let pass = 0; pass < MOST_PASSES && wanted.size > 0; pass++) {
    const next = new Map<Address, number>();
    const leads = new Uint32Array(addresses.length);
    for (const { place, row } of wordsTo(objects.copy.contents(), wanted)) {
      leads[row] = (leads[row] ?? 0) + 1;
      if (owners[row] !== 0 || leads[row] > MOST_LEADS) {
        continue;
      }
      const node = nodeAt(objects, place);
      if (node !== 0) {
        owners[row] = node;
        continue;
      }
      for (let before = 0; before <= STRUCTURE_BYTES; before += 8) {
        next.set(place - before, row);
      }
    }
    wanted = new Map([...next].filter(([, row]) => owners[row] === 0));
  }
  return Array.from(owners);
}
