/**
 * Ids of some rows of a table: a recording has many more stacks than those that samples refer to. 12 bytes for each of
 * them, and 16 to 32 for the index.
 */
import { growingUint32 } from "../../../model/base/growing_column.js";
import { mixHash, RowIndex } from "../../../model/base/row_index.js";

export class KeptIds {
  #index = new RowIndex();
  #rows = growingUint32();
  #ids = new BigUint64Array(this.#rows.capacity);

  get(row: number): bigint | undefined {
    const found = this.#index.find(mixHash(0, row), (place) => this.#rows.at(place) === row);
    return found < 0 ? undefined : this.#ids[found];
  }

  /** Adds a row that has no id yet. */
  add(row: number, id: bigint): void {
    const place = this.#rows.length;
    this.#rows.push(row);
    if (place === this.#ids.length) {
      const longer = new BigUint64Array(this.#rows.capacity);
      longer.set(this.#ids);
      this.#ids = longer;
    }
    this.#ids[place] = id;
    this.#index.add(mixHash(0, row), place);
  }

  clear(): void {
    this.#index = new RowIndex();
    this.#rows = growingUint32();
    this.#ids = new BigUint64Array(this.#rows.capacity);
  }
}
