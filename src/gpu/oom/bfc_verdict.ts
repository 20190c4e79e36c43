/** What kind a message of JAX or TensorFlow is: a pool of `limit` bytes, or the driver that refused to grow it. */
import type { BfcState } from "./bfc_message.js";
import { sizeText } from "./message_sizes.js";
import type { OomVerdict } from "./oom_reading.js";

/** More than a device has: the sizes of a program were computed wrong, or it is far too large. */
const NO_DEVICE = 2 ** 40;
/** A program that needs this much in all is what fills a device, whatever else lives there. */
const LARGE_PROGRAM = 2 * 2 ** 30;

export function judgeBfc(state: BfcState): OomVerdict {
  if (state.memory === "host") return ofHost(state);
  if (state.source === "driver") return ofDriver(state);
  const { request, limit, inUse, largestFree, framework, program } = state;
  const shared = framework === "jax" ? "TM-A117" : "TM-A118";
  if (request === null || limit === null || inUse === null) {
    if (program !== null && framework === "jax") return ofProgram(program);
    return {
      kind: "unknown",
      because: "the log has no statistics of the allocator to tell it by",
      advice: framework === "jax" ? [shared, "TM-A127"] : [shared, "TM-A115"],
    };
  }
  const free = limit - inUse;
  if (free >= request && (largestFree === null || largestFree < request)) {
    return {
      kind: "fragmentation",
      because: `${sizeText(inUse)} of the pool's ${sizeText(limit)} is in use: ${sizeText(free)} is free, ${sizeText(request)} was asked for, ${largestFree === null ? "and no piece was large enough" : `the largest piece is ${sizeText(largestFree)}`}`,
      advice: ["TM-A119"],
    };
  }
  return {
    kind: "genuine",
    because: `${sizeText(inUse)} of the pool's ${sizeText(limit)} is in use, and ${sizeText(request)} was asked for`,
    advice: framework === "jax" ? ["TM-A127", shared] : ["TM-A115", shared],
  };
}

/** XLA lists what the compiled program needs in all: arguments, results and what it works with. */
function ofProgram(program: number): OomVerdict {
  return program >= LARGE_PROGRAM
    ? {
        kind: "genuine",
        because: `the compiled program needs ${sizeText(program)} in all, by XLA's own count; the log does not say what the device has`,
        advice: ["TM-A127", "TM-A117"],
      }
    : {
        kind: "unknown",
        because: `the compiled program needs no more than ${sizeText(program)} in all: the device is held by arrays that the process keeps, or by another process`,
        advice: ["TM-A108", "TM-A117"],
      };
}

/** TensorFlow and XLA ask for nine tenths again and go on: by itself such a line is often no error. */
function ofDriver({ request, framework }: BfcState): OomVerdict {
  if (request !== null && request >= NO_DEVICE) {
    return {
      kind: "genuine",
      because: `${sizeText(request)} was asked of the driver at once: more than a device has`,
      advice: ["TM-A115"],
    };
  }
  return {
    kind: "contention",
    because: `the driver did not give the ${request === null ? "memory" : sizeText(request)} by which the pool was to grow: others hold a part of the device. The program asks for less then, and may well go on`,
    advice: [framework === "jax" ? "TM-A117" : "TM-A118", "TM-A108"],
  };
}

function ofHost({ request, source, framework }: BfcState): OomVerdict {
  const size = request === null ? "memory" : sizeText(request);
  return {
    kind: source === "driver" ? "context" : "genuine",
    because: `no ${size} of the host's memory could be had${source === "driver" ? " and pinned for copies to the device" : ""}: the device is not what ran out`,
    advice: framework === "tensorflow" ? ["TM-A133", "TM-A132"] : ["TM-A132"],
  };
}
