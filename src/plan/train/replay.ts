/** Steps replayed on a model of the caching allocator: how much it reserves beside what it allocates. */
import type { Bytes } from "../../model/base/units.js";
import { CachingAllocator } from "../device/caching_allocator.js";
import type { TrainOptions } from "../job/options.js";
import type { AllocationTrace } from "../tape/trace.js";
import type { DevicePeak } from "./device_peak.js";

/** Optimizer states appear at the end of the first step, so that later steps find another layout. */
const STEPS = 3;

/** A job that needs so many devices' memory on one is not replayed: its figure means nothing but that it is too large. */
const FAR_BEYOND = 1000;

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
  replayStep(allocator, trace);
  const { peakAllocated, peakReserved } = allocator;
  return peakAllocated > 0 ? peakReserved / peakAllocated - 1 : 0;
}

/** What is reserved beside tensors, as a share of them. */
export function gapsOf(peak: DevicePeak, { gpu }: TrainOptions): number {
  const room = gpu.memoryBytes - gpu.contextBytes - peak.ncclBytes;
  // Near its limit the allocator returns free segments; a job that does not fit is planned without a limit.
  if (peak.allocatedBytes > FAR_BEYOND * room) {
    return 0;
  }
  const limit = peak.allocatedBytes < room ? room : Number.POSITIVE_INFINITY;
  const { allocated, reserved } = replay(peak, limit);
  return allocated > 0 ? reserved / allocated - 1 : 0;
}

function replay(
  { trace, states }: DevicePeak,
  limit: Bytes,
): { allocated: Bytes; reserved: Bytes } {
  const allocator = new CachingAllocator(limit);
  const { weights, states: optimizer, stepTemporaries } = states.tensors;
  const stay = (sizes: readonly Bytes[]): void => {
    for (const bytes of sizes) {
      allocator.allocate(bytes);
    }
  };
  stay(weights);
  for (let step = 0; step < STEPS; step++) {
    const live = replayStep(allocator, trace);
    if (step === 0) {
      stay(optimizer);
    }
    const temporaries = stepTemporaries.map((bytes) => allocator.allocate(bytes));
    for (const block of [...temporaries, ...live]) {
      allocator.free(block);
    }
  }
  return { allocated: allocator.peakAllocated, reserved: allocator.peakReserved };
}

/** @returns the memory that the step leaves: gradients, the loss */
function replayStep(
  allocator: CachingAllocator,
  { events, bytes, streams }: AllocationTrace,
): Iterable<Block> {
  const live: (Block | undefined)[] = new Array(bytes.length).fill(undefined);
  for (const event of events) {
    const id = Math.abs(event) - 1;
    if (event > 0) {
      live[id] = allocator.allocate(bytes[id] as Bytes, streams[id]);
    } else {
      allocator.free(live[id] as Block);
      live[id] = undefined;
    }
  }
  return live.filter((block) => block !== undefined);
}
