/**
 * The fields of the current dictionary by key. Almost all dictionaries of a snapshot have the same few lists of keys,
 * so where each field is in such a dictionary is found only once.
 */
import type { PickleMachine } from "../pickle/pickle_machine.js";
import type { StringPool } from "../pickle/string_pool.js";
import { Kind } from "../pickle/token.js";
import { KEYS, keyOf, NO_KEY } from "./snapshot_keys.js";

/** No key is longer, so longer strings need not be decoded to see that they are not keys. */
const LONGEST_KEY = 24;
const MOST_LAYOUTS = 32;
const ABSENT = -1;

/** Dictionaries with the same keys in the same order. */
interface Layout {
  /** String ids; {@link ABSENT} for a key that is not a string. */
  readonly keys: Int32Array;
  /** By key of {@link KEYS}: where its value is among the dictionary's keys and values, or {@link ABSENT}. */
  readonly places: Int32Array;
}

export class DictionaryFields {
  #kinds = new Uint8Array(0);
  #values = new Float64Array(0);
  #from = 0;
  #layout: Layout = { keys: new Int32Array(0), places: new Int32Array(KEYS.length).fill(ABSENT) };
  /** The most recent first. */
  #layouts: Layout[] = [];

  constructor(readonly strings: StringPool) {}

  /** Keys and values are `[from, to)` on the machine's stack, and must stay there while the fields are used. */
  read(machine: PickleMachine, from: number, to: number): void {
    this.#kinds = machine.kinds;
    this.#values = machine.values;
    this.#from = from;
    if (!this.#fits(this.#layout, to)) {
      this.#layout = this.#layouts.find((layout) => this.#fits(layout, to)) ?? this.#newLayout(to);
    }
  }

  #fits({ keys }: Layout, to: number): boolean {
    if (keys.length * 2 !== to - this.#from) {
      return false;
    }
    for (let pair = 0, at = this.#from; pair < keys.length; pair++, at += 2) {
      if (this.#values[at] !== keys[pair] || this.#kinds[at] !== Kind.string) {
        return false;
      }
    }
    return true;
  }

  #newLayout(to: number): Layout {
    const layout = {
      keys: new Int32Array((to - this.#from) / 2).fill(ABSENT),
      places: new Int32Array(KEYS.length).fill(ABSENT),
    };
    for (let pair = 0, at = this.#from; pair < layout.keys.length; pair++, at += 2) {
      if (this.#kinds[at] === Kind.string) {
        const id = this.#values[at] ?? 0;
        layout.keys[pair] = id;
        const key = this.strings.size(id) > LONGEST_KEY ? NO_KEY : keyOf(this.strings.text(id));
        if (key !== NO_KEY) {
          layout.places[key] = 2 * pair + 1;
        }
      }
    }
    this.#layouts = [layout, ...this.#layouts.slice(0, MOST_LAYOUTS - 1)];
    return layout;
  }

  has(key: number): boolean {
    return (this.#layout.places[key] ?? ABSENT) !== ABSENT;
  }

  hasAny(keys: readonly number[]): boolean {
    return keys.some((key) => this.has(key));
  }

  /** The kind of a field's value; {@link Kind.none} if there is no such field. */
  kind(key: number): number {
    const place = this.#layout.places[key] ?? ABSENT;
    return place === ABSENT ? Kind.none : (this.#kinds[this.#from + place] ?? 0);
  }

  value(key: number): number {
    const place = this.#layout.places[key] ?? ABSENT;
    return place === ABSENT ? 0 : (this.#values[this.#from + place] ?? 0);
  }

  /** Bytes or an address. */
  size(machine: PickleMachine, key: number): number {
    const value = this.value(key);
    if (this.kind(key) !== Kind.number || !(value >= 0)) {
      throw machine.damaged(`"${KEYS[key]}" is not a size or address`);
    }
    if (value > Number.MAX_SAFE_INTEGER || value % 1 !== 0) {
      throw machine.damaged(`"${KEYS[key]}" is larger than any address`);
    }
    return value;
  }

  numberOr(key: number, otherwise: number): number {
    return this.kind(key) === Kind.number ? this.value(key) : otherwise;
  }

  finiteOr(key: number, otherwise: number): number {
    const value = this.numberOr(key, otherwise);
    return Number.isFinite(value) ? value : otherwise;
  }

  text(key: number): string {
    return this.kind(key) === Kind.string ? this.strings.text(this.value(key)) : "";
  }

  /** String id of a text or record; 0 otherwise. */
  textId(key: number): number {
    const kind = this.kind(key);
    return kind === Kind.string || kind === Kind.record ? this.value(key) : 0;
  }
}
