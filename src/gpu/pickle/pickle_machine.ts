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
import {
  lengthOf,
  longOf,
  OPERAND_BYTES,
  Opcode,
  opcodeName,
  upperHalf,
} from "./pickle_opcodes.js";
import type { StringPool } from "./string_pool.js";
import { Kind } from "./token.js";
import { BOTTOM, TokenStack } from "./token_stack.js";

// As constants of this module, because a property of an imported object is read again for each case of the switch.
const {
  BINGET,
  BININT,
  BININT1,
  BININT2,
  BINUNICODE,
  BINUNICODE8,
  EMPTY_DICT,
  EMPTY_LIST,
  LONG1,
  LONG_BINGET,
  MARK,
  MEMOIZE,
  SHORT_BINUNICODE,
  STOP,
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

/** Names are not longer. */
const LONGEST_STRING = 16 * 2 ** 20;
const NEWEST_PROTOCOL = 5;
const NO_MEMO = -1;
/** Bytes of an opcode and its operand, without a string behind it. */
const LONGEST_OPCODE = 300;
const NOTHING = new Uint8Array(0);

export class PickleMachine {
  readonly stack = new TokenStack(this);
  ended = false;
  #memo = new Memo();
  readonly #knownLists = new KnownLists();
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
    if (!this.ended && this.#rest.length === 0) {
      const last = piece.subarray(from);
      // A copy, which a Buffer's slice is not.
      this.#rest = new Uint8Array(last.subarray(this.#run(last)));
    }
  }

  /** The remaining value; call it after all bytes were pushed. @throws TM-E062, TM-E063 */
  finish(): { readonly kind: number; readonly value: number } {
    if (!this.ended) {
      throw snapshotCutOff(this.path, this.#base + this.#rest.length);
    }
    if (this.stack.top !== BOTTOM + 1 || this.stack.floor !== BOTTOM) {
      throw this.damaged("the pickle ends with values left over");
    }
    this.#memo = new Memo();
    return { kind: this.stack.kinds[BOTTOM] ?? 0, value: this.stack.values[BOTTOM] ?? 0 };
  }

  damaged(detail: string): Error {
    return snapshotDamaged(this.path, detail, this.offset);
  }

  tooLarge(what: string, limit: string): Error {
    return tooLarge(`${what} at offset ${this.offset} of ${this.path}`, limit);
  }

  /** @returns the number of bytes used: all except an incomplete opcode. */
  #run(bytes: Uint8Array): number {
    const end = bytes.length;
    const view = new DataView(bytes.buffer, bytes.byteOffset, end);
    const memo = this.#memo;
    // Local, because a snapshot has hundreds of millions of opcodes.
    const { stack } = this;
    let { kinds, values, top } = stack;
    let at = 0;
    while (at < end) {
      const opcode = bytes[at] ?? 0;
      if (at + LONGEST_OPCODE > end && at + (OPERAND_BYTES[opcode] ?? 0) >= end) {
        break;
      }
      this.#at = at;
      if (top === kinds.length) {
        stack.grow();
        ({ kinds, values } = stack);
      }
      // Most push one value.
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
        case EMPTY_LIST:
          kind = opcode === EMPTY_DICT ? Kind.openDict : Kind.openList;
          value = NO_MEMO;
          break;
        case LONG1: {
          const length = bytes[next] ?? 0;
          next += 1 + length;
          if (next > end) {
            break;
          }
          // Not by way of `value`: a variable that holds integers and doubles is allocated for each double.
          kinds[top] = Kind.number;
          values[top++] =
            length > 4 && length <= 8
              ? upperHalf(view, at + 6, next) * 2 ** 32 + view.getUint32(at + 2, true)
              : longOf(view, at + 2, next);
          at = next;
          continue;
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
        case SHORT_BINUNICODE:
        case BINUNICODE:
        case BINUNICODE8: {
          const from = next + (OPERAND_BYTES[opcode] ?? 0);
          kind = Kind.string;
          const length = lengthOf(view, next, from);
          if (length > LONGEST_STRING) {
            throw this.tooLarge(`a string of ${length} bytes`, "16 MiB");
          }
          next = from + length;
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
          stack.top = top;
          const listEnd = kinds[top - 1] === Kind.openList ? this.#knownList(view, next) : 0;
          if (listEnd === 0) {
            stack.setMark();
          }
          at = listEnd === 0 ? next : listEnd;
          continue;
        }
        default:
          stack.top = top;
          at = this.#build(opcode, view, next);
          ({ kinds, values, top } = stack);
          continue;
      }
      if (next > end) {
        break;
      }
      kinds[top] = kind;
      values[top++] = value;
      at = next;
    }
    stack.top = top;
    this.#base += at;
    return at;
  }

  /** The other opcodes. @param operand where it begins @returns where the next one begins */
  #build(opcode: number, view: DataView, operand: number): number {
    const next = operand + (OPERAND_BYTES[opcode] ?? 0);
    switch (opcode) {
      case Opcode.SETITEMS:
        this.#fill(this.stack.takeMark(), Kind.openDict);
        break;
      case Opcode.APPENDS:
        this.#fill(this.stack.takeMark(), Kind.openList);
        if (next === this.#knownLists.newEnd) {
          const { kinds, values, top } = this.stack;
          this.#knownLists.add(view, kinds[top - 1] === Kind.stack ? (values[top - 1] ?? 0) : -1);
        }
        break;
      case Opcode.SETITEM:
        this.#fill(this.stack.top - 2, Kind.openDict);
        break;
      case Opcode.APPEND:
        this.#fill(this.stack.top - 1, Kind.openList);
        break;
      case Opcode.BINFLOAT:
        this.stack.push(Kind.number, view.getFloat64(operand, false));
        break;
      case Opcode.NEWTRUE:
      case Opcode.NEWFALSE:
        this.stack.push(Kind.boolean, opcode === Opcode.NEWTRUE ? 1 : 0);
        break;
      case Opcode.NONE:
        this.stack.push(Kind.none, 0);
        break;
      case Opcode.BINPUT:
        this.#put(this.stack.top - 1, view.getUint8(operand));
        break;
      case Opcode.LONG_BINPUT:
        this.#put(this.stack.top - 1, view.getUint32(operand, true));
        break;
      case Opcode.EMPTY_TUPLE:
        this.#tuple(this.stack.top);
        break;
      case Opcode.TUPLE:
        this.#tuple(this.stack.takeMark());
        break;
      case Opcode.TUPLE1:
      case Opcode.TUPLE2:
      case Opcode.TUPLE3:
        this.#tuple(this.stack.top - (opcode - Opcode.TUPLE1 + 1));
        break;
      case Opcode.PROTO:
        if (view.getUint8(operand) > NEWEST_PROTOCOL) {
          throw this.damaged(`pickle protocol ${view.getUint8(operand)} is unknown`);
        }
        break;
      case Opcode.FRAME: // its length matters only to readers that fetch a whole frame
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
    const target = this.stack.top - 1;
    if (target < this.stack.floor) {
      return 0;
    }
    const memo = this.stack.values[target] ?? 0;
    const end = this.#knownLists.find(view, from);
    if (end === 0 || (this.#memo.fetched.size > 0 && this.#memo.fetched.has(memo))) {
      return 0;
    }
    this.#become(target, memo, Kind.stack, this.#knownLists.value);
    return end;
  }

  #put(place: number, index: number): void {
    if (place < this.stack.floor) {
      throw this.damaged("there is no value to memoize");
    }
    if (index > this.#memo.length) {
      throw this.damaged(`memo entry ${index} leaves a gap`);
    }
    if (index < this.#memo.length) {
      this.#knownLists.clear();
    }
    const kind = this.stack.kinds[place] ?? 0;
    if (kind === Kind.openDict || kind === Kind.openList) {
      this.stack.values[place] = index;
    }
    this.#memo.set(index, kind, this.stack.values[place] ?? 0);
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
    if (target < this.stack.floor || from > this.stack.top) {
      throw this.damaged("a container is missing");
    }
    const kind = this.stack.kinds[target] ?? 0;
    const value = this.stack.values[target] ?? 0;
    const memo = kind === open ? value : NO_MEMO;
    if (memo !== NO_MEMO && this.#memo.fetched.size > 0 && this.#memo.fetched.has(memo)) {
      throw this.damaged("a container is used before it is filled");
    }
    if (from === this.stack.top) {
      return;
    }
    const made =
      open === Kind.openDict
        ? this.shapes.dict(this, kind, value, from, this.stack.top)
        : this.shapes.list(this, kind, value, from, this.stack.top);
    this.stack.top = from;
    this.#become(target, memo, made, this.shapes.result);
  }

  /** A container was filled. */
  #become(target: number, memo: number, kind: number, value: number): void {
    this.stack.kinds[target] = kind;
    this.stack.values[target] = value;
    if (memo !== NO_MEMO) {
      this.#memo.set(memo, kind, value);
    }
  }

  #tuple(from: number): void {
    if (from < this.stack.floor) {
      throw this.damaged("a tuple's values are missing");
    }
    const made = this.shapes.tuple(this, from, this.stack.top);
    this.stack.top = from;
    this.stack.push(made, this.shapes.result);
  }
}
