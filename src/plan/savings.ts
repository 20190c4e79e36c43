/**
 * What each technique would save. The plan is made again with the technique's options, by the same steps as that of the
 * command line, so that adding the options of a row to the command gives exactly its figure.
 */
import { formatBytes } from "../model/base/numbers.js";
import type { PlanSavingJson } from "../model/documents/plan_document.js";
import { type PlanRequest, planOptions, withJobConfig } from "./defaults.js";
import { supportsFlash } from "./device/gpus.js";
import { isBlockType } from "./job/cache_types.js";
import type { Engine, PlanOptions, ServeOptions, TrainOptions } from "./job/options.js";
import { unlessRefused } from "./refusal.js";
import { hasFp8Weights, isPaged } from "./serve/served_by.js";
import type { ModelShape } from "./shape/model_shape.js";
import { flagsOf, type PlanWords, requestOf } from "./words.js";

interface Technique<Options> {
  readonly technique: string;
  readonly cost: string;
  /** The line to change in the program. */
  readonly program: string | ((options: Options) => string);
  /** The options that apply it; null if it is already in use or does not apply. */
  readonly words: (options: Options, model: ModelShape) => PlanWords | null;
  /** Other options take the defaults of the new method instead of staying as they are. */
  readonly isMethod?: boolean;
}

const TRAINING: readonly Technique<TrainOptions>[] = [
  {
    technique: "activation checkpointing",
    cost: "about a third more computation",
    program: "model.gradient_checkpointing_enable()",
    words: (job) => (job.checkpointing === "full" ? null : { checkpointing: "full" }),
  },
  {
    technique: "selective checkpointing",
    cost: "about 10 % more computation",
    program: "torch.utils.checkpoint with a context_fn",
    words: (job) => (job.checkpointing === "none" ? { checkpointing: "selective" } : null),
  },
  {
    technique: "activation offloading",
    cost: "host memory, PCIe traffic in both passes",
    program: "torch.autograd.graph.save_on_cpu",
    words: (job) =>
      job.activationOffload ? null : { checkpointing: "full", offloadActivations: true },
  },
  {
    technique: "FlashAttention kernel",
    cost: "none",
    program: 'attn_implementation="flash_attention_2"',
    words: (job) =>
      job.attention === "flash" || !supportsFlash(job) ? null : { attention: "flash" },
  },
  {
    technique: "fused linear cross entropy",
    cost: "none known; needs a fused kernel",
    program: "Liger's LigerFusedLinearCrossEntropyLoss, Cut Cross-Entropy",
    words: (job) => (job.loss === "fused" ? null : { loss: "fused" }),
  },
  {
    technique: "chunked cross entropy",
    cost: "none",
    program: "torchtune's CEWithChunkedOutputLoss",
    words: (job) => (job.loss === "full" ? { loss: "chunked" } : null),
  },
  {
    technique: "torch.compile",
    cost: "compiles for minutes; recompiles for new shapes",
    program: "torch.compile(model)",
    words: (job) => (job.compiled ? null : { compile: true }),
  },
  {
    technique: "8-bit AdamW",
    cost: "slightly noisier updates",
    program: 'optim="adamw_bnb_8bit"',
    words: (job) =>
      job.optimizer.startsWith("adam") && !job.optimizer.includes("8")
        ? { optimizer: "adamw8bit" }
        : null,
  },
  {
    technique: "paged 8-bit AdamW",
    cost: "slower when pages move; uses host memory",
    program: 'optim="paged_adamw_8bit"',
    words: (job) => (job.optimizer.startsWith("adam") ? { optimizer: "paged-adamw8bit" } : null),
  },
  {
    technique: "optimizer step in the backward pass",
    cost: "no gradient accumulation, no clipping by global norm",
    program: "register_post_accumulate_grad_hook",
    words: (job) =>
      job.optimizerInBackward || job.accumulation > 1 ? null : { optimizerInBackward: true },
  },
  {
    technique: "16-bit weights without an fp32 copy",
    cost: "small updates may be rounded away",
    program: "torch_dtype=torch.bfloat16",
    words: (job) =>
      job.method === "full" && job.fp32Weights && job.dtype !== "fp32"
        ? { weights: "16bit" }
        : null,
  },
  {
    technique: "16-bit weights without an fp32 copy",
    cost: "none known: adapters stay in fp32",
    program: "no prepare_model_for_kbit_training",
    words: (job) =>
      job.method === "qlora" && job.fp32Weights && job.dtype !== "fp32"
        ? { weights: "16bit" }
        : null,
  },
  {
    technique: "16-bit weights without an fp32 copy",
    cost: "none known: adapters stay in fp32",
    program: "torch_dtype=torch.bfloat16",
    words: (job) =>
      job.method === "lora" && job.fp32Weights && job.dtype !== "fp32"
        ? { weights: "16bit" }
        : null,
  },
  {
    technique: "16-bit weights and products",
    cost: "small updates may be rounded away",
    program: "torch_dtype=torch.bfloat16",
    words: (job) =>
      job.dtype === "fp32" ? { dtype: job.gpu.old ? "fp16" : "bf16", weights: "16bit" } : null,
  },
  {
    technique: "LoRA",
    cost: "trains only a small share of the weights",
    program: "peft.LoraConfig",
    isMethod: true,
    words: (job) => (job.method === "full" ? { method: "lora" } : null),
  },
  {
    technique: "QLoRA, nf4",
    cost: "weights rounded to 4 bits; dequantized in each pass",
    program: "BitsAndBytesConfig(load_in_4bit=True)",
    isMethod: true,
    words: (job) => (job.method === "qlora" ? null : { method: "qlora", quantize: "nf4" }),
  },
  {
    technique: "half the batch, twice the accumulation",
    cost: "more and smaller kernels",
    program: "per_device_train_batch_size",
    words: (job) =>
      job.batch > 1
        ? { batch: Math.ceil(job.batch / 2), accumulation: job.accumulation * 2 }
        : null,
  },
  {
    technique: "twice as many devices",
    cost: "more communication",
    program: "",
    words: ({ parallelism: { sharding } }) =>
      sharding.kind.startsWith("zero")
        ? { zero: Number(sharding.kind.at(-1)), devices: sharding.devices * 2 }
        : sharding.kind === "fsdp"
          ? { fsdp: sharding.devices * 2 }
          : null,
  },
  {
    technique: "FSDP",
    cost: "communication in each layer",
    program: "torch.distributed.fsdp.fully_shard",
    words: ({ parallelism: { sharding } }) =>
      sharding.kind === "ddp" ? { fsdp: Math.max(2, sharding.devices) } : null,
  },
];

/** Options of the engines' own servers; "" where one has none. */
const ENGINE_OPTIONS: Readonly<Record<Engine, ServerOptions>> = {
  transformers: {
    cache: 'cache_implementation="quantized", cache_config={"backend": "hqq", "nbits": 8}',
    fp8: "FineGrainedFP8Config()",
    tensor: () => 'tp_plan="auto"',
    noGraphs: "",
  },
  vllm: {
    cache: "--kv-cache-dtype fp8",
    fp8: "--quantization fp8",
    tensor: (devices) => `--tensor-parallel-size ${devices}`,
    noGraphs: "--enforce-eager",
  },
  sglang: {
    cache: "--kv-cache-dtype fp8_e5m2",
    fp8: "--quantization fp8",
    tensor: (devices) => `--tp-size ${devices}`,
    noGraphs: "--disable-cuda-graph",
  },
  tgi: {
    cache: "--kv-cache-dtype fp8_e5m2",
    fp8: "--quantize fp8",
    tensor: (devices) => `--num-shard ${devices}`,
    noGraphs: "--cuda-graphs 0",
  },
  "llama.cpp": {
    cache: "-ctk q8_0 -ctv q8_0",
    fp8: "",
    tensor: () => "--split-mode tensor",
    noGraphs: "",
  },
};

interface ServerOptions {
  readonly cache: string;
  readonly fp8: string;
  readonly tensor: (devices: number) => string;
  readonly noGraphs: string;
}

/** transformers' QuantizedCache has integers, llama.cpp blocks. */
const CACHE_IN_8_BITS: Readonly<Partial<Record<Engine, "int8" | "q8_0">>> = {
  transformers: "int8",
  "llama.cpp": "q8_0",
};

const isFourBit = ({ quantize }: ServeOptions): boolean =>
  quantize === "int4" || quantize?.startsWith("nf4") === true;

const isLlamaCpp = ({ engine }: ServeOptions): boolean => engine === "llama.cpp";

const SERVING: readonly Technique<ServeOptions>[] = [
  {
    technique: "cache in 8 bits",
    cost: "slightly lower quality in long contexts",
    program: ({ engine }) => ENGINE_OPTIONS[engine].cache,
    words: (job, model) =>
      job.kvDType === "fp8" ||
      job.kvDType === "int8" ||
      isBlockType(job.kvDType) ||
      !(
        isLlamaCpp(job) ||
        isPaged(model) ||
        (job.engine !== "tgi" && job.engine !== "transformers")
      )
        ? null
        : { kvDtype: CACHE_IN_8_BITS[job.engine] ?? "fp8" },
  },
  {
    technique: "weights in fp8",
    cost: "faster only on Ada, Hopper and later",
    program: ({ engine }) => ENGINE_OPTIONS[engine].fp8,
    words: (job, model) =>
      job.quantize === null && !isLlamaCpp(job) && hasFp8Weights(model)
        ? { quantize: "fp8" }
        : null,
  },
  {
    technique: "weights in int4",
    cost: "lower quality; needs a quantized checkpoint",
    program: (job) => (isLlamaCpp(job) ? "a Q4_0 file" : "an AWQ or GPTQ checkpoint"),
    words: (job, model) =>
      isFourBit(job) || !(isLlamaCpp(job) || isPaged(model)) ? null : { quantize: "int4" },
  },
  {
    technique: "weights in nf4",
    cost: "lower quality; dequantized in each pass",
    program: "BitsAndBytesConfig(load_in_4bit=True)",
    // For models that AWQ and GPTQ are not made for: it replaces linear layers of any class of transformers and diffusers.
    words: (job, model) =>
      isFourBit(job) || job.engine !== "transformers" || isPaged(model)
        ? null
        : { quantize: "nf4" },
  },
  {
    technique: "twice the tensor parallelism",
    cost: "communication in each layer",
    program: ({ engine, tensor }) => ENGINE_OPTIONS[engine].tensor(tensor * 2),
    words: (job) => ({ tp: job.tensor * 2 }),
  },
  {
    technique: "no CUDA graphs",
    cost: "slower decoding",
    program: ({ engine }) => ENGINE_OPTIONS[engine].noGraphs,
    words: (job) => (job.cudaGraphs ? { cudaGraphs: false } : null),
  },
];

/** What a plan takes, and what it serves. */
export interface PlanFigures {
  readonly deviceBytes: number;
  /** Of these, the allocator's gaps, which come and go with the sizes of tensors. */
  readonly gapBytes: number;
  /** Of engines that give their cache all that is left; absent for others. */
  readonly room?: { readonly tokens: number; readonly sequences: number };
}

export type FiguresOf = (model: ModelShape, options: PlanOptions) => PlanFigures;

/** Smaller savings, as a share of the plan, are left out. */
const LEAST = 1 / 1000;

/** Largest saving first; techniques that save nothing are left out. Of engines that fill their share: room in the cache. */
export function savingsOf(
  model: ModelShape,
  request: PlanRequest,
  figuresOf: FiguresOf,
): PlanSavingJson[] {
  const options = planOptions(model, request);
  const now = figuresOf(model, options);
  const techniques =
    options.mode === "train"
      ? TRAINING.map((each) => stated(each, options, model))
      : SERVING.map((each) => stated(each, options, model));
  return techniques
    .flatMap(({ technique, cost, program, words, isMethod }) => {
      const chosen =
        words === null
          ? null
          : isMethod === true
            ? words
            : unlessRefused(() => pinned(model, request, words));
      const after =
        chosen === null
          ? null
          : unlessRefused(() => figuresOf(model, planOptions(model, requestWith(request, chosen))));
      if (chosen === null || after === null) {
        return [];
      }
      const bytes = now.deviceBytes - after.deviceBytes;
      const row: PlanSavingJson = {
        technique,
        bytes: Math.max(0, Math.round(bytes)),
        cost: `${cost}${gapWords(bytes, now.gapBytes - after.gapBytes)}`,
        change: `${flagsOf(chosen)}${replacedFlag(request, chosen)}`,
        program,
      };
      if (now.room === undefined || after.room === undefined) {
        return bytes > now.deviceBytes * LEAST ? [row] : [];
      }
      const addedTokens = after.room.tokens - now.room.tokens;
      const addedSequences = after.room.sequences - now.room.sequences;
      return addedTokens > now.room.tokens * LEAST ? [{ ...row, addedTokens, addedSequences }] : [];
    })
    .sort((a, b) => (b.addedTokens ?? 0) - (a.addedTokens ?? 0) || b.bytes - a.bytes);
}

/** Of a saving, the smallest share of gaps that is named. */
const NAMED_SHARE = 0.05;

/** Names the part of a saving that is less fragmentation, and not smaller tensors. */
function gapWords(bytes: number, gapBytes: number): string {
  return bytes > 0 && gapBytes > bytes * NAMED_SHARE
    ? `; ${formatBytes(gapBytes)} of it is less fragmentation`
    : "";
}

function stated<Options>(technique: Technique<Options>, options: Options, model: ModelShape) {
  const { program, words } = technique;
  return {
    ...technique,
    program: typeof program === "string" ? program : program(options),
    words: words(options, model),
  };
}

/** Of two flags that divide the same job, the command takes only one. */
function replacedFlag({ sharding }: PlanRequest, { fsdp }: PlanWords): string {
  return fsdp !== undefined && sharding?.kind === "ddp" && (sharding.devices ?? 1) > 1
    ? ` instead of --ddp ${sharding.devices}`
    : "";
}

function requestWith(request: PlanRequest, words: PlanWords): PlanRequest {
  const changes = requestOf({ ...words, ...(request.mode === "serve" ? { serve: true } : {}) });
  return withJobConfig(changes, request);
}

/** Options whose defaults depend on others: a technique leaves them as they are, which takes flags of their own. */
const DEPENDENT: readonly ((options: TrainOptions) => PlanWords)[] = [
  ({ dtype }) => ({ dtype }),
  ({ fp32Weights }) => ({ weights: fp32Weights ? "fp32" : "16bit" }),
  ({ checkpointing }) => ({ checkpointing }),
  ({ loss }) => ({ loss }),
];

function pinned(model: ModelShape, request: PlanRequest, words: PlanWords): PlanWords {
  const before = planOptions(model, request);
  if (before.mode !== "train") {
    return words;
  }
  let all = words;
  for (const setting of DEPENDENT) {
    const after = planOptions(model, requestWith(request, all)) as TrainOptions;
    const kept = setting(before);
    const [name] = Object.keys(kept) as (keyof PlanWords)[];
    if (name !== undefined && !(name in words) && setting(after)[name] !== kept[name]) {
      all = { ...all, ...kept };
    }
  }
  return all;
}
