/**
 * The pool: the owner of each segment (struct tm_pool_header and tm_pool_slot of segment.h).
 *
 *   0              header, one page
 *   4096           slot table, 32 bytes a slot
 *   slotsOffset    slot 0, slot 1, ...: one segment each, slotStride apart
 */

import { writeSync } from "node:fs";
import type { Bytes, Millis, Pid } from "../model/base/units.js";
import { damagedInput, fileUnusable, notOurs, unknownVersion } from "../model/errors/errors.js";
import { reasonOf } from "../model/errors/reason.js";
import { readAt, readUint64 } from "./bytes.js";
import { CONSTANTS, POOL_HEADER, POOL_SLOT } from "./layout.js";

export interface PoolHeader {
  readonly slotCount: number;
  /** Bytes from the file's start to slot 0. */
  readonly slotsOffset: number;
  /** Bytes from one slot to the next: the bound of a segment. */
  readonly slotStride: number;
  /** Random; 16 hex digits. */
  readonly runId: string;
  /** Period that every process starts with. */
  readonly periodBytes: Bytes;
  /** TM_OPTION_* bits. */
  readonly options: number;
  /** `/proc/<keeperPid>/fd/<keeperFd>` opens the pool again; 0: it has no keeper. */
  readonly keeperPid: Pid;
  readonly keeperFd: number;
  /** CLOCK_MONOTONIC; 0: the agents continue without a recorder. */
  readonly leaseUntilMs: Millis;
  /** Slots ever claimed. */
  readonly claims: number;
  /** Processes that found no slot or no memory. */
  readonly unserved: number;
  /** errno of the last one. */
  readonly unservedReason: number;
}

export interface PoolSlot {
  readonly index: number;
  /** As its own pid namespace has it. */
  readonly pid: Pid;
  /** Field 22 of /proc/PID/stat. */
  readonly processStartTicks: number;
  /** CLOCK_MONOTONIC. */
  readonly claimedMs: Millis;
  /** 1, 2, ...: exec count within the pid, as far as the agent knows. */
  readonly image: number;
}

const MAX_SLOTS = 1 << 16;
const MAX_STRIDE = 64 << 20;

/** Reads a pool through an open descriptor; writes only the lease and the states of drained slots.
 * All methods throw only TidemarkError. */
export class PoolReader {
  readonly #fd: number;
  readonly #source: string;
  readonly #slotCount: number;
  readonly #slotsOffset: number;
  readonly #slotStride: number;

  /** @throws TidemarkError TM-E005 damaged, TM-E006 other version, TM-E007 not a pool */
  constructor(fd: number, source = "the agent's memory") {
    this.#fd = fd;
    this.#source = source;
    const header = this.header();
    this.#slotCount = header.slotCount;
    this.#slotsOffset = header.slotsOffset;
    this.#slotStride = header.slotStride;
  }

  /** The current header. */
  header(): PoolHeader {
    const page = new Uint8Array(POOL_HEADER.size);
    const length = readAt(this.#fd, page, 0, this.#source);
    const view = new DataView(page.buffer);
    const version = poolVersion(page.subarray(0, length));
    if (version === null) {
      throw notOurs(this.#source, "a pool that Tidemark's agent wrote");
    }
    if (version !== CONSTANTS.TM_SEGMENT_VERSION) {
      throw unknownVersion(this.#source, version, CONSTANTS.TM_SEGMENT_VERSION);
    }
    if (length < page.length) {
      throw damagedInput(this.#source, "its header is truncated");
    }
    const header: PoolHeader = {
      slotCount: view.getUint32(POOL_HEADER.slot_count, true),
      slotsOffset: readUint64(view, POOL_HEADER.slots_offset),
      slotStride: readUint64(view, POOL_HEADER.slot_stride),
      runId: view.getBigUint64(POOL_HEADER.run_id, true).toString(16).padStart(16, "0"),
      periodBytes: readUint64(view, POOL_HEADER.period_bytes),
      options: view.getUint32(POOL_HEADER.options, true),
      keeperPid: view.getUint32(POOL_HEADER.keeper_pid, true),
      keeperFd: view.getUint32(POOL_HEADER.keeper_fd, true),
      leaseUntilMs: readUint64(view, POOL_HEADER.lease_until_ms),
      claims: view.getUint32(POOL_HEADER.claims, true),
      unserved: view.getUint32(POOL_HEADER.unserved, true),
      unservedReason: view.getUint32(POOL_HEADER.unserved_reason, true),
    };
    this.#check(header);
    return header;
  }

  /**
   * The slots that are claimed and not freed; slots beyond the end of the file do not exist. A slot whose owner
   * has not signed yet is left out, because its contents may still belong to the previous owner.
   */
  slots(): PoolSlot[] {
    const table = new Uint8Array(this.#slotCount * POOL_SLOT.size);
    const length = readAt(this.#fd, table, CONSTANTS.TM_PAGE, this.#source);
    const view = new DataView(table.buffer);
    const slots: PoolSlot[] = [];
    for (let index = 0; (index + 1) * POOL_SLOT.size <= length; index++) {
      const at = index * POOL_SLOT.size;
      if (view.getUint32(at + POOL_SLOT.state, true) !== CONSTANTS.TM_SLOT_CLAIMED) {
        continue;
      }
      const pid = view.getUint32(at + POOL_SLOT.pid, true);
      if (pid === 0) {
        continue;
      }
      slots.push({
        index,
        pid,
        processStartTicks: readUint64(view, at + POOL_SLOT.process_start_ticks),
        claimedMs: readUint64(view, at + POOL_SLOT.claimed_ms),
        image: view.getUint32(at + POOL_SLOT.image, true),
      });
    }
    return slots;
  }

  /** Where slot `index` begins in the file, and how long it may be. */
  slotRange(index: number): { readonly offset: number; readonly length: number } {
    return { offset: this.#slotsOffset + index * this.#slotStride, length: this.#slotStride };
  }

  /**
   * The agents continue until this moment of CLOCK_MONOTONIC ({@link monotonicMs}); 0: indefinitely; also if
   * this process's file-size limit prevents writing it.
   */
  setLease(untilMonotonicMs: Millis): void {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(
      0,
      BigInt(Math.max(0, Math.floor(untilMonotonicMs))),
      true,
    );
    this.#write(bytes, POOL_HEADER.lease_until_ms);
  }

  /**
   * Frees a slot whose owner has ended and which was read completely. The owner's id is cleared first, so that
   * the next owner is not mistaken for the previous one between its claim and its signature. False if this
   * process's file-size limit is below the slot's offset; the slot then stays claimed.
   */
  freeSlot(index: number): boolean {
    const at = CONSTANTS.TM_PAGE + index * POOL_SLOT.size;
    const free = new Uint8Array(4);
    new DataView(free.buffer).setUint32(0, CONSTANTS.TM_SLOT_FREE, true);
    return (
      this.#write(new Uint8Array(POOL_SLOT.size - POOL_SLOT.pid), at + POOL_SLOT.pid) &&
      this.#write(free, at + POOL_SLOT.state)
    );
  }

  /** False if `ulimit -f`, which also applies to positions in a memfd, forbids it. */
  #write(bytes: Uint8Array, position: number): boolean {
    try {
      writeSync(this.#fd, bytes, 0, bytes.length, position);
      return true;
    } catch (error) {
      if (reasonOf(error).code === "EFBIG") {
        return false;
      }
      throw fileUnusable(
        this.#source,
        "write",
        error instanceof Error ? error.message : String(error),
      );
    }
  }

  #check(header: PoolHeader): void {
    const { slotCount, slotsOffset, slotStride } = header;
    const tableEnd = CONSTANTS.TM_PAGE + slotCount * POOL_SLOT.size;
    if (slotCount === 0 || slotCount > MAX_SLOTS) {
      throw damagedInput(this.#source, `it claims ${slotCount} slots`);
    }
    if (
      slotStride < CONSTANTS.TM_PAGE ||
      slotStride > MAX_STRIDE ||
      slotStride % CONSTANTS.TM_PAGE !== 0
    ) {
      throw damagedInput(this.#source, `it claims slots of ${slotStride} bytes`);
    }
    if (
      slotsOffset < tableEnd ||
      slotsOffset > tableEnd + MAX_STRIDE ||
      slotsOffset % CONSTANTS.TM_PAGE !== 0
    ) {
      throw damagedInput(this.#source, `it claims that its slots begin at ${slotsOffset}`);
    }
  }
}

/** How every version's pool begins: the magic number, then the version, and from this version on the lease. */
export const POOL_START_BYTES = POOL_HEADER.lease_until_ms + 8;

/** As {@link PoolHeader.leaseUntilMs}; null: not a pool of this version. */
export function poolLease(start: Uint8Array): Millis | null {
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  return poolVersion(start) === CONSTANTS.TM_SEGMENT_VERSION
    ? readUint64(view, POOL_HEADER.lease_until_ms)
    : null;
}

/** null: not a pool. */

export function poolVersion(start: Uint8Array): number | null {
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  return start.length >= POOL_HEADER.version + 4 &&
    view.getBigUint64(POOL_HEADER.magic, true) === CONSTANTS.TM_POOL_MAGIC
    ? view.getUint32(POOL_HEADER.version, true)
    : null;
}
