/** Compares planned with measured figures, part by part. */
import { formatBytesBriefly, formatExactCount } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type {
  PlanBlocksJson,
  PlanComparisonJson,
  PlanJson,
  PlanPartName,
} from "../../model/documents/plan_document.js";
import { blocksOfRequest } from "../serve/block_groups.js";
import type { VllmLog } from "../serve/vllm_log.js";

/** Groups that a snapshot's categories and a plan's parts both know. */
type Group = "weights" | "gradients" | "optimizer" | "activations" | "kv cache" | "other";

const PLANNED: Readonly<Record<PlanPartName, Group>> = {
  weights: "weights",
  adapters: "weights",
  gradients: "gradients",
  optimizer: "optimizer",
  activations: "activations",
  "head and loss": "activations",
  temporaries: "activations",
  communication: "other",
  nccl: "other",
  workspace: "other",
  "kv cache": "kv cache",
  "unused kv cache": "kv cache",
  fragmentation: "other",
  "cuda graphs": "other",
  "cuda context": "other",
};

const MEASURED: Readonly<Record<string, Group>> = {
  parameters: "weights",
  gradients: "gradients",
  "optimizer state": "optimizer",
  activations: "activations",
  temporaries: "activations",
  "kv cache": "kv cache",
};

const REASONS: Readonly<Record<Group, string>> = {
  weights:
    "a different type of weights (--dtype, --weights, --quantize), or layers that the configuration does not describe",
  gradients:
    "a different set of trained parameters (--method), or gradients that were freed before the peak",
  optimizer:
    "a different optimizer or type of states (--optimizer, --weights); states do not exist before the end of the first step",
  activations:
    "a different attention kernel or loss (--attention, --loss), checkpointing, or sequences shorter than --seq",
  "kv cache": "a different type or length of the cache (--kv-dtype, --context, --concurrency)",
  other: "communication buffers, workspaces of other libraries, or tensors of the program itself",
};

/** Why memory of a part is measured without its name. */
const UNNAMED = "tensors that were allocated before the history began, which no stack names";

export interface Measured {
  readonly file: string;
  readonly kind: "allocated" | "reserved" | "device";
  readonly bytes: Bytes;
  /** By the categories of `tidemark gpu`; empty if only the total is known. */
  readonly categories: ReadonlyMap<string, Bytes>;
}

export function comparePlan(plan: PlanJson, measured: Measured): PlanComparisonJson {
  const planned = plan.memory[measured.kind];
  const groups = new Map<Group, { planned: Bytes; measured: Bytes }>();
  const rowOf = (group: Group) => {
    const row = groups.get(group) ?? { planned: 0, measured: 0 };
    groups.set(group, row);
    return row;
  };
  const levels = ["allocated", "reserved", "device"];
  for (const { part, bytes, where } of plan.parts) {
    if (levels.indexOf(where) <= levels.indexOf(measured.kind)) {
      rowOf(PLANNED[part]).planned += bytes;
    }
  }
  for (const [category, bytes] of measured.categories) {
    rowOf(MEASURED[category] ?? "other").measured += bytes;
  }
  const parts =
    measured.categories.size === 0
      ? []
      : [...groups].map(([part, row]) => ({
          part,
          plannedBytes: row.planned,
          measuredBytes: row.measured,
          differenceBytes: row.planned - row.measured,
        }));
  return {
    file: measured.file,
    kind: measured.kind,
    parts: parts.sort((a, b) => b.measuredBytes - a.measuredBytes),
    plannedBytes: planned.bytes,
    measuredBytes: measured.bytes,
    error: measured.bytes > 0 ? planned.bytes / measured.bytes - 1 : 0,
    within: planned.low <= measured.bytes && measured.bytes <= planned.high,
    explanation: explain(parts, planned.bytes - measured.bytes),
  };
}

function explain(parts: PlanComparisonJson["parts"], difference: Bytes): string {
  const [largest] = [...parts].sort(
    (a, b) => Math.abs(b.differenceBytes) - Math.abs(a.differenceBytes),
  );
  if (largest === undefined) {
    return `${formatBytesBriefly(Math.abs(difference))} ${difference > 0 ? "less" : "more"} than planned; only the total was measured`;
  }
  // Memory of one part that the measurement assigns to another: a cuBLAS workspace made during the step.
  const opposite = parts.find(
    ({ part, differenceBytes }) =>
      part !== largest.part &&
      Math.abs(largest.differenceBytes + differenceBytes) < Math.abs(largest.differenceBytes) / 10,
  );
  if (opposite !== undefined) {
    const [from, to] =
      largest.differenceBytes > 0 ? [largest.part, opposite.part] : [opposite.part, largest.part];
    return `${formatBytesBriefly(Math.abs(opposite.differenceBytes))} planned as ${from} was measured as ${to}; likely ${to === "other" ? UNNAMED : "a workspace that was allocated during the step"}`;
  }
  const less = largest.differenceBytes > 0;
  const size = formatBytesBriefly(Math.abs(largest.differenceBytes));
  if (less && largest.part === "other") {
    return `other: ${size} less than planned; likely workspaces that were not allocated yet`;
  }
  const missing = parts
    .filter(({ plannedBytes, measuredBytes }) => plannedBytes > 0 && measuredBytes === 0)
    .map(({ part }) => part);
  if (largest.part === "other" && missing.length > 0) {
    return `other: ${size} more than planned, and no ${missing.join(" or ")} measured; likely ${UNNAMED}${lackingWords(parts, largest)}`;
  }
  return `${largest.part}: ${size} ${less ? "less" : "more"} than planned; likely ${REASONS[largest.part as Group]}`;
}

/** Whether the named parts are short of what has no name. */
function lackingWords(
  parts: PlanComparisonJson["parts"],
  unnamed: PlanComparisonJson["parts"][number],
): string {
  const lacking = parts.reduce((sum, each) => sum + Math.max(0, each.differenceBytes), 0);
  const isSame = Math.abs(lacking + unnamed.differenceBytes) < lacking / 10;
  return isSame ? `; the other parts lack as much, ${formatBytesBriefly(lacking)}` : "";
}

/** Compares vLLM's figures with the plan for the same engine; null if the log has no figure of a part. */
export function compareVllm(plan: PlanJson, log: VllmLog, file: string): PlanComparisonJson | null {
  const plannedOf = (...names: PlanPartName[]): Bytes =>
    plan.parts.reduce((sum, { part, bytes }) => sum + (names.includes(part) ? bytes : 0), 0);
  const rows: [string, Bytes, Bytes | undefined][] = [
    ["weights", plannedOf("weights"), log.weightsBytes],
    ["activation peak", plannedOf("temporaries"), log.activationBytes],
    ["outside PyTorch", plannedOf("cuda context") + outside(plan), log.otherBytes],
    ["CUDA graphs", plannedOf("cuda graphs"), log.graphBytes],
    [CACHE, plannedOf("kv cache", "unused kv cache"), cacheOf(plan, log)],
  ];
  const parts = rows.flatMap(([part, planned, measured]) =>
    measured === undefined
      ? []
      : [
          {
            part,
            plannedBytes: planned,
            measuredBytes: Math.round(measured),
            differenceBytes: Math.round(planned - measured),
          },
        ],
  );
  // vLLM prints no total: the cache, which is what the other parts leave, is compared with the planned one.
  const main = parts.find(({ part }) => part === CACHE) ?? parts[0];
  if (main === undefined) {
    return null;
  }
  const { plannedBytes, measuredBytes } = main;
  const error = measuredBytes > 0 ? plannedBytes / measuredBytes - 1 : 0;
  return {
    file,
    kind: main.part,
    parts,
    plannedBytes,
    measuredBytes,
    error,
    within: measuredBytes > 0 && Math.abs(error) <= CACHE_TOLERANCE,
    explanation: explainVllm(plan, log, parts),
  };
}

const CACHE = "KV cache";

/** Versions that print only the number of blocks or tokens: with the plan's bytes of a token. */
function cacheOf({ serving }: PlanJson, log: VllmLog): Bytes | undefined {
  const { cacheBytes, cacheTokens } = log;
  if (cacheBytes !== undefined || cacheTokens === undefined || serving === undefined) {
    return cacheBytes;
  }
  const { blocks } = serving;
  return blocks === undefined || blocks.tokens === 0
    ? cacheTokens * serving.kvBytesPerToken
    : blocksInLog(blocks, log) * blocks.bytes;
}

/** Versions count tokens of a group, or those of as many requests as fit: the concurrency tells which. */
function blocksInLog(
  blocks: PlanBlocksJson,
  { cacheTokens = 0, requestTokens = 0, concurrency = 0 }: VllmLog,
): number {
  const requests = cacheTokens / requestTokens;
  if (requestTokens > 0 && Math.abs(requests - concurrency) <= 0.006 + concurrency / 1000) {
    return requests * blocksOfRequest(blocks, requestTokens);
  }
  const groups = blocks.groups.reduce((sum, { count }) => sum + count, 0);
  return (cacheTokens / blocks.tokens) * groups;
}

/** Weights are planned to a percent: a log whose weights differ by more is of another job. */
const WEIGHTS_TOLERANCE = 0.15;

/** A sentence if the log is of another model, type of weights or number of devices. */
export function otherJob({ parts = [] }: PlanComparisonJson): string[] {
  const weights = parts.find(({ part }) => part === "weights");
  if (
    weights === undefined ||
    Math.abs(weights.differenceBytes) <= WEIGHTS_TOLERANCE * weights.measuredBytes
  ) {
    return [];
  }
  return [
    `the log has ${formatBytesBriefly(weights.measuredBytes)} of weights on a device, the plan ${formatBytesBriefly(weights.plannedBytes)}: it is of another model, --tp, --pp or --quantize`,
  ];
}

/** A peak that differs from the plan by this factor is of another job: intervals are far narrower. */
const OTHER_PROGRAM = 10;

/** A sentence if what was measured is of another size altogether. */
export function otherProgram({ measuredBytes, plannedBytes }: PlanComparisonJson): string[] {
  const isNear =
    measuredBytes * OTHER_PROGRAM >= plannedBytes && plannedBytes * OTHER_PROGRAM >= measuredBytes;
  return isNear
    ? []
    : [
        `${formatBytesBriefly(measuredBytes)} were measured, and the plan has ${formatBytesBriefly(plannedBytes)}: the measurement is probably of another program, or was made outside of its training steps`,
      ];
}

/** The remainder for the cache contains the errors of all other parts. */
const CACHE_TOLERANCE = 0.08;

function outside({ parts }: PlanJson): Bytes {
  return parts.reduce((sum, { part, bytes }) => sum + (part === "nccl" ? bytes : 0), 0);
}

/** Requests that the planned groups of layers hold in the cache of the log. */
function concurrencyWords({ serving }: PlanJson, log: VllmLog): string[] {
  const { cacheBytes = 0, requestTokens, concurrency } = log;
  if (serving?.blocks === undefined || requestTokens === undefined || concurrency === undefined) {
    return [];
  }
  const { blocks } = serving;
  const held = Math.floor(
    (cacheBytes > 0 ? cacheBytes : (cacheOf({ serving } as PlanJson, log) ?? 0)) / blocks.bytes,
  );
  const planned = held / blocksOfRequest(blocks, requestTokens);
  const requests = `${formatExactCount(requestTokens)} tokens`;
  return Math.abs(planned / concurrency - 1) < 0.01
    ? [`maximum concurrency ${concurrency}x for ${requests}, as the plan has in the same cache`]
    : [
        `vLLM's maximum concurrency for ${requests} is ${concurrency}x, that of the plan in the same cache ${planned.toFixed(2)}x: a different --batched-tokens (the plan has ${blocks.batchedTokens}) or --kv-dtype`,
      ];
}

/** The environment variable VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS decides, whose default is 1 since vLLM 0.21. */
function graphWords({ parts }: PlanJson, log: VllmLog): string[] {
  const graphs = parts.find(({ part }) => part === "cuda graphs");
  const isStarted = (log.cacheBytes ?? log.cacheTokens ?? 0) > 0;
  return graphs === undefined || !isStarted || log.countsGraphs === true
    ? []
    : [
        `the log does not mention that vLLM took CUDA graphs out of its share, which is the default since 0.21: the plan's cache is smaller by their ${formatBytesBriefly(graphs.bytes)}`,
      ];
}

/** What the log itself explains: another type or division of the cache makes it half or twice as large. */
const OF_THE_LOG = 0.03;

function explainVllm(plan: PlanJson, log: VllmLog, parts: PlanComparisonJson["parts"]): string {
  const { serving } = plan;
  const sentences: string[] = [];
  if (log.cacheBytes === undefined && log.cacheTokens !== undefined) {
    sentences.push(
      `the log gives the cache as ${formatExactCount(log.cacheTokens)} tokens${log.blockTokens === undefined ? "" : `, in blocks of ${log.blockTokens}`}; its bytes are with the plan's ${serving?.kvBytesPerToken ?? 0} B per token`,
    );
  }
  if (log.cacheBytes !== undefined && log.cacheBytes <= 0) {
    sentences.push("vLLM had no memory left for its cache: raise --gpu-memory-utilization");
  } else if (log.neededBytes !== undefined && log.requestTokens !== undefined) {
    sentences.push(
      `vLLM did not start: one request of ${log.requestTokens} tokens needs ${formatBytesBriefly(log.neededBytes)} of cache; lower --max-model-len`,
    );
  }
  if (
    serving !== undefined &&
    log.cacheBytes !== undefined &&
    log.cacheTokens !== undefined &&
    log.cacheTokens > 0
  ) {
    const perToken = log.cacheBytes / log.cacheTokens;
    const deviation = Math.abs(perToken / serving.kvBytesPerToken - 1);
    const { blocks } = serving;
    const groups = blocks?.groups.reduce((sum, { count }) => sum + count, 0) ?? 1;
    const inGroups =
      groups > 1 &&
      blocks !== undefined &&
      Math.abs((blocksInLog(blocks, log) * blocks.bytes) / log.cacheBytes - 1) < 0.01;
    sentences.push(
      inGroups
        ? `${Math.round(perToken)} B of cache per token, as planned: vLLM has ${groups} groups of layers, whose blocks of ${blocks.tokens} tokens take ${formatBytesBriefly(blocks.bytes)} each`
        : deviation < 0.01
          ? `${serving.kvBytesPerToken} B of cache per token, as planned`
          : `vLLM's cache takes ${Math.round(perToken)} B per token, the plan ${serving.kvBytesPerToken} B: ${deviation < OF_THE_LOG ? "the log rounds its figures, or has the memory of one rank and the tokens of another" : "a different --kv-dtype or --tp, or layers with windows that share pages"}`,
    );
  }
  sentences.push(...concurrencyWords(plan, log));
  if (
    log.utilization !== undefined &&
    serving !== undefined &&
    Math.abs(log.utilization - serving.utilization) > 0.005
  ) {
    sentences.push(
      `vLLM ran with gpu_memory_utilization ${log.utilization}, the plan has --utilization ${serving.utilization}`,
    );
  }
  sentences.push(...graphWords(plan, log));
  if (
    log.totalBytes !== undefined &&
    Math.abs(log.totalBytes / plan.devices.memoryBytes - 1) > 0.02
  ) {
    sentences.push(
      `the device has ${formatBytesBriefly(log.totalBytes)}, that of the plan ${formatBytesBriefly(plan.devices.memoryBytes)}`,
    );
  }
  const [largest] = parts
    .filter(({ part }) => part !== CACHE)
    .sort((a, b) => Math.abs(b.differenceBytes) - Math.abs(a.differenceBytes));
  if (largest !== undefined) {
    sentences.push(
      `largest difference other than the cache: ${largest.part}, ${formatBytesBriefly(Math.abs(largest.differenceBytes))} ${largest.differenceBytes > 0 ? "less" : "more"} than planned`,
    );
  }
  return sentences.join("; ");
}
