/**
 * Reads a pickle (Lib/pickletools.py) of plain values and of objects whose class is in a list. Objects become
 * their state: nothing is imported, called or executed. Any other opcode ends in TM-E019.
 */
import { tooLarge } from "../../../model/errors/errors.js";
import { importedPickleRefused } from "../../../model/errors/file_errors.js";
import { Cursor } from "../cursor.js";
import { ForeignFault, requireRoom } from "../importer.js";

export type PickleValue =
  | null
  | boolean
  | number
  | string
  | PickleValue[]
  | Map<PickleValue, PickleValue>
  | PickleObject;

/** An instance, or, without state, a class. */
export class PickleObject {
  state: PickleValue = null;

  constructor(readonly type: string) {}
}

const MOST_VALUES = 16_000_000;
/** A snapshot has one for each object; an empty Map takes more than 200 bytes. */
const MOST_DICTS = 10_000;
const NEWEST_PROTOCOL = 5;
const MARK = Symbol("mark");
type Item = PickleValue | typeof MARK;

/** @param types "module.Class" of the objects that may occur */
export function readPickle(bytes: Buffer, path: string, types: readonly string[]): PickleValue {
  return new Machine(bytes, path, types).run();
}

class Machine {
  readonly #cursor: Cursor;
  readonly #path: string;
  readonly #types: readonly string[];
  readonly #stack: Item[] = [];
  readonly #memo = new Map<number, PickleValue>();
  #values = 0;
  #dicts = 0;

  constructor(bytes: Buffer, path: string, types: readonly string[]) {
    this.#cursor = new Cursor(bytes);
    this.#path = path;
    this.#types = types;
  }

  run(): PickleValue {
    for (;;) {
      const offset = this.#cursor.at;
      const opcode = this.#cursor.u8();
      if (opcode === 0x2e) {
        return this.#pop();
      }
      if (!this.#plain(opcode) && !this.#container(opcode) && !this.#object(opcode, offset)) {
        const name = `opcode 0x${opcode.toString(16).padStart(2, "0")}`;
        throw importedPickleRefused(this.#path, name, offset);
      }
    }
  }

  #plain(opcode: number): boolean {
    const cursor = this.#cursor;
    switch (opcode) {
      case 0x80: // PROTO
        if (cursor.u8() > NEWEST_PROTOCOL) {
          throw new ForeignFault("its pickle protocol is unknown");
        }
        return true;
      case 0x95: // FRAME
        cursor.u64();
        return true;
      case 0x4e: // NONE
        return this.#push(null);
      case 0x88: // NEWTRUE
      case 0x89: // NEWFALSE
        return this.#push(opcode === 0x88);
      case 0x4b: // BININT1
        return this.#push(cursor.u8());
      case 0x4d: // BININT2
        return this.#push(cursor.u16());
      case 0x4a: // BININT
        return this.#push(cursor.i32());
      case 0x8a: // LONG1
        return this.#push(longOf(cursor.slice(cursor.u8())));
      case 0x47: // BINFLOAT
        return this.#push(cursor.f64BigEndian());
      case 0x8c: // SHORT_BINUNICODE
        return this.#push(cursor.slice(cursor.u8()).toString("utf8"));
      case 0x58: // BINUNICODE
        return this.#push(cursor.slice(cursor.i32()).toString("utf8"));
      case 0x8d: // BINUNICODE8
        return this.#push(cursor.slice(cursor.u64()).toString("utf8"));
      case 0x94: // MEMOIZE
        return this.#put(this.#memo.size);
      case 0x71: // BINPUT
        return this.#put(cursor.u8());
      case 0x72: // LONG_BINPUT
        return this.#put(cursor.i32());
      case 0x68: // BINGET
        return this.#get(cursor.u8());
      case 0x6a: // LONG_BINGET
        return this.#get(cursor.i32());
      default:
        return false;
    }
  }

  #container(opcode: number): boolean {
    switch (opcode) {
      case 0x28: // MARK
        requireRoom(this.#stack.length, MOST_VALUES, "values");
        this.#stack.push(MARK);
        return true;
      case 0x29: // EMPTY_TUPLE
      case 0x5d: // EMPTY_LIST
        return this.#push([]);
      case 0x7d: // EMPTY_DICT
        this.#dicts += 1;
        requireRoom(this.#dicts, MOST_DICTS, "dicts");
        return this.#push(new Map());
      case 0x85: // TUPLE1
      case 0x86: // TUPLE2
      case 0x87: // TUPLE3
        return this.#push(this.#take(opcode - 0x84));
      case 0x74: // TUPLE
        return this.#push(this.#toMark());
      case 0x61: // APPEND
        return this.#append(this.#take(1));
      case 0x65: // APPENDS
        return this.#append(this.#toMark());
      case 0x73: // SETITEM
        return this.#setItems(this.#take(2));
      case 0x75: // SETITEMS
        return this.#setItems(this.#toMark());
      default:
        return false;
    }
  }

  /** Classes of the list, their instances without arguments, and the instances' state. */
  #object(opcode: number, offset: number): boolean {
    switch (opcode) {
      case 0x63: {
        // GLOBAL: two lines
        const [module, name] = [this.#line(), this.#line()];
        return this.#class(`${module}.${name}`, offset);
      }
      case 0x93: {
        // STACK_GLOBAL
        const [module, name] = this.#take(2);
        if (typeof module !== "string" || typeof name !== "string") {
          throw new ForeignFault(`a class without a name at offset ${offset}`);
        }
        return this.#class(`${module}.${name}`, offset);
      }
      case 0x81: {
        // NEWOBJ
        const [type, args] = this.#take(2);
        if (!(type instanceof PickleObject) || !Array.isArray(args) || args.length > 0) {
          throw importedPickleRefused(this.#path, "an object with arguments", offset);
        }
        return this.#push(new PickleObject(type.type));
      }
      case 0x62: {
        // BUILD
        const state = this.#pop();
        const object = this.#stack.at(-1);
        if (!(object instanceof PickleObject)) {
          throw new ForeignFault(`a state without an object at offset ${offset}`);
        }
        object.state = state;
        return true;
      }
      default:
        return false;
    }
  }

  #class(type: string, offset: number): boolean {
    if (!this.#types.includes(type)) {
      throw importedPickleRefused(this.#path, type, offset);
    }
    return this.#push(new PickleObject(type));
  }

  #line(): string {
    const { bytes, at } = this.#cursor;
    const end = bytes.indexOf(0x0a, at);
    const text = this.#cursor.slice((end < 0 ? bytes.length : end) - at).toString("utf8");
    this.#cursor.u8();
    return text;
  }

  #push(value: PickleValue): boolean {
    this.#values += 1;
    if (this.#values > MOST_VALUES) {
      throw tooLarge(this.#path, `${MOST_VALUES} values`);
    }
    this.#stack.push(value);
    return true;
  }

  #pop(): PickleValue {
    const value = this.#stack.pop();
    if (value === undefined || value === MARK) {
      throw new ForeignFault(`a value is missing at offset ${this.#cursor.at}`);
    }
    return value;
  }

  /** The last values, in their order. */
  #take(count: number): PickleValue[] {
    return Array.from({ length: count }, () => this.#pop()).reverse();
  }

  #toMark(): PickleValue[] {
    const mark = this.#stack.lastIndexOf(MARK);
    if (mark < 0) {
      throw new ForeignFault(`a container ends at offset ${this.#cursor.at} that never began`);
    }
    return this.#stack.splice(mark).slice(1) as PickleValue[];
  }

  #append(values: readonly PickleValue[]): boolean {
    const list = this.#stack.at(-1);
    if (!Array.isArray(list)) {
      throw new ForeignFault(`a list is missing at offset ${this.#cursor.at}`);
    }
    for (const value of values) {
      list.push(value);
    }
    return true;
  }

  #setItems(values: readonly PickleValue[]): boolean {
    const map = this.#stack.at(-1);
    if (!(map instanceof Map) || values.length % 2 === 1) {
      throw new ForeignFault(`a dict is missing at offset ${this.#cursor.at}`);
    }
    for (let index = 0; index < values.length; index += 2) {
      map.set(values[index] ?? null, values[index + 1] ?? null);
    }
    return true;
  }

  #put(index: number): boolean {
    const top = this.#stack.at(-1);
    if (top === undefined || top === MARK) {
      throw new ForeignFault(`a value is missing at offset ${this.#cursor.at}`);
    }
    this.#memo.set(index, top);
    return true;
  }

  #get(index: number): boolean {
    const value = this.#memo.get(index);
    if (value === undefined) {
      throw new ForeignFault(`a value at offset ${this.#cursor.at} was never written`);
    }
    return this.#push(value);
  }
}

/** A little-endian two's complement number; beyond 2^53 the nearest double. */
function longOf(bytes: Buffer): number {
  const value = bytes.reduceRight((sum, byte) => sum * 256 + byte, 0);
  return (bytes.at(-1) ?? 0) >= 0x80 ? value - 256 ** bytes.length : value;
}
