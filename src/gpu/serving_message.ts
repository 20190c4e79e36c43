/**
 * Texts of runtimes around PyTorch that ran out of memory, or would have: they say more than an allocator
 * knows. Matched without any white space, as {@link ./torch_message.ts} does, for they are wrapped too.
 *
 *   vLLM   Free memory on device cuda:0 (F/T GiB) on startup is less than desired GPU memory utilization (S, R GiB)
 *          ... (N GiB KV cache is needed, which is larger than the available KV cache memory (A GiB) ...
 *          The model's max seq len (L) is larger than the maximum number of tokens ... in KV cache (M)
 *          No available memory for the cache blocks.
 *   MPS    MPS backend out of memory (MPS allocated: A, other allocations: O, max allowed: M). Tried to allocate R
 *   NCCL   Failed to CUDA calloc R bytes
 */
import type { Bytes } from "../model/units.js";
import { type OomFigures, type OomVerdict, sizeText } from "./oom_verdict.js";
import { bytesOf } from "./torch_message.js";

export const SERVING_START =
  /is less than desired GPU memory utilization|No available memory for the cache blocks|KV cache is needed, which is larger|than the maximum number of tokens that can be stored in KV cache|MPS backend out of memory|Failed to CUDA (?:calloc|malloc)/;

export interface ServingMessage {
  readonly device: number | null;
  readonly figures: OomFigures;
  readonly verdict: OomVerdict;
}

const SIZE = "(\\d+(?:\\.\\d+)?)(bytes|B|KiB|MiB|GiB|TiB|KB|MB|GB)";
const START_UP =
  /Freememoryondevice(?:\w+:(\d+))?\(([\d.]+)\/([\d.]+)GiB\)onstartupislessthandesiredGPUmemoryutilization\(([\d.]+),([\d.]+)GiB\)/;
const CACHE =
  /([\d.]+)GiBKVcacheisneeded,whichislargerthantheavailableKVcachememory\(([\d.]+)GiB\)(?:.*?estimatedmaximummodellengthis(\d+))?/;
const TOKENS =
  /maxseqlen\((\d+)\)islargerthanthemaximumnumberoftokensthatcanbestoredinKVcache\((\d+)\)/;
const NO_BLOCKS = /Noavailablememoryforthecacheblocks/;
const METAL = new RegExp(
  `MPSbackendoutofmemory\\(MPSallocated:${SIZE},otherallocations:${SIZE},maxallowed:${SIZE}\\)\\.Triedtoallocate${SIZE}`,
);
const NCCL = /FailedtoCUDA(?:calloc|malloc)(\d+)?/;

/** @param text the message and up to a few lines behind it; null where it holds none */
export function parseServingMessage(text: string): ServingMessage | null {
  const squeezed = text.replace(/\s+/g, "");
  return (
    startUp(START_UP.exec(squeezed)) ??
    cache(CACHE.exec(squeezed)) ??
    tokens(TOKENS.exec(squeezed)) ??
    (NO_BLOCKS.test(squeezed) ? noBlocks() : null) ??
    metal(METAL.exec(squeezed)) ??
    nccl(NCCL.exec(squeezed))
  );
}

const NOTHING: OomFigures = {
  requestedBytes: null,
  totalBytes: null,
  freeBytes: null,
  allocatedBytes: null,
  reservedUnallocatedBytes: null,
  processBytes: null,
  otherProcesses: [],
  privatePoolBytes: null,
  allowedBytes: null,
};

function startUp(match: RegExpExecArray | null): ServingMessage | null {
  if (match === null) return null;
  const [, device, ...figures] = match;
  const share = figures[2]!;
  const [free, total, , wanted] = figures.map((figure) => bytesOf(figure, "GiB")) as Bytes[];
  return {
    device: device === undefined ? null : Number(device),
    figures: { ...NOTHING, requestedBytes: wanted!, totalBytes: total!, freeBytes: free! },
    verdict: {
      kind: "contention",
      because: `the server wants ${sizeText(wanted!)} at its start (a share of ${share}), and only ${sizeText(free!)} of ${sizeText(total!)} is free: ${sizeText(total! - free!)} is held already`,
      advice: ["TM-A108", "TM-A120"],
    },
  };
}

function cache(match: RegExpExecArray | null): ServingMessage | null {
  if (match === null) return null;
  const needed = bytesOf(match[1]!, "GiB");
  const available = bytesOf(match[2]!, "GiB");
  const longest = match[3] === undefined ? "" : `; a length of ${match[3]} would fit`;
  return {
    device: null,
    figures: { ...NOTHING, requestedBytes: needed, freeBytes: available },
    verdict: {
      kind: "genuine",
      because: `one request of the longest length needs ${sizeText(needed)} of KV cache, and ${sizeText(available)} is left for it beside the weights${longest}`,
      advice: ["TM-A121", "TM-A120"],
    },
  };
}

function tokens(match: RegExpExecArray | null): ServingMessage | null {
  if (match === null) return null;
  return {
    device: null,
    figures: NOTHING,
    verdict: {
      kind: "genuine",
      because: `the longest length is ${match[1]} tokens, and the KV cache holds ${match[2]}`,
      advice: ["TM-A121", "TM-A120"],
    },
  };
}

function noBlocks(): ServingMessage {
  return {
    device: null,
    figures: NOTHING,
    verdict: {
      kind: "genuine",
      because:
        "weights and the largest forward pass take the server's whole share of the device: nothing is left for a KV cache",
      advice: ["TM-A120", "TM-A121"],
    },
  };
}

function metal(match: RegExpExecArray | null): ServingMessage | null {
  if (match === null) return null;
  const [allocated, other, allowed, request] = [1, 3, 5, 7].map((group) =>
    bytesOf(match[group]!, match[group + 1]!),
  ) as [Bytes, Bytes, Bytes, Bytes];
  const missing = allocated + other + request - allowed;
  const outside = other >= missing && other > allocated;
  return {
    device: null,
    figures: {
      ...NOTHING,
      requestedBytes: request,
      allocatedBytes: allocated,
      processBytes: allocated + other,
      allowedBytes: allowed,
    },
    verdict: {
      kind: outside ? "context" : "genuine",
      because: `${sizeText(allocated)} of tensors and ${sizeText(other)} of other allocations are in use; ${sizeText(request)} more goes beyond the ${sizeText(allowed)} that Metal allows`,
      advice: ["TM-A115", "TM-A123"],
    },
  };
}

function nccl(match: RegExpExecArray | null): ServingMessage | null {
  if (match === null) return null;
  const request = match[1] === undefined ? null : Number(match[1]);
  return {
    device: null,
    figures: { ...NOTHING, requestedBytes: request },
    verdict: {
      kind: "context",
      because: `NCCL found no memory for ${request === null ? "a buffer" : `a buffer of ${sizeText(request)}`}: PyTorch's allocator had taken what was there`,
      advice: ["TM-A109", "TM-A124"],
    },
  };
}
