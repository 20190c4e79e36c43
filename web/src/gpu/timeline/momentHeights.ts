/** Finds the highest moment of any range quickly, using the precomputed highest moment of each piece. */
import { float64At, uint32At } from "../../../../src/model/base/columns.js";

const PIECE = 64;

export class MomentHeights {
  /** The first highest moment of each piece. */
  readonly #highest: Uint32Array;

  /** @param values one per moment */
  constructor(readonly values: Float64Array) {
    this.#highest = new Uint32Array(Math.ceil(values.length / PIECE));
    for (let piece = 0; piece < this.#highest.length; piece++) {
      this.#highest[piece] = this.#scan(
        piece * PIECE,
        Math.min(values.length, (piece + 1) * PIECE),
      );
    }
  }

  /** The first highest moment of `[from, to)`; the last moment if the range is after it. */
  highest(from: number, to: number): number {
    const last = this.values.length - 1;
    const end = Math.min(to, last + 1);
    if (from >= end) {
      return Math.max(0, Math.min(from, last));
    }
    const firstWhole = Math.ceil(from / PIECE);
    const lastWhole = Math.floor(end / PIECE);
    if (lastWhole <= firstWhole) {
      return this.#scan(from, end);
    }
    let highest = from < firstWhole * PIECE ? this.#scan(from, firstWhole * PIECE) : from;
    for (let piece = firstWhole; piece < lastWhole; piece++) {
      if (
        float64At(this.values, uint32At(this.#highest, piece)) > float64At(this.values, highest)
      ) {
        highest = uint32At(this.#highest, piece);
      }
    }
    const rest = lastWhole * PIECE < end ? this.#scan(lastWhole * PIECE, end) : highest;
    return float64At(this.values, rest) > float64At(this.values, highest) ? rest : highest;
  }

  #scan(from: number, to: number): number {
    let highest = from;
    for (let moment = from + 1; moment < to; moment++) {
      if (float64At(this.values, moment) > float64At(this.values, highest)) {
        highest = moment;
      }
    }
    return highest;
  }
}
