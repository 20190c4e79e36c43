/**
 * Where the reserved memory at the end goes:
 *
 *     reserved = requested + rounding + split + cached
 *
 *   rounding  blocks are larger than the requested size
 *   split     free blocks next to used ones in one segment, which cannot be returned to the driver
 *   cached    segments without any used block, which the allocator releases before it raises
 */

import { float64At, itemAt, uint16At, uint32At } from "../../model/base/columns.js";
import type { Bytes } from "../../model/base/units.js";
import type {
  GpuFragmentationJson,
  GpuTotalsJson,
} from "../../model/documents/gpu/gpu_document.js";
import { BlockState, type GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";

export interface EndOfDevice {
  readonly segments: number;
  readonly totals: GpuTotalsJson;
  readonly waste: { roundingBytes: Bytes; splitBytes: Bytes; cachedBytes: Bytes };
  readonly largestFreeBytes: Bytes;
  /** Largest reserve first. */
  readonly fragmentation: GpuFragmentationJson[];
}

interface SegmentUse {
  allocated: Bytes;
  active: Bytes;
  requested: Bytes;
  free: Bytes;
  largestFree: Bytes;
}

/** The parts of a snapshot that are needed for this. */
export interface SegmentView {
  readonly segments: Pick<
    GpuSnapshot["segments"],
    | "length"
    | "device"
    | "size"
    | "stream"
    | "pool"
    | "type"
    | "expandable"
    | "firstBlock"
    | "blockCount"
  >;
  readonly blocks: Pick<GpuSnapshot["blocks"], "size" | "requested" | "state">;
  readonly strings: readonly string[];
  readonly streams: Float64Array;
}

export function endOf(snapshot: SegmentView, device: number): EndOfDevice {
  const { segments, strings, streams } = snapshot;
  const totals = { reservedBytes: 0, allocatedBytes: 0, activeBytes: 0, requestedBytes: 0 };
  const waste = { roundingBytes: 0, splitBytes: 0, cachedBytes: 0 };
  const groups = new Map<string, GpuFragmentationJson>();
  let count = 0;
  for (let row = 0; row < segments.length; row++) {
    if (segments.device[row] !== device) {
      continue;
    }
    count += 1;
    const use = usageOf(snapshot, row);
    const size = float64At(segments.size, row);
    const inUse = use.active > 0;
    totals.reservedBytes += size;
    totals.allocatedBytes += use.allocated;
    totals.activeBytes += use.active;
    totals.requestedBytes += use.requested;
    waste.roundingBytes += use.active - use.requested;
    waste.splitBytes += inUse ? use.free : 0;
    waste.cachedBytes += inUse ? 0 : use.free;
    const pool = itemAt(strings, uint32At(segments.pool, row)).replace(/[[\]\s]/g, "");
    const type = itemAt(strings, uint32At(segments.type, row));
    const stream = streams[uint16At(segments.stream, row)] ?? 0;
    const expandable = segments.expandable[row] === 1;
    const key = `${pool} ${stream} ${type} ${expandable}`;
    const group = groups.get(key) ?? emptyGroup(pool, stream, type, expandable);
    groups.set(key, group);
    group.segments += 1;
    group.reservedBytes += size;
    group.freeBytes += use.free;
    group.splitBytes += inUse ? use.free : 0;
    group.largestFreeBytes = Math.max(group.largestFreeBytes, use.largestFree);
  }
  const fragmentation = [...groups.values()].sort((a, b) => b.reservedBytes - a.reservedBytes);
  for (const group of fragmentation) {
    group.ratio = group.freeBytes === 0 ? 0 : 1 - group.largestFreeBytes / group.freeBytes;
  }
  return {
    segments: count,
    totals,
    waste,
    largestFreeBytes: Math.max(0, ...fragmentation.map((group) => group.largestFreeBytes)),
    fragmentation,
  };
}

function emptyGroup(
  pool: string,
  stream: number,
  type: string,
  expandable: boolean,
): GpuFragmentationJson {
  return {
    pool,
    stream,
    type,
    expandable,
    segments: 0,
    reservedBytes: 0,
    freeBytes: 0,
    splitBytes: 0,
    largestFreeBytes: 0,
    ratio: 0,
  };
}

/** Memory outside active blocks is free, whether or not the file lists it as a block. */
function usageOf({ segments, blocks }: SegmentView, segment: number): SegmentUse {
  const use = { allocated: 0, active: 0, requested: 0, free: 0, largestFree: 0 };
  const first = uint32At(segments.firstBlock, segment);
  for (let block = first; block < first + uint32At(segments.blockCount, segment); block++) {
    const size = float64At(blocks.size, block);
    if (blocks.state[block] === BlockState.inactive) {
      use.largestFree = Math.max(use.largestFree, size);
      continue;
    }
    use.active += size;
    use.allocated += blocks.state[block] === BlockState.allocated ? size : 0;
    use.requested += float64At(blocks.requested, block);
  }
  use.free = Math.max(0, float64At(segments.size, segment) - use.active);
  return use;
}
