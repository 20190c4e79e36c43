/**
 * Finds pymalloc's arenas in a live CPython or a core without symbols: somewhere in the interpreter's data is
 * the address of an array like this, and every used entry of it must be valid.
 *
 *   arena_object, 48 bytes     0 address        of the arena; 0: not allocated
 *                              8 pool_address   first pool that was never used
 *                             16 nfreepools     u32
 *                             20 ntotalpools    u32
 *                             24 freepools      32 nextarena      40 prevarena
 *
 *   arena    3.9: 256 KiB of 4 KiB pools;  3.10 and newer: 1 MiB of 16 KiB pools
 *            [pool][pool]...[pool never used]...     the first at a multiple of the pool's size
 *
 *   pool     0 used blocks u32   8 freeblock   32 arena's index u32   36 size class u32
 *            48 blocks of (size class + 1) * 16 bytes, as many as fit
 *
 * Until 3.11 the array's address is a separate static variable. From 3.12 on it is in the main interpreter's
 * state, which is also part of the interpreter's data. Interpreters with their own GIL (3.12 on) have their own
 * arenas. Their states may be anywhere, and are read if the interpreter's layout is known. Source:
 * Objects/obmalloc.c, pycore_obmalloc.h, pycore_interp.h.
 */

import { findMapping } from "../../linux/memory/maps.js";
import type { AddressRange, Mapping, Memory } from "../../linux/memory/memory.js";
import { MemoryReader } from "../../linux/memory/memory_reader.js";
import { ResidentWords } from "../../linux/memory/resident_words.js";
import type { Address, Bytes } from "../../model/base/units.js";
import { orNull } from "../../model/errors/errors.js";
import { listInterpreters } from "./fingerprint.js";
import { locatePython, type PythonRuntime } from "./locate.js";

const ARENA_OBJECT = 48;
const PAGE = 4096;
const SHAPES = [
  { poolBytes: 16_384, arenaBytes: 2 ** 20 },
  { poolBytes: 4096, arenaBytes: 2 ** 18 },
] as const;
/** Initial number of entries in the array; it doubles when full. */
const FIRST_ENTRIES = 16;
const MOST_ENTRIES = 2 ** 21;
const MOST_POOLS = 64;
const POOL_HEADER = 48;
const SIZE_CLASSES = 32;
const PIECE = 2 ** 20;
const HIGH = 2 ** 32;

type ArenaShape = (typeof SHAPES)[number];

/** Arenas in the order of the array; each column has one entry per arena. */
export interface PythonArenas {
  readonly poolBytes: Bytes;
  readonly arenaBytes: Bytes;
  readonly addresses: Float64Array;
  /** Index in the array, which is stored in the arena's pools. */
  readonly indexes: Uint32Array;
  /** The first pool, and the first one that was never used. */
  readonly firstPools: Float64Array;
  readonly unusedFrom: Float64Array;
  readonly freePools: Uint32Array;
}

/** Where a process's arenas were found; passing it to the next call saves the search. */
export class ArenaPlaces {
  /**
   * Words of the interpreter's data that held the array's address. Some of them may change, such as a pointer
   * to its first entry; the word that always holds it is among them.
   */
  words: readonly Address[] = [];
  /** False: only those of the main interpreter. Finding the others takes longer than everything else. */
  ofOthers = true;
  /** undefined: not searched yet; null: unknown. */
  python: Pick<PythonRuntime, "layout" | "address" | "mainInterpreter"> | null | undefined;
}

/** null if there are none: not CPython, `PYTHONMALLOC=malloc`, or a free-threaded build (mimalloc). */
export function findArenas(memory: Memory, places = new ArenaPlaces()): PythonArenas | null {
  const words = new ResidentWords(memory);
  let found = largestOf(words, places.words);
  if (found === null) {
    places.python = undefined;
    found = search(memory, words, places);
  }
  return found && places.ofOthers
    ? joined([found, ...arenasOfOthers(memory, words, found, places)])
    : found;
}

function largestOf(words: ResidentWords, places: readonly Address[]): PythonArenas | null {
  let largest: PythonArenas | null = null;
  for (const array of new Set(places.map((place) => words.word(place)))) {
    const arenas = readArray(words, array);
    if (arenas !== null && arenas.addresses.length > (largest?.addresses.length ?? 0)) {
      largest = arenas;
    }
  }
  return largest;
}

function search(memory: Memory, words: ResidentWords, places: ArenaPlaces): PythonArenas | null {
  const data = interpreterData(memory.mappings);
  for (const range of data) {
    const array = searchData(memory, words, range);
    if (array !== null) {
      places.words = data.flatMap((other) => wordsContaining(memory, other, array));
      return readArray(words, array);
    }
  }
  return null;
}

/**
 * Arenas of interpreters other than the main one; none if they use the main one's arenas or nothing is known
 * about them.
 */
function arenasOfOthers(
  memory: Memory,
  words: ResidentWords,
  { addresses, poolBytes }: PythonArenas,
  places: ArenaPlaces,
): PythonArenas[] {
  if (places.python === undefined) {
    places.python = orNull(() => locatePython(memory));
  }
  const { python } = places;
  const offset = python?.layout.interpreter.obmalloc ?? null;
  const arenasAt = python?.layout.obmalloc.arenas ?? null;
  if (python === null || offset === null || arenasAt === null) {
    return [];
  }
  const known = new Set(addresses);
  const found: PythonArenas[] = [];
  for (const interpreter of othersOf(memory, python)) {
    const place = interpreter + offset;
    const state = python.layout.interpreter.obmallocIsPointer === 1 ? words.word(place) : place;
    const arenas = readArray(words, words.word(state + arenasAt));
    const first = arenas?.addresses[0] ?? 0;
    if (arenas?.poolBytes === poolBytes && !known.has(first)) {
      known.add(first);
      found.push(arenas);
    }
  }
  return found;
}

function othersOf(
  memory: Memory,
  { layout, address, mainInterpreter }: NonNullable<ArenaPlaces["python"]>,
): Address[] {
  const reader = new MemoryReader(memory);
  return (
    orNull(() => listInterpreters({ reader, layout }, address, mainInterpreter))?.slice(1) ?? []
  );
}

function joined(several: readonly PythonArenas[]): PythonArenas {
  const [first] = several as [PythonArenas];
  const column = (of: (arenas: PythonArenas) => Iterable<number>) =>
    several.flatMap((arenas) => [...of(arenas)]);
  return several.length === 1
    ? first
    : {
        ...first,
        addresses: Float64Array.from(column(({ addresses }) => addresses)),
        indexes: Uint32Array.from(column(({ indexes }) => indexes)),
        firstPools: Float64Array.from(column(({ firstPools }) => firstPools)),
        unusedFrom: Float64Array.from(column(({ unusedFrom }) => unusedFrom)),
        freePools: Uint32Array.from(column(({ freePools }) => freePools)),
      };
}

/** Writable data of libpython, including the zeroed part that follows it; otherwise of the program. */
function interpreterData(mappings: readonly Mapping[]): AddressRange[] {
  const library = mappings.some(({ path }) => LIBRARY.test(path));
  const program = mappings.find(({ inode, path }) => inode !== 0 && path.startsWith("/"))?.path;
  return mappings.flatMap((mapping, index) => {
    const ours = library ? LIBRARY.test(mapping.path) : mapping.path === program;
    if (!ours || !mapping.writable || mapping.shared) {
      return [];
    }
    const next = mappings[index + 1];
    const zeroed = next?.start === mapping.end && next.inode === 0 && next.writable;
    return [{ start: mapping.start, end: zeroed && next.path === "" ? next.end : mapping.end }];
  });
}

const LIBRARY = /\/libpython3[^/]*\.so[^/]*$/;

/** The address of the largest array of arenas that a word of the range points to. */
function searchData(memory: Memory, words: ResidentWords, range: AddressRange): Address | null {
  let best: Address | null = null;
  let most = 0;
  const seen = new Set<Address>();
  visitPointers(memory, range, (target) => {
    if (!seen.has(target)) {
      seen.add(target);
      const arenas = readArray(words, target)?.addresses.length ?? 0;
      // A pointer into the middle of the array would show fewer arenas.
      if (arenas > most) {
        [best, most] = [target, arenas];
      }
    }
  });
  return best;
}

function wordsContaining(memory: Memory, range: AddressRange, wanted: Address): Address[] {
  const [wantedLow, wantedHigh] = [wanted % HIGH, Math.floor(wanted / HIGH)];
  const found: Address[] = [];
  visitPieces(memory, range, (values, from, count) => {
    for (let index = 0; index + 1 < count; index += 2) {
      if (values[index] === wantedLow && values[index + 1] === wantedHigh) {
        found.push(from + index * 4);
      }
    }
  });
  return found;
}

/**
 * Words of resident memory that may be the address of an array of arenas. They must not point into the files of
 * programs and libraries, as most words do (code and constants).
 */
function visitPointers(
  memory: Memory,
  range: AddressRange,
  visit: (target: Address) => void,
): void {
  const possible = memory.mappings.filter(
    ({ writable, inode, shared }) => writable && (inode === 0 || shared),
  );
  // The upper halves of their addresses are few: they exclude most words, such as numbers and zeros, at once.
  const highs = new Set(
    possible.flatMap(({ start, end }) => [Math.floor(start / HIGH), Math.floor(end / HIGH)]),
  );
  visitPieces(memory, range, (values, _, count) => {
    for (let index = 0; index + 1 < count; index += 2) {
      const high = values[index + 1] ?? 0;
      const low = values[index] ?? 0;
      if ((low & 15) === 0 && (high !== 0 || low !== 0) && highs.has(high)) {
        const target = low + high * HIGH;
        if (findMapping(possible, target) >= 0) {
          visit(target);
        }
      }
    }
  });
}

/** Calls `visit` with the resident memory of a range: a piece's 32-bit words, its address, and the number of words. */
function visitPieces(
  memory: Memory,
  { start, end }: AddressRange,
  visit: (values: Uint32Array, from: Address, count: number) => void,
): void {
  const piece = new Uint8Array(PIECE);
  const values = new Uint32Array(piece.buffer);
  for (const range of memory.resident(start, end)) {
    for (let from = range.start; from < range.end; from += PIECE) {
      const wanted = piece.subarray(0, Math.min(PIECE, range.end - from));
      visit(values, from, memory.readInto(from, wanted) / 4);
    }
  }
}

/** null if there is no array of arenas at the address. */
function readArray(words: ResidentWords, array: Address): PythonArenas | null {
  const rows: Row[] = [];
  let ends = 0; // entries that end the list of free ones
  let shape: ArenaShape | null = null;
  for (let size = FIRST_ENTRIES; size <= MOST_ENTRIES; size *= 2) {
    const from = size === FIRST_ENTRIES ? 0 : size / 2;
    const more: Row[] = [];
    for (let index = from; index < size; index++) {
      const entry = array + index * ARENA_OBJECT;
      const address = words.word(entry);
      if (address === 0) {
        const next = words.word(entry + 32);
        ends += next === 0 ? 1 : 0;
        const inArray = next >= array && (next - array) % ARENA_OBJECT === 0;
        if (!(next === 0 || inArray) || ends > 1) {
          return finish(rows, shape);
        }
        continue;
      }
      const row = readRow(words, entry, index, address);
      shape ??= row === null ? null : shapeOf(words, row);
      if (row === null || shape === null || !fits(row, shape)) {
        return finish(rows, shape);
      }
      more.push(row);
    }
    rows.push(...more);
  }
  return finish(rows, shape);
}

interface Row {
  readonly index: number;
  readonly address: Address;
  readonly unusedFrom: Address;
  readonly free: number;
  readonly total: number;
}

function readRow(words: ResidentWords, entry: Address, index: number, address: number): Row | null {
  const unusedFrom = words.word(entry + 8);
  const free = words.word32(entry + 16);
  const total = words.word32(entry + 20);
  const possible =
    address % PAGE === 0 &&
    address > 0 &&
    unusedFrom >= address &&
    unusedFrom % PAGE === 0 &&
    total >= MOST_POOLS - 1 &&
    total <= MOST_POOLS &&
    free <= total;
  return possible ? { index, address, unusedFrom, free, total } : null;
}

/** From the headers of the arena's first and last used pools; null if neither size fits. */
function shapeOf(words: ResidentWords, row: Row): ArenaShape | null {
  return (
    SHAPES.find((shape) => {
      const first = firstPool(row.address, shape);
      const last = row.unusedFrom - shape.poolBytes;
      return (
        last >= first &&
        fits(row, shape) &&
        isPool(words, first, row.index) &&
        isPool(words, last, row.index)
      );
    }) ?? null
  );
}

function isPool(words: ResidentWords, pool: Address, arena: number): boolean {
  return words.word32(pool + 32) === arena && words.word32(pool + 36) < SIZE_CLASSES;
}

function firstPool(address: Address, { poolBytes }: ArenaShape): Address {
  return Math.ceil(address / poolBytes) * poolBytes;
}

/** The free pools include those that were never used. */
function fits(row: Row, shape: ArenaShape): boolean {
  const used = (row.unusedFrom - firstPool(row.address, shape)) / shape.poolBytes;
  return Number.isInteger(used) && used <= row.total && row.total - used <= row.free;
}

function finish(rows: readonly Row[], shape: ArenaShape | null): PythonArenas | null {
  if (rows.length === 0 || shape === null) {
    return null;
  }
  return {
    ...shape,
    addresses: Float64Array.from(rows, (row) => row.address),
    indexes: Uint32Array.from(rows, (row) => row.index),
    firstPools: Float64Array.from(rows, (row) => firstPool(row.address, shape)),
    unusedFrom: Float64Array.from(rows, (row) => row.unusedFrom),
    freePools: Uint32Array.from(rows, (row) => row.free),
  };
}

/** Blocks of all pools that were ever used; one entry per pool or sampled pool, by arena and address. */
export interface PoolCounts {
  readonly addresses: Float64Array;
  /** Bytes that each row represents: one pool, or in a sample this pool and those that follow it in the arena. */
  readonly spans: Float64Array;
  /** Bytes in use, including the pool's header and the rest at its end; 0 for a free pool. */
  readonly usedBytes: Float64Array;
  readonly usedBlocks: Uint32Array;
  /** Number of pools whose header was not resident or was invalid; they count as fully used. */
  readonly unread: number;
}

/** Reads the header of each pool; of more than `most` pools, an even sample of about that many. */
export function countPools(
  memory: Memory,
  arenas: PythonArenas,
  most = Number.POSITIVE_INFINITY,
): PoolCounts {
  const { poolBytes, firstPools, unusedFrom, indexes } = arenas;
  const all = firstPools.reduce(
    (sum, first, row) => sum + ((unusedFrom[row] ?? 0) - first) / poolBytes,
    0,
  );
  const step = poolBytes * Math.max(1, Math.ceil(all / most));
  const rows = firstPools.reduce(
    (sum, first, row) => sum + Math.ceil(Math.max(0, (unusedFrom[row] ?? 0) - first) / step),
    0,
  );
  const addresses = new Float64Array(rows);
  const spans = new Float64Array(rows);
  const usedBytes = new Float64Array(rows);
  const usedBlocks = new Uint32Array(rows);
  const words = new ResidentWords(memory);
  let count = 0;
  let unread = 0;
  firstPools.forEach((first, row) => {
    const end = unusedFrom[row] ?? 0;
    for (let pool = first; pool < end; pool += step) {
      const used = words.word32(pool);
      const size = (words.word32(pool + 36) + 1) * 16;
      const capacity = Math.floor((poolBytes - POOL_HEADER) / size);
      const readable = isPool(words, pool, indexes[row] ?? 0) && used <= capacity;
      unread += readable ? 0 : 1;
      addresses[count] = pool;
      spans[count] = Math.min(step, end - pool);
      usedBlocks[count] = readable ? used : 0;
      usedBytes[count] = readable
        ? used === 0
          ? 0
          : poolBytes - (capacity - used) * size
        : poolBytes;
      count += 1;
    }
  });
  return { addresses, spans, usedBytes, usedBlocks, unread };
}
