/** The first page of a segment (struct tm_segment_header of segment.h) and the table of its sections. */

import type { Bytes, Millis, Objects, Pid, TimeMs } from "../model/base/units.js";
import { damagedInput, unknownVersion } from "../model/errors/errors.js";
import { readEstimate, readField, readText, readUint64 } from "./bytes.js";
import {
  CONSTANTS,
  EVENT,
  FRAME,
  LABEL,
  LIVE,
  OPENING,
  SECTION,
  SEGMENT_HEADER,
  SITE,
  STACK_NODE,
  THREAD,
} from "./layout.js";

/** An allocation that failed, and the process's own soft limits then; null: none. */
export interface FailedAllocation {
  readonly bytes: Bytes;
  readonly timeMs: TimeMs;
  readonly addressSpaceBytes: Bytes | null;
  readonly dataBytes: Bytes | null;
}

export interface SegmentHeader {
  readonly state: "armed" | "disarmed" | "ended";
  /** Ids in its own pid namespace. */
  readonly pid: Pid;
  readonly parentPid: Pid;
  readonly image: number;
  readonly processStartTicks: number;
  readonly startMonotonicMs: Millis;
  readonly startRealtimeMs: TimeMs;
  /** CLOCK_MONOTONIC of the last change. */
  readonly heartbeatMs: Millis;
  /** Current sampling period. */
  readonly periodBytes: Bytes;
  readonly samples: number;
  /** Samples that were lost because a section was full. */
  readonly samplesLost: number;
  /** How often the live table was full and halved. */
  readonly thinnings: number;
  /** CPU time of the agent's slow path. */
  readonly slowPathMs: Millis;
  readonly liveBytes: Bytes;
  readonly liveObjects: Objects;
  readonly allocatedBytes: Bytes;
  readonly allocatedObjects: Objects;
  readonly peakLiveBytes: Bytes;
  /** 0: there was none yet. */
  readonly peakMs: TimeMs;
  /** A site's peak figures are valid if its own number equals this one. */
  readonly peakNumber: number;
  /** "3.11.7"; "" if no interpreter was found. */
  readonly python: string;
  readonly pythonState: number;
  /** TM_LIMIT_* bits. */
  readonly limits: number;
  /** argv, possibly truncated. */
  readonly command: readonly string[];
  /** Readable notes about what was left out. */
  readonly log: readonly string[];
  readonly layoutGeneration: number;
  readonly sections: readonly SectionHeader[];
  /** The newest one; null: none has failed. */
  readonly failed: FailedAllocation | null;
}

export interface SectionHeader {
  /** From the segment's start. */
  readonly offset: number;
  readonly stride: Bytes;
  /** Records it may hold as laid out now. */
  readonly capacity: number;
  /** Records written (strings: bytes; live: occupied; events: ever). */
  readonly count: number;
  readonly blockRecords: number;
  /** Records rejected because its final limit was reached. */
  readonly lost: number;
  /** Changes by block of `blockRecords` records. */
  readonly blockGeneration: Uint32Array;
}

/** Bytes of a record, by section kind. */
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
] as const;

const STATES = [null, "armed", "disarmed", "ended"] as const;

/** The header in `page`, or null if the owner has not finished it yet.
 * `bound`: the largest size of the segment.
 * @throws TidemarkError TM-E005, TM-E006 */
export function parseSegmentHeader(
  page: Uint8Array,
  bound: number,
  source: string,
): SegmentHeader | null {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const magic = view.getBigUint64(SEGMENT_HEADER.magic, true);
  const stateNumber = view.getUint32(SEGMENT_HEADER.state, true);
  if (magic === 0n || stateNumber === CONSTANTS.TM_STATE_EMPTY) {
    return null;
  }
  if (magic !== CONSTANTS.TM_SEGMENT_MAGIC) {
    throw damagedInput(source, "a segment does not have a valid header");
  }
  const version = view.getUint32(SEGMENT_HEADER.version, true);
  if (version !== CONSTANTS.TM_SEGMENT_VERSION) {
    throw unknownVersion(source, version, CONSTANTS.TM_SEGMENT_VERSION);
  }
  const state = STATES[stateNumber];
  if (state === undefined || state === null) {
    throw damagedInput(source, `a segment claims state ${stateNumber}`);
  }
  const sections = STRIDES.map((stride, kind) => sectionOf(view, kind, stride, bound, source));
  if (sections.reduce((sum, { capacity, stride }) => sum + capacity * stride, 0) > bound) {
    throw damagedInput(source, "a segment's sections overlap");
  }
  const uint64 = (offset: number) => readUint64(view, offset);
  const startMonotonicMs = uint64(SEGMENT_HEADER.start_monotonic_ms);
  const startRealtimeMs = uint64(SEGMENT_HEADER.start_realtime_ms);
  const peakMs = uint64(SEGMENT_HEADER.peak_ms);
  const failedBytes = uint64(SEGMENT_HEADER.failed_bytes);
  return {
    state,
    pid: view.getUint32(SEGMENT_HEADER.pid, true),
    parentPid: view.getUint32(SEGMENT_HEADER.parent_pid, true),
    image: view.getUint32(SEGMENT_HEADER.image, true),
    processStartTicks: uint64(SEGMENT_HEADER.process_start_ticks),
    startMonotonicMs,
    startRealtimeMs,
    heartbeatMs: uint64(SEGMENT_HEADER.heartbeat_ms),
    periodBytes: uint64(SEGMENT_HEADER.period_bytes),
    samples: uint64(SEGMENT_HEADER.samples),
    samplesLost: uint64(SEGMENT_HEADER.samples_lost),
    thinnings: uint64(SEGMENT_HEADER.thinnings),
    slowPathMs: uint64(SEGMENT_HEADER.slow_path_ns) / 1e6,
    liveBytes: readEstimate(view, SEGMENT_HEADER.live_bytes),
    liveObjects: readEstimate(view, SEGMENT_HEADER.live_objects),
    allocatedBytes: readEstimate(view, SEGMENT_HEADER.allocated_bytes),
    allocatedObjects: readEstimate(view, SEGMENT_HEADER.allocated_objects),
    peakLiveBytes: readEstimate(view, SEGMENT_HEADER.peak_live_bytes),
    peakMs: peakMs === 0 ? 0 : peakMs - startMonotonicMs + startRealtimeMs,
    peakNumber: view.getUint32(SEGMENT_HEADER.peak_number, true),
    python: readField(field(page, SEGMENT_HEADER.python_version, 32)),
    pythonState: view.getUint32(SEGMENT_HEADER.python_state, true),
    limits: view.getUint32(SEGMENT_HEADER.limits, true),
    command: commandOf(page, view),
    log: logOf(page, view),
    layoutGeneration: view.getUint32(SEGMENT_HEADER.layout_generation, true),
    sections,
    failed:
      failedBytes === 0
        ? null
        : {
            bytes: failedBytes,
            timeMs: uint64(SEGMENT_HEADER.failed_ms) - startMonotonicMs + startRealtimeMs,
            addressSpaceBytes: uint64(SEGMENT_HEADER.failed_address_space_limit) || null,
            dataBytes: uint64(SEGMENT_HEADER.failed_data_limit) || null,
          },
  };
}

function sectionOf(
  view: DataView,
  kind: number,
  expectedStride: number,
  bound: number,
  source: string,
): SectionHeader {
  const at = SEGMENT_HEADER.sections + kind * SECTION.size;
  const offset = readUint64(view, at + SECTION.offset);
  const stride = view.getUint32(at + SECTION.stride, true);
  const capacity = view.getUint32(at + SECTION.capacity, true);
  const blockGeneration = new Uint32Array(CONSTANTS.TM_SECTION_BLOCKS);
  for (let block = 0; block < blockGeneration.length; block++) {
    blockGeneration[block] = view.getUint32(at + SECTION.block_generation + 4 * block, true);
  }
  if (capacity > 0) {
    if (stride !== expectedStride) {
      throw damagedInput(source, `section ${kind} claims records of ${stride} bytes`);
    }
    if (offset < SEGMENT_HEADER.size || offset + capacity * stride > bound) {
      throw damagedInput(source, `section ${kind} lies outside its segment`);
    }
  }
  return {
    offset,
    stride: expectedStride,
    capacity,
    count: view.getUint32(at + SECTION.count, true),
    blockRecords: view.getUint32(at + SECTION.block_records, true),
    lost: view.getUint32(at + SECTION.lost, true),
    blockGeneration,
  };
}

function commandOf(page: Uint8Array, view: DataView): string[] {
  const length = Math.min(
    view.getUint32(SEGMENT_HEADER.command_length, true),
    CONSTANTS.TM_COMMAND_BYTES,
  );
  const text = readText(field(page, SEGMENT_HEADER.command, length));
  return text === "" ? [] : text.replace(/\0$/, "").split("\0");
}

function logOf(page: Uint8Array, view: DataView): string[] {
  const length = Math.min(view.getUint32(SEGMENT_HEADER.log_length, true), CONSTANTS.TM_LOG_BYTES);
  return readText(field(page, SEGMENT_HEADER.log, length))
    .split(/[\n\0]/)
    .filter((line) => line !== "");
}

function field(page: Uint8Array, offset: number, length: number): Uint8Array {
  return page.subarray(offset, offset + length);
}
