/**
 * Reads small values from a {@link Memory}, for following pointers. It keeps pages of 4 KiB in a pool of fixed
 * size, so a walk of any length needs no allocation and few system calls.
 *
 *   address ── page number ──> slot of the pool (direct-mapped) ──> value
 *
 * A read of missing memory throws TM-E024 and never returns a guess. Pages are cached until `forget`, which
 * must be called before a running process is read again.
 */

import { uint8At, uint16At } from "../../model/base/columns.js";
import type { Address, Bytes } from "../../model/base/units.js";
import { unreadableMemory } from "../../model/errors/errors.js";
import type { Memory } from "./memory.js";

const PAGE = 4096;
const SLOTS = 512;
/**
 * Pointers of user space end at 2^47, or at 2^56 with five-level page tables, which a Number cannot represent
 * exactly.
 */
const ADDRESS_LIMIT = 2 ** 53;
const MOST_BYTES = 64 * 2 ** 20;

export class MemoryReader {
  readonly #pool = new Uint8Array(SLOTS * PAGE);
  readonly #view = new DataView(this.#pool.buffer);
  readonly #pages = new Float64Array(SLOTS).fill(-1);
  /** Valid bytes of the page in each slot. */
  readonly #lengths = new Uint16Array(SLOTS);
  readonly #straddle = new Uint8Array(8);
  readonly #straddleView = new DataView(this.#straddle.buffer);

  constructor(readonly memory: Memory) {}

  /** Drops all cached pages. */
  forget(): void {
    this.#pages.fill(-1);
  }

  uint8(address: Address): number {
    return uint8At(this.#pool, this.#locate(address, 1));
  }

  uint16(address: Address): number {
    const at = this.#locate(address, 2);
    return at < 0 ? this.#straddleView.getUint16(0, true) : this.#view.getUint16(at, true);
  }

  uint32(address: Address): number {
    const at = this.#locate(address, 4);
    return at < 0 ? this.#straddleView.getUint32(0, true) : this.#view.getUint32(at, true);
  }

  int32(address: Address): number {
    return this.uint32(address) | 0;
  }

  /** A u64. Values above 2^53 are rounded; they are not addresses in user space. */
  uint64(address: Address): number {
    const at = this.#locate(address, 8);
    const view = at < 0 ? this.#straddleView : this.#view;
    const from = at < 0 ? 0 : at;
    return view.getUint32(from, true) + view.getUint32(from + 4, true) * 2 ** 32;
  }

  /** A Py_ssize_t; exact within 2^53. */
  int64(address: Address): number {
    const at = this.#locate(address, 8);
    const view = at < 0 ? this.#straddleView : this.#view;
    const from = at < 0 ? 0 : at;
    return view.getUint32(from, true) + view.getInt32(from + 4, true) * 2 ** 32;
  }

  /** A pointer as stored, 0 for NULL. */
  pointer(address: Address): Address {
    return this.uint64(address);
  }

  /** A new copy of exactly `length` bytes; at most 64 MiB. */
  bytes(address: Address, length: Bytes): Uint8Array {
    if (!(length >= 0 && length <= MOST_BYTES)) {
      throw unreadableMemory(this.memory.name, address, `${length} bytes are wanted at once`);
    }
    if (length > PAGE) {
      // Reading through the pool would evict pages that the walk still needs. The range is read in pieces, so a
      // damaged length does not allocate memory for missing data.
      return this.#largeBytes(address, length);
    }
    const copy = new Uint8Array(length);
    this.#copy(address, copy);
    return copy;
  }

  /** Bytes up to the first NUL as UTF-8 text; throws if there is none within `limit` bytes. */
  cstring(address: Address, limit: Bytes): string {
    const text: number[] = [];
    for (let index = 0; index < limit; index++) {
      const byte = this.uint8(address + index);
      if (byte === 0) {
        return Buffer.from(text).toString("utf8");
      }
      text.push(byte);
    }
    throw unreadableMemory(this.memory.name, address, `no end of text within ${limit} bytes`);
  }

  #largeBytes(address: Address, length: Bytes): Uint8Array {
    const probe = new Uint8Array(1);
    if (this.memory.readInto(address + length - 1, probe) !== 1) {
      throw unreadableMemory(this.memory.name, address + length - 1);
    }
    const copy = new Uint8Array(length);
    const got = this.memory.readInto(address, copy);
    if (got < length) {
      throw unreadableMemory(this.memory.name, address + got);
    }
    return copy;
  }

  #copy(address: Address, target: Uint8Array): void {
    for (let done = 0; done < target.length; ) {
      const at = address + done;
      const length = Math.min(PAGE - (at % PAGE), target.length - done);
      const from = this.#locate(at, length);
      target.set(this.#pool.subarray(from, from + length), done);
      done += length;
    }
  }

  /** Index in the pool of `length` bytes at `address`; -1 if they extend over two pages and are in #straddle. */
  #locate(address: Address, length: Bytes): number {
    if (!(address > 0 && address < ADDRESS_LIMIT)) {
      throw unreadableMemory(this.memory.name, address);
    }
    const offset = address % PAGE;
    if (offset + length > PAGE) {
      this.#copy(address, length === 8 ? this.#straddle : this.#straddle.subarray(0, length));
      return -1;
    }
    const page = (address - offset) / PAGE;
    const slot = page % SLOTS;
    if (this.#pages[slot] !== page) {
      this.#load(page, slot);
    }
    if (offset + length > uint16At(this.#lengths, slot)) {
      throw unreadableMemory(this.memory.name, address);
    }
    return slot * PAGE + offset;
  }

  #load(page: number, slot: number): void {
    this.#pages[slot] = -1;
    const target = this.#pool.subarray(slot * PAGE, (slot + 1) * PAGE);
    this.#lengths[slot] = this.memory.readInto(page * PAGE, target);
    this.#pages[slot] = page;
  }
}
