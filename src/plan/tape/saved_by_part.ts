import type { Bytes } from "../../model/base/units.js";
import { TAPE_PARTS, type TapePart } from "./tape.js";

const PART_INDEX = new Map<TapePart, number>(TAPE_PARTS.map((part, index) => [part, index]));

/** Bytes by part, which are copied at each new peak. */
export class SavedByPart {
  readonly #bytes = new Float64Array(TAPE_PARTS.length);

  add(part: TapePart, bytes: Bytes): void {
    const index = PART_INDEX.get(part) as number;
    this.#bytes[index] = (this.#bytes[index] as number) + bytes;
  }

  copy(other: SavedByPart): void {
    this.#bytes.set(other.#bytes);
  }

  asMap(): Map<TapePart, Bytes> {
    const all = TAPE_PARTS.map((part, index) => [part, this.#bytes[index] as number] as const);
    return new Map(all.filter(([, bytes]) => bytes !== 0));
  }
}
