/**
 * How many tokens engines compute in one pass, and how many sequences they run at once, if they are not told.
 *
 * | engine | device | tokens of a pass | sequences |
 * |---|---|---|---|
 * | vLLM's server (`EngineArgs.get_batch_defaults`; pull request 17885) | 70 GiB and more, no A100 | 8,192 | 1,024 |
 * | | others | 2,048 | 256 |
 * | SGLang (`chunked_prefill_size` of server_args.py) | below 35, 60, 160 GiB, more | 2,048, 4,096, 8,192, 16,384 | by its cache |
 *
 * vLLM's Python class LLM has twice and four times these tokens: 16,384 and 8,192 ({@link offlineTokens}). vLLM before 0.9 has the larger figures for
 * devices named H100 and H200 alone. A pass without a cache is not cut: it has at least one whole text.
 */
import { badUsage } from "../../model/errors/errors.js";
import type { Gpu } from "../device/gpus.js";
import type { Engine, ServeOptions } from "./options.js";

export type BatchLimits = Pick<ServeOptions, "batchedTokens" | "maxSequences">;

const GIB = 2 ** 30;
const USUAL_TOKENS = 8192;
/** For which engines are assumed to sample at once, where they publish no figure. */
const USUAL_SEQUENCES = 256;

/** "a device of 70 GiB or more that is no A100", which vLLM serves in larger batches. */
export function isLargeForVllm({ name, memoryBytes }: Gpu): boolean {
  return memoryBytes >= 70 * GIB && !/a100/i.test(name);
}

function defaultsOf(engine: Engine, gpu: Gpu): BatchLimits {
  if (engine === "vllm") {
    return isLargeForVllm(gpu)
      ? { batchedTokens: 8192, maxSequences: 1024 }
      : { batchedTokens: 2048, maxSequences: 256 };
  }
  const steps = [
    [35, 2048],
    [60, 4096],
    [160, 8192],
  ] as const;
  const step = steps.find(([below]) => gpu.memoryBytes < below * GIB);
  const tokens = engine === "sglang" ? (step?.[1] ?? 16_384) : USUAL_TOKENS;
  return { batchedTokens: tokens, maxSequences: USUAL_SEQUENCES };
}

/**
 * @throws TidemarkError TM-E002 for more sequences than tokens, as vLLM (`SchedulerConfig`)
 * @param context tokens of the longest sequence.
 * @param isWhole without a cache
 */
export function batchLimits(
  { engine, gpu }: Pick<ServeOptions, "engine" | "gpu">,
  { context, isWhole }: { readonly context: number; readonly isWhole: boolean },
  given: Partial<BatchLimits> = {},
): BatchLimits {
  const usual = defaultsOf(engine, gpu);
  if (engine !== "vllm") {
    return { ...usual, ...given };
  }
  const most = given.maxSequences ?? usual.maxSequences;
  const batchedTokens = given.batchedTokens ?? cut(usual.batchedTokens, { context, isWhole, most });
  if (most > batchedTokens && given.maxSequences !== undefined) {
    throw badUsage(
      `vllm refuses --max-num-seqs ${most} with fewer tokens per pass (${batchedTokens}): each sequence has one at least`,
      `add --batched-tokens ${most}`,
    );
  }
  return { batchedTokens, maxSequences: Math.min(most, batchedTokens) };
}

/** A pass has no more tokens than its sequences, and without a cache at least one whole text. */
function cut(
  tokens: number,
  { context, isWhole, most }: { context: number; isWhole: boolean; most: number },
): number {
  return Math.min(most * context, isWhole ? Math.max(context, tokens) : tokens);
}

/** Tokens of a pass in vLLM's Python class LLM, if they are not given. */
export function offlineTokens(
  { gpu, context, isWhole }: { gpu: Gpu; context: number; isWhole: boolean },
  given: Partial<BatchLimits> = {},
): number {
  const most = given.maxSequences ?? defaultsOf("vllm", gpu).maxSequences;
  return (
    given.batchedTokens ?? cut(isLargeForVllm(gpu) ? 16_384 : 8192, { context, isWhole, most })
  );
}
