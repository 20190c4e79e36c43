/** The unpickler's stack of values, and the marks between them. */
import { Kind } from "./token.js";

/** Below all values: {@link Kind.none}, so that the place of a value that is missing can be read. */
export const NOWHERE = 0;
export const BOTTOM = NOWHERE + 1;
const DEEPEST = 1000;
const MOST_VALUES = 48 * 2 ** 20;

interface Errors {
  damaged(detail: string): Error;
  tooLarge(what: string, limit: string): Error;
}

export class TokenStack {
  kinds = new Uint8Array(1024);
  values = new Float64Array(1024);
  /** The place of the next value. */
  top = BOTTOM;
  readonly #marks = new Uint32Array(DEEPEST);
  #depth = 0;

  constructor(readonly errors: Errors) {
    this.kinds[NOWHERE] = Kind.none;
  }

  push(kind: number, value: number): void {
    if (this.top === this.kinds.length) {
      this.grow();
    }
    this.kinds[this.top] = kind;
    this.values[this.top++] = value;
  }

  grow(): void {
    const size = this.kinds.length;
    if (size >= MOST_VALUES) {
      throw this.errors.tooLarge("a list", `${MOST_VALUES} values`);
    }
    const kinds = new Uint8Array(size * 2);
    kinds.set(this.kinds);
    this.kinds = kinds;
    const values = new Float64Array(size * 2);
    values.set(this.values);
    this.values = values;
  }

  setMark(): void {
    if (this.#depth >= DEEPEST) {
      throw this.errors.damaged("values are nested too deeply");
    }
    this.#marks[this.#depth++] = this.top;
  }

  /** Removes the last mark. @returns the place of the first value behind it */
  takeMark(): number {
    if (this.#depth === 0) {
      throw this.errors.damaged("a container ends that never began");
    }
    return this.#marks[--this.#depth] ?? 0;
  }

  /** Values below it belong to an outer container. */
  get floor(): number {
    return this.#depth === 0 ? BOTTOM : (this.#marks[this.#depth - 1] ?? 0);
  }
}
