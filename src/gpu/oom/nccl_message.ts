/**
 * NCCL's warnings, of which PyTorch repeats the last within its own error:
 *
 *   host:pid:thread [D] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'
 *   host:pid:thread [D] include/alloc.h:185 NCCL WARN Failed to CUDA calloc R bytes
 *
 * D is the process's device, not its rank.
 */
import { squeeze } from "./message_sizes.js";
import { type OomReading, reading } from "./oom_reading.js";
import { sizeText } from "./oom_verdict.js";

export const NCCL_START = /Failed to CUDA (?:calloc|malloc)/;
const OF_NCCL = /NCCL WARN|Last error:|ncclUnhandledCudaError/;
const REFUSED = /FailedtoCUDA(?:calloc|malloc)(\d{1,20})?|NCCLWARNCudafailure.{0,12}outofmemory/;

/** What NCCL says in several lines is one message. */
export function isNcclLine(text: string): boolean {
  return OF_NCCL.test(text);
}

/** @param text the message and up to a few lines behind it; null where it holds none */
export function parseNcclMessage(text: string): OomReading | null {
  const squeezed = squeeze(text);
  const match = REFUSED.exec(squeezed);
  if (match === null) return null;
  const figure = /FailedtoCUDA(?:calloc|malloc)(\d{1,20})/.exec(squeezed)?.[1];
  const request = figure === undefined ? null : Number(figure);
  const device = /:\d{1,9}:\d{1,9}\[(\d{1,4})\]/.exec(squeezed)?.[1];
  return reading(
    {
      kind: "context",
      because: `NCCL found no memory for ${request === null ? "a buffer" : `a buffer of ${sizeText(request)}`}: PyTorch's allocator had taken what was there`,
      advice: ["TM-A109", "TM-A124"],
    },
    { requestedBytes: request },
    { library: "NCCL", device: device === undefined ? null : Number(device) },
  );
}
