/** The memory that an engine gives to its cache: what is left of its share of the device. */
import { formatBytes } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type {
  PlanBlocksJson,
  PlanPartJson,
  PlanPartName,
} from "../../model/documents/plan_document.js";
import { figureOf } from "../device/allocator.js";
import { shareWords } from "../job/engine_share.js";
import type { ServeOptions } from "../job/options.js";

export interface CacheRoom {
  readonly bytes: Bytes;
  /** The same, negative where the model does not fit. */
  readonly left: Bytes;
  /** How these bytes come about. */
  readonly formula: string;
  readonly tokens: number;
  /** Of vLLM, unless its layers differ in size. */
  readonly blocks?: PlanBlocksJson;
  /** That so many sequences take at once, one of them in its prefill. */
  bytesOf(tokens: number, sequences: number): Bytes;
  /** Sequences of `tokens` that it holds at once; Infinity for a model without a cache. */
  sequencesOf(tokens: number): number;
}

export interface Share {
  /** Negative where there is none. */
  readonly left: Bytes;
  /** What is left if the other parts take most, and least. Not negative. */
  readonly low: Bytes;
  readonly high: Bytes;
  readonly formula: string;
}

/** TGI_WIGGLE_ROOM of text-generation-inference: what it leaves of the free memory. */
const TGI_CACHE_SHARE = 0.95;
/**
 * What SGLang measures as used before it loads weights: its fraction is of the memory that is then free
 * (`profile_max_num_token` of model_runner.py, whose argument is the free memory of `init_torch_distributed`).
 */
const BEFORE_WEIGHTS: readonly PlanPartName[] = ["cuda context", "nccl"];

/** @param others all parts but the cache. The cache has the errors of the parts that it leaves room for, in reverse. */
export function shareOf(
  { engine, gpu, utilization }: ServeOptions,
  others: readonly PlanPartJson[],
  known: boolean,
): Share {
  const isSglang = engine === "sglang";
  const used = figureOf(
    others.filter(({ part }) => BEFORE_WEIGHTS.includes(part)),
    "device",
    { known },
  );
  const taken = figureOf(
    isSglang ? others.filter(({ part }) => part === "weights") : others,
    "device",
    {
      known,
    },
  );
  const factor = engine === "tgi" ? TGI_CACHE_SHARE : 1;
  const leftOf = (kind: "bytes" | "low" | "high"): Bytes =>
    factor * (utilization * (gpu.memoryBytes - (isSglang ? used[kind] : 0)) - taken[kind]);
  const memory = isSglang
    ? `${formatBytes(gpu.memoryBytes - used.bytes)} that are free before weights are loaded`
    : formatBytes(gpu.memoryBytes);
  const left = `${shareWords(utilization)} of ${memory}, less ${formatBytes(taken.bytes)} of ${isSglang ? "weights" : "all other parts"}`;
  return {
    left: leftOf("bytes"),
    low: Math.max(0, leftOf("high")),
    high: Math.max(0, leftOf("low")),
    formula: factor === 1 ? left : `${factor * 100} % of (${left})`,
  };
}
