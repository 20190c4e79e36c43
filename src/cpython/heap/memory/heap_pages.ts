/** The pages of a program's memory from which a graph is built: a copy of one moment, or windows onto the program. */
import type { AddressRange, Memory } from "../../../linux/memory/memory.js";
import type { Address, Bytes } from "../../../model/base/units.js";

export interface HeapPages extends Memory {
  /** The program itself. */
  readonly source: Memory;
  /** The held pages, as u32. */
  readonly words: Uint32Array;
  /** The pages that can be read here, ascending. */
  readonly ranges: readonly AddressRange[];
  /** Their size. */
  readonly bytes: Bytes;
  /** Every page number is below this. */
  readonly pages: number;
  /** Each object is read from the program when it is visited, not at one moment. */
  readonly isLive: boolean;

  /** Number of the page that contains an address given in halves; 0 if it cannot be read here. */
  pageAt(low: number, high: number): number;
  /**
   * Index in `words` of an address; -1 if it cannot be read here. Valid to the end of the page, and until a few other
   * pages were asked for.
   */
  index(address: Address): number;
  /** A word as a Number; -1 if it cannot be read here. */
  word(address: Address): number;
  /** Reads the current contents of a range. Pages that are new are added if there is room. */
  renew(start: Address, bytes: Bytes): void;
  /** Later readers find the contents that are held now, as far as there is room: the program may have others soon. */
  keep(start: Address, bytes: Bytes): void;
  /** All contents once, ascending; the array is valid until the next step. */
  contents(): Iterable<{ readonly start: Address; readonly words: Uint32Array }>;
}
