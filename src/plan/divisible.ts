/** Refuses a job that no library could run, instead of computing with fractions of heads. */

import { badUsage } from "../model/errors/errors.js";
import { cannotDivide } from "../model/errors/plan_errors.js";
import { matchesTarget } from "./blocks/target_names.js";
import { requireExpertRanks } from "./job/experts.js";
import type { PlanOptions, TrainOptions } from "./job/options.js";
import { dividesAttention } from "./serve/attention_cache.js";
import { requirePipeline, requireServed, requireTensorParallel } from "./serve/served_by.js";
import { isMoe, layerCount, readsText } from "./shape/layers.js";
import type { LayerShape, ModelShape } from "./shape/model_shape.js";
import type { Tape } from "./tape/tape.js";

/** vLLM gives some ranks one expert more than others (determine_expert_map); other libraries refuse to start. */
export function spreadsUnevenly(options: PlanOptions): boolean {
  return options.mode === "serve" && options.engine === "vllm";
}

/** @throws TidemarkError TM-E086 */
export function requireDivisible(model: ModelShape, options: PlanOptions): void {
  const { tensor, pipeline, expert } = options.mode === "train" ? options.parallelism : options;
  const layers = model.towers.flatMap((tower) => tower.layers);
  if (options.mode === "serve" && layers.some(({ layer }) => layer.kind === "tensors")) {
    throw cannotDivide(
      "a model that is planned by its tensors has no known cache of keys and values",
      "plan it with --train, or leave --serve out",
    );
  }
  if (options.mode === "serve") {
    requireServed(model, options);
    requireTensorParallel(model, options);
    requirePipeline(options);
  }
  for (const { layer } of layers) {
    const sharesHeads = options.mode === "train" || dividesAttention(model, options);
    requireLayer(layer, sharesHeads ? tensor : 1, expert, () => tensorWords(layers, options));
    requireKeyHeads(layer, sharesHeads ? tensor : 1, options, () => tensorWords(layers, options));
    if (!spreadsUnevenly(options) && expertsOf(layer) % expert !== 0) {
      throw cannotDivide(
        `${expertsOf(layer)} experts cannot be divided evenly over --ep ${expert}`,
        oneOf("--ep", divisorsOf(expertsOf(layer))),
      );
    }
  }
  if (expert > 1 && !layers.some(({ layer }) => expertsOf(layer) > 0)) {
    throw cannotDivide("the model has no experts to divide", "leave --ep out");
  }
  requireExpertRanks(options);
  requireStages(options);
  const count = model.towers.reduce((sum, tower) => sum + layerCount(tower), 0);
  if (pipeline > count) {
    throw cannotDivide(
      `${count} layers do not fill ${pipeline} pipeline stages`,
      `use --pp ${count} or less`,
    );
  }
  const pieces = options.mode === "train" ? pipeline * options.parallelism.virtualStages : pipeline;
  if (pipeline > 1 && pieces > count) {
    throw cannotDivide(
      `${count} layers do not fill ${pipeline} pipeline stages of ${pieces / pipeline} pieces each`,
      pipeline * 2 > count
        ? "use --schedule 1f1b"
        : `use --virtual-stages ${Math.floor(count / pipeline)} or less`,
    );
  }
  if (options.mode === "train" && options.parallelism.context > 1 && !readsText(model)) {
    throw cannotDivide("images have no sequence that --cp divides", "leave --cp out");
  }
  if (pipeline > 1 && layers.some(({ layer }) => isOfUnet(layer))) {
    throw cannotDivide(
      "the last layers of a UNet read the results of the first ones, and no library divides it into pipeline stages",
      "leave --pp out",
    );
  }
  if (pipeline > 1 && model.towers.length > 1) {
    throw cannotDivide(
      "a model of several towers is not planned in pipeline stages",
      "leave --pp out",
    );
  }
}

/**
 * PipelineEngine of DeepSpeed asserts that gradients are whole. torch's schedules refuse some numbers of microbatches
 * (Schedule1F1B, ScheduleInterleaved1F1B), DeepSpeed's does not. @throws TidemarkError TM-E086
 */
function requireStages(options: PlanOptions): void {
  if (options.mode !== "train" || options.parallelism.pipeline === 1) {
    return;
  }
  const { accumulation, parallelism } = options;
  const { pipeline, schedule, sharding } = parallelism;
  const { kind } = sharding;
  const rounds = Math.max(1, Math.floor(accumulation / pipeline));
  if (kind !== "zero-1" && schedule === "1f1b" && accumulation < pipeline) {
    throw cannotDivide(
      `the 1f1b schedule of torch takes at least as many microbatches as stages, and --accumulation ${accumulation} is less than --pp ${pipeline}`,
      `use --accumulation ${pipeline} or more, or --schedule gpipe`,
    );
  }
  if (kind !== "zero-1" && schedule === "interleaved" && accumulation % rounds !== 0) {
    throw cannotDivide(
      `the interleaved schedule of torch cannot divide ${accumulation} microbatches into ${rounds} rounds of one length for ${pipeline} stages`,
      `use --accumulation ${pipeline * rounds} or ${pipeline * (rounds + 1)}`,
    );
  }
  if (kind === "zero-2" || kind === "zero-3") {
    throw cannotDivide(
      "DeepSpeed has no pipelines in ZeRO-2 and ZeRO-3 (ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism)",
      "use --zero 1 or --fsdp, or leave --pp out",
    );
  }
}

function requireLayer(
  layer: LayerShape,
  tensor: number,
  expert: number,
  allowed: () => string,
): void {
  if (layer.kind === "tensors" && tensor > 1) {
    throw cannotDivide(
      "a model that is planned by its tensors has no known heads to divide",
      "leave --tp out",
    );
  }
  if (layer.kind !== "transformer" && layer.kind !== "patches") {
    return;
  }
  if (!dividesHeads(layer, tensor)) {
    throw cannotDivide(`${headsOf(layer)} heads cannot be divided over --tp ${tensor}`, allowed());
  }
  const experts = expertsOf(layer);
  if (experts > 0 && expert > experts) {
    throw cannotDivide(
      `${experts} experts cannot be divided over --ep ${expert}`,
      `use --ep ${experts} or less`,
    );
  }
}

/** "use --tp 2, 5 or 10": all numbers of devices that the heads of all layers allow. */
function tensorWords(layers: ModelShape["towers"][number]["layers"], options: PlanOptions): string {
  const most = Math.max(0, ...layers.map(({ layer }) => headsOf(layer) ?? 0));
  const allowed = Array.from({ length: most }, (_, index) => index + 1).filter(
    (tensor) =>
      tensor > 1 &&
      layers.every(
        ({ layer }) => dividesHeads(layer, tensor) && dividesKeyHeads(layer, tensor, options),
      ),
  );
  return oneOf("--tp", allowed);
}

/** "use --tp 2, 5 or 10" */
function oneOf(flag: string, allowed: readonly number[]): string {
  const last = allowed.at(-1);
  const others = allowed.slice(0, -1).join(", ");
  return last === undefined
    ? `leave ${flag} out`
    : `use ${flag} ${others === "" ? last : `${others} or ${last}`}`;
}

function divisorsOf(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1).filter(
    (each) => each > 1 && count % each === 0,
  );
}

function headsOf(layer: LayerShape): number | undefined {
  return layer.kind === "transformer" || layer.kind === "patches"
    ? layer.attention?.heads
    : undefined;
}

function dividesHeads(layer: LayerShape, tensor: number): boolean {
  return (headsOf(layer) ?? tensor) % tensor === 0;
}

function dividesKeyHeads(layer: LayerShape, tensor: number, options: PlanOptions): boolean {
  if (layer.kind !== "transformer" || layer.attention === null) {
    return true;
  }
  const { kvHeads, latent } = layer.attention;
  const isLlamaCpp = options.mode === "serve" && options.engine === "llama.cpp";
  return (
    kvHeads % tensor === 0 ||
    latent !== undefined ||
    isLlamaCpp ||
    (options.mode === "serve" && options.engine !== "transformers" && tensor % kvHeads === 0)
  );
}

/**
 * vLLM, SGLang and TGI keep copies of heads of keys where there are fewer of them than devices. In transformers and
 * torchtitan a part of a head ends in an error (issue 48307 of transformers; pull request 2577 of torchtitan).
 * @throws TidemarkError TM-E086
 */
function requireKeyHeads(
  layer: LayerShape,
  tensor: number,
  options: PlanOptions,
  allowed: () => string,
): void {
  if (
    layer.kind === "transformer" &&
    layer.attention !== null &&
    !dividesKeyHeads(layer, tensor, options)
  ) {
    const { kvHeads } = layer.attention;
    const library = options.mode === "serve" ? options.engine : options.library;
    const isCopied = library === "transformers" && tensor % kvHeads === 0;
    throw cannotDivide(
      `${kvHeads} heads of keys and values cannot be divided over --tp ${tensor}, and ${library} does not split a head`,
      `${allowed()}${isCopied ? "; vllm and sglang keep copies of heads" : ""}`,
    );
  }
}

function isOfUnet(layer: LayerShape): boolean {
  return (
    layer.kind === "unet-attention" || (layer.kind === "convolution" && layer.block === "unet")
  );
}

/** Experts of each layer that has any; 0 for others. */
export function expertsOf(layer: LayerShape): number {
  return layer.kind === "transformer" && layer.mlp !== null && isMoe(layer.mlp)
    ? layer.mlp.experts
    : 0;
}

const LOW = ".lora_A";

/**
 * As PEFT: an error if no layer has one of the names. @returns the names that no layer has
 * @throws TidemarkError TM-E002
 */
export function requireTargets(
  tape: Tape,
  { method, adapterTargets }: TrainOptions,
  family: string,
): string[] {
  if (method === "full" || typeof adapterTargets === "string") {
    return [];
  }
  const adapters = tape.parameters
    .filter(({ name }) => name.endsWith(LOW))
    .map(({ name }) => name.slice(0, -LOW.length));
  const unknown = adapterTargets.filter(
    (target) => !adapters.some((name) => matchesTarget(target, name, family)),
  );
  if (unknown.length === adapterTargets.length) {
    const layers = tape.parameters
      .filter(({ role, rows }) => role === "matrix" && rows > 1)
      .map(({ name }) => name);
    throw badUsage(
      `no layer of the model is named ${unknown.slice(0, 3).join(" or ")}`,
      `--lora-targets takes attention, all, or some of ${[...new Set(layers)].slice(0, 12).join(", ")}`,
    );
  }
  return unknown;
}
