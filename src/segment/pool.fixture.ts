/** Pools for tests, in the agent's format: sections laid out one after the other, 8 KiB apart
 * or as large as asked. */

import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { itemAt } from "../model/base/columns.js";
import { Domain } from "../model/profile/profile.js";
import {
  CONSTANTS,
  EVENT,
  FRAME,
  LABEL,
  LIVE,
  OPENING,
  POOL_HEADER,
  POOL_SLOT,
  SECTION,
  SEGMENT_HEADER,
  SITE,
  STACK_NODE,
  THREAD,
} from "./layout.js";

const START_MONOTONIC_MS = 1_000_000;
export const START_REALTIME_MS = 1_700_000_000_000;
const SECTION_BYTES = 64 << 10;
const STRIDES = [
  1,
  FRAME.size,
  STACK_NODE.size,
  THREAD.size,
  LABEL.size,
  SITE.size,
  LIVE.size,
  EVENT.size,
  OPENING.size,
];

interface SiteFigures {
  live?: number;
  liveSamples?: number;
  allocated?: number;
  peak?: number;
  peakNumber?: number;
  thread?: number;
  label?: number;
  domain?: Domain;
  lifetimes?: readonly number[];
}

/** A pool in memory; `open()` puts it into a file. */
export class PoolFixture {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly slotsOffset: number;
  #directory: string | null = null;
  #fd = -1;

  readonly stride: number;

  /** `sectionBytes`: room of each of a segment's sections. */
  constructor(
    readonly slotCount = 4,
    readonly sectionBytes = SECTION_BYTES,
  ) {
    this.stride = Math.max(1 << 20, CONSTANTS.TM_PAGE + STRIDES.length * sectionBytes);
    this.slotsOffset =
      CONSTANTS.TM_PAGE * (2 + Math.floor((slotCount * POOL_SLOT.size) / CONSTANTS.TM_PAGE));
    this.bytes = new Uint8Array(this.slotsOffset + slotCount * this.stride);
    this.view = new DataView(this.bytes.buffer);
    this.view.setBigUint64(POOL_HEADER.magic, CONSTANTS.TM_POOL_MAGIC, true);
    this.view.setUint32(POOL_HEADER.version, CONSTANTS.TM_SEGMENT_VERSION, true);
    this.view.setUint32(POOL_HEADER.slot_count, slotCount, true);
    this.view.setBigUint64(POOL_HEADER.slots_offset, BigInt(this.slotsOffset), true);
    this.view.setBigUint64(POOL_HEADER.slot_stride, BigInt(this.stride), true);
    this.view.setBigUint64(POOL_HEADER.run_id, 0xabcdefn, true);
    this.view.setBigUint64(POOL_HEADER.period_bytes, 65536n, true);
  }

  /** Claims a slot for a process and lays out its segment. */
  segment(slot: number, pid: number): SegmentFixture {
    const at = CONSTANTS.TM_PAGE + slot * POOL_SLOT.size;
    this.view.setUint32(at + POOL_SLOT.state, CONSTANTS.TM_SLOT_CLAIMED, true);
    this.view.setUint32(at + POOL_SLOT.pid, pid, true);
    this.view.setBigUint64(at + POOL_SLOT.process_start_ticks, 77n, true);
    this.view.setUint32(at + POOL_SLOT.image, 1, true);
    return new SegmentFixture(this, this.slotsOffset + slot * this.stride, pid);
  }

  /** A descriptor, readable and writable, on a file that holds the pool as it is now. */
  open(bytes: Uint8Array = this.bytes): number {
    this.close();
    this.#directory = mkdtempSync(join(tmpdir(), "tidemark-pool-"));
    const path = join(this.#directory, "pool");
    writeFileSync(path, bytes);
    this.#fd = openSync(path, "r+");
    return this.#fd;
  }

  /** Updates the open file. */
  save(): void {
    writeFileSync(join(this.#directory ?? "", "pool"), this.bytes);
  }

  close(): void {
    if (this.#directory !== null) {
      closeSync(this.#fd);
      rmSync(this.#directory, { recursive: true });
      this.#directory = null;
    }
  }
}

/** The agent's side of one segment. */
export class SegmentFixture {
  readonly view: DataView;
  readonly bytes: Uint8Array;
  readonly #sectionBytes: number;
  readonly #strings = new Map([["", 0]]);
  readonly #frames = new Map<string, number>();
  readonly #stacks = new Map([["", 0]]);

  constructor(pool: PoolFixture, offset: number, pid: number) {
    this.#sectionBytes = pool.sectionBytes;
    this.bytes = pool.bytes.subarray(offset, offset + pool.stride);
    this.view = new DataView(pool.bytes.buffer, offset, pool.stride);
    const { view } = this;
    view.setBigUint64(SEGMENT_HEADER.magic, CONSTANTS.TM_SEGMENT_MAGIC, true);
    view.setUint32(SEGMENT_HEADER.version, CONSTANTS.TM_SEGMENT_VERSION, true);
    view.setUint32(SEGMENT_HEADER.state, CONSTANTS.TM_STATE_ARMED, true);
    view.setUint32(SEGMENT_HEADER.pid, pid, true);
    view.setUint32(SEGMENT_HEADER.parent_pid, 1, true);
    view.setUint32(SEGMENT_HEADER.image, 1, true);
    view.setBigUint64(SEGMENT_HEADER.process_start_ticks, 77n, true);
    view.setBigUint64(SEGMENT_HEADER.start_monotonic_ms, BigInt(START_MONOTONIC_MS), true);
    view.setBigUint64(SEGMENT_HEADER.start_realtime_ms, BigInt(START_REALTIME_MS), true);
    view.setBigUint64(SEGMENT_HEADER.period_bytes, 65536n, true);
    view.setUint32(SEGMENT_HEADER.peak_number, 1, true);
    this.#text(SEGMENT_HEADER.python_version, "3.11.7");
    this.#text(SEGMENT_HEADER.command, "python\0app.py\0");
    view.setUint32(SEGMENT_HEADER.command_length, 14, true);
    STRIDES.forEach((stride, kind) => {
      const at = this.section(kind);
      view.setBigUint64(
        at + SECTION.offset,
        BigInt(CONSTANTS.TM_PAGE + kind * pool.sectionBytes),
        true,
      );
      view.setUint32(at + SECTION.stride, stride, true);
      const capacity = Math.floor(pool.sectionBytes / stride);
      view.setUint32(at + SECTION.capacity, capacity, true);
      view.setUint32(
        at + SECTION.block_records,
        Math.ceil(capacity / CONSTANTS.TM_SECTION_BLOCKS),
        true,
      );
    });
    this.setCount(CONSTANTS.TM_SECTION_STRINGS, 8);
    this.setCount(CONSTANTS.TM_SECTION_STACKS, 1);
    this.setCount(CONSTANTS.TM_SECTION_LABELS, 1);
  }

  string(text: string): number {
    let id = this.#strings.get(text);
    if (id === undefined) {
      const encoded = new TextEncoder().encode(text);
      const used = this.count(CONSTANTS.TM_SECTION_STRINGS);
      const at = this.record(CONSTANTS.TM_SECTION_STRINGS, used);
      this.view.setUint32(at, encoded.length, true);
      this.bytes.set(encoded, at + 4);
      this.setCount(CONSTANTS.TM_SECTION_STRINGS, used + Math.ceil((4 + encoded.length) / 8) * 8);
      id = used / 8;
      this.#strings.set(text, id);
    }
    return id;
  }

  /** Frames are "function" (a Python one in app.py) or "lib.so+1f0" (a native one). */
  frame(text: string): number {
    let id = this.#frames.get(text);
    if (id === undefined) {
      const native = /^(.*\.so)\+([0-9a-f]+)$/.exec(text);
      id = this.#append(CONSTANTS.TM_SECTION_FRAMES, (at) => {
        this.view.setUint32(at + FRAME.function, native ? 0 : this.string(text), true);
        this.view.setUint32(at + FRAME.file, this.string(native?.[1] ?? "app.py"), true);
        this.view.setUint32(at + FRAME.line, native ? 0 : 10, true);
        this.view.setUint32(at + FRAME.kind, native ? CONSTANTS.TM_FRAME_NATIVE : 0, true);
        this.view.setBigUint64(at + FRAME.address, BigInt(`0x${native?.[2] ?? 0}`), true);
      });
      this.#frames.set(text, id);
    }
    return id;
  }

  /** "main;load": root first. */
  stack(text: string): number {
    let id = this.#stacks.get(text);
    if (id === undefined) {
      const cut = text.lastIndexOf(";");
      const parent = this.stack(cut < 0 ? "" : text.slice(0, cut));
      const frame = this.frame(text.slice(cut + 1));
      id = this.#append(CONSTANTS.TM_SECTION_STACKS, (at) => {
        this.view.setUint32(at + STACK_NODE.parent, parent, true);
        this.view.setUint32(at + STACK_NODE.frame, frame, true);
      });
      this.#stacks.set(text, id);
    }
    return id;
  }

  label(key: string, value: string, parent = 0): number {
    return this.#append(CONSTANTS.TM_SECTION_LABELS, (at) => {
      this.view.setUint32(at + LABEL.parent, parent, true);
      this.view.setUint32(at + LABEL.key, this.string(key), true);
      this.view.setUint32(at + LABEL.value, this.string(value), true);
    });
  }

  thread(tid: number, name: string): number {
    return this.#append(CONSTANTS.TM_SECTION_THREADS, (at) => {
      this.view.setUint32(at + THREAD.tid, tid, true);
      this.bytes.set(new TextEncoder().encode(name), at + THREAD.name);
      this.view.setUint32(
        at + THREAD.is_main,
        tid === this.view.getUint32(SEGMENT_HEADER.pid, true) ? 1 : 0,
        true,
      );
      this.#seal(at, THREAD.size);
    });
  }

  /** A site of bytes in objects of 1 KiB each, with a variance of 100 times the bytes. */
  site(stack: string, figures: SiteFigures): number {
    return this.#append(CONSTANTS.TM_SECTION_SITES, (at) => {
      this.view.setUint32(at + SITE.stack, this.stack(stack), true);
      this.#fill(at, figures);
    });
  }

  rewrite(site: number, figures: SiteFigures): void {
    const at = this.record(CONSTANTS.TM_SECTION_SITES, site);
    this.#fill(at, figures);
    this.touch(CONSTANTS.TM_SECTION_SITES, site);
  }

  /** A live allocation at entry `entry` of the table, born `ageMs` after the segment's start. */
  live(entry: number, site: number, bytes: number, bornAfterMs: number): void {
    const at = this.record(CONSTANTS.TM_SECTION_LIVE, entry);
    this.view.setUint32(at + LIVE.site, site, true);
    this.view.setBigUint64(at + LIVE.address, BigInt(0x7f00_0000 + entry * 16), true);
    this.view.setBigUint64(at + LIVE.bytes, BigInt(bytes), true);
    this.view.setBigUint64(at + LIVE.weight_bytes, BigInt(bytes), true);
    this.view.setBigUint64(at + LIVE.birth_ms, BigInt(START_MONOTONIC_MS + bornAfterMs), true);
    this.view.setFloat32(at + LIVE.period_bytes, 65536, true);
    this.#seal(at, LIVE.size);
    this.touch(CONSTANTS.TM_SECTION_LIVE, entry);
  }

  event(kind: number, afterMs: number, value: number, label = 0): void {
    const number = this.count(CONSTANTS.TM_SECTION_EVENTS);
    const capacity = Math.floor(this.#sectionBytes / EVENT.size);
    const at = this.record(CONSTANTS.TM_SECTION_EVENTS, number % capacity);
    this.view.setUint32(at + EVENT.kind, kind, true);
    this.view.setBigUint64(at + EVENT.ms, BigInt(START_MONOTONIC_MS + afterMs), true);
    this.view.setBigUint64(at + EVENT.value, BigInt(value), true);
    this.view.setUint32(at + EVENT.label, label, true);
    this.#seal(at, EVENT.size);
    this.setCount(CONSTANTS.TM_SECTION_EVENTS, number + 1);
    this.touch(CONSTANTS.TM_SECTION_EVENTS, number % capacity);
  }

  opening(descriptor: number, stack: string, afterSeconds: number): void {
    const kind = CONSTANTS.TM_SECTION_OPENINGS;
    const at = this.record(kind, descriptor);
    this.view.setUint32(at + OPENING.stack, stack === "" ? 0 : this.stack(stack), true);
    this.view.setUint32(at + OPENING.after_s, afterSeconds, true);
    this.setCount(kind, Math.max(this.count(kind), descriptor + 1));
    this.touch(kind, descriptor);
  }

  /** Offset of a record within the segment. */
  record(kind: number, id: number): number {
    return CONSTANTS.TM_PAGE + kind * this.#sectionBytes + id * itemAt(STRIDES, kind);
  }

  section(kind: number): number {
    return SEGMENT_HEADER.sections + kind * SECTION.size;
  }

  count(kind: number): number {
    return this.view.getUint32(this.section(kind) + SECTION.count, true);
  }

  setCount(kind: number, count: number): void {
    this.view.setUint32(this.section(kind) + SECTION.count, count, true);
  }

  /** Raises the generation of the block that holds a record. */
  touch(kind: number, id: number): void {
    const records = this.view.getUint32(this.section(kind) + SECTION.block_records, true);
    const at = this.section(kind) + SECTION.block_generation + 4 * Math.floor(id / records);
    this.view.setUint32(at, this.view.getUint32(at, true) + 1, true);
  }

  #text(at: number, text: string): void {
    this.bytes.set(new TextEncoder().encode(text), at);
  }

  #append(kind: number, write: (at: number) => void): number {
    const id = this.count(kind);
    this.setCount(kind, id + 1);
    write(this.record(kind, id));
    this.touch(kind, id);
    return id;
  }

  #fill(at: number, figures: SiteFigures): void {
    const { view } = this;
    const estimate = (offset: number, bytes: number) => {
      view.setFloat64(at + offset, bytes, true);
      view.setFloat64(at + offset + 8, bytes / 1024, true);
      view.setFloat64(at + offset + 16, bytes * 100, true);
    };
    estimate(SITE.live_bytes, figures.live ?? 0);
    estimate(SITE.allocated_bytes, figures.allocated ?? figures.live ?? 0);
    estimate(SITE.peak_bytes, figures.peak ?? 0);
    view.setUint32(at + SITE.live_samples, figures.liveSamples ?? (figures.live ? 1 : 0), true);
    view.setUint32(at + SITE.peak_number, figures.peakNumber ?? 1, true);
    view.setUint32(at + SITE.label, figures.label ?? 0, true);
    view.setUint16(at + SITE.thread, figures.thread ?? 0, true);
    view.setUint16(at + SITE.domain, figures.domain ?? Domain.python, true);
    figures.lifetimes?.forEach((objects, bucket) => {
      view.setFloat32(at + SITE.lifetimes + 4 * bucket, objects, true);
    });
    this.#seal(at, SITE.size);
  }

  /** Ends a write: both sequence numbers are set to the next one. */
  #seal(at: number, size: number): void {
    const next = this.view.getUint32(at, true) + 1;
    this.view.setUint32(at, next, true);
    this.view.setUint32(at + size - 4, next, true);
  }
}
