import { float64At } from "../model/base/columns.js";
import type { Address } from "../model/base/units.js";

/** Address ranges in two growing columns; millions of free chunks are common. */
export class RangeColumns {
  #starts = new Float64Array(256);
  #ends = new Float64Array(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get starts(): Float64Array {
    return this.#starts.subarray(0, this.#length);
  }

  get ends(): Float64Array {
    return this.#ends.subarray(0, this.#length);
  }

  push(start: Address, end: Address): void {
    if (this.#length === this.#starts.length) {
      this.#starts = grown(this.#starts);
      this.#ends = grown(this.#ends);
    }
    this.#starts[this.#length] = start;
    this.#ends[this.#length] = end;
    this.#length += 1;
  }

  /**
   * The same memory by address, in ranges that do not overlap (ranges read from changing memory may overlap).
   * Starts and ends are sorted separately, which leaves the number of ranges that cover each address unchanged.
   */
  sorted(): RangeColumns {
    const starts = this.starts.slice().sort();
    const ends = this.ends.slice().sort();
    const result = new RangeColumns();
    let before = 0;
    for (let index = 0; index < starts.length; index++) {
      const start = Math.max(before, float64At(starts, index));
      const end = float64At(ends, index);
      if (end > start) {
        result.push(start, end);
        before = end;
      }
    }
    return result;
  }
}

function grown(column: Float64Array): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(column.length * 2);
  larger.set(column);
  return larger;
}
