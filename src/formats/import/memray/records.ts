/** A memray file with every allocation. */
import type { TimeMs } from "../../../model/base/units.js";
import { Domain } from "../../../model/profile/profile.js";
import { type Cursor, CutOff } from "../cursor.js";
import { type ImportedSites, pythonFrame } from "../imported_sites.js";
import { ForeignFault, MOST_ROWS, requireRoom } from "../importer.js";
import { LiveBlocks } from "../live_blocks.js";
import { allocatorOf } from "./allocators.js";
import { MemrayFrames } from "./frames.js";
import type { MemrayContent, MemrayHeader } from "./header.js";

/** An address or an address shifted by 3 bits is beyond it only in a damaged file. */
const HIGHEST_ADDRESS = 2 ** 53;
const RECENT_ADDRESSES = 15;
const MOST_THREADS = 100_000;
const SEGMENT = 7;

/** Records of version 11: the type in the low 4 bits, flags above them. */
const Old = {
  other: 0,
  allocation: 1,
  nativeAllocation: 2,
  frameIndex: 3,
  framePush: 4,
  nativeFrame: 5,
  mapStart: 6,
  segments: 7,
  framePop: 9,
  thread: 10,
  memory: 11,
  contextSwitch: 12,
} as const;
/** Records without flags of version 12 and newer; the others have a high bit and flags. */
const New = {
  filler: 0,
  trailer: 1,
  memory: 2,
  nativeFrame: 5,
  mapStart: 6,
  segments: 7,
  thread: 10,
  contextSwitch: 12,
  code: 14,
} as const;

export function readAllocations(
  cursor: Cursor,
  header: MemrayHeader,
  sites: ImportedSites,
  path: string,
): MemrayContent {
  const reader = new RecordReader(cursor, header, path);
  let complete = false;
  try {
    while (!complete && !cursor.done) {
      complete = header.version >= 12 ? reader.record() : reader.oldRecord();
    }
  } catch (error) {
    // The file of a killed program ends anywhere.
    if (!(error instanceof CutOff)) {
      throw error;
    }
  }
  reader.fill(sites);
  return {
    metrics: reader.metrics,
    complete,
    lastMs: reader.lastMs,
    peakMs: reader.blocks.peakMs,
    known: [
      ...(["live", "peak", "allocated", "objects", "rss", "time"] as const),
      ...(reader.seesPython ? (["python"] as const) : []),
    ],
  };
}

class RecordReader {
  readonly blocks: LiveBlocks;
  readonly metrics: { metric: "rssBytes" | "liveBytes"; timeMs: TimeMs; value: number }[] = [];
  lastMs: TimeMs;
  readonly #cursor: Cursor;
  readonly #header: MemrayHeader;
  readonly #frames: MemrayFrames;
  readonly #recent: number[] = [];
  readonly #stacks = new Map<number, number[]>();
  readonly #threadNames = new Map<number, string>();
  readonly #siteIds = new Map<string, number>();
  readonly #sites: { node: number; thread: number; domain: 0 | 1 | 2 }[] = [];
  #thread = 0;
  #stack: number[] = [];
  #address = 0;
  #frame = 0;
  #line = 0;

  constructor(cursor: Cursor, header: MemrayHeader, path: string) {
    this.#cursor = cursor;
    this.#header = header;
    this.#frames = new MemrayFrames(header.pythonVersion);
    this.blocks = new LiveBlocks(path);
    this.lastMs = header.startedMs;
    this.blocks.timeMs = header.startedMs;
  }

  /** One record of version 12 or newer. @returns whether it was the last */
  record(): boolean {
    const cursor = this.#cursor;
    const token = cursor.u8();
    if (token >= 128) {
      this.#allocation(token);
    } else if (token >= 64) {
      const code = cursor.varint();
      this.#push(this.#frames.codeFrame(code, cursor.zigzag()));
    } else if (token >= 32) {
      this.#object(token);
    } else if (token >= 16) {
      this.#pop((token & 15) + 1);
    } else {
      return this.#plain(token);
    }
    return false;
  }

  #plain(token: number): boolean {
    const cursor = this.#cursor;
    switch (token) {
      case New.trailer:
        return true;
      case New.filler:
      case New.mapStart:
        return false;
      case New.memory:
        this.#memory();
        return false;
      case New.code:
        this.#code();
        return false;
      case New.contextSwitch:
        this.#switch(cursor.u64());
        return false;
      case New.thread:
        this.#threadNames.set(this.#thread, cursor.cString());
        return false;
      case New.nativeFrame:
        cursor.varint();
        cursor.varint();
        return false;
      case New.segments:
        skipSegments(cursor);
        return false;
      default:
        throw new ForeignFault(`the record ${token} at byte ${cursor.at - 1} is unknown`);
    }
  }

  /** One record of version 11. @returns whether it was the last */
  oldRecord(): boolean {
    const cursor = this.#cursor;
    const token = cursor.u8();
    const flags = token >> 4;
    switch (token & 15) {
      case Old.other:
        // Flag 1 is the trailer; zeros follow the last record of a killed program.
        if (flags > 1) {
          throw new ForeignFault(`the record at byte ${cursor.at - 1} is unknown`);
        }
        return flags === 1;
      case Old.allocation:
      case Old.nativeAllocation:
        this.#oldAllocation(flags, (token & 15) === Old.nativeAllocation);
        return false;
      case Old.frameIndex: {
        this.#frame += cursor.zigzag();
        const [name, file] = [cursor.cString(), cursor.cString()];
        this.#line += cursor.zigzag();
        this.#frames.addFrame(this.#frame, pythonFrame(name, file, this.#line));
        return false;
      }
      case Old.framePush:
        this.#frame += cursor.zigzag();
        this.#push(this.#frame);
        return false;
      case Old.framePop:
        this.#pop(flags + 1);
        return false;
      case Old.memory:
        this.#memory();
        return false;
      case Old.thread:
        return this.#plain(New.thread);
      case Old.contextSwitch:
        return this.#plain(New.contextSwitch);
      case Old.nativeFrame:
        return this.#plain(New.nativeFrame);
      case Old.mapStart:
        return false;
      case Old.segments:
        return this.#plain(New.segments);
      default:
        throw new ForeignFault(`the record at byte ${cursor.at - 1} is unknown`);
    }
  }

  /** Whether memray traced Python's allocators (--trace-python-allocators). */
  get seesPython(): boolean {
    return this.#sites.some(({ domain }) => domain === Domain.python);
  }

  fill(sites: ImportedSites): void {
    const { mainThread, skippedFrames } = this.#header;
    this.#sites.forEach(({ node, thread, domain }, site) => {
      const figures = this.blocks.figures(site);
      if (figures !== undefined) {
        const isMain = thread === mainThread;
        const stack = this.#frames.stackOf(node, isMain ? skippedFrames : 0, sites);
        const name = this.#threadNames.get(thread) ?? (isMain ? "MainThread" : "");
        sites.add({ stack, domain, thread: sites.thread(thread, name, isMain) }, figures);
      }
    });
  }

  /** 1ppppaaa: pppp is the row of a recent address or 15, aaa the allocator or 0 if it follows. */
  #allocation(token: number): void {
    const cursor = this.#cursor;
    const address = this.#addressOf((token >> 3) & 15);
    const { version, nativeTraces } = this.#header;
    const allocator = allocatorOf(version, token & 7 || cursor.u8());
    const simpleFree = allocator.frees && !allocator.ranged;
    if (nativeTraces && !simpleFree) {
      cursor.varint();
    }
    this.#apply(allocator, address, simpleFree ? 0 : cursor.varint());
  }

  #oldAllocation(number: number, withNative: boolean): void {
    const cursor = this.#cursor;
    this.#address += cursor.zigzag();
    const allocator = allocatorOf(11, number);
    const simpleFree = allocator.frees && !allocator.ranged;
    const size = simpleFree && !withNative ? 0 : cursor.varint();
    if (withNative) {
      cursor.varint();
    }
    this.#apply(allocator, this.#address, size);
  }

  #apply(allocator: ReturnType<typeof allocatorOf>, address: number, size: number): void {
    if (address < 0 || address > HIGHEST_ADDRESS || size > HIGHEST_ADDRESS) {
      throw new ForeignFault(`the allocation before byte ${this.#cursor.at} is impossible`);
    }
    if (allocator.frees) {
      if (allocator.ranged) {
        this.blocks.unmap(address, size);
      } else {
        this.blocks.free(address);
      }
    } else if (allocator.ranged) {
      this.blocks.map(address, size, this.#site(allocator.domain));
    } else {
      this.blocks.allocate(address, size, this.#site(allocator.domain));
    }
  }

  #site(domain: 0 | 1 | 2): number {
    const node = this.#stack.at(-1) ?? 0;
    const key = `${node} ${this.#thread} ${domain}`;
    let site = this.#siteIds.get(key);
    if (site === undefined) {
      requireRoom(this.#sites.length, MOST_ROWS, "sites");
      site = this.#sites.push({ node, thread: this.#thread, domain }) - 1;
      this.#siteIds.set(key, site);
    }
    return site;
  }

  /** Lifetimes of Python objects (`track_object_lifetimes`) are not memory. */
  #object(token: number): void {
    this.#addressOf((token >> 1) & 15);
    if (this.#header.nativeTraces && (token & 1) === 1) {
      this.#cursor.varint();
    }
  }

  #addressOf(row: number): number {
    if (row < RECENT_ADDRESSES) {
      return this.#recent[row] ?? 0;
    }
    this.#address += this.#cursor.zigzag();
    const address = this.#address * 8;
    this.#recent.unshift(address);
    this.#recent.length = Math.min(this.#recent.length, RECENT_ADDRESSES);
    return address;
  }

  #push(frame: number): void {
    requireRoom(this.#stack.length, MOST_ROWS, "frames of a stack");
    this.#stack.push(this.#frames.push(this.#stack.at(-1) ?? 0, frame));
  }

  #pop(count: number): void {
    this.#stack.length = Math.max(0, this.#stack.length - count);
  }

  #switch(thread: number): void {
    this.#thread = thread;
    let stack = this.#stacks.get(thread);
    if (stack === undefined) {
      requireRoom(this.#stacks.size, MOST_THREADS, "threads");
      stack = [];
      this.#stacks.set(thread, stack);
    }
    this.#stack = stack;
  }

  #memory(): void {
    const value = this.#cursor.varint();
    const timeMs = this.#header.startedMs + this.#cursor.varint();
    requireRoom(this.metrics.length, MOST_ROWS, "readings");
    this.metrics.push({ metric: "rssBytes", timeMs, value });
    this.metrics.push({ metric: "liveBytes", timeMs, value: this.blocks.live });
    this.lastMs = timeMs;
    this.blocks.timeMs = timeMs;
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

/** Where libraries were mapped: only for native frames. */
export function skipSegments(cursor: Cursor): void {
  cursor.cString();
  const count = cursor.varint();
  cursor.u64();
  for (let segment = 0; segment < count; segment++) {
    if (cursor.u8() !== SEGMENT + 1) {
      throw new ForeignFault(`a segment is missing before byte ${cursor.at}`);
    }
    cursor.u64();
    cursor.varint();
  }
}
