/**
 * The fields of the current dictionary by key. Almost all dictionaries of a snapshot have the same few lists of keys,
 * so where each field is in such a dictionary is found only once.
 */
import type { PickleMachine } from "../pickle/pickle_machine.js";
import type { StringPool } from "../pickle/string_pool.js";
import { Kind } from "../pickle/token.js";
import { NOWHERE } from "../pickle/token_stack.js";
import { Form, formOf, KEY, KEYS, keyOf, NO_KEY } from "./snapshot_keys.js";

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
  readonly form: Form;
}

export class DictionaryFields {
  #kinds = new Uint8Array(0);
  #values = new Float64Array(0);
  #from = 0;
  #layout: Layout = {
    keys: new Int32Array(0),
    places: new Int32Array(KEYS.length).fill(ABSENT),
    form: Form.other,
  };
  /** The most recent first. */
  #layouts: Layout[] = [];

  constructor(readonly strings: StringPool) {}

  /** Keys and values are `[from, to)` on the machine's stack, and must stay there while the fields are used. */
  read(machine: PickleMachine, from: number, to: number): void {
    this.#kinds = machine.stack.kinds;
    this.#values = machine.stack.values;
    this.#from = from;
    if (!this.#fits(this.#layout, to)) {
      this.#layout = this.#knownLayout(to) ?? this.#newLayout(to);
    }
  }

  /** Not a part of {@link read}, whose variables a closure would move to the heap. */
  #knownLayout(to: number): Layout | undefined {
    return this.#layouts.find((layout) => this.#fits(layout, to));
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
    const keys = new Int32Array((to - this.#from) / 2).fill(ABSENT);
    const places = new Int32Array(KEYS.length).fill(ABSENT);
    for (let pair = 0, at = this.#from; pair < keys.length; pair++, at += 2) {
      if (this.#kinds[at] === Kind.string) {
        const id = this.#values[at] ?? 0;
        keys[pair] = id;
        const key = this.strings.size(id) > LONGEST_KEY ? NO_KEY : keyOf(this.strings.text(id));
        if (key !== NO_KEY) {
          places[key] = 2 * pair + 1;
        }
      }
    }
    const layout = { keys, places, form: formOf((key) => places[KEY[key]] !== ABSENT) };
    this.#layouts = [layout, ...this.#layouts.slice(0, MOST_LAYOUTS - 1)];
    return layout;
  }

  get form(): Form {
    return this.#layout.form;
  }

  has(key: number): boolean {
    return (this.#layout.places[key] ?? ABSENT) !== ABSENT;
  }

  /**
   * Where a field's value is on the machine's stack; {@link NOWHERE} if there is no such field. Who reads many values
   * reads them there, because a number that a function returns is allocated.
   */
  at(key: number): number {
    const place = this.#layout.places[key] ?? ABSENT;
    return place === ABSENT ? NOWHERE : this.#from + place;
  }

  /** The kind of a field's value; {@link Kind.none} if there is no such field. */
  kind(key: number): number {
    return this.#kinds[this.at(key)] ?? 0;
  }

  value(key: number): number {
    return this.#values[this.at(key)] ?? 0;
  }

  /** Where a field is that contains bytes or an address. */
  sizeAt(machine: PickleMachine, key: number): number {
    const at = this.at(key);
    if (this.#kinds[at] !== Kind.number || !isSize(this.#values[at] ?? 0)) {
      throw this.#notASize(machine, key);
    }
    return at;
  }

  /** Bytes or an address. */
  size(machine: PickleMachine, key: number): number {
    return this.#values[this.sizeAt(machine, key)] ?? 0;
  }

  #notASize(machine: PickleMachine, key: number): Error {
    const isNumber = this.kind(key) === Kind.number && this.value(key) >= 0;
    return machine.damaged(
      `"${KEYS[key]}" is ${isNumber ? "larger than any address" : "not a size or address"}`,
    );
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
    const at = this.at(key);
    const kind = this.#kinds[at];
    return kind === Kind.string || kind === Kind.record ? (this.#values[at] ?? 0) : 0;
  }
}

function isSize(value: number): boolean {
  return value >= 0 && value <= Number.MAX_SAFE_INTEGER && Math.floor(value) === value;
}
