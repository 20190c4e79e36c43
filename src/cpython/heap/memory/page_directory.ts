/**
 * Numbers the pages of a program's memory:
 *
 *   address / 64 MiB -> table of 16,384 pages -> number of the page, from 1 on (0: none)
 */
import type { Address } from "../../../model/base/units.js";

export const PAGE = 4096;
const PAGES_A_TABLE = 2 ** 14;
const TABLE_BYTES = PAGE * PAGES_A_TABLE;
/** Tables that are found without a search: references go back and forth between a few parts of a heap. */
const RECENT = 64;
const NO_TABLE = new Uint32Array(0);

export class PageDirectory {
  readonly #tables = new Map<number, Uint32Array>();
  /** Recently used tables and their numbers, by the last bits of the number. NaN: none. */
  readonly #numbers = new Float64Array(RECENT).fill(Number.NaN);
  readonly #recent: Uint32Array[] = Array.from({ length: RECENT }, () => NO_TABLE);

  /** The number of the page that contains an address given in halves; 0 if there is none. */
  find(low: number, high: number): number {
    const number = high * 64 + (low >>> 26);
    const place = number & (RECENT - 1);
    if (this.#numbers[place] !== number) {
      this.#numbers[place] = number;
      this.#recent[place] = this.#tables.get(number) ?? NO_TABLE;
    }
    return this.#recent[place]?.[(low >>> 12) & (PAGES_A_TABLE - 1)] ?? 0;
  }

  at(address: Address): number {
    return this.find(address >>> 0, Math.floor(address / 2 ** 32));
  }

  enter(address: Address, page: number): void {
    const number = Math.floor(address / TABLE_BYTES);
    let table = this.#tables.get(number);
    if (table === undefined) {
      table = new Uint32Array(PAGES_A_TABLE);
      this.#tables.set(number, table);
    }
    table[Math.floor(address / PAGE) % PAGES_A_TABLE] = page;
    this.#numbers[number & (RECENT - 1)] = Number.NaN;
  }

  clear(): void {
    this.#tables.clear();
    this.#numbers.fill(Number.NaN);
  }
}
