/**
 * The file of `heap --save`: types and holders as columns, without values of objects.
 *
 *   0   "TIDEHEAP"
 *   8   u32 version   12 u32 bytes of the header   16 u32 types   20 u32 holders   24 u32 checksum of the rest
 *   28  zeroes to 32
 *   32  head: UTF-8 JSON { target, atMs, paused, pauseMs, types: names, holders: [path, type, address], limits },
 *       padded by spaces to a multiple of 8
 *   ..  f64 columns, one after the other: of types objects, bytes, bufferBytes, tracked, retained (NaN: no
 *       graph); of holders retained, objects, entries
 */
import { float64At } from "../../base/columns.js";
import { damagedInput, notOurs, unknownVersion } from "../../errors/errors.js";
import type { HeapHolderJson, HeapJson, HeapTypeJson } from "./heap_document.js";

const MAGIC = "TIDEHEAP";
const VERSION = 1;
const HEAD_BYTES = 32;
const TYPE_COLUMNS = 5;
const HOLDER_COLUMNS = 3;

export type SavedHeap = Pick<
  HeapJson,
  "target" | "atMs" | "paused" | "pauseMs" | "types" | "holders" | "limits"
>;

export function encodeHeap(heap: SavedHeap): Uint8Array {
  const holders = heap.holders ?? [];
  const json = JSON.stringify({
    target: heap.target,
    atMs: heap.atMs,
    paused: heap.paused,
    pauseMs: heap.pauseMs,
    graph: heap.holders !== undefined,
    types: heap.types.map(({ type }) => type),
    modules: heap.types.map(({ module }) => module),
    holders: holders.map(({ path, type, address }) => [path, type, address]),
    limits: heap.limits,
  });
  const text = new TextEncoder().encode(json);
  const textBytes = Math.ceil(text.length / 8) * 8;
  const rows = heap.types.length * TYPE_COLUMNS + holders.length * HOLDER_COLUMNS;
  const file = new Uint8Array(HEAD_BYTES + textBytes + rows * 8);
  file.set(new TextEncoder().encode(MAGIC));
  file.fill(0x20, HEAD_BYTES, HEAD_BYTES + textBytes);
  file.set(text, HEAD_BYTES);
  const columns = new Float64Array(file.buffer, HEAD_BYTES + textBytes, rows);
  let at = 0;
  const put = <Row>(table: readonly Row[], value: (row: Row) => number) => {
    for (const row of table) {
      columns[at++] = value(row);
    }
  };
  put(heap.types, (row) => row.objects);
  put(heap.types, (row) => row.bytes);
  put(heap.types, (row) => row.bufferBytes);
  put(heap.types, (row) => row.trackedObjects);
  put(heap.types, (row) => row.retainedBytes ?? Number.NaN);
  put(holders, (row) => row.retainedBytes);
  put(holders, (row) => row.objects);
  put(holders, (row) => row.entries);
  const view = new DataView(file.buffer);
  view.setUint32(8, VERSION, true);
  view.setUint32(12, textBytes, true);
  view.setUint32(16, heap.types.length, true);
  view.setUint32(20, holders.length, true);
  view.setUint32(24, checksum(file.subarray(HEAD_BYTES)), true);
  return file;
}

/** Throws TM-E005 (damaged), TM-E006 (another version), TM-E007 (something else). */
export function decodeHeap(file: Uint8Array, name: string): SavedHeap {
  if (new TextDecoder("latin1").decode(file.subarray(0, 8)) !== MAGIC) {
    throw notOurs(name, "a heap saved by tidemark heap --save");
  }
  if (file.length < HEAD_BYTES) {
    throw damagedInput(name, "it ends within its header");
  }
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const version = view.getUint32(8, true);
  if (version !== VERSION) {
    throw unknownVersion(name, version, VERSION);
  }
  const textBytes = view.getUint32(12, true);
  const types = view.getUint32(16, true);
  const holders = view.getUint32(20, true);
  const rows = types * TYPE_COLUMNS + holders * HOLDER_COLUMNS;
  if (file.length !== HEAD_BYTES + textBytes + rows * 8 || textBytes % 8 !== 0) {
    throw damagedInput(name, `it has ${file.length} bytes, its header says otherwise`);
  }
  if (checksum(file.subarray(HEAD_BYTES)) !== view.getUint32(24, true)) {
    throw damagedInput(name, "its checksum does not match");
  }
  const head = parseHead(file.subarray(HEAD_BYTES, HEAD_BYTES + textBytes), name);
  if (head.types.length !== types || head.holders.length !== holders) {
    throw damagedInput(name, "its tables are of different lengths");
  }
  // A copy, because the file's bytes may be unaligned in a larger buffer.
  const values = new Float64Array(new Uint8Array(file.subarray(HEAD_BYTES + textBytes)).buffer);
  return {
    target: head.target,
    atMs: head.atMs,
    paused: head.paused,
    pauseMs: head.pauseMs,
    limits: head.limits,
    types: head.types.map((type, row): HeapTypeJson => {
      const value = (column: number) => float64At(values, column * types + row);
      return {
        type,
        module: head.modules[row] ?? "",
        objects: value(0),
        bytes: value(1),
        bufferBytes: value(2),
        trackedObjects: value(3),
        ...(Number.isNaN(value(4)) ? {} : { retainedBytes: value(4) }),
      };
    }),
    ...(head.graph
      ? {
          holders: head.holders.map(([path, type, address], row): HeapHolderJson => {
            const value = (column: number) =>
              float64At(values, types * TYPE_COLUMNS + column * holders + row);
            return {
              path,
              type,
              address,
              retainedBytes: value(0),
              objects: value(1),
              entries: value(2),
            };
          }),
        }
      : {}),
  };
}

interface Head extends Pick<HeapJson, "target" | "atMs" | "paused" | "pauseMs" | "limits"> {
  readonly graph: boolean;
  readonly types: string[];
  readonly modules: string[];
  readonly holders: [path: string[], type: string, address: string][];
}

/** The checksum was verified, so this is what Tidemark wrote. */
function parseHead(bytes: Uint8Array, name: string): Head {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Head;
  } catch {
    throw damagedInput(name, "its header is not JSON");
  }
}

/** FNV-1a, 32 bits. */
function checksum(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) {
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return hash >>> 0;
}
