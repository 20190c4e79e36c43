/**
 * Maps an address to the object there in a few instructions: each 16 bytes of the copy have one bit, which
 * marks the start of an object, and each 32 bits are stored with the number of objects before them.
 */
import type { NodeId } from "../../../model/heap/heap_graph.js";
import type { HeapPages } from "../memory/heap_pages.js";
import { PAGE } from "../memory/page_directory.js";

const GROUPS_A_PAGE = 8;
/**
 * One byte per MiB over 256 GiB. Most words do not point to an object, and this table detects that without
 * reading their page.
 */
const PLACES = 2 ** 18;

/**
 * Returns the object at an address given in halves; 0 if there is none. `low` may be negative: as a signed number it is
 * passed without being boxed.
 */
export interface ObjectIndex {
  find(low: number, high: number): NodeId;
}

export class NodeIndex implements ObjectIndex {
  readonly #bits: Uint32Array;
  readonly #before: Uint32Array;
  readonly #places = new Uint8Array(PLACES);

  /** `addresses` ascending; the object at `addresses[n]` is node `first + n`. */
  constructor(
    readonly copy: HeapPages,
    addresses: Float64Array,
    readonly first: NodeId,
  ) {
    this.#bits = new Uint32Array(copy.pages * GROUPS_A_PAGE);
    this.#before = new Uint32Array(copy.pages * GROUPS_A_PAGE);
    const [bits, before] = [this.#bits, this.#before];
    let page = 0;
    let pageEnd = 0;
    for (let n = 0; n < addresses.length; n++) {
      const address = addresses[n] ?? 0;
      const low = address >>> 0;
      if (address >= pageEnd) {
        const high = Math.floor(address / 2 ** 32);
        page = copy.pageAt(low, high);
        pageEnd = address - (address % PAGE) + PAGE;
        this.#places[placeOf(low, high)] = 1;
      }
      const group = page * GROUPS_A_PAGE + ((low & 0xfff) >>> 9);
      const known = bits[group] ?? 0;
      if (known === 0) {
        before[group] = first + n;
      }
      bits[group] = known | (1 << ((low >>> 4) & 31));
    }
  }

  /** The object that begins at an address given in halves; 0 if there is none. */
  find(low: number, high: number): NodeId {
    if ((low & 15) !== 0 || this.#places[placeOf(low, high)] === 0) {
      return 0;
    }
    const page = this.copy.pageAt(low, high);
    if (page === 0) {
      return 0;
    }
    const group = page * GROUPS_A_PAGE + ((low & 0xfff) >>> 9);
    const bits = this.#bits[group] ?? 0;
    const bit = (low >>> 4) & 31;
    if (((bits >>> bit) & 1) === 0) {
      return 0;
    }
    return (this.#before[group] ?? 0) + countBits(bits & ((1 << bit) - 1));
  }

  /** Whether any object begins in the page that contains an address. */
  isInPageOf(address: number): boolean {
    const page = this.copy.pageAt(address >>> 0, Math.floor(address / 2 ** 32));
    const first = page * GROUPS_A_PAGE;
    return page !== 0 && this.#bits.subarray(first, first + GROUPS_A_PAGE).some((bits) => bits > 0);
  }

  at(address: number): NodeId {
    return this.find(address >>> 0, Math.floor(address / 2 ** 32));
  }
}

function placeOf(low: number, high: number): number {
  return ((high << 12) | (low >>> 20)) & (PLACES - 1);
}

function countBits(bits: number): number {
  let sum = bits - ((bits >>> 1) & 0x55555555);
  sum = (sum & 0x33333333) + ((sum >>> 2) & 0x33333333);
  return Math.imul((sum + (sum >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
