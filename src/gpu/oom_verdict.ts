/** What kind an out-of-memory message is, by its own figures. */
import type { OomEventJson } from "../model/gpu_document.js";
import type { Bytes } from "../model/units.js";
import type { GpuAdviceId } from "./advice.js";
import type { TorchMessage } from "./torch_message.js";

export type OomFigures = Pick<
  OomEventJson,
  | "requestedBytes"
  | "totalBytes"
  | "freeBytes"
  | "allocatedBytes"
  | "reservedUnallocatedBytes"
  | "processBytes"
  | "otherProcesses"
  | "privatePoolBytes"
  | "allowedBytes"
>;

export interface OomVerdict {
  readonly kind: OomEventJson["kind"];
  readonly because: string;
  readonly advice: GpuAdviceId[];
}

/** What a context takes anyway; above this share of the device it is worth a word. */
const NOTABLE_SHARE = 0.1;
/** With less than this in pieces the device is full, however they lie. */
const LARGE_SPLIT = 0.02;

/** "1.50 GiB", as PyTorch prints it. */
export function sizeText(bytes: Bytes): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return power === 0 ? `${bytes} bytes` : `${(bytes / 1024 ** power).toFixed(2)} ${units[power]}`;
}

/** A message that says itself what it is, whatever figures it has. */
export function judgeCause(cause: TorchMessage["cause"], figures: OomFigures): OomVerdict {
  const request = figures.requestedBytes;
  switch (cause) {
    case "address space":
      return {
        kind: "unknown",
        because: "the process ran out of addresses that expandable segments reserve, not of memory",
        advice: ["TM-A125"],
      };
    case "own limit":
      return {
        kind: "genuine",
        because: `${request === null ? "the request" : sizeText(request)} would go beyond the share of the device that the program set for itself (per_process_memory_fraction)`,
        advice: ["TM-A115", "TM-A116"],
      };
    case "size beyond all":
      return {
        kind: "genuine",
        because:
          "more than an exabyte was asked for: a size that was computed wrong, or below zero",
        advice: [],
      };
    case "outside":
      return {
        kind: "context",
        because: "a library (cuDNN) found no memory outside of PyTorch's allocator",
        advice: ["TM-A124", "TM-A109"],
      };
    default:
      return judgeTorch(figures);
  }
}

/**
 * Before it raises, PyTorch gives every segment back in which nothing lives. What is still reserved but
 * unallocated lies in pieces between live blocks: it is cache no longer.
 */
export function judgeTorch(figures: OomFigures): OomVerdict {
  const { requestedBytes: request, totalBytes: total, freeBytes: free } = figures;
  if (request === null || total === null || free === null) {
    return {
      kind: request === null ? "context" : "unknown",
      because:
        request === null
          ? "the driver or a library (cuBLAS, cuDNN, NCCL) found no memory outside of PyTorch's allocator; the message has no figures"
          : "the message says too little to tell",
      advice: request === null ? ["TM-A109", "TM-A108"] : [],
    };
  }
  const allocated = figures.allocatedBytes ?? 0;
  const split = figures.reservedUnallocatedBytes ?? 0;
  const missing = Math.max(0, request - free);
  const own = figures.processBytes ?? allocated + split;
  const listed = figures.otherProcesses.reduce((sum, { bytes }) => sum + bytes, 0);
  // "Process N" may be this very one, when it runs in a container: then nothing else says its size.
  const others =
    figures.processBytes === null ? total - free - own : Math.max(listed, total - free - own);
  const outside = figures.processBytes === null ? 0 : own - allocated - split;
  const notable = NOTABLE_SHARE * total;
  if (request > (figures.allowedBytes ?? total)) {
    return {
      kind: "genuine",
      because: `${sizeText(request)} was asked for at once, and the ${figures.allowedBytes === null ? "device has" : "program allows itself"} ${sizeText(figures.allowedBytes ?? total)} in all`,
      advice: ["TM-A115", "TM-A104"],
    };
  }
  // Enough for the request by itself, or a good part of all that PyTorch holds.
  const pieces = split >= request || split >= NOTABLE_SHARE * (allocated + split);
  const crowded =
    missing > 0 && figures.processBytes !== null && others >= missing && others >= notable;
  if (crowded && others > split && others > outside) {
    return {
      kind: "contention",
      because: contentionText(figures, others, missing),
      advice: ["TM-A108"],
    };
  }
  if (split >= missing && split >= LARGE_SPLIT * total && pieces) {
    return {
      kind: "fragmentation",
      because: `${sizeText(split)} is reserved and unallocated, ${sizeText(free)} is free: together enough for ${sizeText(request)}, but not in one piece`,
      advice: privatePoolsHold(figures, split)
        ? ["TM-A114", "TM-A101"]
        : ["TM-A101", "TM-A103", "TM-A102"],
    };
  }
  if (figures.allowedBytes !== null && allocated + split + request > figures.allowedBytes) {
    return {
      kind: "genuine",
      because: `the program allows itself ${sizeText(figures.allowedBytes)}, holds ${sizeText(allocated + split)} and asked for ${sizeText(request)} more`,
      advice: ["TM-A115", "TM-A116"],
    };
  }
  if (free >= 2 * request) {
    return {
      kind: "unknown",
      because: `${sizeText(free)} was free when the message was written, and ${sizeText(request)} asked for: another process may have held it a moment before, or the driver refuses large pieces`,
      advice: ["TM-A108"],
    };
  }
  if (others >= missing && others >= notable && others > outside) {
    return {
      kind: "contention",
      because: contentionText(figures, others, missing),
      advice: ["TM-A108", ...(figures.processBytes === null ? (["TM-A109"] as const) : [])],
    };
  }
  if (outside >= missing && outside >= notable) {
    return {
      kind: "context",
      because: `this process holds ${sizeText(own)}, of which PyTorch's allocator has ${sizeText(allocated + split)}: ${sizeText(outside)} is the CUDA context, NCCL and other libraries`,
      advice: ["TM-A109"],
    };
  }
  return {
    kind: "genuine",
    because: `PyTorch has ${sizeText(allocated)} of ${sizeText(total)} in use; ${sizeText(request)} more was asked for, ${sizeText(free)} is free and only ${sizeText(split)} is reserved and unused`,
    advice: ["TM-A115", "TM-A104"],
  };
}

function privatePoolsHold({ privatePoolBytes }: OomFigures, split: Bytes): boolean {
  return (privatePoolBytes ?? 0) > split;
}

function contentionText(figures: OomFigures, others: Bytes, missing: Bytes): string {
  const named = figures.otherProcesses.map(({ pid, bytes }) => `process ${pid} ${sizeText(bytes)}`);
  const who =
    figures.processBytes !== null && named.length > 0
      ? named.join(", ")
      : "processes or libraries that the message does not name";
  return `${sizeText(others)} of the device is held by others (${who}); ${sizeText(missing)} was missing`;
}

/** JAX and TensorFlow: a pool of `limit` bytes, of which `inUse` are, and the largest piece free. */
export function judgeBfc(
  request: Bytes | null,
  limit: Bytes | null,
  inUse: Bytes | null,
  largestFree: Bytes | null,
  framework: "jax" | "tensorflow",
): OomVerdict {
  const shared: GpuAdviceId = framework === "jax" ? "TM-A117" : "TM-A118";
  if (request === null || limit === null || inUse === null) {
    return {
      kind: "unknown",
      because: "the log has no statistics of the allocator to tell it by",
      advice: [shared],
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
    advice: ["TM-A115", shared],
  };
}
