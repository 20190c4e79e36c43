/** A memray file with totals of each stack at the peak and at the end (`memray run --aggregate`). */
import type { TimeMs } from "../../../model/base/units.js";
import type { Cursor } from "../cursor.js";
import { type ImportedSites, pythonFrame } from "../imported_sites.js";
import { ForeignFault, MOST_ROWS, requireRoom } from "../importer.js";
import { allocatorOf } from "./allocators.js";
import { MemrayFrames } from "./frames.js";
import type { MemrayContent, MemrayHeader } from "./header.js";
import { skipSegments } from "./records.js";

const Kind = {
  snapshot: 1,
  allocation: 2,
  stack: 3,
  frame: 4,
  nativeFrame: 5,
  mapStart: 6,
  segments: 7,
  thread: 10,
  contextSwitch: 12,
  object: 13,
  code: 14,
  trailer: 15,
} as const;

interface Total {
  readonly thread: number;
  readonly allocator: number;
  readonly node: number;
  readonly peakObjects: number;
  readonly liveObjects: number;
  readonly peak: number;
  readonly live: number;
}

export function readAggregated(
  cursor: Cursor,
  header: MemrayHeader,
  sites: ImportedSites,
): MemrayContent {
  const reader = new AggregateReader(cursor, header);
  while (!reader.record()) {
    // Until the trailer: the file is written at once, so that a shorter one is damaged.
  }
  reader.fill(sites);
  const heaps = reader.metrics.filter(({ metric }) => metric === "liveBytes");
  const highest = heaps.reduce((best, row) => (row.value > best.value ? row : best), {
    value: 0,
    timeMs: 0,
  });
  return {
    metrics: reader.metrics,
    complete: true,
    lastMs: reader.lastMs,
    peakMs: highest.timeMs,
    known: ["live", "peak", "objects", "rss", "time"],
  };
}

class AggregateReader {
  readonly metrics: { metric: "rssBytes" | "liveBytes"; timeMs: TimeMs; value: number }[] = [];
  lastMs: TimeMs = 0;
  readonly #cursor: Cursor;
  readonly #header: MemrayHeader;
  readonly #frames: MemrayFrames;
  readonly #pending: { id: number; code: number; instruction: number }[] = [];
  readonly #threadNames = new Map<number, string>();
  readonly #totals: Total[] = [];
  #thread = 0;
  #line = 0;

  constructor(cursor: Cursor, header: MemrayHeader) {
    this.#cursor = cursor;
    this.#header = header;
    this.#frames = new MemrayFrames(header.pythonVersion);
  }

  /** @returns whether it was the last */
  record(): boolean {
    const cursor = this.#cursor;
    const kind = cursor.u8();
    switch (kind) {
      case Kind.trailer:
        return true;
      case Kind.snapshot:
        this.#snapshot();
        return false;
      case Kind.allocation:
        this.#allocation();
        return false;
      case Kind.stack:
        this.#stack();
        return false;
      case Kind.frame:
        this.#frame();
        return false;
      case Kind.code:
        this.#code();
        return false;
      case Kind.thread:
        this.#threadNames.set(this.#thread, cursor.cString());
        return false;
      case Kind.contextSwitch:
        this.#thread = cursor.u64();
        return false;
      case Kind.nativeFrame:
        cursor.varint();
        cursor.varint();
        return false;
      case Kind.object:
        cursor.varint();
        if (this.#header.nativeTraces) {
          cursor.varint();
        }
        return false;
      case Kind.mapStart:
        return false;
      case Kind.segments:
        skipSegments(cursor);
        return false;
      default:
        throw new ForeignFault(`the record ${kind} at byte ${cursor.at - 1} is unknown`);
    }
  }

  fill(sites: ImportedSites): void {
    for (const { id, code, instruction } of this.#pending) {
      this.#frames.codeFrame(code, instruction, id);
    }
    const { mainThread, skippedFrames, version } = this.#header;
    for (const { thread, allocator, node, ...figures } of this.#totals) {
      const isMain = thread === mainThread;
      const stack = this.#frames.stackOf(node, isMain ? skippedFrames : 0, sites);
      const name = this.#threadNames.get(thread) ?? (isMain ? "MainThread" : "");
      const { domain } = allocatorOf(version, allocator);
      sites.add({ stack, domain, thread: sites.thread(thread, name, isMain) }, figures);
    }
  }

  #snapshot(): void {
    const timeMs = this.#cursor.u64();
    requireRoom(this.metrics.length, MOST_ROWS, "readings");
    this.metrics.push({ metric: "rssBytes", timeMs, value: this.#cursor.u64() });
    this.metrics.push({ metric: "liveBytes", timeMs, value: this.#cursor.u64() });
    this.lastMs = timeMs;
  }

  /** A C structure: the allocator is a byte with 7 bytes of padding. */
  #allocation(): void {
    const cursor = this.#cursor;
    const thread = cursor.u64();
    const allocator = cursor.u8();
    cursor.slice(7);
    cursor.u64(); // the native frame
    const node = cursor.u64();
    cursor.u64(); // the generation of native segments
    const [peakObjects, liveObjects] = [cursor.u64(), cursor.u64()];
    const [peak, live] = [cursor.u64(), cursor.u64()];
    requireRoom(this.#totals.length, MOST_ROWS, "sites");
    this.#totals.push({ thread, allocator, node, peakObjects, liveObjects, peak, live });
  }

  #stack(): void {
    const number = () => (this.#header.version >= 12 ? this.#cursor.varint() : this.#cursor.u64());
    const frame = number();
    this.#frames.append(number(), frame);
  }

  #frame(): void {
    const cursor = this.#cursor;
    if (this.#header.version >= 12) {
      const [id, code] = [cursor.varint(), cursor.varint()];
      requireRoom(this.#pending.length, MOST_ROWS, "frames");
      this.#pending.push({ id, code, instruction: cursor.zigzag() });
    } else {
      const id = cursor.u64();
      const [name, file] = [cursor.cString(), cursor.cString()];
      this.#frames.addFrame(id, pythonFrame(name, file, cursor.i32()));
    }
    cursor.u8(); // whether it is an entry frame
  }

  #code(): void {
    const cursor = this.#cursor;
    const id = cursor.varint();
    const [name, file] = [cursor.cString(), cursor.cString()];
    this.#line += cursor.zigzag();
    const lineTable = cursor.slice(cursor.varint());
    this.#frames.addCode(id, { name, file, firstLine: this.#line, lineTable });
  }
}
