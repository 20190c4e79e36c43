/**
 * Possible addresses of a program's `_PyRuntime`.
 *
 * 1. Under that name in the dynamic symbols of a loaded object: libpython, or an executable that exports
 *    itself to extension modules. Read from memory, so stripped and deleted files also work.
 * 2. Objects that hide it (embedded, linked statically without exports): its bytes are searched for in the
 *    writable data of every object, those named after Python first. From 3.13 on it opens with a cookie. Before,
 *    it holds the first and the main interpreter side by side, which are one and the same unless there
 *    are subinterpreters, after the flags of an initialized runtime.
 */
import { DynamicSymbols, type Mapping, type Memory, MemoryReader } from "../../linux/index.js";
import type { Address } from "../../model/base/units.js";
import type { PythonLayout } from "../layouts/index.js";
import { COOKIE } from "./published_offsets.js";

interface RuntimePlace {
  readonly address: Address;
  /** Whether it has the name or the cookie. */
  readonly certain: boolean;
}

const NAME = "_PyRuntime";
const PIECE = 2 ** 20;
/** Pieces overlap, so a match across their border is not missed. */
const OVERLAP = 64;
const MOST_PLACES = 1024;

/** Most likely candidates first, because the search is long. */
export function* runtimePlaces(
  memory: Memory,
  layouts: readonly PythonLayout[],
): Generator<RuntimePlace> {
  for (const symbols of DynamicSymbols.all(memory)) {
    const address = symbols.find(NAME);
    if (address !== null) {
      yield { address, certain: true };
    }
  }
  const shapes = initializedShapes(layouts);
  const reader = new MemoryReader(memory);
  const piece = Buffer.alloc(PIECE + OVERLAP);
  let places = 0;
  for (const { start, end } of writableData(memory.mappings)) {
    for (const range of memory.resident(start, end)) {
      for (let from = range.start; from < range.end; from += PIECE) {
        const wanted = Math.min(PIECE + OVERLAP, range.end - from);
        const length = memory.readInto(from, piece.subarray(0, wanted));
        for (const place of placesIn(piece.subarray(0, length), from, shapes, reader)) {
          yield place;
          if (++places === MOST_PLACES) {
            return;
          }
        }
      }
    }
  }
}

/** Offsets of the head of the list and of the flag, in versions without a cookie. */
interface Shape {
  readonly head: number;
  readonly initialized: number;
}

function initializedShapes(layouts: readonly PythonLayout[]): Shape[] {
  const shapes = new Map<number, Shape>();
  for (const { published, runtime } of layouts) {
    if (published === null && runtime.interpretersMain === runtime.interpretersHead + 8) {
      shapes.set(runtime.interpretersHead, {
        head: runtime.interpretersHead,
        initialized: runtime.initialized,
      });
    }
  }
  return [...shapes.values()];
}

function* placesIn(
  piece: Buffer,
  from: Address,
  shapes: readonly Shape[],
  reader: MemoryReader,
): Generator<RuntimePlace> {
  for (let at = piece.indexOf(COOKIE); at >= 0; at = piece.indexOf(COOKIE, at + 1)) {
    if ((from + at) % 8 === 0) {
      yield { address: from + at, certain: true };
    }
  }
  const last = Math.min(PIECE, piece.length - 15);
  for (let at = 0; at < last; at += 8) {
    const high = piece.readUInt32LE(at + 4);
    const low = piece.readUInt32LE(at);
    if (
      high + low !== 0 &&
      high < 0x8000 &&
      low === piece.readUInt32LE(at + 8) &&
      high === piece.readUInt32LE(at + 12) &&
      low % 8 === 0
    ) {
      for (const { head, initialized } of shapes) {
        const address = from + at - head;
        if (isFlag(reader, address + initialized)) {
          yield { address, certain: false };
        }
      }
    }
  }
}

function isFlag(reader: MemoryReader, address: Address): boolean {
  try {
    return reader.uint32(address) === 1;
  } catch {
    return false;
  }
}

/** Private writable parts of mapped files, each with the zeroed part after it; those of Python first. */
function writableData(mappings: readonly Mapping[]): { start: Address; end: Address }[] {
  const program = mappings.find(({ path }) => path.startsWith("/"))?.path;
  const found = mappings.flatMap((mapping, index) => {
    if (mapping.inode === 0 || !mapping.writable || mapping.shared) {
      return [];
    }
    const next = mappings[index + 1];
    const zeroed =
      next !== undefined && next.start === mapping.end && next.inode === 0 && next.writable;
    const { path } = mapping;
    return [
      {
        start: mapping.start,
        end: zeroed ? next.end : mapping.end,
        rank: path.includes("python") ? 0 : path === program ? 1 : 2,
      },
    ];
  });
  return found.sort((a, b) => a.rank - b.rank);
}
