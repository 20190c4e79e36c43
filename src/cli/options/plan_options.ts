/** Options of `tidemark plan` as they are typed: `requestOf` of `plan/` turns them into a request. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { didYouMean } from "../../model/base/near_miss.js";
import {
  CACHE_TYPES,
  COMPUTE_DTYPES,
  ENGINES,
  GPUS,
  type Gpu,
  gpuNamed,
  gpuOfSize,
  gpusLike,
  LIBRARIES,
  LLAMA_CACHE_TYPES,
  METHODS,
  OPTIMIZERS,
  QUANTIZATIONS,
  SCHEDULES,
} from "../../plan/index.js";
import { parseBytes } from "./options.js";

export { type PlanWords, requestOf } from "../../plan/index.js";

/** 128m */
const LARGEST = 2 ** 27;

/** A whole number from 1; "32k" is 32,768. */
export function parseSize(text: string): number {
  const [, figure, unit] = /^(\d{1,9})([kKmM]?)$/.exec(text) ?? [];
  const value =
    Number(figure) *
    (unit === "" || unit === undefined ? 1 : unit.toLowerCase() === "k" ? 1024 : 2 ** 20);
  if (!(value >= 1 && value <= LARGEST)) {
    throw new InvalidArgumentError("a whole number from 1 to 128m, such as 8 or 32k");
  }
  return value;
}

function parseCountOrZero(text: string): number {
  if (text === "0") {
    return 0;
  }
  try {
    return parseSize(text);
  } catch {
    throw new InvalidArgumentError("a whole number from 0 to 128m, such as 0 or 8");
  }
}

/** A name ("h100", "4090") or a size ("24GiB"). */
export function parseGpu(text: string): Gpu {
  const named = gpuNamed(text);
  if (named !== undefined) {
    return named;
  }
  if (/^\d/.test(text)) {
    const bytes = parseBytes(text);
    if (bytes >= 2 ** 28) {
      return gpuOfSize(bytes);
    }
  }
  const like = gpusLike(text);
  const near = didYouMean(
    text,
    GPUS.map(({ name }) => name),
  );
  const others =
    like.length > 0
      ? ` (names that begin so: ${like.join(", ")})`
      : near === ""
        ? ""
        : ` (${near})`;
  throw new InvalidArgumentError(`a GPU such as h100 or 4090, or a size such as 24GiB${others}`);
}

/** A number without a unit means MiB to whoever read it in nvidia-smi; 0 is none. */
function parseContext(text: string): number {
  const bytes = parseBytes(text);
  if (bytes > 0 && bytes < 2 ** 20) {
    throw new InvalidArgumentError("a size of 1 MiB or more, such as 480MiB");
  }
  return bytes;
}

function parseShare(text: string): number {
  const [, figure, sign] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const share = Number(figure) / (sign === "%" ? 100 : 1);
  if (!(share > 0 && share <= 1)) {
    throw new InvalidArgumentError("a share such as 0.9 or 90%");
  }
  return share;
}

export function withPlanOptions(command: Command): void {
  const choice = (flags: string, about: string, choices: readonly string[]) =>
    command.addOption(new Option(flags, about).choices([...choices]));
  command
    .option("--train", "plan one training step (the default)")
    .option("--serve", "plan inference");
  choice(
    "--method <method>",
    "what is trained (default: full; qlora for a quantized model)",
    METHODS,
  );
  choice("--optimizer <name>", "the optimizer (default: adamw)", OPTIMIZERS);
  command
    .option("--batch <n>", "sequences on one device (default: 1)", parseSize)
    .option(
      "--seq <n>",
      "tokens per sequence, such as 4k (default: 2048); not for vision models",
      parseSize,
    );
  choice(
    "--checkpointing <kind>",
    "which activations are recomputed (default: none; full with qlora)",
    ["none", "selective", "full"],
  );
  choice("--quantize <type>", "quantize linear layers when they are loaded", QUANTIZATIONS);
  choice(
    "--dtype <type>",
    "type of matrix products (default: that of the checkpoint)",
    COMPUTE_DTYPES,
  );
  choice(
    "--weights <width>",
    "width of the weights if products are 16-bit (default: as in the checkpoint; fp32 with full and --fsdp or --zero)",
    ["fp32", "16bit"],
  );
  choice("--attention <kernel>", "the attention kernel (default: sdpa)", [
    "eager",
    "sdpa",
    "flash",
  ]);
  command.option(
    "--no-padding",
    "all sequences of a batch have one length, so that attention needs no padding mask",
  );
  choice(
    "--loss <kind>",
    "how logits and loss are computed (default: full; chunked with torchtune and litgpt)",
    ["full", "chunked", "fused"],
  );
  choice(
    "--library <name>",
    "the library that trains; it decides which kernels are fused (default: transformers)",
    LIBRARIES,
  );
  command
    .option("--compile", "use torch.compile")
    .option(
      "--accumulation <n>",
      "batches before each optimizer step (default: 1; with --pp, its stages, twice as many if interleaved)",
      parseSize,
    )
    .option("--optimizer-in-backward", "the optimizer consumes each gradient as it appears")
    .option("--offload-activations", "keep the inputs of checkpointed layers in host memory")
    .option("--lora-rank <n>", "rank of the adapters (default: 8)", parseSize)
    .option(
      "--lora-targets <names>",
      "layers with adapters: attention, all, or names such as q_proj,v_proj (default: attention; all with qlora)",
    )
    .option("--lora-dropout", "apply dropout to the adapters' inputs")
    .option("--ddp <n>", "data parallel: a copy on each of this many devices", parseSize)
    .option("--fsdp <n>", "FSDP over this many devices", parseSize)
    .addOption(
      new Option(
        "--fsdp-version <n>",
        "1: FullyShardedDataParallel; 2: fully_shard (default)",
      ).choices(["1", "2"]),
    );
  command.addOption(
    new Option("--zero <stage>", "DeepSpeed ZeRO over --devices")
      .choices(["1", "2", "3"])
      .argParser(parseStage),
  );
  command.option("--devices <n>", "number of devices for --zero (default: 8)", parseSize);
  choice("--offload <what>", "what --fsdp or --zero keeps in host memory", ["optimizer", "all"]);
  command
    .option("--tp <n>", "tensor parallelism over this many devices", parseSize)
    .option("--sequence-parallel", "with --tp: divide norms and residuals over the same devices")
    .option("--cp <n>", "context parallelism over this many devices", parseSize)
    .option("--pp <n>", "number of pipeline stages", parseSize)
    .addOption(
      new Option(
        "--schedule <name>",
        "order of the microbatches (--accumulation) in the pipeline\n(default: 1f1b)",
      ).choices([...SCHEDULES]),
    )
    .option(
      "--virtual-stages <n>",
      "with the interleaved schedule: pieces of the model on each stage\n(default: 2)",
      parseSize,
    )
    .option("--ep <n>", "expert parallelism over this many devices", parseSize)
    .option("--workers <n>", "DataLoader workers, for host memory", parseCountOrZero)
    .option(
      "--gpu <name>",
      "the device: h100, a100-40gb, 4090... or a size such as 24GiB (default: a100-80gb)",
      parseGpu,
    );
  command.option(
    "--cuda-context <size>",
    "what the process takes on the device before its first tensor, such as 480MiB\n(default: as measured for --gpu, with lazily loaded kernels)",
    parseContext,
  );
  choice("--engine <name>", "with --serve: the engine (default: transformers)", ENGINES);
  command
    .option("--context <n>", "with --serve: tokens of one sequence (default: 2048)", parseSize)
    .option("--concurrency <n>", "with --serve: sequences at once (default: 1)", parseSize);
  choice("--kv-dtype <type>", "with --serve: type of the cache (default: auto)", CACHE_TYPES);
  choice(
    "--cache-type-k <type>",
    "with --serve --engine llama.cpp: type of the keys (default: f16)",
    LLAMA_CACHE_TYPES,
  );
  choice(
    "--cache-type-v <type>",
    "with --serve --engine llama.cpp: type of the values (default: f16)",
    LLAMA_CACHE_TYPES,
  );
  command
    .option(
      "--gpu-layers <n>",
      "with --serve --engine llama.cpp: layers on the device, the output as one more (default: all)",
      parseCountOrZero,
    )
    .option(
      "--utilization <share>",
      "with --serve: share of the device that the engine uses (default: the engine's)",
      parseShare,
    )
    .option(
      "--batched-tokens <n>",
      "with --serve: tokens per pass (default: the engine's for --gpu)",
      parseSize,
    )
    .option(
      "--max-num-seqs <n>",
      "with --serve --engine vllm: sequences that it runs at once (default: its server's for --gpu)",
      parseSize,
    )
    .option("--no-cuda-graphs", "with --serve: capture no CUDA graphs");
}

function parseStage(text: string): number {
  if (!/^[123]$/.test(text)) {
    throw new InvalidArgumentError("a stage: 1, 2 or 3");
  }
  return Number(text);
}
