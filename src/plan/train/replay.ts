/** Steps replayed on a model of the caching allocator: how much it reserves beside what it allocates. */
import type { Bytes } from "../../model/base/units.js";
import { CachingAllocator } from "../device/caching_allocator.js";
import type { Gpu } from "../device/gpus.js";
import type { AllocationTrace } from "../tape/trace.js";
import type { DevicePeak } from "./device_peak.js";

/** Optimizer states appear at the end of the first step, so that later steps find another layout. */
const STEPS = 3;

/** A job that needs so many devices' memory on one is not replayed: its figure means nothing but that it is too large. */
const FAR_BEYOND = 1000;

/**
 * What is reserved, as a share of the device, from which on no later allocation makes the job fit. The replay's own tensors,
 * with what is left of blocks that are not split and what a step leaves for the next, take up to a tenth more than the plan's:
 * the plan scales its gaps to the latter.
 */
const CLEARLY_BEYOND = 1.15;

type Block = ReturnType<CachingAllocator["allocate"]>;

/** The same for one prefill: weights stay, and so do the keys and values that it leaves. */
export function gapsOfPrefill(
  weights: readonly Bytes[],
  trace: AllocationTrace,
  limit: Bytes,
): number {
  const allocator = new CachingAllocator(limit);
  for (const bytes of weights) {
    allocator.allocate(bytes);
  }
  replayStep(allocator, trace, Number.POSITIVE_INFINITY);
  const { peakAllocated, peakReserved } = allocator;
  return peakAllocated > 0 ? peakReserved / peakAllocated - 1 : 0;
}

export interface Replay {
  /** What is reserved beside tensors, as a share of them. */
  readonly gaps: number;
  readonly reservedBytes: Bytes;
  /** The device's memory changed nothing: the same replay is valid for each device that has as much as it reserves. */
  readonly isFree: boolean;
}

/** What the allocator may reserve on a device. */
export function roomOf({ memoryBytes, contextBytes }: Gpu, ncclBytes: Bytes): Bytes {
  return memoryBytes - contextBytes - ncclBytes;
}

/**
 * Near its limit the allocator returns free segments; a job that does not fit is replayed without a limit.
 * @param stopsBeyond a replay that reserves clearly more than the device has ends there: searches ask for no more
 */
export function replayed(peak: DevicePeak, gpu: Gpu, stopsBeyond = false): Replay {
  const room = roomOf(gpu, peak.ncclBytes);
  if (peak.allocatedBytes > FAR_BEYOND * room) {
    return { gaps: 0, reservedBytes: 0, isFree: false };
  }
  const limit = peak.allocatedBytes < room ? room : Number.POSITIVE_INFINITY;
  const most = stopsBeyond ? CLEARLY_BEYOND * room : Number.POSITIVE_INFINITY;
  const { peakAllocated, peakReserved, reachedLimit } = replay(peak, limit, most);
  return {
    gaps: peakAllocated > 0 ? peakReserved / peakAllocated - 1 : 0,
    reservedBytes: peakReserved,
    isFree: !reachedLimit && peakReserved <= most,
  };
}

function replay({ trace, states }: DevicePeak, limit: Bytes, most: Bytes): CachingAllocator {
  const allocator = new CachingAllocator(limit);
  const { weights, states: optimizer, stepTemporaries } = states.tensors;
  const stay = (sizes: readonly Bytes[]): void => {
    for (const bytes of sizes) {
      allocator.allocate(bytes);
    }
  };
  stay(weights);
  for (let step = 0; step < STEPS; step++) {
    const { peakReserved } = allocator;
    const live = replayStep(allocator, trace, most);
    if (allocator.peakReserved > most) {
      break;
    }
    if (step > 0 && allocator.peakReserved === peakReserved && stepTemporaries.length === 0) {
      break; // The step found room in the blocks that the one before left, and so will the next.
    }
    if (step === 0) {
      stay(optimizer);
    }
    const temporaries = stepTemporaries.map((bytes) => allocator.allocate(bytes));
    for (const block of [...temporaries, ...live]) {
      allocator.free(block);
    }
  }
  return allocator;
}

/** @returns the memory that the step leaves: gradients, the loss. It ends where more than `most` is reserved. */
function replayStep(
  allocator: CachingAllocator,
  { events, bytes, streams }: AllocationTrace,
  most: Bytes,
): Iterable<Block> {
  const live: (Block | undefined)[] = new Array(bytes.length).fill(undefined);
  for (const event of events) {
    const id = Math.abs(event) - 1;
    if (event > 0) {
      live[id] = allocator.allocate(bytes[id] as Bytes, streams[id]);
      if (allocator.peakReserved > most) {
        break;
      }
    } else {
      allocator.free(live[id] as Block);
      live[id] = undefined;
    }
  }
  return live.filter((block) => block !== undefined);
}
