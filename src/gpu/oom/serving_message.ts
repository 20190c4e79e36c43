/**
 * Texts of vLLM, which ran out of memory or would have: they say more than an allocator knows.
 *
 *   Free memory on device cuda:0 (F/T GiB) on startup is less than desired GPU memory utilization (S, R GiB)
 *   To serve at least one request with the model's max seq len (L), (N GiB KV cache is needed, which is larger
 *     than the available KV cache memory (A GiB). ... the estimated maximum model length is M
 *   The model's max seq len (L) is larger than the maximum number of tokens ... in KV cache (M)
 *   No available memory for the cache blocks.
 *   CUDA out of memory occurred when warming up sampler with N dummy requests.
 *   Error in memory profiling. Initial free memory F GiB, current free memory G GiB.
 */
import type { Bytes } from "../../model/units.js";
import { bytesOf, squeeze } from "./message_sizes.js";
import { type OomReading, reading } from "./oom_reading.js";
import { sizeText } from "./oom_verdict.js";

export const SERVING_START =
  /is less than desired GPU memory utilization|No available memory for the cache blocks|To serve at least one request with|KV cache is needed, which is larger|than the maximum number of tokens that can be stored in KV cache|out of memory occurred when warming up|Error in memory profiling\. Initial/;

const GIB = "(\\d{1,9}(?:\\.\\d{1,9})?)";
const START_UP = new RegExp(
  `[Ff]reememoryondevice(?:\\w{1,12}:(\\d{1,4}))?\\(${GIB}/${GIB}GiB\\)onstartupislessthandesiredGPUmemoryutilization\\(${GIB},${GIB}GiB\\)`,
);
const CACHE = new RegExp(
  `${GIB}GiBKVcacheisneeded,whichislargerthantheavailableKVcachememory\\(${GIB}GiB\\)(?:.*?estimatedmaximummodellengthis(\\d{1,12}))?`,
);
const TOKENS =
  /maxseqlen\((\d{1,12})\)islargerthanthemaximumnumberoftokensthatcanbestoredinKVcache\((\d{1,12})\)/;
const NO_BLOCKS = /Noavailablememoryforthecacheblocks/;
const WARM_UP = /outofmemoryoccurredwhenwarmingup(\w{1,30}?)with(\d{1,9})dummyrequests/;
const PROFILING = new RegExp(
  `Errorinmemoryprofiling\\.Initialfreememory${GIB}GiB,currentfreememory${GIB}GiB`,
);

/** @param text the message and up to a few lines behind it; null where it holds none */
export function parseServingMessage(text: string): OomReading | null {
  if (!SERVING_START.test(text)) return null;
  const squeezed = squeeze(text);
  return (
    startUp(START_UP.exec(squeezed)) ??
    cache(CACHE.exec(squeezed)) ??
    tokens(TOKENS.exec(squeezed)) ??
    (NO_BLOCKS.test(squeezed) ? noBlocks() : null) ??
    warmUp(WARM_UP.exec(squeezed)) ??
    profiling(PROFILING.exec(squeezed))
  );
}

const VLLM = { library: "vLLM" };

function startUp(match: RegExpExecArray | null): OomReading | null {
  if (match === null) return null;
  const [, device, ...figures] = match;
  const share = figures[2]!;
  const [free, total, , wanted] = figures.map((figure) => bytesOf(figure, "GiB")) as Bytes[];
  return reading(
    {
      kind: "contention",
      because: `the server wants ${sizeText(wanted!)} at its start (a share of ${share}), and only ${sizeText(free!)} of ${sizeText(total!)} is free: ${sizeText(total! - free!)} is held already`,
      advice: ["TM-A108", "TM-A120"],
    },
    { requestedBytes: wanted!, totalBytes: total!, freeBytes: free! },
    { ...VLLM, device: device === undefined ? null : Number(device) },
  );
}

function cache(match: RegExpExecArray | null): OomReading | null {
  if (match === null) return null;
  const needed = bytesOf(match[1]!, "GiB");
  const available = bytesOf(match[2]!, "GiB");
  const longest = match[3] === undefined ? "" : `; a length of ${match[3]} would fit`;
  return reading(
    {
      kind: "genuine",
      because: `one request of the longest length needs ${sizeText(needed)} of KV cache, and ${sizeText(available)} is left for it beside the weights${longest}`,
      advice: ["TM-A121", "TM-A120"],
    },
    { requestedBytes: needed, freeBytes: available },
    VLLM,
  );
}

function tokens(match: RegExpExecArray | null): OomReading | null {
  if (match === null) return null;
  return genuine(`the longest length is ${match[1]} tokens, and the KV cache holds ${match[2]}`, [
    "TM-A121",
    "TM-A120",
  ]);
}

function noBlocks(): OomReading {
  return genuine(
    "weights and the largest forward pass take the server's whole share of the device: nothing is left for a KV cache",
    ["TM-A120", "TM-A121"],
  );
}

function warmUp(match: RegExpExecArray | null): OomReading | null {
  if (match === null) return null;
  return genuine(
    `the server ran out of memory as it tried its ${match[1]} with ${match[2]} requests at once: weights and KV cache have taken its share`,
    ["TM-A121", "TM-A120"],
  );
}

function profiling(match: RegExpExecArray | null): OomReading | null {
  if (match === null) return null;
  const [before, after] = [bytesOf(match[1]!, "GiB"), bytesOf(match[2]!, "GiB")];
  return reading(
    {
      kind: "contention",
      because: `${sizeText(before)} was free as the server began to measure, and ${sizeText(after)} afterwards: another process gave memory back meanwhile, so that the measure is worth nothing`,
      advice: ["TM-A108", "TM-A120"],
    },
    { freeBytes: after },
    VLLM,
  );
}

function genuine(because: string, advice: OomReading["verdict"]["advice"]): OomReading {
  return reading({ kind: "genuine", because, advice }, {}, VLLM);
}
