/**
 * Single words of a program's memory, read through small cached pages. Only resident pages are read, so reading
 * does not enlarge the program. A page is read only once, so one reading sees one state of it; create a new
 * reader for the next reading.
 */
import { itemAt, uint32At } from "../../model/base/columns.js";
import type { Address } from "../../model/base/units.js";
import type { Memory } from "./memory.js";

const PAGE = 4096;
/**
 * Number of cached pages; a power of two. Memory for them is allocated a few at a time, because most readings
 * need few.
 */
const SLOTS = 256;
const SLOTS_A_SLAB = 16;
const WORDS_A_PAGE = PAGE / 4;
/** Number of bytes whose residency is requested at once. */
const STRETCH = 2 ** 21;
const HIGH = 2 ** 32;

export class ResidentWords {
  readonly #memory: Memory;
  /** Slabs of {@link SLOTS_A_SLAB} pages each. */
  readonly #slabs: Uint32Array[] = [];
  /** Index of the word that was located last. */
  #at = 0;
  readonly #pages = new Float64Array(SLOTS).fill(-1);
  readonly #present = new Map<number, Uint8Array>();

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  /** Drops the cached pages, for a second attempt after the first saw an unfinished change. */
  forget(): void {
    this.#pages.fill(-1);
    this.#present.clear();
  }

  /**
   * The 64-bit word at an address; NaN if the page is not resident or not readable, or the address is not aligned (a
   * pointer that changed while it was read). Words above 2^53 lose their lowest bits; they are neither addresses nor sizes.
   */
  word(address: Address): number {
    const slab = this.#locate(address, 8);
    const at = this.#at;
    return slab === null ? Number.NaN : uint32At(slab, at) + uint32At(slab, at + 1) * HIGH;
  }

  /** The 32-bit word at an address; NaN as for {@link word}. */
  word32(address: Address): number {
    const slab = this.#locate(address, 4);
    return slab === null ? Number.NaN : uint32At(slab, this.#at);
  }

  /** The slab that contains an address, with the index in `#at`; null if it cannot be read. */
  #locate(address: Address, alignment: 4 | 8): Uint32Array | null {
    if (!(address >= PAGE && address < 2 ** 47 && address % alignment === 0)) {
      return null;
    }
    const page = Math.floor(address / PAGE);
    const slot = page % SLOTS;
    if (this.#pages[slot] !== page && !this.#load(page, slot)) {
      return null;
    }
    this.#at = (slot % SLOTS_A_SLAB) * WORDS_A_PAGE + (address - page * PAGE) / 4;
    return itemAt(this.#slabs, Math.floor(slot / SLOTS_A_SLAB));
  }

  #load(page: number, slot: number): boolean {
    this.#pages[slot] = -1;
    if (this.#presence(page) === 0) {
      return false;
    }
    const number = Math.floor(slot / SLOTS_A_SLAB);
    this.#slabs[number] ??= new Uint32Array(SLOTS_A_SLAB * WORDS_A_PAGE);
    const target = new Uint8Array(this.#slabs[number].buffer, (slot % SLOTS_A_SLAB) * PAGE, PAGE);
    if (this.#memory.readInto(page * PAGE, target) < PAGE) {
      return false;
    }
    this.#pages[slot] = page;
    return true;
  }

  #presence(page: number): number {
    const perStretch = STRETCH / PAGE;
    const stretch = Math.floor(page / perStretch);
    let bits = this.#present.get(stretch);
    if (bits === undefined) {
      bits = new Uint8Array(perStretch);
      const base = stretch * STRETCH;
      for (const { start, end } of this.#memory.resident(base, base + STRETCH)) {
        bits.fill(1, (start - base) / PAGE, (end - base) / PAGE);
      }
      this.#present.set(stretch, bits);
    }
    return bits[page - stretch * perStretch] ?? 0;
  }
}
