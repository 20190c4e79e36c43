/**
 * Numbers the pages of a program's memory:
 *
 *   address / 64 MiB -> table of 16,384 pages -> number of the page, from 1 on (0: none)
 */
import type { Address } from "../../../model/base/units.js";

export const PAGE = 4096;
const PAGES_A_TABLE = 2 ** 14;
const TABLE_BYTES = PAGE * PAGES_A_TABLE;

export class PageDirectory {
  readonly #tables = new Map<number, Uint32Array>();
  #lastTable = -1;
  #last: Uint32Array | undefined;

  /** The number of the page that contains an address given in halves; 0 if there is none. */
  find(low: number, high: number): number {
    const number = high * 64 + (low >>> 26);
    if (number !== this.#lastTable) {
      this.#lastTable = number;
      this.#last = this.#tables.get(number);
    }
    return this.#last === undefined ? 0 : (this.#last[(low >>> 12) & (PAGES_A_TABLE - 1)] ?? 0);
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
    this.#lastTable = -1;
  }

  clear(): void {
    this.#tables.clear();
    this.#lastTable = -1;
  }
}
