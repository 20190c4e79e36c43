/**
 * PyTorch on Apple's Metal, which counts in powers of 1024 and calls them MB and GB in older versions:
 *
 *   MPS backend out of memory (MPS allocated: A, other allocations: O, max allowed: M). Tried to allocate R
 *   Invalid buffer size: R
 */
import { bytesOf, SIZE, squeeze } from "./message_sizes.js";
import { type OomReading, reading } from "./oom_reading.js";
import { sizeText } from "./oom_verdict.js";

export const METAL_START = /MPS backend out of memory|Invalid buffer size: [\d.]{1,16} [KMGT]i?B/;

const FULL = new RegExp(
  `MPSbackendoutofmemory\\(MPSallocated:${SIZE},otherallocations:${SIZE},maxallowed:${SIZE}\\)(?:\\.Triedtoallocate${SIZE})?`,
);
const BUFFER = new RegExp(`Invalidbuffersize:${SIZE}`);
const ADVICE = ["TM-A115", "TM-A123"] as const;

/** @param text the message and up to a few lines behind it; null where it holds none */
export function parseMetalMessage(text: string): OomReading | null {
  const squeezed = squeeze(text);
  const buffer = BUFFER.exec(squeezed);
  if (buffer !== null) {
    const request = bytesOf(buffer[1]!, buffer[2]!);
    return reading(
      {
        kind: "genuine",
        because: `${sizeText(request)} was asked for in one piece: more than Metal makes one buffer of`,
        advice: [...ADVICE],
      },
      { requestedBytes: request },
    );
  }
  const match = FULL.exec(squeezed);
  if (match === null) return null;
  const [allocated, other, allowed] = [1, 3, 5].map((group) =>
    bytesOf(match[group]!, match[group + 1]!),
  ) as [number, number, number];
  const request = match[7] === undefined ? null : bytesOf(match[7], match[8]!);
  const missing = allocated + other + (request ?? 0) - allowed;
  const outside = other >= missing && other > allocated;
  return reading(
    {
      kind: outside ? "context" : "genuine",
      because: `${sizeText(allocated)} of tensors and ${sizeText(other)} of other allocations are in use; ${request === null ? "what was asked for" : `${sizeText(request)} more`} goes beyond the ${sizeText(allowed)} that Metal allows`,
      advice: [...ADVICE],
    },
    {
      requestedBytes: request,
      allocatedBytes: allocated,
      processBytes: allocated + other,
      allowedBytes: allowed,
    },
  );
}
