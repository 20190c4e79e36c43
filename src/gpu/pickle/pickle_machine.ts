/**
 * Reads a pickle of plain values (protocols 2 to 5) piece by piece, without ever building one: a value is
 * a token, its kind and a number, on a stack of two columns. What a container becomes is decided by a
 * {@link Shapes} when its items are there; a trace entry thus becomes a row of columns and one token.
 *
 *     EMPTY_DICT MEMOIZE MARK key value key value ... SETITEMS
 *                └ the memo keeps the token, and gets the new one when the dictionary was filled
 *
 * Opcodes that name a class, call a function or build an object are not supported and end in TM-E061.
 */

import {
  pickleRefused,
  snapshotCutOff,
  snapshotDamaged,
  tooLarge,
} from "../../model/errors/errors.js";
import { KnownLists } from "./known_lists.js";
import { Memo } from "./memo.js";
import { longOf, OPERAND_BYTES, Opcode, opcodeName } from "./pickle_opcodes.js";
import type { StringPool } from "./string_pool.js";
import { Kind } from "./token.js";

/**
 * Turns the items of a container, `kinds[from, to)` and `values[from, to)`, into a token: the kind is returned,
 * the number is stored in `result`. `kind` and `value` are the container so far.
 */
export interface Shapes {
  result: number;
  dict(machine: PickleMachine, kind: number, value: number, from: number, to: number): number;
  list(machine: PickleMachine, kind: number, value: number, from: number, to: number): number;
  tuple(machine: PickleMachine, from: number, to: number): number;
}

/** Limits: names are not longer, and snapshots do not nest deeper or have more values side by side. */
const LONGEST_STRING = 16 * 2 ** 20;
const DEEPEST = 1000;
const MOST_VALUES = 48 * 2 ** 20;
const NEWEST_PROTOCOL = 5;
const NO_MEMO = -1;

export class PickleMachine {
  kinds = new Uint8Array(1024);
  values = new Float64Array(1024);
  ended = false;
  #top = 0;
  readonly #marks = new Uint32Array(DEEPEST);
  #depth = 0;
  #memo = new Memo();
  readonly #knownLists = new KnownLists();
  /** The incomplete opcode at the end of the last piece, and room for the next piece behind it. */
  #joined = new Uint8Array(0);
  #rest = 0;
  /** Offset of `#joined`, and of the current opcode in it. */
  #base = 0;
  #at = 0;

  constructor(
    readonly path: string,
    readonly strings: StringPool,
    readonly shapes: Shapes,
  ) {}

  /** Offset of the current opcode in the whole pickle. */
  get offset(): number {
    return this.#base + this.#at;
  }

  /** Continues reading; `piece` is not used later. Bytes after the end of the pickle are ignored, as in Python. */
  push(piece: Uint8Array): void {
    if (this.ended) {
      return;
    }
    const length = this.#rest + piece.length;
    if (length > this.#joined.length) {
      const grown = new Uint8Array(length + 2 ** 16);
      grown.set(this.#joined.subarray(0, this.#rest));
      this.#joined = grown;
    }
    this.#joined.set(piece, this.#rest);
    const used = this.#run(this.#joined.subarray(0, length));
    this.#joined.copyWithin(0, used, length);
    this.#rest = length - used;
    this.#base += used;
  }

  /** The remaining value; call it after all bytes were pushed. @throws TM-E062, TM-E063 */
  finish(): { readonly kind: number; readonly value: number } {
    if (!this.ended) {
      throw snapshotCutOff(this.path, this.#base + this.#rest);
    }
    if (this.#top !== 1 || this.#depth !== 0) {
      throw this.damaged("the pickle ends with values left over");
    }
    this.#memo = new Memo();
    return { kind: this.kinds[0] ?? 0, value: this.values[0] ?? 0 };
  }

  damaged(detail: string): Error {
    return snapshotDamaged(this.path, detail, this.offset);
  }

  /** @returns the number of bytes used: all except an incomplete opcode. */
  #run(bytes: Uint8Array): number {
    const end = bytes.length;
    const view = new DataView(bytes.buffer, bytes.byteOffset, end);
    let at = 0;
    while (at < end) {
      const opcode = bytes[at] ?? 0;
      const operand = OPERAND_BYTES[opcode] ?? 0;
      this.#at = at;
      if (at + 1 + operand > end) {
        return at;
      }
      switch (opcode) {
        case Opcode.BINGET:
          this.#get(bytes[at + 1] ?? 0);
          break;
        case Opcode.LONG_BINGET:
          this.#get(view.getUint32(at + 1, true));
          break;
        case Opcode.MEMOIZE:
          this.#put(this.#memo.length);
          break;
        case Opcode.BINPUT:
          this.#put(bytes[at + 1] ?? 0);
          break;
        case Opcode.LONG_BINPUT:
          this.#put(view.getUint32(at + 1, true));
          break;
        case Opcode.MARK: {
          const after = this.#knownList(view, at + 1);
          if (after !== 0) {
            at = after;
            continue;
          }
          this.#setMark();
          break;
        }
        case Opcode.EMPTY_DICT:
          this.#push(Kind.openDict, NO_MEMO);
          break;
        case Opcode.EMPTY_LIST:
          this.#push(Kind.openList, NO_MEMO);
          break;
        case Opcode.SETITEMS:
          this.#fill(this.#mark(), Kind.openDict);
          break;
        case Opcode.LONG1: {
          const length = bytes[at + 1] ?? 0;
          if (at + 2 + length > end) {
            return at;
          }
          this.#push(
            Kind.number,
            length === 8 // beyond 2^53 the nearest double
              ? view.getUint32(at + 2, true) + view.getInt32(at + 6, true) * 2 ** 32
              : longOf(bytes, at + 2, length),
          );
          at += length;
          break;
        }
        case Opcode.BININT:
          this.#push(Kind.number, view.getInt32(at + 1, true));
          break;
        case Opcode.BININT1:
          this.#push(Kind.number, bytes[at + 1] ?? 0);
          break;
        case Opcode.BININT2:
          this.#push(Kind.number, view.getUint16(at + 1, true));
          break;
        case Opcode.BINFLOAT:
          this.#push(Kind.number, view.getFloat64(at + 1, false));
          break;
        case Opcode.SHORT_BINUNICODE:
        case Opcode.BINUNICODE:
        case Opcode.BINUNICODE8: {
          const length = this.#string(view, bytes, at, operand);
          if (length < 0) {
            return at;
          }
          at += length;
          break;
        }
        case Opcode.PROTO:
          if ((bytes[at + 1] ?? 0) > NEWEST_PROTOCOL) {
            throw this.damaged(`pickle protocol ${bytes[at + 1]} is unknown`);
          }
          break;
        case Opcode.FRAME: // its length matters only to readers that fetch a whole frame
          break;
        case Opcode.STOP:
          this.ended = true;
          return end;
        default:
          this.#build(opcode);
      }
      at += 1 + operand;
    }
    return at;
  }

  /**
   * Reads a list of fetched values from behind its MARK to its APPENDS; a list that was read before is not built again.
   * @returns where it ends; 0 if it must be read opcode by opcode
   */
  #knownList(view: DataView, from: number): number {
    const target = this.#top - 1;
    if (target < this.#floor() || this.#kindAt(target) !== Kind.openList) {
      return 0;
    }
    const lists = this.#knownLists;
    const end = lists.read(view, from, this.#memo.length);
    const memo = this.values[target] ?? 0;
    if (end === 0 || (this.#memo.fetched.size > 0 && this.#memo.fetched.has(memo))) {
      return 0;
    }
    this.#at = end - 1;
    const known = lists.find();
    if (known >= 0) {
      this.kinds[target] = Kind.stack;
      this.values[target] = known;
      if (memo !== NO_MEMO) {
        this.#memo.set(memo, Kind.stack, known);
      }
      return end;
    }
    for (let row = 0; row < lists.count; row++) {
      this.#get(lists.numbers[row] ?? 0);
    }
    this.#fill(target + 1, Kind.openList);
    if (this.#kindAt(target) === Kind.stack) {
      lists.add(this.values[target] ?? 0);
    }
    return end;
  }

  /** The rarer opcodes without an operand. */
  #build(opcode: number): void {
    switch (opcode) {
      case Opcode.SETITEM:
        this.#fill(this.#top - 2, Kind.openDict);
        break;
      case Opcode.APPENDS:
        this.#fill(this.#mark(), Kind.openList);
        break;
      case Opcode.APPEND:
        this.#fill(this.#top - 1, Kind.openList);
        break;
      case Opcode.EMPTY_TUPLE:
        this.#tuple(this.#top);
        break;
      case Opcode.TUPLE:
        this.#tuple(this.#mark());
        break;
      case Opcode.TUPLE1:
      case Opcode.TUPLE2:
      case Opcode.TUPLE3:
        this.#tuple(this.#top - (opcode - Opcode.TUPLE1 + 1));
        break;
      case Opcode.NEWTRUE:
      case Opcode.NEWFALSE:
        this.#push(Kind.boolean, opcode === Opcode.NEWTRUE ? 1 : 0);
        break;
      case Opcode.NONE:
        this.#push(Kind.none, 0);
        break;
      default:
        throw pickleRefused(this.path, opcodeName(opcode), this.offset);
    }
  }

  /** @returns the length of the string whose length is the operand; -1 if it is incomplete. */
  #string(view: DataView, bytes: Uint8Array, at: number, operand: number): number {
    const from = at + 1 + operand;
    const length =
      operand === 1
        ? (bytes[at + 1] ?? 0)
        : view.getUint32(at + 1, true) +
          (operand === 8 ? view.getUint32(at + 5, true) * 2 ** 32 : 0);
    if (length > LONGEST_STRING) {
      throw tooLarge(
        `a string of ${length} bytes at offset ${this.offset} of ${this.path}`,
        "16 MiB",
      );
    }
    if (from + length > bytes.length) {
      return -1;
    }
    this.#push(Kind.string, this.strings.intern(bytes, from, from + length));
    return length;
  }

  #push(kind: number, value: number): void {
    if (this.#top === this.kinds.length) {
      this.#grow();
    }
    this.kinds[this.#top] = kind;
    this.values[this.#top++] = value;
  }

  #kindAt(place: number): number {
    return this.kinds[place] ?? 0;
  }

  #grow(): void {
    if (this.#top >= MOST_VALUES) {
      throw tooLarge(`a list at offset ${this.offset} of ${this.path}`, `${MOST_VALUES} values`);
    }
    const kinds = new Uint8Array(this.#top * 2);
    kinds.set(this.kinds);
    this.kinds = kinds;
    const values = new Float64Array(this.#top * 2);
    values.set(this.values);
    this.values = values;
  }

  #setMark(): void {
    if (this.#depth >= DEEPEST) {
      throw this.damaged("values are nested too deeply");
    }
    this.#marks[this.#depth++] = this.#top;
  }

  /** Start of the values since the last MARK. */
  #mark(): number {
    if (this.#depth === 0) {
      throw this.damaged("a container ends that never began");
    }
    return this.#marks[--this.#depth] ?? 0;
  }

  #put(index: number): void {
    const top = this.#top - 1;
    if (top < this.#floor()) {
      throw this.damaged("there is no value to memoize");
    }
    if (index > this.#memo.length) {
      throw this.damaged(`memo entry ${index} leaves a gap`);
    }
    if (index < this.#memo.length) {
      this.#knownLists.clear();
    }
    const kind = this.kinds[top] ?? 0;
    if (kind === Kind.openDict || kind === Kind.openList) {
      this.values[top] = index;
    }
    this.#memo.set(index, kind, this.values[top] ?? 0);
  }

  #get(index: number): void {
    if (index >= this.#memo.length) {
      throw this.damaged(`memo entry ${index} was never written`);
    }
    const kind = this.#memo.kind(index);
    if (kind === Kind.openDict || kind === Kind.openList) {
      this.#memo.fetched.add(index);
    }
    this.#push(kind, this.#memo.value(index));
  }

  /** All values from `from` on become the content of the container below them. */
  #fill(from: number, open: number): void {
    const target = from - 1;
    if (target < this.#floor() || target < 0 || from > this.#top) {
      throw this.damaged("a container is missing");
    }
    const kind = this.kinds[target] ?? 0;
    const value = this.values[target] ?? 0;
    const memo = kind === open ? value : NO_MEMO;
    if (memo !== NO_MEMO && this.#memo.fetched.size > 0 && this.#memo.fetched.has(memo)) {
      throw this.damaged("a container is used before it is filled");
    }
    if (from === this.#top) {
      return;
    }
    const made =
      open === Kind.openDict
        ? this.shapes.dict(this, kind, value, from, this.#top)
        : this.shapes.list(this, kind, value, from, this.#top);
    this.#top = from;
    this.kinds[target] = made;
    this.values[target] = this.shapes.result;
    if (memo !== NO_MEMO) {
      this.#memo.set(memo, made, this.shapes.result);
    }
  }

  #tuple(from: number): void {
    if (from < this.#floor()) {
      throw this.damaged("a tuple's values are missing");
    }
    const made = this.shapes.tuple(this, from, this.#top);
    this.#top = from;
    this.#push(made, this.shapes.result);
  }

  /** Values below it belong to an outer container. */
  #floor(): number {
    return this.#depth === 0 ? 0 : (this.#marks[this.#depth - 1] ?? 0);
  }
}
