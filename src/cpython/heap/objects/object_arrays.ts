/**
 * Numpy arrays of objects, whose data is a block of references:
 *
 *   PyArrayObject   16 data  24 dimensions, i32  32 their sizes  56 descriptor, which has its kind at 24
 */

import type { Address } from "../../../model/base/units.js";

const MOST_DIMENSIONS = 64;
const OBJECT_KIND = 79; // "O"

/** Number of references; 0 if it is another array. `word`: a word of memory as a Number, negative if it is unreadable. */
export function referencesInArray(array: Address, word: (address: Address) => number): number {
  const descriptor = word(array + 56);
  if (!(descriptor > 0) || word(descriptor + 24) % 256 !== OBJECT_KIND) {
    return 0;
  }
  const dimensions = word(array + 24) % 2 ** 32;
  const sizes = word(array + 32);
  let items = dimensions > 0 && dimensions <= MOST_DIMENSIONS ? 1 : 0;
  for (let n = 0; n < dimensions && items > 0; n++) {
    items *= Math.max(0, word(sizes + n * 8));
  }
  return items;
}
