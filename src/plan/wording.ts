/** Words of a plan that the screen and the page share. */
import { formatBytes, formatExactCount, formatShare } from "../model/base/numbers.js";
import type { PlanJson, PlanPartName } from "../model/documents/plan_document.js";
import { gpuNamed } from "./device/gpus.js";

/** "32 layers", or of each tower: "27 image and 62 decoder layers". */
export function layerWords({ layers, towers }: PlanJson["model"]): string {
  const counted =
    towers === undefined
      ? formatExactCount(layers)
      : towers.map((each) => `${formatExactCount(each.layers)} ${each.name}`).join(" and ");
  return `${counted} layers`;
}

/** "8.03 billion", "124 million", of parameters. */
export function largeCount(count: number): string {
  const millions = Number((count / 1e6).toPrecision(3));
  if (millions < 1000) {
    return `${(count / 1e6).toPrecision(3)} million`;
  }
  const billions = Number((count / 1e9).toPrecision(3));
  return `${billions < 1000 ? (count / 1e9).toPrecision(3) : formatExactCount(billions)} billion`;
}

/** The search ends at this batch and this length. */
export const LARGEST_SEARCHED = 2 ** 20;

/** "3,072", "1,048,576 or more". @param end the model's own limit, which is not exceeded */
export function mostOf(count: number, end = 0): string {
  return `${formatExactCount(count)}${count === LARGEST_SEARCHED && count !== end ? " or more" : ""}`;
}

/** "128 KiB per token", "2.81 MiB of states per sequence"; null if the model makes its output in one pass. */
export function cacheWords({
  kvBytesPerToken,
  windows = [],
  bytesPerSequence = 0,
}: NonNullable<PlanJson["serving"]>): string | null {
  const within = windows.map(
    ({ tokens, bytesPerToken }) =>
      `${formatBytes(bytesPerToken)} of it in layers that keep ${formatExactCount(tokens)} tokens`,
  );
  const words = [
    ...(kvBytesPerToken > 0
      ? [`${formatBytes(kvBytesPerToken)} per token${within.map((each) => `, ${each}`).join("")}`]
      : []),
    ...(bytesPerSequence > 0
      ? [`${formatBytes(bytesPerSequence)} per sequence at any length`]
      : []),
  ];
  return words.length === 0 ? null : words.join(" and ");
}

/** "room for 40,000 tokens: 4 sequences of this context, or one of 32,768 tokens". */
export function roomWords(
  {
    kvBytesPerToken,
    windows,
    bytesPerSequence = 0,
    kvTokens,
    maxConcurrency,
    longestContext,
    logConcurrency,
  }: NonNullable<PlanJson["serving"]>,
  { longestSequence }: Pick<PlanJson["model"], "longestSequence">,
): string {
  if (kvTokens === 0 && maxConcurrency === 0) {
    return "no room for a sequence";
  }
  const most =
    maxConcurrency === 0
      ? "no sequence"
      : `${mostOf(maxConcurrency)} ${maxConcurrency === 1 ? "sequence" : "sequences"}`;
  if (kvBytesPerToken === 0) {
    return `room for ${most}`;
  }
  const these = `${most} of this context${longestContext === 0 ? "" : `, or one of ${mostOf(longestContext, longestSequence)} tokens`}`;
  const tokens = `${formatExactCount(kvTokens)} tokens`;
  // With windows or states, how many tokens fit depends on how many sequences share the cache.
  const depends = bytesPerSequence > 0 || windows !== undefined;
  const log =
    logConcurrency === undefined
      ? ""
      : `; vLLM's log: ${depends ? `${tokens}, ` : ""}maximum concurrency ${logConcurrency.toFixed(2)}x at this context`;
  return `room for ${depends ? "" : `${tokens}: `}${these}${log}`;
}

/** "58.5 GiB measured (device), 56.1 GiB planned: 4 % below the measurement, within the interval" */
export function comparedWords(comparison: NonNullable<PlanJson["comparison"]>): string {
  const { kind, plannedBytes, measuredBytes, within } = comparison;
  return `${formatBytes(measuredBytes)} measured (${kind}), ${formatBytes(plannedBytes)} planned: ${errorWords(comparison)}, ${within ? "within" : "outside"} the interval`;
}

/** "4 % below the measurement"; of a measurement of nothing, the difference. */
export function errorWords({
  error,
  plannedBytes,
  measuredBytes,
}: Pick<NonNullable<PlanJson["comparison"]>, "error" | "plannedBytes" | "measuredBytes">): string {
  const share =
    measuredBytes > 0
      ? formatShare(Math.abs(error))
      : formatBytes(Math.abs(plannedBytes - measuredBytes));
  return `${share} ${plannedBytes < measuredBytes ? "below" : "above"} the measurement`;
}

/** Parts that AMD's libraries name otherwise. */
const HIP_NAMES: Partial<Record<PlanPartName, string>> = {
  "cuda context": "hip context",
  "cuda graphs": "hip graphs",
  nccl: "rccl",
};

/** A part as a reader knows it; documents have one name for all devices. */
export function partWords(part: PlanPartName, { name }: PlanJson["devices"]): string {
  return (isAmd(name) ? HIP_NAMES[part] : undefined) ?? part;
}

function isAmd(device: string): boolean {
  return gpuNamed(device)?.isAmd === true;
}

/** Where each figure of a plan can be read while the job runs. llama.cpp has no caching allocator and no torch. */
export function measuredAs({
  serving,
  devices,
}: Pick<PlanJson, "serving" | "devices">): Record<keyof PlanJson["memory"], string> {
  const [allocated, reserved] =
    serving?.engine === "llama.cpp"
      ? ["the buffers in llama.cpp's log", "the same buffers, and gaps between them"]
      : ["torch.cuda.max_memory_allocated()", "torch.cuda.max_memory_reserved()"];
  const tool = isAmd(devices.name) ? "amd-smi" : "nvidia-smi";
  return { allocated, reserved, device: `${tool}, this process` };
}

/**
 * Whether a plan fits, in words. A job whose interval includes the device's memory fits only probably, or probably does
 * not; an engine that gives its cache what is left takes no more than the device has, so that its cache decides.
 */
export function fitText({ fits, memory }: Pick<PlanJson, "fits" | "memory">): string {
  const { low, high } = memory.device;
  const isUnsure = low <= fits.deviceBytes && high > fits.deviceBytes;
  const sure = fits.fits ? "fits" : "does not fit";
  return isUnsure ? `probably ${sure}` : sure;
}
