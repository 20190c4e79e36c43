/** The fields of the current dictionary by key. Reading the next one invalidates them without clearing. */
import type { PickleMachine } from "../pickle/pickle_machine.js";
import type { StringPool } from "../pickle/string_pool.js";
import { Kind } from "../pickle/token.js";
import { KEYS, keyOf, NO_KEY } from "./snapshot_keys.js";

/** No key is longer, so longer strings need not be decoded to see that they are not keys. */
const LONGEST_KEY = 24;

export class DictionaryFields {
  /** Tokens by key; valid for this dictionary only if {@link has} is true. */
  readonly kinds = new Uint8Array(KEYS.length);
  readonly values = new Float64Array(KEYS.length);
  readonly #seen = new Uint32Array(KEYS.length);
  #turn = 0;
  /** For each string id: the key of a snapshot it is. */
  #keys = new Uint8Array(256).fill(NO_KEY);
  #keysKnown = 0;

  constructor(readonly strings: StringPool) {}

  read(machine: PickleMachine, from: number, to: number): void {
    const { kinds, values } = machine;
    this.#turn += 1;
    for (let at = from; at + 1 < to; at += 2) {
      if (kinds[at] === Kind.string) {
        const key = this.#keyOf(values[at] ?? 0);
        if (key !== NO_KEY) {
          this.#seen[key] = this.#turn;
          this.kinds[key] = kinds[at + 1] ?? 0;
          this.values[key] = values[at + 1] ?? 0;
        }
      }
    }
  }

  #keyOf(id: number): number {
    if (id >= this.#keysKnown) {
      if (this.strings.length > this.#keys.length) {
        const grown = new Uint8Array(this.strings.length * 2).fill(NO_KEY);
        grown.set(this.#keys);
        this.#keys = grown;
      }
      for (; this.#keysKnown < this.strings.length; this.#keysKnown++) {
        const id = this.#keysKnown;
        this.#keys[id] =
          this.strings.size(id) > LONGEST_KEY ? NO_KEY : keyOf(this.strings.text(id));
      }
    }
    return this.#keys[id] ?? 0;
  }

  has(key: number): boolean {
    return this.#seen[key] === this.#turn;
  }

  hasAny(keys: readonly number[]): boolean {
    return keys.some((key) => this.has(key));
  }

  /** Bytes or an address. */
  size(machine: PickleMachine, key: number): number {
    const value = this.values[key] ?? 0;
    if (!this.has(key) || this.kinds[key] !== Kind.number || !(value >= 0)) {
      throw machine.damaged(`"${KEYS[key]}" is not a size or address`);
    }
    if (!Number.isSafeInteger(value)) {
      throw machine.damaged(`"${KEYS[key]}" is larger than any address`);
    }
    return value;
  }

  numberOr(key: number, otherwise: number): number {
    return this.has(key) && this.kinds[key] === Kind.number ? (this.values[key] ?? 0) : otherwise;
  }

  finiteOr(key: number, otherwise: number): number {
    const value = this.numberOr(key, otherwise);
    return Number.isFinite(value) ? value : otherwise;
  }

  text(key: number): string {
    return this.has(key) && this.kinds[key] === Kind.string
      ? this.strings.text(this.values[key] ?? 0)
      : "";
  }

  /** String id of a text or record; 0 otherwise. */
  textId(key: number): number {
    const kind = this.kinds[key] ?? 0;
    return this.has(key) && (kind === Kind.string || kind === Kind.record)
      ? (this.values[key] ?? 0)
      : 0;
  }
}
