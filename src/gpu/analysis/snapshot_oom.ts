/** The out-of-memory events of a trace, and the allocator state at each. */
import { float64At, itemAt, uint8At, uint16At, uint32At } from "../../model/base/columns.js";
import type { GpuOutOfMemoryJson } from "../../model/documents/gpu/gpu_document.js";
import { type GpuReplay, gapsAt } from "../../model/gpu/gpu_replay.js";
import { GpuAction, type GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";
import { informativeFrames } from "./frame_roles.js";

const COMMON_POOL = /^\[0, ?0\]$/;

export function outOfMemoryOf(snapshot: GpuSnapshot, replay: GpuReplay): GpuOutOfMemoryJson[] {
  const { events } = snapshot;
  const found: GpuOutOfMemoryJson[] = [];
  for (let event = 0; event < replay.events; event++) {
    const row = replay.firstEvent + event;
    if (events.action[row] !== GpuAction.outOfMemory) {
      continue;
    }
    const requestedBytes = float64At(events.size, row);
    // Before failing, the allocator released every completely free segment, so the remaining free memory is split.
    const { free, largest } = freeFor(snapshot, replay, event, uint16At(events.stream, row));
    found.push({
      eventIndex: event,
      timeUs: float64At(events.timeUs, row),
      requestedBytes,
      deviceFreeBytes: float64At(events.address, row),
      stack: informativeFrames(snapshot, uint32At(events.stack, row)),
      reservedBytes: float64At(replay.reserved, event),
      liveBytes: float64At(replay.requested, event),
      freeInSegmentsBytes: free,
      largestFreeBytes: largest,
      kind: free >= requestedBytes ? "fragmentation" : "genuine",
    });
  }
  return found;
}

/** Free memory that a request on `stream` in the common pool could have used if it were in one piece. */
function freeFor(
  { strings }: GpuSnapshot,
  replay: GpuReplay,
  moment: number,
  stream: number,
): { free: number; largest: number } {
  let free = 0;
  let largest = 0;
  for (const { span, size } of gapsAt(replay, moment)) {
    const pool = itemAt(strings, span.pool);
    if (span.stream === stream && (pool === "" || COMMON_POOL.test(pool))) {
      free += size;
      largest = Math.max(largest, size);
    }
  }
  return { free, largest };
}

/**
 * How often the allocator released a run of cached segments, and how often a request followed immediately,
 * which indicates a retry (or a program that empties the cache itself).
 */
export function cacheReleasesOf(
  { events }: GpuSnapshot,
  replay: GpuReplay,
): { count: number; beforeRequest: number } {
  let count = 0;
  let beforeRequest = 0;
  let releasing = false;
  for (let event = 0; event < replay.events; event++) {
    const action = uint8At(events.action, replay.firstEvent + event);
    const release = action === GpuAction.segmentFree || action === GpuAction.segmentUnmap;
    if (release && !releasing) {
      count += 1;
    } else if (releasing && !release) {
      const wanted =
        action === GpuAction.segmentAlloc ||
        action === GpuAction.segmentMap ||
        action === GpuAction.outOfMemory;
      beforeRequest += wanted ? 1 : 0;
    }
    releasing = release;
  }
  return { count, beforeRequest };
}
