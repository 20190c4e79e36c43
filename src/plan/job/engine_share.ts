/**
 * The share of the device that an engine uses, unless the job gives one.
 *
 * SGLang leaves out what it expects of a pass and of its CUDA graphs, in MiB: 512, 1.5 for each token of a pass, of which it
 * counts 2,048 at least, 2 for each sequence of its largest graph, and 128 for each device of the job; above 60 GiB of memory
 * 10,240 at least (`_handle_gpu_memory_settings` of server_args.py, since pull request 10975). 0.88 is its share where it
 * cannot read the memory of the device. Models that read images get a smaller one (`adjust_mem_fraction_for_vlm`).
 */
import { layerCount } from "../shape/layers.js";
import type { ModelShape } from "../shape/model_shape.js";
import type { Engine, ServeOptions } from "./options.js";

const SHARES: Readonly<Record<Exclude<Engine, "sglang">, number>> = {
  transformers: 1,
  vllm: 0.9,
  tgi: 1,
  "llama.cpp": 1,
};

type Served = Pick<ServeOptions, "engine" | "gpu" | "batchedTokens" | "tensor" | "pipeline">;

export function usualShare(model: ModelShape, options: Served): number {
  return options.engine === "sglang" ? shareOfSglang(model, options) : SHARES[options.engine];
}

/** "90 %", "83.4 %" */
export function shareWords(share: number): string {
  return `${Number((share * 100).toFixed(1))} %`;
}

const MIB = 2 ** 20;
/** GiB of a device, and the sequences of its largest graph with fewer than 4 devices, and with more. */
const LARGEST_GRAPHS = [
  [20, 8, 8],
  [35, 24, 80],
  [60, 32, 160],
  [160, 256, 512],
  [Number.POSITIVE_INFINITY, 512, 512],
] as const;

function shareOfSglang(
  model: ModelShape,
  { gpu, batchedTokens, tensor, pipeline }: Served,
): number {
  const memory = gpu.memoryBytes / MIB;
  const [, few = 512, many = 512] = LARGEST_GRAPHS.find(([below]) => memory < below * 1024) ?? [];
  const sequences = tensor < 4 ? few : many;
  const expected =
    512 + 1.5 * Math.max(batchedTokens, 2048) + 2 * sequences + 128 * tensor * pipeline;
  const reserved = memory > 60 * 1024 ? Math.max(expected, 10_240) : expected;
  const share = ((memory - reserved) / memory) * shareBesideImages(model);
  return Math.max(0, Math.round(share * 1000) / 1000);
}

/** 95 % beside an encoder as large as ViT-L, and a tenth less or more for each such size. */
function shareBesideImages({ towers, family }: ModelShape): number {
  const images = towers.find(({ name }) => name === "image");
  if (images === undefined || towers.length === 1) {
    return 1;
  }
  // Qwen's configurations name the layers `depth`, which SGLang does not read.
  const layers = family.startsWith("qwen") ? 24 : layerCount(images);
  const size = (layers * images.hidden ** 2) / (24 * 1024 ** 2);
  return 0.95 * Math.min(1.05, Math.max(0.8, 1 - 0.1 * (size - 1)));
}
