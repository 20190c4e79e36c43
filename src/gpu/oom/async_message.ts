/**
 * PyTorch's other allocator, backend:cudaMallocAsync (the driver's own pools; ComfyUI's default):
 *
 *   Allocation on device D would exceed allowed memory. (out of memory)
 *   Currently allocated     : A
 *   Requested               : R
 *   Device limit            : T
 *   Free (according to CUDA): F
 *   PyTorch limit (set by user-supplied memory fraction)
 *                           : L        (17179869184.00 GiB where none is set)
 *
 * A is what PyTorch asked for, not what the driver's pool holds: the rest of the device is the pool's
 * unused part, the CUDA context and other processes together.
 */
import { bytesOf, credible, SIZE, squeeze } from "./message_sizes.js";
import { type OomReading, reading } from "./oom_reading.js";
import { type OomVerdict, sizeText } from "./oom_verdict.js";

/** The second is ComfyUI's report, which holds the first words of the exception alone. */
export const ASYNC_START =
  /Allocation on device ?\d* would exceed allowed memory|Exception Message:\W{1,4}Allocation on device/;

/** What a context and a pool's rounding take; with more than this in use beside it, it is worth a word. */
const NOTABLE_SHARE = 0.15;

/** @param text the message and up to a few lines behind it; null where it holds none */
export function parseAsyncMessage(text: string): OomReading | null {
  if (!ASYNC_START.test(text)) return null;
  const squeezed = squeeze(text);
  const size = (before: string) => {
    const match = new RegExp(`${before}:${SIZE}`).exec(squeezed);
    return match === null ? null : bytesOf(match[1]!, match[2]!);
  };
  const device = /Allocationondevice(\d{1,4})would/.exec(squeezed)?.[1];
  const request = size("Requested");
  const total = credible(size("Devicelimit"));
  const limit = credible(size("memoryfraction\\)"));
  const figures = {
    requestedBytes: request,
    totalBytes: total,
    freeBytes: credible(size("Free\\(accordingtoCUDA\\)")),
    allocatedBytes: credible(size("Currentlyallocated")),
    allowedBytes: limit !== null && total !== null && limit < total ? limit : null,
  };
  const rest = { device: device === undefined ? null : Number(device), library: "cudaMallocAsync" };
  return reading(judge(figures), figures, rest);
}

function judge(figures: {
  requestedBytes: number | null;
  totalBytes: number | null;
  freeBytes: number | null;
  allocatedBytes: number | null;
  allowedBytes: number | null;
}): OomVerdict {
  const { requestedBytes: request, totalBytes: total, freeBytes: free } = figures;
  const { allocatedBytes: allocated, allowedBytes: allowed } = figures;
  if (request === null || total === null || free === null || allocated === null) {
    return { kind: "unknown", because: "the message is cut: it has no figures", advice: [] };
  }
  if (allowed !== null && allocated + request > allowed) {
    return {
      kind: "genuine",
      because: `the program allows itself ${sizeText(allowed)}, holds ${sizeText(allocated)} and asked for ${sizeText(request)} more`,
      advice: ["TM-A115", "TM-A126"],
    };
  }
  if (request > total || allocated > total) {
    return {
      kind: "genuine",
      because: `PyTorch has ${sizeText(allocated)} in use and asked for ${sizeText(request)}, of a device of ${sizeText(total)}`,
      advice: ["TM-A115", "TM-A104"],
    };
  }
  if (free >= request) {
    return {
      kind: "unknown",
      because: `${sizeText(free)} was free when the message was written, and ${sizeText(request)} asked for`,
      advice: ["TM-A108"],
    };
  }
  const rest = total - free - allocated;
  const missing = request - free;
  return rest >= missing && rest >= NOTABLE_SHARE * total
    ? {
        kind: "contention",
        because: `PyTorch has ${sizeText(allocated)} of ${sizeText(total)} in use, and ${sizeText(rest)} more is: by other processes, the CUDA context, or as what the driver's pool keeps; ${sizeText(missing)} was missing`,
        advice: ["TM-A108", "TM-A109"],
      }
    : {
        kind: "genuine",
        because: `PyTorch has ${sizeText(allocated)} of ${sizeText(total)} in use; ${sizeText(request)} more was asked for, ${sizeText(free)} is free`,
        advice: ["TM-A115", "TM-A104"],
      };
}
