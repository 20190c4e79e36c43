/**
 * The verdict on a message of JAX or TensorFlow: the pool of `limit` bytes is full, or the driver refused to
 * enlarge it.
 */
import { formatBytesLikePyTorch } from "../../../model/base/numbers.js";
import type { BfcState } from "./bfc_message.js";
import type { OomVerdict } from "./oom_reading.js";

/** More than any device has: the program computed a wrong size or is far too large. */
const NO_DEVICE = 2 ** 40;
/** A program that needs this much in total fills a device alone. */
const LARGE_PROGRAM = 2 * 2 ** 30;

export function judgeBfc(state: BfcState): OomVerdict {
  if (state.memory === "host") {
    return ofHost(state);
  }
  if (state.source === "driver") {
    return ofDriver(state);
  }
  const { request, limit, inUse, largestFree, framework, program } = state;
  const shared = framework === "jax" ? "TM-A117" : "TM-A118";
  if (request === null || limit === null || inUse === null) {
    if (program !== null && framework === "jax") {
      return ofProgram(program);
    }
    return {
      kind: "unknown",
      because: "the log has no allocator statistics to judge by",
      advice: framework === "jax" ? [shared, "TM-A127"] : [shared, "TM-A115"],
    };
  }
  const free = limit - inUse;
  if (free >= request && (largestFree === null || largestFree < request)) {
    return {
      kind: "fragmentation",
      because: `${formatBytesLikePyTorch(inUse)} of the pool's ${formatBytesLikePyTorch(limit)} is in use: ${formatBytesLikePyTorch(free)} is free, ${formatBytesLikePyTorch(request)} was requested, ${largestFree === null ? "and no free block was large enough" : `and the largest free block is ${formatBytesLikePyTorch(largestFree)}`}`,
      advice: ["TM-A119"],
    };
  }
  return {
    kind: "genuine",
    because: `${formatBytesLikePyTorch(inUse)} of the pool's ${formatBytesLikePyTorch(limit)} is in use, and ${formatBytesLikePyTorch(request)} was requested`,
    advice: framework === "jax" ? ["TM-A127", shared] : ["TM-A115", shared],
  };
}

/** XLA reports the total that the compiled program needs: arguments, results and temporary buffers. */
function ofProgram(program: number): OomVerdict {
  return program >= LARGE_PROGRAM
    ? {
        kind: "genuine",
        because: `the compiled program needs ${formatBytesLikePyTorch(program)} in total, as XLA reports; the log does not show the memory of the device`,
        advice: ["TM-A127", "TM-A117"],
      }
    : {
        kind: "unknown",
        because: `the compiled program needs only ${formatBytesLikePyTorch(program)} in total: arrays that the process keeps, or another process, use the device`,
        advice: ["TM-A108", "TM-A117"],
      };
}

/** TensorFlow and XLA retry with nine tenths and continue: such a line alone is often not an error. */
function ofDriver({ request, framework }: BfcState): OomVerdict {
  if (request !== null && request >= NO_DEVICE) {
    return {
      kind: "genuine",
      because: `${formatBytesLikePyTorch(request)} was requested from the driver at once: more than any device has`,
      advice: ["TM-A115"],
    };
  }
  return {
    kind: "contention",
    because: `the driver refused to grow the pool${request === null ? "" : ` by ${formatBytesLikePyTorch(request)}`}: other processes use part of the device. The program retries with less and may continue`,
    advice: [framework === "jax" ? "TM-A117" : "TM-A118", "TM-A108"],
  };
}

function ofHost({ request, source, framework }: BfcState): OomVerdict {
  const memory =
    request === null ? "host memory" : `${formatBytesLikePyTorch(request)} of host memory`;
  return {
    kind: source === "driver" ? "context" : "genuine",
    because: `${memory} could not be ${source === "driver" ? "pinned for copies to the device" : "allocated"}: it is not the device that ran out of memory`,
    advice: framework === "tensorflow" ? ["TM-A133", "TM-A132"] : ["TM-A132"],
  };
}
