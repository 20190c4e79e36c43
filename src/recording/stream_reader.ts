/**
 * Decodes and checks a recording that arrives in pieces, frame by frame, as a server does with a stream.
 *
 *     const reader = new StreamReader("the stream");
 *     const items = reader.take(bytes);     // whole frames, in their order; at first the file's head, too
 *
 * Unlike {@link OpenRecording}, it keeps no series and no profiles, only the dictionaries that later frames refer to.
 */
import { float64At, uint32At } from "../model/base/columns.js";
import type { Bytes, TimeMs } from "../model/base/units.js";
import { decodeColumns } from "../model/documents/columns.js";
import { damagedInput, tooLarge } from "../model/errors/errors.js";
import type { Profile, ProfileTables } from "../model/profile/profile.js";
import type { TimelineEvent } from "../model/profile/series.js";
import { BatchError, demand } from "./batch_check.js";
import type { EndBatch, MetaBatch, MetricBatch, ProfileBatch, SeriesRow } from "./batches.js";
import { readCensus } from "./census_batch.js";
import {
  checkedEnd,
  checkedEvents,
  checkedLimits,
  checkedMeta,
  checkedMetrics,
  checkedProcesses,
  checkedProfile,
} from "./checked_frames.js";
import { DictionaryReader } from "./dictionary_batches.js";
import {
  decodeFileHead,
  decodeFrameHead,
  FILE_HEAD_BYTES,
  FRAME_HEAD_BYTES,
  type FrameHead,
  FrameKind,
  frameIsWhole,
  plainPayload,
} from "./frames/frames.js";
import { HolderReader } from "./holder_reader.js";
import { readMemoryEnds } from "./memory_end_batch.js";
import { readSamples } from "./snapshot_reader.js";
import { upgrade } from "./upgrade.js";

/** The contents of one frame. Frames that only the reader of a file needs are checked and left out. */
export type StreamItem = (
  | { readonly kind: "meta"; readonly meta: MetaBatch }
  | { readonly kind: "processes"; readonly rows: readonly SeriesRow[] }
  | { readonly kind: "metrics"; readonly batch: MetricBatch }
  | { readonly kind: "profile"; readonly profile: Profile; readonly about: ProfileBatch }
  | { readonly kind: "events"; readonly events: readonly TimelineEvent[] }
  | { readonly kind: "end"; readonly end: EndBatch }
) & {
  /** Offset of the first byte after its frame. */
  readonly endOffset: number;
  /** Bytes of its batch, decoded. */
  readonly bytes: number;
};

/** Bounds of a batch, decoded: of one frame and of all frames of a call. */
export interface StreamLimits {
  readonly frameBytes: number;
  readonly callBytes: number;
}

/** After the first error, this reader must not be used any more. */
export class StreamReader {
  #offset = 0;
  #version = 0;
  #meta: MetaBatch | null = null;
  readonly #rows: SeriesRow[] = [];
  readonly #lastPollMs: TimeMs[] = [];
  readonly #dictionary = new DictionaryReader();
  readonly #holders = new HolderReader();
  #announced: ProfileBatch | null = null;
  #ended = false;
  #mostSites = 0;

  constructor(
    readonly source: string,
    readonly limits: StreamLimits,
  ) {}

  /** Bytes taken so far. */
  get offset(): number {
    return this.#offset;
  }

  /** The stream's description of itself; null before its first frame. */
  get meta(): MetaBatch | null {
    return this.#meta;
  }

  /** The dictionaries so far; later frames are not included. */
  get tables(): ProfileTables {
    return this.#dictionary.tables();
  }

  /** About how much memory it takes. */
  get bytes(): Bytes {
    return this.#dictionary.bytes;
  }

  /** Sites of its largest profile. */
  get mostSites(): number {
    return this.#mostSites;
  }

  /** Takes whole frames. Throws TidemarkError for anything else. */
  take(bytes: Buffer): StreamItem[] {
    const items: StreamItem[] = [];
    let at = 0;
    let decoded = 0;
    if (this.#offset === 0 && bytes.length > 0) {
      this.#version = decodeFileHead(bytes.subarray(0, FILE_HEAD_BYTES), this.source);
      at = FILE_HEAD_BYTES;
    }
    while (at < bytes.length) {
      const { head, payload } = this.#frameAt(bytes, at);
      at += FRAME_HEAD_BYTES + payload.length;
      const left = Math.min(this.limits.frameBytes, this.limits.callBytes - decoded);
      const batch = this.#decode(head, payload, left);
      const size = payload.length;
      decoded += batch.bytes;
      const item = this.#checked(head, batch.value);
      if (item !== null) {
        items.push({ ...item, endOffset: this.#offset + at, bytes: Math.max(size, batch.bytes) });
      }
    }
    this.#offset += at;
    return items;
  }

  #frameAt(bytes: Buffer, at: number): { head: FrameHead; payload: Buffer } {
    const place = `the frame at byte ${this.#offset + at}`;
    const headBytes = bytes.subarray(at, at + FRAME_HEAD_BYTES);
    if (headBytes.length < FRAME_HEAD_BYTES) {
      throw damagedInput(this.source, `${place} is cut off`);
    }
    const head = decodeFrameHead(headBytes);
    const payload = bytes.subarray(at + FRAME_HEAD_BYTES, at + FRAME_HEAD_BYTES + head.length);
    if (payload.length < head.length) {
      throw damagedInput(this.source, `${place} is cut off`);
    }
    if (!frameIsWhole(headBytes, payload)) {
      throw damagedInput(this.source, `${place} does not match its checksum`);
    }
    return { head, payload };
  }

  #decode(head: FrameHead, payload: Buffer, most: number): { value: unknown; bytes: number } {
    if (most <= 0) {
      throw tooLarge(
        `the decompressed content of ${this.source}`,
        `${this.limits.callBytes >> 20} MiB`,
      );
    }
    const plain = plainPayload(head, payload, this.source, most);
    const value = decodeColumns(plain, this.source);
    return { value: upgrade(this.#version, head.kind as FrameKind, value), bytes: plain.length };
  }

  #checked(head: FrameHead, batch: unknown): OneFrame | null {
    try {
      demand(!this.#ended, "it comes after the recording's end");
      demand(
        head.kind === FrameKind.meta || this.#meta !== null,
        "it precedes the recording's description",
      );
      demand(Number.isFinite(head.timeMs), "it has no time");
      return batch === undefined ? null : this.#read(head, batch);
    } catch (error) {
      // A RangeError: a row that the frame's own columns do not have.
      if (error instanceof BatchError || error instanceof RangeError) {
        throw damagedInput(this.source, `a frame is invalid: ${error.message}`);
      }
      throw error;
    }
  }

  #read(head: FrameHead, batch: unknown): OneFrame | null {
    switch (head.kind) {
      case FrameKind.meta:
        demand(this.#meta === null, "the recording is described twice");
        this.#meta = checkedMeta(batch);
        return { kind: "meta", meta: this.#meta };
      case FrameKind.processes: {
        const rows = checkedProcesses(batch, this.#rows.length);
        for (const row of rows) {
          this.#rows[row.series] = row;
        }
        return { kind: "processes", rows };
      }
      case FrameKind.metrics:
        return { kind: "metrics", batch: this.#metrics(batch) };
      case FrameKind.dictionary:
        this.#dictionary.add(batch);
        return null;
      case FrameKind.profile:
        this.#announced = checkedProfile(batch);
        return null;
      case FrameKind.samples:
        return this.#profile(batch);
      case FrameKind.events:
        return { kind: "events", events: checkedEvents(batch) };
      case FrameKind.limits:
        checkedLimits(batch);
        return null;
      case FrameKind.holders:
        this.#holders.add(batch, head.timeMs);
        return null;
      case FrameKind.census:
        readCensus(batch, head.timeMs);
        return null;
      case FrameKind.memoryEnds:
        readMemoryEnds(batch);
        return null;
      case FrameKind.end:
        this.#ended = true;
        return { kind: "end", end: checkedEnd(batch) };
      default:
        throw new BatchError(`its kind ${head.kind} is unknown`);
    }
  }

  /** Ignored without the preceding frame of kind profile. */
  #profile(batch: unknown): OneFrame | null {
    const about = this.#announced;
    this.#announced = null;
    if (about === null) {
      return null;
    }
    const profile = readSamples(batch, this.#dictionary.tables(), about);
    this.#mostSites = Math.max(this.#mostSites, profile.sites.length);
    return { kind: "profile", profile, about };
  }

  #metrics(value: unknown): MetricBatch {
    const batch = checkedMetrics(value, this.#rows.length);
    for (let i = 0; i < batch.series.length; i++) {
      const series = uint32At(batch.series, i);
      const timeMs = float64At(batch.timeMs, i);
      demand(timeMs >= (this.#lastPollMs[series] ?? timeMs), "polls are out of order");
      this.#lastPollMs[series] = timeMs;
    }
    return batch;
  }
}

type OneFrame = StreamItem extends infer Item
  ? Item extends StreamItem
    ? Omit<Item, "endOffset" | "bytes">
    : never
  : never;

/** Whole frames at the start of `bytes`, which begin at `offset` of their stream: how many bytes they are. A cut or
 * damaged frame ends them. Throws TidemarkError if the file's header is invalid. */
export function wholeFrames(bytes: Buffer, offset: number, source: string): number {
  let at = 0;
  if (offset === 0) {
    if (bytes.length < FILE_HEAD_BYTES) {
      return 0;
    }
    decodeFileHead(bytes.subarray(0, FILE_HEAD_BYTES), source);
    at = FILE_HEAD_BYTES;
  }
  for (;;) {
    const headBytes = bytes.subarray(at, at + FRAME_HEAD_BYTES);
    if (headBytes.length < FRAME_HEAD_BYTES) {
      return at;
    }
    const { length } = decodeFrameHead(headBytes);
    const payload = bytes.subarray(at + FRAME_HEAD_BYTES, at + FRAME_HEAD_BYTES + length);
    if (payload.length < length || !frameIsWhole(headBytes, payload)) {
      return at;
    }
    at += FRAME_HEAD_BYTES + length;
  }
}
