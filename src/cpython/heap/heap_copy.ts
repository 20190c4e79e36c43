/**
 * What a graph is built from: a copy of a program's own memory, taken while the program stands still, and
 * read at leisure after it runs again.
 *
 *   directory: address / 64 MiB -> table of 16,384 pages -> number of the copied page (0: not copied)
 *   pages      one after the other in one buffer; neighbours in memory are neighbours here
 *
 * The buffer is made and touched before the program is stopped: fresh pages of one's own would cost five
 * times the copying. Large buffers of plain figures (arrays, weights) are left out: no reference is in them.
 * Variables of libraries are copied behind the pause: whether one of them refers to an object decides what a
 * root is called, never what is one.
 */
import type { AddressRange, Mapping, Memory } from "../../linux/memory.js";
import type { Address, Bytes } from "../../model/units.js";
import { heapRegions } from "./heap_regions.js";

const PAGE = 4096;
const PAGES_A_TABLE = 2 ** 14;
const TABLE_BYTES = PAGE * PAGES_A_TABLE;
const CHUNK_MAPPED = 2;
/** Chunks of malloc's own mappings from this size on are copied only where they hold references. */
const LARGE_CHUNK = 256 * 1024;
const SAMPLE_WORDS = 64;
/** Copied at once, in bytes. */
const PIECE = 4 * 2 ** 20;
/** As many as Node has threads for it. */
const READ_AT_ONCE = 4;
/** Node's buffers hold no more (20; later ones do, and numbers of words then need more than 32 bits). */
export const LARGEST_COPY: Bytes = 2 ** 32 - 2 * PAGE;

export interface CopyPlan {
  /** Large buffers without references: left out. Ascending. */
  readonly leftOut: readonly AddressRange[];
  /** Bytes to copy. */
  readonly bytes: Bytes;
}

/** What a copy would hold: resident pages of heaps, and of data of programs and libraries. */
export function planCopy(memory: Memory): CopyPlan {
  const leftOut: AddressRange[] = [];
  const head = new Uint8Array(SAMPLE_WORDS * 8);
  for (const region of heapRegions(memory)) {
    for (const { start, end } of memory.resident(region.start, region.end)) {
      for (let at = start; end - at >= LARGE_CHUNK; ) {
        const size = largeChunkAt(memory, at, end, head);
        if (size > 0 && !chunkHoldsReferences(memory, at, size, head)) {
          // Its head stays: an object may begin there.
          leftOut.push({ start: at + PAGE, end: at + size });
        }
        at += size > 0 ? size : PAGE;
      }
    }
  }
  return { leftOut, bytes: sumOf(copyRanges(memory, leftOut)) };
}

export function sumOf(ranges: readonly AddressRange[]): Bytes {
  return ranges.reduce((sum, { start, end }) => sum + end - start, 0);
}

/** All there is to copy now, without what the plan leaves out. */
export function copyRanges(memory: Memory, leftOut: readonly AddressRange[]): AddressRange[] {
  return rangesOf(memory, memory.mappings.filter(isData), leftOut);
}

/** What of it must be of one moment: heaps, and the interpreter's own data. Quick: the program may be standing. */
export function momentRanges(memory: Memory, leftOut: readonly AddressRange[]): AddressRange[] {
  const own = interpreterFiles(memory);
  const data = memory.mappings.filter((mapping) => isData(mapping) && own.has(mapping.path));
  return rangesOf(memory, data, leftOut);
}

function rangesOf(
  memory: Memory,
  data: readonly AddressRange[],
  leftOut: readonly AddressRange[],
): AddressRange[] {
  const regions = [...heapRegions(memory), ...data].sort((a, b) => a.start - b.start);
  const ranges: AddressRange[] = [];
  let next = 0;
  for (const region of regions) {
    for (const { start, end } of memory.resident(region.start, region.end)) {
      let at = start;
      while (next < leftOut.length && (leftOut[next] as AddressRange).end <= at) {
        next += 1;
      }
      for (let n = next; n < leftOut.length && (leftOut[n] as AddressRange).start < end; n++) {
        const hole = leftOut[n] as AddressRange;
        if (hole.start > at) {
          ranges.push({ start: at, end: hole.start });
        }
        at = Math.max(at, hole.end);
      }
      if (at < end) {
        ranges.push({ start: at, end });
      }
    }
  }
  return ranges;
}

function largeChunkAt(memory: Memory, at: Address, end: Address, head: Uint8Array): Bytes {
  if (end - at < LARGE_CHUNK || memory.readInto(at, head) < head.length) {
    return 0;
  }
  const words = new Uint32Array(head.buffer);
  const size = words[2] + words[3] * 2 ** 32;
  return words[0] === 0 &&
    words[1] === 0 &&
    (size & 7) === CHUNK_MAPPED &&
    (size - CHUNK_MAPPED) % PAGE === 0 &&
    size >= LARGE_CHUNK &&
    at + size - CHUNK_MAPPED <= end
    ? size - CHUNK_MAPPED
    : 0;
}

/** Whether it may hold references: the first words look so, or those at some other place in it do. A set's
 * table is sparse, and half of it hashes. */
function chunkHoldsReferences(memory: Memory, at: Address, size: Bytes, head: Uint8Array): boolean {
  if (holdsReferences(head, true)) {
    return true;
  }
  const sample = new Uint8Array(head.length);
  return SAMPLED_AT.some((share) => {
    const place = at + Math.floor((size * share) / PAGE) * PAGE;
    // Reading must make nothing resident.
    const present = memory.resident(place, place + PAGE).length > 0;
    return (
      present && memory.readInto(place, sample) === sample.length && holdsReferences(sample, false)
    );
  });
}

const SAMPLED_AT = [0.25, 0.5, 0.75, 0.9];

/** Where at least a third of the words that are not zero could be addresses, or, at its beginning, one of
 * the first few is a small count. */
function holdsReferences(sample: Uint8Array, beginning: boolean): boolean {
  const words = new Uint32Array(sample.buffer);
  let addresses = 0;
  let zeroes = 0;
  for (let word = 2; word < SAMPLE_WORDS; word++) {
    const high = words[word * 2 + 1];
    const low = words[word * 2];
    if (low === 0 && high === 0) {
      zeroes += 1;
    } else if ((low & 7) === 0 && high <= 0x7fff && (high > 0 || low > 0x400000)) {
      addresses += 1;
    }
  }
  // A dict's table begins with a count of one and its sizes, then indices that look like nothing.
  const table =
    beginning && words[4] >= 1 && words[4] < 2 ** 24 && words[5] === 0 && words[7] < 2 ** 16;
  return table || addresses * 3 > SAMPLE_WORDS - zeroes;
}

/** The rest: variables of libraries. */
export function libraryRanges(memory: Memory): AddressRange[] {
  const own = interpreterFiles(memory);
  return memory.mappings
    .filter((mapping) => isData(mapping) && !own.has(mapping.path))
    .flatMap(({ start, end }) => memory.resident(start, end));
}

/** The program, and libpython where it is a library. */
function interpreterFiles({ mappings }: Memory): ReadonlySet<string> {
  const program = mappings.find(({ inode, path }) => inode !== 0 && path.startsWith("/"))?.path;
  const libraries = mappings.map(({ path }) => path).filter((path) => LIBPYTHON.test(path));
  return new Set(program === undefined ? libraries : [program, ...libraries]);
}

const LIBPYTHON = /\/libpython3[^/]*\.so[^/]*$/;

/** Private and writable parts of files: .data, .bss that a file's pages begin. */
function isData({ readable, writable, shared, inode, path }: Mapping): boolean {
  return readable && writable && !shared && inode !== 0 && !path.startsWith("/dev/");
}

/** A part of a range, and its place in the copy. */
interface Piece {
  readonly address: Address;
  readonly page: number;
  readonly target: Uint8Array;
}

export class HeapCopy implements Memory {
  readonly pid;
  readonly name;
  mappings: readonly Mapping[];
  /** All copied pages, as u32. */
  readonly words: Uint32Array;
  readonly ranges: readonly AddressRange[];
  readonly #bytes: Uint8Array;
  readonly #directory = new Map<number, Uint32Array>();
  #lastTable = -1;
  #last: Uint32Array | undefined;
  #pages = 1;

  /** Makes room for `room` bytes, and touches it. */
  constructor(
    readonly source: Memory,
    room: Bytes,
  ) {
    this.pid = source.pid;
    this.name = source.name;
    this.mappings = source.mappings;
    this.ranges = [];
    const size = Math.ceil(room / PAGE + 1) * PAGE;
    this.#bytes = new Uint8Array(size);
    for (let at = 0; at < size; at += PAGE) {
      this.#bytes[at] = 1;
    }
    this.#bytes[0] = 0;
    this.words = new Uint32Array(this.#bytes.buffer);
  }

  get pages(): number {
    return this.#pages;
  }

  /** How fast the first of the ranges are copied now, in bytes a millisecond; nothing of it is kept. */
  async tryOut(ranges: readonly AddressRange[], most: Bytes): Promise<number> {
    const first: AddressRange[] = [];
    for (const { start, end } of ranges) {
      const left = most - sumOf(first);
      if (left > 0) {
        first.push({ start, end: Math.min(end, start + left) });
      }
    }
    const started = performance.now();
    await this.fillAtOnce(first);
    const tookMs = performance.now() - started;
    const bytes = sumOf(this.ranges);
    (this.ranges as AddressRange[]).length = 0;
    this.#directory.clear();
    this.#lastTable = -1;
    this.#pages = 1;
    return bytes / Math.max(tookMs, 1e-3);
  }

  /** Copies ranges in their order; what no longer fits is left out. */
  fill(ranges: readonly AddressRange[]): void {
    for (const piece of this.#pieces(ranges)) {
      this.#keep(piece, this.source.readInto(piece.address, piece.target));
    }
    this.#sortRanges();
  }

  /** The same in no order, several pieces at once: the program stands. */
  async fillAtOnce(ranges: readonly AddressRange[]): Promise<void> {
    const { source } = this;
    if (source.readBeside === undefined) {
      this.fill(ranges);
      return;
    }
    const pieces = this.#pieces(ranges);
    const copyPieces = async () => {
      for (let next = pieces.next(); !next.done; next = pieces.next()) {
        const { address, target } = next.value;
        this.#keep(next.value, (await source.readBeside?.(address, target)) ?? 0);
      }
    };
    await Promise.all(Array.from({ length: READ_AT_ONCE }, copyPieces));
    this.#sortRanges();
  }

  /** Reads again what lies there now; pages that were not copied are, where there is room. */
  renew(start: Address, bytes: Bytes): void {
    const end = start + bytes;
    let missing = start;
    const copyMissing = (until: Address) => {
      if (missing < until) {
        const first = Math.floor(missing / PAGE) * PAGE;
        this.fill(this.source.resident(first, Math.ceil(until / PAGE) * PAGE));
      }
    };
    for (let at = start; at < end; ) {
      const next = Math.min(end, Math.floor(at / PAGE) * PAGE + PAGE);
      const page = this.pageAt(at >>> 0, Math.floor(at / 2 ** 32));
      if (page !== 0) {
        copyMissing(at);
        const from = page * PAGE + (at % PAGE);
        this.source.readInto(at, this.#bytes.subarray(from, from + next - at));
        missing = next;
      }
      at = next;
    }
    copyMissing(end);
  }

  *#pieces(ranges: readonly AddressRange[]): Generator<Piece> {
    this.mappings = this.source.mappings;
    const most = this.#bytes.length / PAGE;
    for (const { start, end } of ranges) {
      for (let address = start; address < end && this.#pages < most; address += PIECE) {
        const length = Math.min(PIECE, end - address, (most - this.#pages) * PAGE);
        const page = this.#pages;
        this.#pages += Math.ceil(length / PAGE);
        yield { address, page, target: this.#bytes.subarray(page * PAGE, page * PAGE + length) };
      }
    }
  }

  #keep({ address, page, target }: Piece, got: Bytes): void {
    target.fill(0, got);
    const pages = Math.ceil(got / PAGE);
    for (let n = 0; n < pages; n++) {
      this.#enter(address + n * PAGE, page + n);
    }
    if (got > 0) {
      (this.ranges as AddressRange[]).push({ start: address, end: address + pages * PAGE });
    }
  }

  #sortRanges(): void {
    (this.ranges as AddressRange[]).sort((a, b) => a.start - b.start);
  }

  /** Index in `words` of an address given in halves; -1 where it was not copied. */
  indexAt(low: number, high: number): number {
    const page = this.pageAt(low, high);
    return page === 0 ? -1 : page * (PAGE / 4) + ((low & (PAGE - 1)) >>> 2);
  }

  /** Number of the copied page that holds an address; 0: none. */
  pageAt(low: number, high: number): number {
    const number = high * 64 + (low >>> 26);
    if (number !== this.#lastTable) {
      this.#lastTable = number;
      this.#last = this.#directory.get(number);
    }
    return this.#last === undefined ? 0 : this.#last[(low >>> 12) & (PAGES_A_TABLE - 1)];
  }

  index(address: Address): number {
    return this.indexAt(address >>> 0, Math.floor(address / 2 ** 32));
  }

  /** A word, as a Number; -1 where it was not copied. */
  word(address: Address): number {
    const at = this.index(address);
    return at < 0 ? -1 : this.words[at] + this.words[at + 1] * 2 ** 32;
  }

  #enter(address: Address, page: number): void {
    const number = Math.floor(address / TABLE_BYTES);
    let table = this.#directory.get(number);
    if (table === undefined) {
      table = new Uint32Array(PAGES_A_TABLE);
      this.#directory.set(number, table);
    }
    table[Math.floor(address / PAGE) % PAGES_A_TABLE] = page;
    this.#lastTable = -1;
  }

  refresh(): boolean {
    return true;
  }

  /** From the copy, page by page; what was not copied never changes (code, names of types in it), so it is
   * read from the program. */
  readInto(address: Address, target: Uint8Array): Bytes {
    let done = 0;
    while (done < target.length) {
      const at = address + done;
      const page = this.pageAt(at >>> 0, Math.floor(at / 2 ** 32));
      if (page === 0) {
        return done === 0 ? this.source.readInto(address, target) : done;
      }
      const within = at % PAGE;
      const length = Math.min(PAGE - within, target.length - done);
      const from = page * PAGE + within;
      target.set(this.#bytes.subarray(from, from + length), done);
      done += length;
    }
    return done;
  }

  resident(start: Address, end: Address): AddressRange[] {
    const found: { start: Address; end: Address }[] = [];
    for (const range of this.ranges) {
      if (range.start < end && range.end > start) {
        const last = found.at(-1);
        const clipped = { start: Math.max(start, range.start), end: Math.min(end, range.end) };
        if (last?.end === clipped.start) {
          last.end = clipped.end;
        } else {
          found.push(clipped);
        }
      }
    }
    return found;
  }

  openFile(mapping: Mapping): number | null {
    return this.source.openFile(mapping);
  }

  close(): void {
    // The program's own descriptors belong to whoever opened them.
  }
}
