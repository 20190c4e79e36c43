import { float64At } from "../model/base/columns.js";
import type { Address } from "../model/base/units.js";

/** Address ranges as two growing columns; millions of free chunks are usual. */
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

  /** The same ranges by address; where they overlap (memory that changed while it was read), the later
   * one gives way. */
  sorted(): RangeColumns {
    const order = Uint32Array.from(this.starts, (_, index) => index);
    order.sort((a, b) => float64At(this.#starts, a) - float64At(this.#starts, b));
    const result = new RangeColumns();
    let before = 0;
    for (const index of order) {
      const start = Math.max(before, float64At(this.#starts, index));
      const end = float64At(this.#ends, index);
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
