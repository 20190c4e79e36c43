/**
 * The memory figures of vLLM's start-up log, in the wordings of its versions.
 *
 *     Loading model weights took 14.9888 GB                                                    (to 0.7)
 *     Model loading took 14.9889 GiB and 5.3 seconds        (0.8; from 0.10 on "14.99 GiB memory and 5.3 seconds")
 *     Memory profiling results: total_gpu_memory=79.10GiB ... non_torch_memory=0.17GiB kv_cache_size=54.19GiB
 *     gpu_memory_utilization=0.90                                                              (0.6.3)
 *     a line each: total_gpu_memory 79.22GiB, model weights take 7.48GiB, non_torch_memory 3.58GiB,
 *     PyTorch activation peak memory 1.26GiB, available_kv_cache_memory 58.97GiB               (0.6.5)
 *     the current vLLM instance can use total_gpu_memory (79.10GiB) x gpu_memory_utilization (0.90) = 71.19GiB
 *     model weights take 14.99GiB; non_torch_memory takes 0.09GiB; PyTorch activation peak memory takes 1.23GiB;
 *     the rest of the memory reserved for KV Cache is 54.88GiB.
 *     Available KV cache memory: 54.88 GiB
 *     GPU KV cache size: 449,552 tokens          (to 0.6 "# GPU blocks: 28097, # CPU blocks: 2048", 0.7 "# cuda blocks: ...")
 *     Maximum concurrency for 131,072 tokens per request: 3.43x
 *     Estimated CUDA graph memory: 0.55 GiB total
 *     CUDA graph memory profiling is enabled (default since v0.21.0).
 *     Graph capturing finished in 20 secs, took 0.53 GiB
 *     Memory profiling takes 9.8 seconds. Total non KV cache memory: 16.31GiB; torch peak memory increase: 1.26GiB;
 *     non-torch forward increase memory: 0.06GiB; weights memory: 14.99GiB.                    (version 1, DEBUG)
 *     ValueError: To serve at least one request with the models's max seq len (32768), (4.50 GiB KV cache is needed,
 *     which is larger than the available KV cache memory (4.47 GiB).
 */
import type { Bytes } from "../../model/base/units.js";

export interface VllmLog {
  readonly weightsBytes?: Bytes;
  readonly activationBytes?: Bytes;
  readonly otherBytes?: Bytes;
  readonly cacheBytes?: Bytes;
  /** Cache of one request of the longest length, if vLLM refused to start. */
  readonly neededBytes?: Bytes;
  /** Of the device when vLLM refused to start, because its share is more. */
  readonly freeBytes?: Bytes;
  readonly graphBytes?: Bytes;
  /** Whether vLLM took CUDA graphs out of its share, as it does from 0.21 on; absent if the log does not mention it. */
  readonly countsGraphs?: true;
  readonly totalBytes?: Bytes;
  readonly utilization?: number;
  readonly cacheTokens?: number;
  readonly blockTokens?: number;
  readonly requestTokens?: number;
  readonly concurrency?: number;
}

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const SIZE = String.raw`(\d+(?:\.\d+)?)\s?(GiB|GB|MiB|MB)`;
const DIFFERENCE = `(-?${SIZE.slice(1)}`;

/** Later lines take precedence, so a log of several starts describes the last one. Empty if no such line is found. */
export function readVllmLog(text: string): VllmLog {
  const blocks =
    number(text, /# (?!CPU)\w+ blocks: (\d+)/gi) ?? number(text, /num_gpu_blocks[ =:]+(\d+)/g);
  const requestTokens =
    number(text, /Maximum concurrency for ([\d,]+) tokens per request/g) ??
    number(text, /max seq len \(([\d,]+)\)/g);
  const concurrency = number(text, /tokens per request: ~?([\d.]+)x/g);
  const blockTokens =
    number(text, /block_size[ =:']+(\d+)/g) ??
    blockOf(blocks, (requestTokens ?? 0) * (concurrency ?? 0));
  const peak = firstSize(text, `peak_torch_memory=${SIZE}`);
  const weights = firstSize(
    text,
    String.raw`model weights take\s+${SIZE}`,
    `weights memory: ${SIZE}`,
    `(?:Model loading|Loading (?:model )?weights) took ${SIZE}`,
  );
  const tokens = number(text, /(?:GPU )?KV cache size:? ([\d,]+) tokens/g);
  const found: { [Key in keyof VllmLog]: VllmLog[Key] | undefined } = {
    weightsBytes: weights,
    activationBytes:
      firstSize(
        text,
        String.raw`activation peak memory(?: takes)?\s+${SIZE}`,
        `torch peak memory increase: ${SIZE}`,
      ) ?? (peak === undefined || weights === undefined ? undefined : peak - weights),
    otherBytes: firstSize(
      text,
      String.raw`non_torch_memory(?: takes)?\s+${DIFFERENCE}`,
      `non_torch_memory=${DIFFERENCE}`,
      `non-torch forward increase memory: ${DIFFERENCE}`,
    ),
    // Negative if weights and activations leave nothing.
    cacheBytes:
      firstSize(
        text,
        `Available KV cache memory: ${DIFFERENCE}`,
        `reserved for KV Cache is ${DIFFERENCE}`,
        `kv_cache_size=${DIFFERENCE}`,
        String.raw`available_kv_cache_memory\s+${DIFFERENCE}`,
        String.raw`available KV cache memory \(${DIFFERENCE}\)`,
      ) ?? (/No available memory for the cache blocks/.test(text) ? 0 : undefined),
    neededBytes: firstSize(text, `${SIZE} KV cache is needed`),
    graphBytes: firstSize(
      text,
      String.raw`Graph capturing finished in [\d.]+ secs?, took ${SIZE}`,
      `Estimated CUDA graph memory: ${SIZE}`,
    ),
    countsGraphs: /Estimated CUDA graph memory|CUDA graph memory profiling is enabled/.test(text)
      ? true
      : undefined,
    freeBytes: firstSize(
      text,
      String.raw`Free memory on device[^(\n]*\(([\d.]+)/[\d.]+ (GiB)\) on startup is less`,
    ),
    totalBytes: firstSize(
      text,
      String.raw`Free memory on device[^(\n]*\([\d.]+/([\d.]+) (GiB)\) on startup is less`,
      String.raw`total_gpu_memory \(${SIZE}\)`,
      `total_gpu_memory=${SIZE}`,
      String.raw`total_gpu_memory\s+${SIZE}`,
    ),
    utilization: number(text, /gpu_memory_utilization[ =:'(]+(0?\.\d+|1(?:\.0+)?)/g),
    cacheTokens: tokens ?? (blocks === undefined ? undefined : blocks * blockTokens),
    blockTokens: blocks === undefined ? undefined : blockTokens,
    requestTokens,
    concurrency,
  };
  return Object.fromEntries(
    Object.entries(found).filter(([, value]) => value !== undefined),
  ) as VllmLog;
}

const USUAL_BLOCK = 16;

/** Versions that print the number of blocks also print how many requests fit, from which the size follows. */
function blockOf(blocks: number | undefined, tokens: number): number {
  const exact = blocks === undefined || blocks === 0 ? 0 : tokens / blocks;
  return [1, 8, 16, 32, 64, 128].find((size) => Math.abs(exact / size - 1) < 0.02) ?? USUAL_BLOCK;
}

/** The last figure of the first wording that occurs. */
function firstSize(text: string, ...patterns: readonly string[]): Bytes | undefined {
  for (const pattern of patterns) {
    const found = size(text, pattern);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

function size(text: string, pattern: string): Bytes | undefined {
  const [, figure, unit] = [...text.matchAll(new RegExp(pattern, "g"))].at(-1) ?? [];
  return figure === undefined ? undefined : Number(figure) * (unit?.startsWith("G") ? GIB : MIB);
}

function number(text: string, pattern: RegExp): number | undefined {
  const [, figure] = [...text.matchAll(pattern)].at(-1) ?? [];
  const value = Number(figure?.replaceAll(",", ""));
  return Number.isFinite(value) ? value : undefined;
}
