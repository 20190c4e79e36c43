/**
 * Lists that consist only of values fetched from the memo, by their bytes in the pickle: a trace contains the same
 * stack thousands of times, as a list of the same frames. A known list need not be decoded again.
 *
 * The pickle is compared with the first list that began with the same eight bytes. Where they differ, a branch leads to
 * a list that is equal so far and has the pickle's byte there. No list is the beginning of another, because each ends
 * with APPENDS.
 *
 *     list 1   j 1 0 0 0  j 2 0 0 0  j 3 0 0 0  e     branch: list 0 (none), its first eight bytes as two numbers
 *     list 2   j 1 0 0 0  j 2 0 0 0  j 5 0 0 0  e     branch: list 1, offset 11, byte 5
 */
import { growingUint32 } from "../../model/base/growing_column.js";
import { Opcode } from "./pickle_opcodes.js";
import { TripleTable } from "./triple_table.js";

const { APPENDS, BINGET, LONG_BINGET } = Opcode;
/** Bytes of all lists together, and of one list. Other lists are decoded each time. */
const MOST_BYTES = 16 * 2 ** 20;
const LONGEST = 5 * 1024;
const NONE = -1;

export class KnownLists {
  #view = new DataView(new ArrayBuffer(2 ** 16));
  /** By list: the end of its bytes, which begin where the previous list ends; what it became. */
  #ends = growingUint32();
  #values = growingUint32();
  /** A list, an offset in it, and another byte there; or 0 and the first eight bytes. */
  #branches = new TripleTable();
  /** By branch: where it leads. */
  #targets = growingUint32();
  /** The list that was found; or the branch that is missing, {@link NONE} if it is unknown. */
  #list = 0;
  #offset = 0;
  #bytes = 0;
  /** The list that was not found: where it begins and ends; its end is 0 if it cannot be kept. */
  #newFrom = 0;
  newEnd = 0;

  constructor() {
    this.clear();
  }

  clear(): void {
    this.#ends = growingUint32();
    this.#values = growingUint32();
    this.#branches = new TripleTable();
    this.#targets = growingUint32();
    this.#ends.push(0);
    this.#values.push(0);
  }

  /** What the list that was found became. */
  get value(): number {
    return this.#values.at(this.#list);
  }

  /** Where the list that begins at `from` ends; 0 if it is not known, or if `view` ends soon after it. */
  find(view: DataView, from: number): number {
    const end = this.#find(view, from);
    this.#newFrom = from;
    this.newEnd = end === 0 ? endOfFetched(view, from) : 0;
    return end;
  }

  #find(view: DataView, from: number): number {
    this.#list = NONE;
    if (from + 8 > view.byteLength) {
      return 0;
    }
    const own = this.#view;
    let list = 0;
    let at = from;
    let offset = view.getUint32(from, true);
    let bytes = view.getUint32(from + 4, true);
    for (;;) {
      const branch = this.#branches.find(list, offset, bytes);
      if (branch < 0) {
        this.#list = list;
        this.#offset = offset;
        this.#bytes = bytes;
        return 0;
      }
      list = this.#targets.at(branch);
      const start = this.#ends.at(list - 1);
      const end = this.#ends.at(list);
      let place = start + at - from;
      if (at + end - place + 4 > view.byteLength) {
        return 0;
      }
      // Equal doubles have equal bytes, except 0 and -0, but no eight bytes of a list are 0. NaN equals nothing, so its
      // bytes are compared below.
      while (place + 8 <= end && own.getFloat64(place, true) === view.getFloat64(at, true)) {
        place += 8;
        at += 8;
      }
      while (place + 4 <= end && own.getInt32(place, true) === view.getInt32(at, true)) {
        place += 4;
        at += 4;
      }
      const left = end - place;
      const difference = own.getInt32(place, true) ^ view.getInt32(at, true);
      if (left < 4 && (difference & ((1 << (8 * left)) - 1)) === 0) {
        this.#list = list;
        return at + left;
      }
      at += (31 - Math.clz32(difference & -difference)) >>> 3;
      offset = at - from;
      bytes = view.getUint8(at);
      at += 1;
    }
  }

  /** Keeps the list that was not found just now, unless `value`, which it became, is -1 or too much is kept already. */
  add(view: DataView, value: number): void {
    const bytes = new Uint8Array(view.buffer, view.byteOffset).subarray(this.#newFrom, this.newEnd);
    this.newEnd = 0;
    const start = this.#ends.at(this.#ends.length - 1);
    const end = start + bytes.length;
    if (value < 0 || this.#list === NONE || bytes.length > LONGEST || end > MOST_BYTES) {
      return;
    }
    // Four bytes are read at a time.
    if (end + 4 > this.#view.byteLength) {
      const grown = new Uint8Array(2 * this.#view.byteLength);
      grown.set(new Uint8Array(this.#view.buffer));
      this.#view = new DataView(grown.buffer);
    }
    new Uint8Array(this.#view.buffer).set(bytes, start);
    this.#branches.intern(this.#list, this.#offset, this.#bytes);
    this.#targets.push(this.#ends.length);
    this.#ends.push(end);
    this.#values.push(value);
  }
}

/**
 * Where a list ends that begins at `from` and consists only of values fetched from the memo; 0 if it contains
 * anything else or does not end in `view`.
 */
function endOfFetched(view: DataView, from: number): number {
  for (let at = from; at < view.byteLength; ) {
    const opcode = view.getUint8(at);
    if (opcode === APPENDS) {
      return at > from ? at + 1 : 0;
    }
    if (opcode !== LONG_BINGET && opcode !== BINGET) {
      return 0;
    }
    at += opcode === LONG_BINGET ? 5 : 2;
  }
  return 0;
}
