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
import { endOfFetched, KnownLists } from "./known_lists.js";
import { Memo } from "./memo.js";
import { longOf, OPERAND_BYTES, Opcode, opcodeName, upperHalf } from "./pickle_opcodes.js";
import type { StringPool } from "./string_pool.js";
import { Kind } from "./token.js";

// As constants of this module, because a property of an imported object is read again for each case of a switch.
const {
  APPEND,
  APPENDS,
  BINFLOAT,
  BINGET,
  BININT,
  BININT1,
  BININT2,
  BINPUT,
  BINUNICODE,
  BINUNICODE8,
  EMPTY_DICT,
  EMPTY_LIST,
  EMPTY_TUPLE,
  FRAME,
  LONG1,
  LONG_BINGET,
  LONG_BINPUT,
  MARK,
  MEMOIZE,
  NEWFALSE,
  NEWTRUE,
  NONE,
  PROTO,
  SETITEM,
  SETITEMS,
  SHORT_BINUNICODE,
  STOP,
  TUPLE,
  TUPLE1,
  TUPLE2,
  TUPLE3,
} = Opcode;

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
export const NOWHERE = 0;
const BOTTOM = NOWHERE + 1;
const LONGEST_OPERAND = 8;
/** Bytes of an opcode and its operand, without a string behind it. */
const LONGEST_OPCODE = 300;
const NOTHING = new Uint8Array(0);

export class PickleMachine {
  /** The stack; at {@link NOWHERE}, below all values, is {@link Kind.none}. */
  kinds = new Uint8Array(1024);
  values = new Float64Array(1024);
  ended = false;
  #top = BOTTOM;
  readonly #marks = new Uint32Array(DEEPEST);
  #depth = 0;
  #memo = new Memo();
  readonly #knownLists = new KnownLists();
  /** Where the list that is read now begins and ends, if it may be read again. */
  #newList = 0;
  #newListEnd = 0;
  /** The incomplete opcode at the end of the last piece. */
  #rest: Uint8Array = NOTHING;
  /** Offset of the bytes that are read, and of the current opcode in them. */
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
    let from = 0;
    while (this.#rest.length > 0 && from < piece.length && !this.ended) {
      const more = piece.subarray(from, from + Math.max(this.#rest.length, LONGEST_OPCODE));
      const joined = new Uint8Array(this.#rest.length + more.length);
      joined.set(this.#rest);
      joined.set(more, this.#rest.length);
      const used = this.#run(joined);
      if (used === 0) {
        this.#rest = joined;
        from += more.length;
      } else {
        from += used - this.#rest.length;
        this.#rest = NOTHING;
      }
    }
    if (!this.ended) {
      const last = piece.subarray(from);
      this.#rest = last.slice(this.#run(last));
    }
  }

  /** The remaining value; call it after all bytes were pushed. @throws TM-E062, TM-E063 */
  finish(): { readonly kind: number; readonly value: number } {
    if (!this.ended) {
      throw snapshotCutOff(this.path, this.#base + this.#rest.length);
    }
    if (this.#top !== BOTTOM + 1 || this.#depth !== 0) {
      throw this.damaged("the pickle ends with values left over");
    }
    this.#memo = new Memo();
    return { kind: this.kinds[BOTTOM] ?? 0, value: this.values[BOTTOM] ?? 0 };
  }

  damaged(detail: string): Error {
    return snapshotDamaged(this.path, detail, this.offset);
  }

  /** @returns the number of bytes used: all except an incomplete opcode. */
  #run(bytes: Uint8Array): number {
    const end = bytes.length;
    const view = new DataView(bytes.buffer, bytes.byteOffset, end);
    const memo = this.#memo;
    // Local, because a snapshot has hundreds of millions of opcodes.
    let { kinds, values } = this;
    let top = this.#top;
    let at = 0;
    while (at < end) {
      const opcode = bytes[at] ?? 0;
      if (at + LONGEST_OPERAND >= end && at + (OPERAND_BYTES[opcode] ?? 0) >= end) {
        break;
      }
      this.#at = at;
      // Most opcodes push one value.
      let kind: number = Kind.number;
      let value = 0;
      let next = at + 1;
      switch (opcode) {
        case BINGET: {
          const index = bytes[next] ?? 0;
          kind = this.#kindInMemo(index);
          value = memo.value(index);
          next += 1;
          break;
        }
        case LONG_BINGET: {
          const index = view.getUint32(next, true);
          kind = this.#kindInMemo(index);
          value = memo.value(index);
          next += 4;
          break;
        }
        case EMPTY_DICT:
          kind = Kind.openDict;
          value = NO_MEMO;
          break;
        case EMPTY_LIST:
          kind = Kind.openList;
          value = NO_MEMO;
          break;
        case LONG1: {
          const length = bytes[next] ?? 0;
          next += 1 + length;
          if (next <= end) {
            value =
              length > 4 && length <= 8
                ? upperHalf(view, at + 6, next) * 2 ** 32 + view.getUint32(at + 2, true)
                : longOf(view, at + 2, next);
          }
          break;
        }
        case BININT:
          value = view.getInt32(next, true);
          next += 4;
          break;
        case BININT1:
          value = bytes[next] ?? 0;
          next += 1;
          break;
        case BININT2:
          value = view.getUint16(next, true);
          next += 2;
          break;
        case BINFLOAT:
          value = view.getFloat64(next, false);
          next += 8;
          break;
        case NEWTRUE:
        case NEWFALSE:
          kind = Kind.boolean;
          value = opcode === NEWTRUE ? 1 : 0;
          break;
        case NONE:
          kind = Kind.none;
          break;
        case SHORT_BINUNICODE:
        case BINUNICODE:
        case BINUNICODE8: {
          const from = next + (OPERAND_BYTES[opcode] ?? 0);
          kind = Kind.string;
          next = from + this.#lengthOfString(view, next, from);
          value = next > end ? 0 : this.strings.intern(bytes, from, next);
          break;
        }
        case MEMOIZE:
          this.#put(top - 1, memo.length);
          at = next;
          continue;
        case STOP:
          this.ended = true;
          at = end;
          continue;
        case MARK: {
          this.#top = top;
          const listEnd = kinds[top - 1] === Kind.openList ? this.#knownList(view, next) : 0;
          if (listEnd === 0) {
            this.#setMark();
          }
          at = listEnd === 0 ? next : listEnd;
          continue;
        }
        default:
          this.#top = top;
          at = this.#build(opcode, view, next);
          top = this.#top;
          ({ kinds, values } = this);
          continue;
      }
      if (next > end) {
        break;
      }
      if (top === kinds.length) {
        this.#grow(top);
        ({ kinds, values } = this);
      }
      kinds[top] = kind;
      values[top++] = value;
      at = next;
    }
    this.#top = top;
    this.#base += at;
    return at;
  }

  /** The opcodes that do more than push a value. @param operand where it begins @returns where the next one begins */
  #build(opcode: number, view: DataView, operand: number): number {
    const next = operand + (OPERAND_BYTES[opcode] ?? 0);
    switch (opcode) {
      case SETITEMS:
        this.#fill(this.#mark(), Kind.openDict);
        break;
      case APPENDS:
        this.#fill(this.#mark(), Kind.openList);
        if (next === this.#newListEnd) {
          this.#keepList(view, next);
        }
        break;
      case SETITEM:
        this.#fill(this.#top - 2, Kind.openDict);
        break;
      case APPEND:
        this.#fill(this.#top - 1, Kind.openList);
        break;
      case BINPUT:
        this.#put(this.#top - 1, view.getUint8(operand));
        break;
      case LONG_BINPUT:
        this.#put(this.#top - 1, view.getUint32(operand, true));
        break;
      case EMPTY_TUPLE:
        this.#tuple(this.#top);
        break;
      case TUPLE:
        this.#tuple(this.#mark());
        break;
      case TUPLE1:
      case TUPLE2:
      case TUPLE3:
        this.#tuple(this.#top - (opcode - TUPLE1 + 1));
        break;
      case PROTO: {
        const protocol = view.getUint8(operand);
        if (protocol > NEWEST_PROTOCOL) {
          throw this.damaged(`pickle protocol ${protocol} is unknown`);
        }
        break;
      }
      case FRAME: // its length matters only to readers that fetch a whole frame
        break;
      default:
        throw pickleRefused(this.path, opcodeName(opcode), this.offset);
    }
    return next;
  }

  /**
   * Skips a list of fetched values that was read before, from behind its MARK to its APPENDS.
   * @returns where it ends; 0 if it must be read
   */
  #knownList(view: DataView, from: number): number {
    const target = this.#top - 1;
    if (target < this.#floor()) {
      return 0;
    }
    const lists = this.#knownLists;
    const memo = this.values[target] ?? 0;
    const end = lists.find(view, from);
    if (end === 0) {
      this.#newList = from;
      this.#newListEnd = endOfFetched(view, from);
    } else if (this.#memo.fetched.size > 0 && this.#memo.fetched.has(memo)) {
      return 0;
    } else {
      this.#become(target, memo, Kind.stack, lists.value);
    }
    return end;
  }

  /** Keeps the list that ends at `end`, now that it is known what it became. */
  #keepList(view: DataView, end: number): void {
    const target = this.#top - 1;
    if (this.kinds[target] === Kind.stack) {
      this.#knownLists.add(view, this.#newList, end, this.values[target] ?? 0);
    }
    this.#newListEnd = 0;
  }

  /** The operand `[from, to)`. */
  #lengthOfString(view: DataView, from: number, to: number): number {
    const low = to - from === 1 ? view.getUint8(from) : view.getUint32(from, true);
    const length = to - from === 8 ? low + view.getUint32(from + 4, true) * 2 ** 32 : low;
    if (length > LONGEST_STRING) {
      throw tooLarge(
        `a string of ${length} bytes at offset ${this.offset} of ${this.path}`,
        "16 MiB",
      );
    }
    return length;
  }

  #grow(size: number): void {
    if (size >= MOST_VALUES) {
      throw tooLarge(`a list at offset ${this.offset} of ${this.path}`, `${MOST_VALUES} values`);
    }
    const kinds = new Uint8Array(size * 2);
    kinds.set(this.kinds);
    this.kinds = kinds;
    const values = new Float64Array(size * 2);
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

  #put(place: number, index: number): void {
    if (place < this.#floor()) {
      throw this.damaged("there is no value to memoize");
    }
    if (index > this.#memo.length) {
      throw this.damaged(`memo entry ${index} leaves a gap`);
    }
    if (index < this.#memo.length) {
      this.#knownLists.clear();
    }
    const kind = this.kinds[place] ?? 0;
    if (kind === Kind.openDict || kind === Kind.openList) {
      this.values[place] = index;
    }
    this.#memo.set(index, kind, this.values[place] ?? 0);
  }

  #kindInMemo(index: number): number {
    if (index >= this.#memo.length) {
      throw this.damaged(`memo entry ${index} was never written`);
    }
    const kind = this.#memo.kind(index);
    if (kind === Kind.openDict || kind === Kind.openList) {
      this.#memo.fetched.add(index);
    }
    return kind;
  }

  /** All values from `from` on become the content of the container below them. */
  #fill(from: number, open: number): void {
    const target = from - 1;
    if (target < this.#floor() || from > this.#top) {
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
    this.#become(target, memo, made, this.shapes.result);
  }

  /** A container was filled. */
  #become(target: number, memo: number, kind: number, value: number): void {
    this.kinds[target] = kind;
    this.values[target] = value;
    if (memo !== NO_MEMO) {
      this.#memo.set(memo, kind, value);
    }
  }

  #tuple(from: number): void {
    if (from < this.#floor()) {
      throw this.damaged("a tuple's values are missing");
    }
    const made = this.shapes.tuple(this, from, this.#top);
    if (from === this.kinds.length) {
      this.#grow(from);
    }
    this.kinds[from] = made;
    this.values[from] = this.shapes.result;
    this.#top = from + 1;
  }

  /** Values below it belong to an outer container. */
  #floor(): number {
    return this.#depth === 0 ? BOTTOM : (this.#marks[this.#depth - 1] ?? 0);
  }
}
