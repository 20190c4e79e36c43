// scratch_gpu.mjs
import { readFileSync as readFileSync4, writeFileSync, mkdirSync, readdirSync as readdirSync2 } from "node:fs";

// scratch_cmp.mjs
import { readFileSync as readFileSync3 } from "node:fs";
import { basename as basename2 } from "node:path";
import { Command } from "commander";

// src/cli/options/plan_options.ts
import { InvalidArgumentError as InvalidArgumentError2, Option as Option2 } from "commander";

// src/model/base/near_miss.ts
function nearNames(word, names) {
  const wanted = word.toLowerCase();
  const allowed = Math.min(3, Math.max(1, Math.floor(wanted.length / 3)));
  const near = [];
  for (const name of new Set(names)) {
    const candidate = name.toLowerCase();
    if (wanted.length >= 3 && candidate.startsWith(wanted)) {
      near.push({ name, distance: 0.5 });
    } else if (Math.abs(candidate.length - wanted.length) <= allowed) {
      const distance = editDistance(wanted, candidate);
      if (distance <= allowed && distance < Math.max(wanted.length, candidate.length) / 2) {
        near.push({ name, distance });
      }
    }
  }
  return near.sort((a, b) => a.distance - b.distance || a.name.length - b.name.length).map(({ name }) => name);
}
function didYouMean(word, names) {
  const [nearest] = nearNames(word, names);
  return nearest === void 0 ? "" : `did you mean ${nearest}?`;
}
function editDistance(a, b) {
  let beforeLast = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let distance = Math.min(
        last[column] + 1,
        current[column - 1] + 1,
        last[column - 1] + (same ? 0 : 1)
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        distance = Math.min(distance, beforeLast[column - 2] + 1);
      }
      current.push(distance);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length];
}

// src/model/errors/errors.ts
var TidemarkError = class extends Error {
  constructor(id, exitCode, what, why, next, options) {
    super([`${id} ${what}`, why, next].filter((part2) => part2 !== "").join("; "), options);
    this.id = id;
    this.exitCode = exitCode;
    this.what = what;
    this.why = why;
    this.next = next;
  }
  name = "TidemarkError";
};
function badUsage(what, next = "see --help") {
  return new TidemarkError("TM-E002", 2, what, "", next);
}
function fileNotFound(path, kind = "file") {
  return new TidemarkError(
    "TM-E003",
    2,
    `no such ${kind}: ${path === "" ? "''" : oneLine(path)}`,
    "the name may be misspelled or relative to another directory",
    "",
    { cause: { missingPath: path } }
  );
}
function fileUnusable(path, action, reason) {
  const permission = /EACCES|EPERM/.test(reason);
  const ours = /^EPERM: (it belongs to .+)$/.exec(reason)?.[1];
  const denied = ours === void 0 ? "permission denied" : `permission denied, ${ours}`;
  const words3 = permission ? denied : reason.replace(/^E[A-Z0-9]+: (.+), [a-z]+ '.*'$/, "$1");
  const next = action === "read" ? "run this as a user with permission to read it" : "name another file with -o";
  return new TidemarkError(
    "TM-E004",
    permission ? 3 : 2,
    `cannot ${action} ${oneLine(path)}: ${oneLine(words3)}`,
    "",
    permission ? next : "",
    permission ? { cause: { deniedPath: path } } : void 0
  );
}
function tooLarge(what, limit) {
  return new TidemarkError(
    "TM-E008",
    2,
    `${oneLine(what)} is too large`,
    `the limit is ${limit}`,
    ""
  );
}
function oneLine(text, longest = 400) {
  const flat = Array.from(text, (character) => isControl(character) ? " " : character).join("");
  return flat.length > longest ? `${flat.slice(0, longest - 1)}\u2026` : flat;
}
function isControl(character) {
  const code2 = character.codePointAt(0) ?? 0;
  return code2 < 32 || code2 >= 127 && code2 < 160 || code2 === 8232 || code2 === 8233 || code2 >= 8234 && code2 <= 8238 || code2 >= 8294 && code2 <= 8297;
}

// src/model/base/numbers.ts
var BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
var MEBIBYTE = 2 ** 20;
var SECOND = 1e3;
var MINUTE = 60 * SECOND;
var HOUR = 60 * MINUTE;
var DAY = 24 * HOUR;
function formatBytesLikePyTorch(bytes) {
  const power = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return power === 0 ? `${bytes} bytes` : `${(bytes / 1024 ** power).toFixed(2)} ${BYTE_UNITS[power]}`;
}

// src/plan/device/gpus.ts
var MIB = 2 ** 20;
var GIB = 2 ** 30;
var AMPERE_WORKSPACE = 9.125 * MIB;
var HOPPER_WORKSPACE = 33 * MIB;
function gpu(name, memoryGib, contextMib, kind) {
  return {
    name,
    memoryBytes: Math.round(memoryGib * GIB),
    contextBytes: contextMib * MIB,
    workspaceBytes: kind === "hopper" ? HOPPER_WORKSPACE : AMPERE_WORKSPACE,
    old: kind === "old"
  };
}
var GPUS = [
  gpu("T4", 14.6, 135, "old"),
  // As transformers' documentation measured it, with all kernels loaded: CUDA before 11.7, as most machines with a V100 had.
  gpu("V100-16GB", 15.8, 1343, "old"),
  gpu("V100-32GB", 31.7, 1343, "old"),
  gpu("RTX 3060", 11.7, 250, "ampere"),
  gpu("RTX 3090", 23.6, 330, "ampere"),
  gpu("RTX 4070", 11.6, 250, "ampere"),
  gpu("RTX 4080", 15.6, 330, "ampere"),
  gpu("RTX 4090", 23.5, 420, "ampere"),
  gpu("RTX 5090", 31.4, 480, "hopper"),
  gpu("A10", 22, 300, "ampere"),
  gpu("L4", 22, 250, "ampere"),
  gpu("A6000", 47.4, 350, "ampere"),
  gpu("L40S", 44.4, 420, "ampere"),
  gpu("A100-40GB", 39.4, 420, "ampere"),
  gpu("A100-80GB", 79.2, 420, "ampere"),
  // Measured on an H200 with CUDA 13.0: 621 MiB after the first tensor, 697 after a prefill, 751 to 767 after a training step.
  gpu("H100-80GB", 79.1, 750, "hopper"),
  gpu("H100-96GB", 94.5, 750, "hopper"),
  gpu("H200", 139.8, 750, "hopper"),
  gpu("B200", 178.3, 620, "hopper"),
  gpu("MI300X", 191, 450, "hopper")
];
var SHORT = {
  a100: "A100-80GB",
  h100: "H100-80GB",
  v100: "V100-16GB",
  "4090": "RTX 4090",
  "3090": "RTX 3090",
  "5090": "RTX 5090"
};
function gpuNamed(text) {
  const plain = (name) => name.toLowerCase().replace(/rtx|nvidia|geforce|[\s_-]/g, "");
  const wanted = plain(SHORT[plain(text)] ?? text);
  return wanted === "" ? void 0 : GPUS.find(({ name }) => plain(name) === wanted) ?? GPUS.find(({ name }) => plain(name) === `${wanted}gb`) ?? GPUS.find(({ name }) => plain(name).startsWith(wanted));
}
function gpuOfSize(memoryBytes) {
  const recent = GPUS.filter(({ old }) => !old).sort((a, b) => a.memoryBytes - b.memoryBytes);
  const near = recent.find((each) => each.memoryBytes * 1.08 >= memoryBytes) ?? USUAL_GPU;
  return { ...near, name: "", memoryBytes };
}
var USUAL_GPU = GPUS.find(({ name }) => name === "A100-80GB");

// src/plan/defaults.ts
var USUAL_SEQUENCE = 2048;
var USUAL_SHARDED_DEVICES = 8;
function planOptions(model, request) {
  const gpu2 = request.gpu ?? USUAL_GPU;
  const dtype = request.dtype ?? storedCompute(model, gpu2);
  return request.mode === "train" ? trainOptions(model, request, { gpu: gpu2, dtype }) : serveOptions(request, { gpu: gpu2, dtype });
}
function storedCompute({ stored }, gpu2) {
  const dtype = stored.dtype ?? (stored.quantization === null ? "fp32" : "bf16");
  return dtype === "bf16" && gpu2.old ? "fp16" : dtype;
}
function trainOptions(model, request, { gpu: gpu2, dtype }) {
  const quantizes = request.quantize !== void 0 || model.stored.quantization !== null;
  const method = request.method ?? (quantizes ? "qlora" : "full");
  if (method === "full" && request.quantize !== void 0) {
    throw badUsage(
      "quantized weights cannot be trained",
      "use --method qlora, or leave --quantize out"
    );
  }
  const kind = request.sharding?.kind ?? "ddp";
  const devices = kind === "ddp" ? 1 : USUAL_SHARDED_DEVICES;
  const sharding = {
    kind: "ddp",
    devices,
    offload: "none",
    version: 2,
    ...request.sharding
  };
  const sharded = sharding.kind !== "ddp";
  const library = request.train?.library ?? "transformers";
  const isPrepared = method === "qlora" && library === "transformers";
  const keepsWide = isPrepared || (model.stored.dtype ?? "fp32") === "fp32" && !quantizes;
  const wide = request.weights === void 0 ? keepsWide || sharded && method === "full" : request.weights === "fp32";
  return {
    mode: "train",
    method,
    library,
    optimizer: "adamw",
    optimizerInBackward: false,
    batch: 1,
    sequence: usualSequence(model),
    accumulation: 1,
    // prepare_model_for_kbit_training of PEFT switches checkpointing on.
    checkpointing: method === "qlora" ? "full" : "none",
    activationOffload: false,
    quantize: quantizeOf(model, request, { method, library }),
    dtype,
    fp32Weights: wide,
    attention: request.attention ?? "sdpa",
    padded: request.padded ?? true,
    loss: library === "torchtune" || library === "litgpt" ? "chunked" : "full",
    compiled: false,
    dropout: true,
    adapterRank: 8,
    adapterTargets: method === "qlora" ? "all" : "attention",
    // lora_dropout of litgpt is 0.05, that of the others 0.
    adapterDropout: library === "litgpt",
    imbalance: 1.25,
    gpu: gpu2,
    workers: 0,
    ...request.train,
    parallelism: {
      sharding,
      tensor: request.tensor ?? 1,
      sequenceParallel: request.sequenceParallel ?? false,
      context: request.contextParallel ?? 1,
      ...pipelineOf(request),
      expert: request.expert ?? 1
    }
  };
}
var USUAL_PIECES = 2;
function pipelineOf({
  pipeline = 1,
  schedule,
  virtualStages
}) {
  const chosen = schedule ?? ((virtualStages ?? 1) > 1 ? "interleaved" : "1f1b");
  const pieces = chosen === "interleaved" ? virtualStages ?? USUAL_PIECES : 1;
  return { pipeline, schedule: chosen, virtualStages: pieces };
}
function quantizeOf(model, { quantize }, { method, library }) {
  const wanted = method === "qlora" && model.stored.quantization === null ? "nf4" : null;
  const chosen = quantize ?? wanted;
  return chosen === "nf4" && library === "torchtune" ? "nf4-dq" : chosen;
}
function usualSequence({ longestSequence }) {
  return longestSequence === 0 ? USUAL_SEQUENCE : Math.min(USUAL_SEQUENCE, longestSequence);
}
var BATCHED_TOKENS = 8192;
var UTILIZATION = {
  transformers: 1,
  vllm: 0.9,
  sglang: 0.88,
  tgi: 1,
  "llama.cpp": 1
};
function serveOptions(request, { gpu: gpu2, dtype }) {
  const engine = request.serve?.engine ?? "transformers";
  return {
    mode: "serve",
    engine,
    context: USUAL_SEQUENCE,
    concurrency: 1,
    quantize: request.quantize ?? null,
    dtype: dtype === "fp32" && engine !== "transformers" ? "fp16" : dtype,
    kvDType: "auto",
    utilization: UTILIZATION[engine],
    batchedTokens: BATCHED_TOKENS,
    cudaGraphs: true,
    cacheAsNeeded: false,
    attention: request.attention ?? "sdpa",
    padded: request.padded ?? true,
    tensor: request.tensor ?? 1,
    pipeline: request.pipeline ?? 1,
    expert: request.expert ?? 1,
    gpu: gpu2,
    ...request.serve
  };
}

// src/model/errors/plan_errors.ts
function notAModel(source, detail) {
  return new TidemarkError(
    "TM-E085",
    2,
    `${oneLine(source)} does not describe a model: ${oneLine(detail, 200)}`,
    "it was cut off, edited, or belongs to another program",
    "name the folder that holds the model's config.json"
  );
}
function cannotDivide(what, next) {
  return new TidemarkError("TM-E086", 2, oneLine(what), "", oneLine(next));
}

// src/plan/shape/config.ts
var LARGEST = 1e9;
var ModelConfig = class _ModelConfig {
  constructor(values, source) {
    this.values = values;
    this.source = source;
  }
  get family() {
    const type = this.values.model_type;
    return typeof type === "string" ? type.slice(0, 60) : "";
  }
  has(...names) {
    return names.some((name) => this.values[name] !== void 0 && this.values[name] !== null);
  }
  /** The first of the names that is there, as a whole number from 1. @throws TidemarkError TM-E085 */
  size(...names) {
    const found = this.optionalSize(...names);
    if (found === void 0) {
      throw notAModel(this.source, `${names[0]} is missing`);
    }
    return found;
  }
  /** undefined where none of the names is there. @throws TidemarkError TM-E085 for what is no whole number from 1 */
  optionalSize(...names) {
    return this.#whole(names, 1);
  }
  /** A whole number from 0, or `otherwise`. */
  count(otherwise, ...names) {
    return this.#whole(names, 0) ?? otherwise;
  }
  #whole(names, least) {
    for (const name of names) {
      const value = this.values[name];
      if (value === void 0 || value === null || value === false) {
        continue;
      }
      if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > LARGEST) {
        throw notAModel(
          this.source,
          `${name} is ${shown(value)}, not a whole number from ${least} to 1e9`
        );
      }
      return value;
    }
    return void 0;
  }
  fraction(otherwise, ...names) {
    for (const name of names) {
      const value = this.values[name];
      if (typeof value === "number" && value >= 0 && value <= LARGEST) {
        return value;
      }
    }
    return otherwise;
  }
  flag(otherwise, ...names) {
    for (const name of names) {
      const value = this.values[name];
      if (typeof value === "boolean") {
        return value;
      }
    }
    return otherwise;
  }
  text(...names) {
    for (const name of names) {
      const value = this.values[name];
      if (typeof value === "string") {
        return value.slice(0, 100);
      }
    }
    return "";
  }
  /** A list of whole numbers; empty where it is not there. */
  sizes(name) {
    const value = this.values[name];
    if (!Array.isArray(value)) {
      return [];
    }
    if (value.length > 1e3 || !value.every((each) => Number.isInteger(each) && each >= 0 && each <= LARGEST)) {
      throw notAModel(this.source, `${name} is not a list of whole numbers`);
    }
    return value;
  }
  /** A list of words; empty where it is not there. */
  words(name) {
    const value = this.values[name];
    return Array.isArray(value) && value.length <= MOST_LAYERS ? value.map((each) => String(each)) : [];
  }
  part(name) {
    const value = this.values[name];
    return typeof value === "object" && value !== null && !Array.isArray(value) ? new _ModelConfig(value, `${this.source} (${name})`) : null;
  }
  /** With values for what is absent. */
  filledFrom(defaults) {
    return new _ModelConfig({ ...defaults, ...this.values }, this.source);
  }
  named(family) {
    return new _ModelConfig({ ...this.values, model_type: family }, this.source);
  }
  without(name) {
    return new _ModelConfig({ ...this.values, [name]: null }, this.source);
  }
  /** The number of layers, which bounds all work. */
  layers(...names) {
    const layers = this.size(...names);
    if (layers > MOST_LAYERS) {
      throw notAModel(this.source, `${layers} layers`);
    }
    return layers;
  }
};
var MOST_LAYERS = 2e3;
function shown(value) {
  return typeof value === "object" ? "no number" : JSON.stringify(value) ?? "no number";
}

// src/plan/files/bounded.ts
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";

// src/model/errors/reason.ts
function reasonOf(error) {
  if (!(error instanceof Error)) {
    return { code: "", message: String(error) };
  }
  const code2 = "code" in error ? String(error.code) : "";
  return { code: code2, message: error.message };
}

// src/plan/files/bounded.ts
var LARGEST_CONFIG = 64 * 2 ** 20;
function statOf(path) {
  try {
    return statSync(path);
  } catch (error) {
    const { code: code2, message } = reasonOf(error);
    throw code2 === "ENOENT" || code2 === "ENOTDIR" || path === "" ? fileNotFound(path, "model folder") : fileUnusable(path, "read", message);
  }
}
function readJson(path) {
  const text = readBounded(path, LARGEST_CONFIG).toString("utf8");
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw notAModel(path, "it is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw notAModel(path, "it is not a JSON object");
  }
  return value;
}
function readBounded(path, limit) {
  const stat = statOf(path);
  if (!stat.isFile()) {
    throw notAModel(path, "it is not a regular file");
  }
  if (stat.size > limit) {
    throw tooLarge(path, `${limit / 2 ** 20} MiB`);
  }
  try {
    return readFileSync(path);
  } catch (error) {
    throw fileUnusable(path, "read", reasonOf(error).message);
  }
}
function readPiece(path, offset, length) {
  let descriptor;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    throw fileUnusable(path, "read", reasonOf(error).message);
  }
  try {
    const piece = Buffer.alloc(length);
    let done = 0;
    while (done < length) {
      const count2 = readSync(descriptor, piece, done, length - done, offset + done);
      if (count2 === 0) {
        break;
      }
      done += count2;
    }
    return piece.subarray(0, done);
  } catch (error) {
    throw fileUnusable(path, "read", reasonOf(error).message);
  } finally {
    closeSync(descriptor);
  }
}

// src/plan/files/job_config.ts
var LARGEST_YAML = 2 ** 20;
function readJobConfig(path) {
  if (/\.ya?ml$/.test(path)) {
    return ofAccelerate(path, flatYaml(readBounded(path, LARGEST_YAML).toString("utf8")));
  }
  const config = new ModelConfig(readJson(path), path);
  if (config.has("peft_type")) {
    return ofAdapter(config);
  }
  if (config.has("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size")) {
    return ofDeepSpeed(config);
  }
  if (config.has(...TRAINER_FSDP)) {
    return ofTrainerFsdp(config);
  }
  throw notAModel(
    path,
    "it is neither an adapter_config.json nor a configuration of DeepSpeed, accelerate or FSDP"
  );
}
function ofAdapter(config) {
  if (config.text("peft_type").toUpperCase() !== "LORA") {
    throw notAModel(config.source, `adapters of type ${config.text("peft_type")} are not planned`);
  }
  const targets = config.words("target_modules").map((name) => name.split(".").at(-1) ?? name);
  const all = config.text("target_modules") === "all-linear";
  return {
    method: "lora",
    train: {
      adapterRank: config.size("r"),
      adapterDropout: config.fraction(0, "lora_dropout") > 0,
      ...all ? { adapterTargets: "all" } : targets.length > 0 ? { adapterTargets: targets } : {}
    }
  };
}
var OPTIMIZERS = {
  adam: "adam",
  adamw: "adamw",
  adamw8bit: "adamw8bit",
  lion: "lion",
  muon: "muon",
  sgd: "sgd-momentum"
};
function ofDeepSpeed(config) {
  const zero = config.part("zero_optimization");
  const stage = zero?.count(0, "stage") ?? 0;
  if (stage > 3) {
    throw notAModel(config.source, `ZeRO has stages 0 to 3, not ${stage}`);
  }
  const isOffloaded = (name) => /cpu|nvme/.test(zero?.part(name)?.text("device") ?? "");
  const offload = isOffloaded("offload_param") ? "all" : isOffloaded("offload_optimizer") ? "optimizer" : "none";
  const isOn = (name) => config.part(name)?.flag(false, "enabled") === true;
  const optimizer = OPTIMIZERS[config.part("optimizer")?.text("type").toLowerCase() ?? ""];
  const figure2 = (name) => config.text(name) === "auto" ? void 0 : config.optionalSize(name);
  const batch = figure2("train_micro_batch_size_per_gpu");
  const accumulation = figure2("gradient_accumulation_steps");
  return {
    ...isOn("bf16") ? { dtype: "bf16" } : isOn("fp16") ? { dtype: "fp16" } : {},
    ...stage === 0 ? {} : { sharding: { kind: `zero-${stage}`, offload } },
    train: {
      ...batch === void 0 ? {} : { batch },
      ...accumulation === void 0 ? {} : { accumulation },
      ...optimizer === void 0 ? {} : { optimizer }
    }
  };
}
function flatYaml(text) {
  const values = /* @__PURE__ */ new Map();
  for (const line of text.split("\n").slice(0, 1e4)) {
    const [, key, value] = /^\s*([A-Za-z_]\w*):\s*([^#]*?)\s*(?:#.*)?$/.exec(line) ?? [];
    if (key !== void 0 && value !== void 0) {
      values.set(key, value.replace(/^['"]|['"]$/g, ""));
    }
  }
  return values;
}
function ofAccelerate(path, values) {
  const type = (values.get("distributed_type") ?? "").toUpperCase();
  if (type === "") {
    throw notAModel(path, "it has no distributed_type, so it is not a configuration of accelerate");
  }
  const devices = wholeOf(values.get("num_processes"), 1);
  const precision = values.get("mixed_precision");
  const accumulation = wholeOf(values.get("gradient_accumulation_steps"), 1);
  const sharding = shardingOf(type, values, devices);
  return {
    ...precision === "bf16" || precision === "fp16" ? { dtype: precision } : {},
    sharding,
    train: {
      ...accumulation > 1 ? { accumulation } : {},
      ...values.get("fsdp_activation_checkpointing") === "true" ? { checkpointing: "full" } : {}
    }
  };
}
function shardingOf(type, values, devices) {
  if (type === "FSDP") {
    return fsdpSharding((name) => values.get(`fsdp_${name}`), devices);
  }
  const stage = wholeOf(values.get("zero_stage"), 0);
  if (type === "DEEPSPEED" && stage >= 1 && stage <= 3) {
    const offloads = (name) => /cpu|nvme/.test(values.get(name) ?? "");
    return {
      kind: `zero-${stage}`,
      devices,
      offload: offloads("offload_param_device") ? "all" : offloads("offload_optimizer_device") ? "optimizer" : "none"
    };
  }
  return { kind: "ddp", devices };
}
var STRATEGIES = {
  "1": "fsdp",
  FULL_SHARD: "fsdp",
  HYBRID_SHARD: "fsdp",
  "2": "zero-2",
  SHARD_GRAD_OP: "zero-2",
  HYBRID_SHARD_ZERO2: "zero-2",
  "3": "ddp",
  NO_SHARD: "ddp"
};
function fsdpSharding(setting, devices) {
  const strategy = (setting("sharding_strategy") ?? "FULL_SHARD").toUpperCase();
  const keepsWeights = setting("reshard_after_forward")?.toLowerCase() === "false";
  return {
    kind: keepsWeights ? "zero-2" : STRATEGIES[strategy] ?? "fsdp",
    ...devices === void 0 ? {} : { devices },
    offload: setting("offload_params")?.toLowerCase() === "true" ? "all" : "none",
    version: setting("version") === "2" ? 2 : 1
  };
}
function ofTrainerFsdp(config) {
  const setting = (name) => {
    const value = config.values[`fsdp_${name}`] ?? config.values[name];
    return value === void 0 || value === null || typeof value === "object" ? void 0 : String(value);
  };
  return {
    sharding: fsdpSharding(setting),
    train: setting("activation_checkpointing") === "true" ? { checkpointing: "full" } : {}
  };
}
var TRAINER_FSDP = [
  "fsdp_transformer_layer_cls_to_wrap",
  "transformer_layer_cls_to_wrap",
  "fsdp_version",
  "fsdp_auto_wrap_policy",
  "fsdp_min_num_params",
  "min_num_params"
];
function wholeOf(text, otherwise) {
  const value = Number(text);
  return Number.isInteger(value) && value >= 1 && value <= 1e6 ? value : otherwise;
}
function withJobConfig(request, config) {
  return {
    ...config,
    ...request,
    train: { ...config.train, ...request.train },
    ...request.sharding === void 0 && config.sharding === void 0 ? {} : { sharding: { ...config.sharding, ...request.sharding } }
  };
}

// src/plan/files/read_model.ts
import { readdirSync } from "node:fs";
import { basename, dirname, join as join2, resolve } from "node:path";

// src/plan/blocks/attention.ts
var FP32 = 4;
var LARGEST_FUSED_HEAD = 256;
function attention(build, x, place) {
  const { shape, hidden } = place;
  const before = build.tape.part;
  build.tape.part = "attention";
  const made = shape.latent ? latentHeads(build, x, place) : cachedHeads(build, plainHeads(build, x, place), shape);
  const mixed = kernel(build, made, place);
  const value = shape.valueHeadSize ?? shape.headSize;
  const out = build.linear(mixed, {
    name: `${place.prefix}o_proj`,
    inputs: shape.heads * value,
    outputs: hidden,
    bias: shape.outputBias,
    split: "inputs",
    group: "attention"
  });
  build.tape.part = before;
  return out;
}
function plainHeads(build, x, place) {
  const { shape, hidden, source, prefix } = place;
  const parallel = build.rules.tensorParallel;
  const heads = shape.heads / parallel;
  const kvHeads = Math.max(1, shape.kvHeads / parallel);
  const project2 = (from, name, outputs, bias = shape.bias) => build.linear(from, {
    name: `${prefix}${name}`,
    inputs: hidden,
    outputs: outputs * parallel,
    bias,
    split: "outputs",
    group: "attention"
  });
  const queryWidth = heads * shape.headSize;
  const kvWidth = kvHeads * shape.headSize;
  const rows = x.elements / hidden;
  let query;
  let key;
  let value;
  if ((shape.fused || build.rules.fusedProjection) && source === x) {
    const all = project2(x, "qkv_proj", queryWidth + 2 * kvWidth);
    query = build.tape.slice(all, rows * queryWidth);
    key = build.tape.slice(all, rows * kvWidth);
    value = build.tape.slice(all, rows * kvWidth);
    value = shape.copiesValues === true ? build.copy(value) : value;
  } else {
    query = project2(x, "q_proj", queryWidth);
    key = project2(source, "k_proj", kvWidth, shape.keyBias ?? shape.bias);
    value = project2(source, "v_proj", kvWidth);
  }
  if (shape.queryKeyNorm !== "none") {
    const norm = { kind: "rms", bias: false, affine: true };
    const perHead = shape.queryKeyNorm === "head";
    query = build.norm(query, perHead ? shape.headSize : queryWidth, norm, "q_norm");
    key = build.norm(key, perHead ? shape.headSize : kvWidth, norm, "k_norm");
  }
  if (shape.rotary) {
    query = rotate(build, query, shape.rotaryShare);
    key = rotate(build, key, shape.rotaryShare);
  }
  const joined = shape.contiguous === true || shape.rotary && shape.rotaryShare < 1;
  return { query, key, value, heads, kvHeads, joined };
}
function cached(build, x) {
  const copy = build.copy(x);
  copy.storage.held = true;
  build.tape.cachedBytes += copy.storage.bytes;
  return copy;
}
function cachedHeads(build, made, { bidirectional }) {
  return bidirectional || !build.rules.cachesKeys ? made : { ...made, key: cached(build, made.key), value: cached(build, made.value) };
}
function rotate(build, x, share) {
  const turned = build.tape.op({
    name: "rotary",
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    forwardTemporary: 2 * x.elements * x.itemBytes * share,
    backwardTemporary: 2 * x.elements * x.itemBytes * share,
    pointwise: true
  });
  return turned[0];
}
function latentHeads(build, x, { shape, hidden }) {
  const { queryRank, kvRank, rotarySize } = shape.latent;
  const parallel = build.rules.tensorParallel;
  const heads = shape.heads / parallel;
  const rows = x.elements / hidden;
  const plain = shape.headSize - rotarySize;
  const valueSize = shape.valueHeadSize ?? plain;
  const norm = { kind: "rms", bias: false, affine: true };
  const wide = shape.heads * shape.headSize;
  const shared = { bias: false, group: "attention" };
  let query;
  if (queryRank > 0) {
    const low = build.linear(x, {
      name: "q_a_proj",
      inputs: hidden,
      outputs: queryRank,
      ...shared
    });
    const normed = build.norm(low, queryRank, norm, "q_a_norm");
    query = build.linear(normed, {
      name: "q_b_proj",
      inputs: queryRank,
      outputs: wide,
      split: "outputs",
      ...shared
    });
  } else {
    query = build.linear(x, {
      name: "q_proj",
      inputs: hidden,
      outputs: wide,
      split: "outputs",
      ...shared
    });
  }
  const compressed = build.linear(x, {
    name: "kv_a_proj_with_mqa",
    inputs: hidden,
    outputs: kvRank + rotarySize,
    ...shared
  });
  const whole2 = build.norm(build.tape.slice(compressed, rows * kvRank), kvRank, norm, "kv_a_norm");
  const rank = build.rules.cachesKeys ? cached(build, whole2) : whole2;
  const both = build.linear(rank, {
    name: "kv_b_proj",
    inputs: kvRank,
    outputs: shape.heads * (plain + valueSize),
    split: "outputs",
    ...shared
  });
  const turned = rotate(build, build.tape.slice(query, rows * heads * rotarySize), 1);
  const turnedOnly = rotate(build, build.tape.slice(compressed, rows * rotarySize), 1);
  const turnedKey = build.rules.cachesKeys ? cached(build, turnedOnly) : turnedOnly;
  const joined = (a, b) => build.tape.op({
    name: "cat",
    inputs: [a, b],
    makes: [{ elements: rows * heads * shape.headSize, itemBytes: a.itemBytes }],
    pointwise: true
  })[0];
  return {
    query: joined(build.tape.slice(query, rows * heads * plain), turned),
    key: joined(build.tape.slice(both, rows * heads * plain), turnedKey),
    value: build.tape.slice(both, rows * heads * valueSize),
    heads,
    kvHeads: heads,
    joined: true
  };
}
function kernelOf(shape, wanted) {
  const fits = shape.scoreBias === "none" && shape.headSize <= LARGEST_FUSED_HEAD;
  return fits && !(shape.sinks === true && wanted === "sdpa") ? wanted : "eager";
}
function kernel(build, made, place) {
  const { shape } = place;
  const implementation = kernelOf(shape, build.rules.attention);
  const groups = made.heads / made.kvHeads;
  const narrow = (x) => build.rules.autocast ? build.cast(x, build.rules.computeBytes) : x;
  const query = narrow(made.query);
  const { masks, repeatsGroups, fusesGroups } = build.rules;
  const masked2 = implementation === "sdpa" && (masks === "all" && place.maskable || masks !== "none" && shape.window > 0 && shape.window < place.keys);
  const repeats = groups > 1 && (implementation === "eager" || masked2 || repeatsGroups);
  const grouped = (x) => narrow(repeats ? build.copy(x, x.elements * groups) : x);
  const key = grouped(made.key);
  const value = grouped(made.value);
  const valueSize = shape.valueHeadSize ?? shape.headSize;
  const rows = query.elements / (made.heads * shape.headSize);
  const out = { elements: rows * made.heads * valueSize, itemBytes: query.itemBytes };
  if (implementation === "eager") {
    return eager(build, { ...made, query, key, value }, place, out);
  }
  const grouping = groups > 1 && !repeats;
  if (implementation === "sdpa" && grouping && (!fusesGroups || shape.copiesValues === true)) {
    return math(build, { ...made, query, key, value }, place, out);
  }
  const [mixed] = build.tape.op({
    name: "attention",
    inputs: [query, key, value],
    makes: [out],
    saves: [query, key, value, "output"],
    extraSaved: [
      rows * made.heads * FP32,
      ...masked2 ? [rows * place.keys * query.itemBytes] : []
    ],
    // The backward kernels add up the queries' gradient in fp32.
    backwardTemporary: query.itemBytes < FP32 ? query.elements * FP32 : 0,
    parameters: sinksOf(build, made.heads, shape),
    expensive: "attention"
  });
  return made.joined ? build.copy(mixed) : mixed;
}
function math(build, made, place, out) {
  const groups = made.heads / made.kvHeads;
  const wide = (x, times) => build.pointwise("scale", [build.copy(build.cast(x, FP32), x.elements * times)], []);
  const mixed = eager(
    build,
    {
      ...made,
      query: wide(made.query, 1),
      key: wide(made.key, groups),
      value: build.copy(build.cast(made.value, FP32), made.value.elements * groups)
    },
    place,
    { ...out, itemBytes: FP32 }
  );
  return build.cast(mixed, out.itemBytes);
}
function sinksOf(build, heads, { sinks }) {
  return sinks === true ? [build.parameter("sinks", heads, "vector")] : [];
}
function eager(build, { query, key, value, heads }, { shape, queries, keys, dropout }, out) {
  const sequences = query.elements / (heads * shape.headSize) / queries;
  const elements = sequences * heads * queries * keys;
  const itemBytes = query.itemBytes;
  const whole2 = (x) => x.elements * x.itemBytes < x.storage.bytes ? build.copy(x) : x;
  const wholeQuery = whole2(query);
  const wholeKey = whole2(key);
  const wholeValue = whole2(value);
  const [product] = build.tape.op({
    name: "scores",
    inputs: [wholeQuery, wholeKey],
    makes: [{ elements, itemBytes }],
    saves: [wholeQuery, wholeKey],
    expensive: "matmul"
  });
  let scores = build.pointwise("scale", [product], []);
  if (shape.softCap) {
    scores = build.pointwise("scale", [build.pointwise("tanh", [scores], ["output"])], []);
  }
  const [masked2] = build.tape.op({
    name: "mask",
    inputs: [scores],
    makes: [{ elements, itemBytes }],
    pointwise: true,
    passesGradient: true
  });
  const [soft] = build.tape.op({
    name: "softmax",
    inputs: [masked2],
    makes: [
      shape.sinks === true ? { elements: elements / keys * (keys + 1), itemBytes } : { elements, itemBytes: FP32 }
    ],
    saves: ["output"],
    parameters: sinksOf(build, heads, shape)
  });
  let weights = build.cast(soft, itemBytes);
  if (dropout) {
    weights = build.dropout(weights);
  }
  const [mixed] = build.tape.op({
    name: "mix",
    inputs: [weights, wholeValue],
    makes: [out],
    saves: [weights, wholeValue],
    expensive: "matmul"
  });
  return build.copy(mixed);
}

// src/plan/shape/model_shape.ts
function isMoe(mlp2) {
  return "experts" in mlp2;
}

// src/plan/blocks/mlp.ts
var FP322 = 4;
function feedForward(build, x, hidden, shape) {
  const before = build.tape.part;
  build.tape.part = isMoe(shape) ? "moe" : "mlp";
  const out = isMoe(shape) ? experts(build, x, hidden, shape) : mlp(build, x, hidden, shape);
  build.tape.part = before;
  return out;
}
function mlp(build, x, hidden, shape, ofExperts) {
  const group = "mlp";
  const many = ofExperts === void 0 ? {} : { experts: ofExperts };
  const up = (name, outputs) => build.linear(x, {
    name,
    inputs: hidden,
    outputs,
    bias: shape.bias,
    split: "outputs",
    group,
    ...many
  });
  const down = (x2) => build.linear(x2, {
    name: "down_proj",
    inputs: shape.width,
    outputs: hidden,
    bias: shape.bias,
    split: "inputs",
    group,
    ...many
  });
  let inner;
  if (!shape.gated) {
    inner = build.activation(up("up_proj", shape.width), shape.activation);
  } else if (shape.fused) {
    const product = up("gate_up_proj", 2 * shape.width);
    const both = ofExperts === void 0 ? product : filled(build, product, hidden);
    if (shape.activation === "clamped") {
      return down(clampedGate(build, both));
    }
    const gate = build.tape.slice(both, both.elements / 2);
    const other2 = build.tape.slice(both, both.elements / 2);
    const active = build.activation(gate, shape.activation);
    inner = build.pointwise("mul", [active, other2], [active, other2]);
  } else {
    const active = build.activation(up("gate_proj", shape.width), shape.activation);
    const other2 = up("up_proj", shape.width);
    inner = build.pointwise("mul", [active, other2], [active, other2]);
  }
  return down(inner);
}
function filled(build, x, width) {
  const [made] = build.tape.op({
    name: "masked_fill",
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    extraSaved: [x.elements / width],
    pointwise: true
  });
  return made;
}
function clampedGate(build, both) {
  const half = () => build.tape.slice(both, both.elements / 2);
  const gate = build.pointwise("clamp", [half()], [both]);
  const up = build.pointwise("clamp", [half()], [both]);
  const sigmoid = build.pointwise("sigmoid", [build.pointwise("scale", [gate], [])], ["output"]);
  const glu = build.pointwise("mul", [gate, sigmoid], [gate, sigmoid]);
  const onePlus = build.pointwise("add", [up], []);
  return build.pointwise("mul", [onePlus, glu], [onePlus, glu]);
}
function exchange(build, rows) {
  if (build.rules.expertParallel === 1) {
    return rows;
  }
  const [received] = build.tape.op({
    name: "all_to_all",
    inputs: [rows],
    makes: [{ elements: rows.elements, itemBytes: rows.itemBytes }]
  });
  return received;
}
function experts(build, x, hidden, shape) {
  const { tape, rules } = build;
  const tokens = x.elements / hidden;
  const isWide = shape.wideRouter === true;
  const logits = build.linear(isWide ? build.cast(x, FP322) : x, {
    name: "router",
    inputs: hidden,
    outputs: shape.experts,
    bias: shape.routerBias,
    group: "router"
  });
  const wide = build.cast(logits, FP322);
  const [weights] = tape.op({
    name: "router.softmax",
    inputs: [wide],
    makes: [{ elements: wide.elements, itemBytes: FP322 }],
    saves: ["output"]
  });
  const routed = tokens * shape.perToken * (rules.expertParallel > 1 ? rules.imbalance : 1);
  const [gathered] = tape.op({
    name: "gather",
    inputs: [x],
    makes: [{ elements: routed * hidden, itemBytes: x.itemBytes }],
    // The indices, int64.
    extraSaved: [routed * 8]
  });
  const exchanged = exchange(build, gathered);
  const made = exchange(build, mlp(build, exchanged, hidden, shape.expert, shape.experts));
  const itemBytes = isWide ? FP322 : made.itemBytes;
  const [weighted] = tape.op({
    name: "weigh",
    inputs: [made, weights],
    makes: [{ elements: made.elements, itemBytes }],
    saves: [made],
    pointwise: true
  });
  const [ordered] = tape.op({
    name: "gather",
    inputs: [filled(build, weighted, hidden)],
    makes: [{ elements: made.elements, itemBytes }],
    extraSaved: [routed * 8]
  });
  const [added] = tape.op({
    name: "sum",
    inputs: [ordered],
    makes: [{ elements: x.elements, itemBytes }]
  });
  build.release(gathered);
  build.release(made);
  const sum = build.cast(added, x.itemBytes);
  if (shape.shared === null) {
    return sum;
  }
  let beside = mlp(build, x, hidden, shape.shared);
  if (shape.sharedGate) {
    const gate = build.linear(x, {
      name: "shared_gate",
      inputs: hidden,
      outputs: 1,
      group: "router"
    });
    beside = build.pointwise("mul", [beside, gate], [beside, gate]);
  }
  return build.add(sum, beside);
}

// src/plan/blocks/convolution.ts
function convolve(build, x, shape) {
  const { rules, tape } = build;
  const weights = [
    build.parameter(
      shape.name,
      shape.inputs * shape.outputs * shape.kernel ** 2,
      "matrix",
      shape.outputs
    ),
    ...shape.bias === true ? [build.parameter(`${shape.name}.bias`, shape.outputs, "vector")] : []
  ];
  const casts = rules.autocast && rules.computeBytes < 4;
  const itemBytes = casts ? rules.computeBytes : x.itemBytes;
  const castsInput = casts && x.itemBytes > itemBytes;
  const trains = weights[0].trainable;
  const [made] = tape.op({
    name: shape.name,
    inputs: [x],
    makes: [{ elements: rules.batch * shape.outputs * shape.side ** 2, itemBytes }],
    saves: trains && !castsInput ? [x] : [],
    extraSaved: [
      castsInput && trains ? x.elements * itemBytes : 0,
      casts ? weights[0].elements * itemBytes : 0
    ],
    parameters: weights,
    expensive: "matmul"
  });
  return made;
}
function channelNorm(build, x, channels, name) {
  const [made] = build.tape.op({
    name,
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    saves: [x],
    extraSaved: [channels * 8],
    parameters: [
      build.parameter(`${name}.weight`, channels, "vector"),
      build.parameter(`${name}.bias`, channels, "vector")
    ],
    pointwise: true
  });
  return made;
}
function reluInPlace(build, x) {
  const [made] = build.tape.op({
    name: "relu_",
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    saves: ["output"],
    view: true
  });
  return made;
}
function convolutionLayer(build, x, layer) {
  build.tape.part = "convolution";
  switch (layer.block) {
    case "resnet-bottleneck":
    case "resnet-basic":
      return residualBlock(build, x, layer);
    case "unet":
      return unetBlock(build, x, layer);
    case "stem": {
      const first = convolve(build, x, { ...sizes(layer), name: "conv", kernel: 7 });
      const normed = channelNorm(build, first, layer.outputChannels, "bn");
      return pool(build, reluInPlace(build, normed));
    }
    default:
      return convolve(build, x, { ...sizes(layer), name: "resample", kernel: 3, bias: true });
  }
}
function sizes({ inputChannels, outputChannels, outputSide }) {
  return { inputs: inputChannels, outputs: outputChannels, side: outputSide };
}
function pool(build, x) {
  const elements = x.elements / 4;
  const [made] = build.tape.op({
    name: "max_pool",
    inputs: [x],
    makes: [{ elements, itemBytes: x.itemBytes }],
    saves: [x],
    extraSaved: [elements * 8]
  });
  return made;
}
function residualBlock(build, x, layer) {
  const { inputChannels, outputChannels, inputSide, outputSide } = layer;
  const bottleneck = layer.block === "resnet-bottleneck";
  const middle = bottleneck ? outputChannels / 4 : outputChannels;
  const step = (from, shape) => channelNorm(build, convolve(build, from, shape), shape.outputs, `${shape.name}.bn`);
  let inner = step(x, {
    name: "conv1",
    inputs: inputChannels,
    outputs: middle,
    kernel: bottleneck ? 1 : 3,
    side: bottleneck ? inputSide : outputSide
  });
  inner = reluInPlace(build, inner);
  const second = { name: "conv2", inputs: middle, outputs: middle, kernel: 3, side: outputSide };
  inner = step(inner, second);
  if (bottleneck) {
    inner = reluInPlace(build, inner);
    inner = step(inner, {
      name: "conv3",
      inputs: middle,
      outputs: outputChannels,
      kernel: 1,
      side: outputSide
    });
  }
  const changes = inputChannels !== outputChannels || inputSide !== outputSide;
  const shortcut = changes ? step(x, {
    name: "downsample",
    inputs: inputChannels,
    outputs: outputChannels,
    kernel: 1,
    side: outputSide
  }) : x;
  return reluInPlace(build, build.add(inner, shortcut));
}
function unetBlock(build, x, layer) {
  const { inputChannels, outputChannels, outputSide: side, conditionSize } = layer;
  const active = (from, channels, name) => {
    const normed = channelNorm(build, from, channels, name);
    return build.pointwise("silu", [normed], [normed]);
  };
  const first = convolve(build, active(x, inputChannels, "norm1"), {
    name: "conv1",
    inputs: inputChannels,
    outputs: outputChannels,
    kernel: 3,
    side,
    bias: true
  });
  const [conditioned] = build.tape.op({
    name: "time_emb_proj",
    inputs: [first],
    makes: [{ elements: first.elements, itemBytes: first.itemBytes }],
    parameters: [
      build.parameter("time_emb_proj", conditionSize * outputChannels, "matrix", outputChannels),
      build.parameter("time_emb_proj.bias", outputChannels, "vector")
    ]
  });
  const second = convolve(build, active(conditioned, outputChannels, "norm2"), {
    name: "conv2",
    inputs: outputChannels,
    outputs: outputChannels,
    kernel: 3,
    side,
    bias: true
  });
  const shortcut = inputChannels === outputChannels ? x : convolve(build, x, {
    name: "conv_shortcut",
    inputs: inputChannels,
    outputs: outputChannels,
    kernel: 1,
    side,
    bias: true
  });
  return build.add(shortcut, second);
}
function unetAttentionLayer(build, x, layer) {
  const { channels, side, heads, depth, contextSize } = layer;
  const { tape, rules } = build;
  tape.part = "attention";
  const tokens = side ** 2;
  const linear = (from, name) => build.linear(from, { name, inputs: channels, outputs: channels, bias: true, group: "other" });
  const norm = { kind: "layer", bias: true, affine: true };
  const shape = {
    heads,
    kvHeads: heads,
    headSize: channels / heads,
    bias: false,
    outputBias: true,
    fused: false,
    rotary: false,
    rotaryShare: 0,
    queryKeyNorm: "none",
    window: 0,
    softCap: false,
    scoreBias: "none",
    bidirectional: true
  };
  const context2 = tape.input(rules.batch * TEXT_TOKENS * contextSize, rules.computeBytes);
  let inner = linear(channelNorm(build, x, channels, "norm"), "proj_in");
  for (let block = 0; block < depth; block++) {
    for (const source of ["self", "text"]) {
      const normed2 = build.norm(inner, channels, norm);
      const made = source === "self" ? attention(build, normed2, {
        shape,
        hidden: channels,
        source: normed2,
        queries: tokens,
        keys: tokens,
        dropout: false,
        maskable: false,
        prefix: "attn1."
      }) : textAttention(build, normed2, context2, { shape, channels, contextSize, tokens });
      inner = build.add(inner, made);
    }
    const normed = build.norm(inner, channels, norm);
    const mlp2 = {
      width: 4 * channels,
      gated: true,
      activation: "gelu",
      bias: true,
      fused: true
    };
    inner = build.add(inner, feedForward(build, normed, channels, mlp2));
  }
  return build.add(x, linear(inner, "proj_out"));
}
var TEXT_TOKENS = 77;
function textAttention(build, x, context2, {
  shape,
  channels,
  contextSize,
  tokens
}) {
  const { tape } = build;
  const project2 = (from, name, inputs) => build.linear(from, { name: `attn2.${name}`, inputs, outputs: channels, group: "attention" });
  const query = project2(x, "q_proj", channels);
  const key = project2(context2, "k_proj", contextSize);
  const value = project2(context2, "v_proj", contextSize);
  const rows = build.rules.batch * tokens;
  const [mixed] = tape.op({
    name: "attention",
    inputs: [query, key, value],
    makes: [{ elements: query.elements, itemBytes: query.itemBytes }],
    saves: [query, key, value, "output"],
    extraSaved: [rows * shape.heads * 4],
    expensive: "attention"
  });
  return build.linear(mixed, {
    name: "attn2.o_proj",
    inputs: channels,
    outputs: channels,
    bias: true,
    group: "attention"
  });
}

// src/plan/blocks/head.ts
var FP323 = 4;
var CHUNKS = 8;
var MOST_CHUNKS = 64;
function headAndLoss(build, x, head, place) {
  const { tape, rules } = build;
  tape.part = "head and loss";
  if (head.kind === "none") {
    if (rules.training) {
      loss(build, x);
    }
    return;
  }
  const rows = head.kind === "class" ? rules.batch : place.rows;
  const width = place.hidden;
  const input = rows * width < x.elements ? tape.slice(x, rows * width) : x;
  const hidden = head.transform ? transform(build, input, width) : input;
  if (rules.training && rules.loss === "fused" && head.kind === "language") {
    fusedLoss(build, hidden, head, width);
    return;
  }
  if (rules.training && rules.loss === "chunked" && head.kind === "language") {
    chunkedLoss(build, hidden, head, width);
    return;
  }
  let logits = project(build, hidden, head, width);
  if (head.softCap) {
    const capped = build.pointwise("tanh", [build.pointwise("scale", [logits], [])], ["output"]);
    logits = build.pointwise("scale", [capped], []);
  }
  if (rules.training) {
    loss(build, logits);
  }
}
function chunkedLoss(build, x, head, width) {
  const { tape, rules } = build;
  const rows = x.elements / width;
  const chunks = Math.max(
    1,
    Math.min(MOST_CHUNKS, rules.lossChunkRows === null ? CHUNKS : rows / rules.lossChunkRows)
  );
  const count2 = Math.ceil(chunks);
  for (let chunk = 0; chunk < count2; chunk++) {
    const own = Math.min(1, chunks - chunk) / chunks;
    const logits = project(build, tape.slice(x, x.elements * own), head, width, {
      counted: chunk === 0,
      // The backward pass begins with the last chunk.
      keepsGradient: chunk === count2 - 1
    });
    loss(build, logits);
  }
}
function transform(build, x, width) {
  const dense = build.linear(x, {
    name: "dense",
    inputs: width,
    outputs: width,
    bias: true,
    group: "other"
  });
  const active = build.activation(dense, "gelu");
  return build.norm(active, width, { kind: "layer", bias: true, affine: true });
}
function project(build, x, head, width, { counted: counted2, keepsGradient } = { counted: true, keepsGradient: true }) {
  const made = build.linear(x, {
    name: "lm_head",
    inputs: width,
    outputs: head.outputs,
    bias: head.bias,
    split: "outputs",
    group: "other",
    again: !keepsGradient
  });
  if (!counted2 && head.bias) {
    build.tape.parameters.pop();
  }
  if (!counted2 || head.tied) {
    const last = build.tape.parameters.findLastIndex(({ name }) => name === "lm_head");
    build.tape.parameters.splice(last, 1);
  }
  return made;
}
function loss(build, logits) {
  const { tape, rules } = build;
  const scalar = { elements: 1, itemBytes: FP323 };
  logits.storage.held = rules.holdsLogits === "made";
  if (rules.lossCompiled) {
    const rows = logits.storage.bytes / logits.itemBytes / Math.max(1, logits.elements);
    tape.op({
      name: "cross_entropy",
      inputs: [logits],
      makes: [scalar],
      saves: [logits],
      extraSaved: [rows * FP323]
    });
    return;
  }
  const wide = build.cast(logits, FP323);
  wide.storage.held ||= rules.holdsLogits === "fp32";
  const [logged] = tape.op({
    name: "log_softmax",
    inputs: [wide],
    makes: [{ elements: logits.elements, itemBytes: wide.itemBytes }],
    saves: ["output"]
  });
  tape.op({ name: "nll_loss", inputs: [logged], makes: [scalar] });
}
function fusedLoss(build, x, head, width) {
  const { rules, tape } = build;
  const weight = build.parameter(
    "lm_head",
    head.outputs / rules.tensorParallel * width,
    "matrix",
    head.outputs
  );
  const rows = x.elements / width;
  const chunk = Math.min(
    rows,
    2 ** Math.ceil(Math.log2(Math.max(1, rows * width / head.outputs)))
  );
  tape.op({
    name: "fused_cross_entropy",
    inputs: [x],
    makes: [{ elements: 1, itemBytes: FP323 }],
    extraSaved: [x.elements * x.itemBytes],
    parameters: [weight],
    forwardTemporary: chunk * head.outputs * (x.itemBytes + FP323)
  });
  if (head.tied) {
    tape.parameters.pop();
  }
}

// src/plan/tape/tape.ts
var Tape = class {
  /** @param compiled pointwise results are recomputed, as torch.compile's partitioner does */
  constructor(compiled2, training) {
    this.compiled = compiled2;
    this.training = training;
  }
  operations = [];
  parameters = [];
  units = [];
  part = "embedding";
  /** Of keys and values that stay after the pass. */
  cachedBytes = 0;
  #storages = 0;
  get unit() {
    return this.units.length - 1;
  }
  /** Starts a layer whose recomputation needs `inputs`. */
  beginUnit(name, inputs, checkpointable) {
    this.endUnit();
    this.units.push({
      name,
      checkpointable,
      inputs: inputs.map(({ storage: storage2 }) => storage2),
      firstOperation: this.operations.length,
      endOperation: this.operations.length
    });
  }
  endUnit() {
    const last = this.units.at(-1);
    if (last !== void 0) {
      last.endOperation = this.operations.length;
    }
  }
  storage(bytes, recomputedFrom = null) {
    this.#storages += 1;
    return { id: this.#storages - 1, bytes, part: this.part, recomputedFrom, held: false };
  }
  /** A tensor that comes from outside: token ids, masks, another tower's output. */
  input(elements, itemBytes, needsGradient = false) {
    return { elements, itemBytes, needsGradient, storage: this.storage(elements * itemBytes) };
  }
  /** A view of `base` with fewer elements. */
  slice(base, elements) {
    const [view] = this.op({
      name: "slice",
      inputs: [base],
      makes: [{ elements, itemBytes: base.itemBytes }],
      view: true
    });
    return view;
  }
  op(sketch) {
    const { inputs, parameters = [] } = sketch;
    const trains = parameters.some(({ trainable }) => trainable);
    const needsGradient = this.training && (trains || inputs.some((each) => each.needsGradient));
    const sources = sketch.pointwise === true ? inputs.map(({ storage: storage2 }) => storage2) : null;
    const outputs = sketch.makes.map(({ elements, itemBytes }, index) => {
      const base = sketch.view === true ? inputs[index] ?? inputs[0] : void 0;
      return {
        elements,
        itemBytes,
        needsGradient,
        storage: base?.storage ?? this.storage(elements * itemBytes, sources)
      };
    });
    this.parameters.push(...parameters);
    this.operations.push({
      name: sketch.name,
      part: this.part,
      unit: this.unit,
      inputs,
      outputs,
      saves: needsGradient ? this.#saved(sketch, outputs) : [],
      parameters,
      forwardTemporary: sketch.forwardTemporary ?? 0,
      backwardTemporary: sketch.backwardTemporary ?? 0,
      expensive: sketch.expensive ?? null,
      passesGradient: sketch.passesGradient === true || sketch.view === true
    });
    return outputs;
  }
  #saved(sketch, outputs) {
    const named = (sketch.saves ?? []).map(
      (each) => each === "output" ? outputs[0].storage : each.storage
    );
    const wanted = this.compiled ? named.flatMap(cheapestSources) : named;
    const extra = (sketch.extraSaved ?? []).filter((bytes) => bytes > 0);
    return [.../* @__PURE__ */ new Set([...wanted, ...extra.map((bytes) => this.storage(bytes))])];
  }
};
function cheapestSources(storage2) {
  if (storage2.recomputedFrom === null) {
    return [storage2];
  }
  const sources = [...new Set(storage2.recomputedFrom.flatMap(cheapestSources))];
  const total = sources.reduce((sum, { bytes }) => sum + bytes, 0);
  return total > 2.5 * storage2.bytes ? [storage2] : sources;
}

// src/plan/blocks/layer_builder.ts
var FP324 = 4;
var LayerBuilder = class {
  constructor(rules) {
    this.rules = rules;
    this.tape = new Tape(rules.compiled, rules.training);
  }
  tape;
  parameter(name, elements, role, rows = 0) {
    const trainable = this.rules.training && this.rules.trainBase;
    return {
      name,
      elements,
      bytes: elements * this.rules.weightBytes,
      trainable,
      quantized: false,
      role,
      rows,
      unit: this.tape.unit
    };
  }
  /** y = x W + b, with its adapter where the job trains one. */
  linear(x, sketch) {
    const { rules, tape } = this;
    const parts = sketch.split === void 0 ? 1 : rules.tensorParallel;
    const inputs = sketch.inputs / (sketch.split === "inputs" ? parts : 1);
    const outputs = sketch.outputs / (sketch.split === "outputs" ? parts : 1);
    const parameters = this.#matrix(sketch, inputs, outputs);
    const [matrix] = parameters;
    const quantized2 = matrix.quantized;
    const casts = rules.autocast && rules.computeBytes < FP324;
    const itemBytes = casts && !quantized2 ? rules.computeBytes : x.itemBytes;
    const needsInput = matrix.trainable;
    const keepsInput = needsInput || quantized2 && rules.quantizedKeepsInput;
    const castsInput = casts && x.itemBytes > itemBytes;
    const castsDown = quantized2 && x.itemBytes > rules.computeBytes;
    const oneMatrix = inputs * outputs * rules.computeBytes;
    const copies = [
      ...castsInput && needsInput ? [x.elements * itemBytes] : [],
      // autocast keeps its copy of a weight until the backward pass has used it.
      ...casts && !quantized2 ? [matrix.elements * itemBytes] : []
    ];
    const [y] = tape.op({
      name: sketch.name,
      inputs: [x],
      makes: [{ elements: x.elements / inputs * outputs, itemBytes }],
      saves: keepsInput && !castsInput ? [x] : [],
      extraSaved: copies,
      parameters,
      forwardTemporary: quantized2 ? oneMatrix + (castsDown ? x.elements / inputs * (inputs + outputs) * rules.computeBytes : 0) : castsInput && !needsInput ? x.elements * itemBytes : 0,
      backwardTemporary: quantized2 ? oneMatrix : 0,
      expensive: "matmul"
    });
    return this.#isTarget(sketch) ? this.#withAdapter(x, y, sketch, inputs, outputs) : y;
  }
  #matrix(sketch, inputs, outputs) {
    const { rules } = this;
    const experts2 = Math.ceil(
      (sketch.experts ?? 1) / (sketch.experts === void 0 ? 1 : rules.expertParallel)
    );
    const elements = inputs * outputs * experts2;
    const quantizes = rules.quantization !== null && sketch.group !== "other" && sketch.group !== "router";
    const role = sketch.experts === void 0 ? "matrix" : "expert";
    const matrix = {
      ...this.parameter(sketch.name, elements, role, outputs * experts2),
      ...sketch.again === true ? { tied: true } : {}
    };
    const stored = quantizes ? {
      ...matrix,
      bytes: elements * (rules.quantization?.bytesPerWeight ?? 0),
      trainable: false,
      quantized: true
    } : matrix;
    return sketch.bias === true ? [stored, this.parameter(`${sketch.name}.bias`, outputs * experts2, "vector")] : [stored];
  }
  #isTarget({ name, group, experts: experts2 }) {
    const targets = this.rules.adapter?.targets;
    if (targets === void 0 || group === "router") {
      return false;
    }
    if (targets === "all") {
      return group !== "other" && experts2 === void 0;
    }
    return targets === "attention" ? group === "attention" : targets.includes(name);
  }
  #withAdapter(x, y, sketch, inputs, outputs) {
    const { adapter } = this.rules;
    if (adapter === null) {
      return y;
    }
    const experts2 = Math.ceil(
      (sketch.experts ?? 1) / (sketch.experts === void 0 ? 1 : this.rules.expertParallel)
    );
    const weight = (part2, elements) => ({
      name: `${sketch.name}.${part2}`,
      elements: elements * experts2,
      bytes: elements * experts2 * adapter.itemBytes,
      trainable: true,
      quantized: false,
      role: "adapter",
      rows: adapter.rank,
      unit: this.tape.unit
    });
    const tokens = x.elements / inputs;
    const source = adapter.dropout ? this.dropout(x) : x;
    const itemBytes = adapter.copiesInput ? this.rules.computeBytes : y.itemBytes;
    const [low] = this.tape.op({
      name: `${sketch.name}.lora_A`,
      inputs: [source],
      makes: [{ elements: tokens * adapter.rank, itemBytes }],
      saves: adapter.copiesInput ? [] : [source],
      extraSaved: adapter.copiesInput ? [source.elements * itemBytes] : [],
      forwardTemporary: adapter.copiesInput ? source.elements * adapter.itemBytes : 0,
      backwardTemporary: adapter.copiesInput ? source.elements * adapter.itemBytes : 0,
      parameters: [weight("lora_A", inputs * adapter.rank)],
      expensive: "matmul"
    });
    const [high] = this.tape.op({
      name: `${sketch.name}.lora_B`,
      inputs: [low],
      makes: [{ elements: tokens * outputs, itemBytes }],
      saves: [low],
      parameters: [weight("lora_B", outputs * adapter.rank)],
      expensive: "matmul"
    });
    const scaled2 = this.pointwise("scale", [high], []);
    return this.add(y, scaled2);
  }
  /** Makes a tensor like the first input. */
  pointwise(name, inputs, saves) {
    const [like] = inputs;
    const itemBytes = Math.max(...inputs.map((input) => input.itemBytes));
    const elements = Math.max(...inputs.map((input) => input.elements));
    const [made] = this.tape.op({
      name,
      inputs,
      makes: [{ elements: Math.max(elements, like.elements), itemBytes }],
      saves,
      pointwise: true
    });
    return made;
  }
  /** a + b: the gradient of both is that of the sum. */
  add(a, b) {
    const [sum] = this.tape.op({
      name: "add",
      inputs: [a, b],
      makes: [
        {
          elements: Math.max(a.elements, b.elements),
          itemBytes: Math.max(a.itemBytes, b.itemBytes)
        }
      ],
      passesGradient: true
    });
    return sum;
  }
  /** The tensor itself where it has that size already. */
  cast(x, itemBytes) {
    if (x.itemBytes === itemBytes) {
      return x;
    }
    const [made] = this.tape.op({
      name: "cast",
      inputs: [x],
      makes: [{ elements: x.elements, itemBytes }],
      pointwise: true
    });
    return made;
  }
  /** A copy with another layout (contiguous(), cat). */
  copy(x, elements = x.elements) {
    const [made] = this.tape.op({
      name: "copy",
      inputs: [x],
      makes: [{ elements, itemBytes: x.itemBytes }],
      pointwise: true
    });
    return made;
  }
  /**
   * Sequence parallelism (Korthikanti et al. 2022, section 4.2.2): all tokens before a divided matrix, this rank's share
   * after it. Each is the identity without it.
   */
  gather(x) {
    return this.rules.sequenceParallel ? this.#resized("all_gather", x, x.elements * this.rules.tensorParallel) : x;
  }
  scatter(x) {
    return this.rules.sequenceParallel ? this.#resized("reduce_scatter", x, x.elements / this.rules.tensorParallel) : x;
  }
  #resized(name, x, elements) {
    const [made] = this.tape.op({
      name,
      inputs: [x],
      makes: [{ elements, itemBytes: x.itemBytes }]
    });
    return made;
  }
  /** A variable of Python holds `x` up to here, although no operation reads it any more. */
  release(x) {
    this.tape.op({ name: "release", inputs: [x], makes: [] });
  }
  /** native_dropout keeps one byte an element. */
  dropout(x) {
    const [made] = this.tape.op({
      name: "dropout",
      inputs: [x],
      makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
      extraSaved: this.rules.compiled ? [] : [x.elements],
      pointwise: true
    });
    return made;
  }
  norm(x, width, shape, name = "norm") {
    const before = this.tape.part;
    this.tape.part = "norm";
    const weights = shape.affine ? [
      this.parameter(`${name}.weight`, width, "vector"),
      ...shape.bias ? [this.parameter(`${name}.bias`, width, "vector")] : []
    ] : [];
    const made = this.#normOf(shape)(x, width, weights);
    this.tape.part = before;
    return made;
  }
  #normOf({ kind, wide = false }) {
    switch (kind) {
      case "rms":
        return (x, width, weights) => this.#rmsNorm(x, width, weights, wide);
      case "layer":
        return this.#layerNorm.bind(this);
      case "layer-parts":
        return this.#layerNormOfParts.bind(this);
    }
  }
  /**
   * As the libraries write it: x32 = x.float(); weight * (x32 * rsqrt(mean(x32²) + eps)).to(x.dtype). Gemma converts last:
   * ((1 + weight.float()) * x32 * rsqrt(...)).to(x.dtype).
   */
  #rmsNorm(x, width, weights, isWide) {
    const rows = x.elements / width;
    const wide = this.cast(x, FP324);
    const [normed] = this.tape.op({
      name: "rms_norm",
      inputs: [wide],
      makes: [{ elements: x.elements, itemBytes: FP324 }],
      saves: [wide],
      extraSaved: [rows * FP324],
      backwardTemporary: x.elements * FP324,
      pointwise: true
    });
    const narrow = isWide ? normed : this.cast(normed, x.itemBytes);
    if (weights.length === 0) {
      return narrow;
    }
    const [scaled2] = this.tape.op({
      name: "norm.weight",
      inputs: [narrow],
      makes: [{ elements: x.elements, itemBytes: narrow.itemBytes }],
      saves: weights.some(({ trainable }) => trainable) ? [narrow] : [],
      parameters: weights,
      pointwise: true
    });
    return this.cast(scaled2, x.itemBytes);
  }
  /** torch.layer_norm: one kernel that keeps its input and two figures a row; fp32 under autocast. */
  #layerNorm(x, width, weights) {
    const input = this.rules.autocast ? this.cast(x, FP324) : x;
    const [made] = this.tape.op({
      name: "layer_norm",
      inputs: [input],
      makes: [{ elements: x.elements, itemBytes: input.itemBytes }],
      saves: [input],
      extraSaved: [x.elements / width * FP324 * 2],
      parameters: weights,
      pointwise: true
    });
    return made;
  }
  /** CohereLayerNorm of transformers: w32 * ((x32 - mean) * rsqrt(mean((x32 - mean)²) + eps)), the difference taken twice. */
  #layerNormOfParts(x, width, weights) {
    const rows = x.elements / width;
    const wide = this.cast(x, FP324);
    const forSquare = this.pointwise("sub", [wide], []);
    this.pointwise("pow", [forSquare], [forSquare]);
    const difference = this.pointwise("sub", [wide], []);
    const [normed] = this.tape.op({
      name: "layer_norm",
      inputs: [difference],
      makes: [{ elements: x.elements, itemBytes: FP324 }],
      saves: [difference],
      extraSaved: [rows * FP324],
      pointwise: true
    });
    const [scaled2] = this.tape.op({
      name: "norm.weight",
      inputs: [normed],
      makes: [{ elements: x.elements, itemBytes: FP324 }],
      saves: weights.some(({ trainable }) => trainable) ? [normed] : [],
      parameters: weights,
      pointwise: true
    });
    return this.cast(scaled2, x.itemBytes);
  }
  activation(x, kind) {
    switch (kind) {
      case "relu":
        return this.pointwise("relu", [x], ["output"]);
      case "relu2": {
        const positive = this.pointwise("relu", [x], ["output"]);
        return this.pointwise("square", [positive], [positive]);
      }
      case "quick_gelu": {
        const gate = this.pointwise("sigmoid", [this.pointwise("scale", [x], [])], ["output"]);
        return this.pointwise("mul", [x, gate], [x, gate]);
      }
      case "gelu_python":
        return this.rules.fusedGelu ? this.pointwise("gelu", [x], [x]) : this.#geluOfParts(x);
      default:
        return this.pointwise(kind, [x], [x]);
    }
  }
  /** NewGELUActivation of transformers: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), one kernel for each operation. */
  #geluOfParts(x) {
    const base = this.rules.autocast ? this.cast(x, FP324) : x;
    const cube = this.pointwise("pow", [base], [base]);
    const inner = this.add(x, this.pointwise("scale", [cube], []));
    const tanh = this.pointwise("tanh", [this.pointwise("scale", [inner], [])], ["output"]);
    const half = this.pointwise("scale", [x], []);
    const onePlus = this.pointwise("add", [tanh], []);
    const made = this.pointwise("mul", [half, onePlus], [half, onePlus]);
    this.release(x);
    return made;
  }
};

// src/plan/blocks/state_space.ts
var FP325 = 4;
var CHUNK_1 = 2048;
var CHUNK_2 = 256;
function stateSpaceLayer(build, x, hidden, { norm, mixer }) {
  const { tape, rules } = build;
  tape.part = "state-space";
  const { inner, state, groups, heads, timeRank, version } = mixer;
  const normed = build.norm(x, hidden, norm);
  const tokens = x.elements / hidden;
  const parallel = rules.tensorParallel;
  const conditions = version === 1 ? 0 : 2 * groups * state + heads;
  const all = build.linear(normed, {
    name: "in_proj",
    inputs: hidden,
    outputs: 2 * inner + conditions,
    bias: mixer.bias,
    split: "outputs",
    group: "attention"
  });
  const mixedChannels = (inner + (version === 1 ? 0 : 2 * groups * state)) / parallel;
  const convolution = [
    build.parameter("conv1d", mixedChannels * mixer.convolution, "vector"),
    ...mixer.convolutionBias ? [build.parameter("conv1d.bias", mixedChannels, "vector")] : []
  ];
  const own = version === 1 ? [
    build.parameter("x_proj", inner / parallel * (timeRank + 2 * state), "matrix", inner),
    build.parameter("dt_proj", inner / parallel * (timeRank + 1), "matrix", inner),
    build.parameter("A_log", inner / parallel * state, "vector"),
    build.parameter("D", inner / parallel, "vector")
  ] : [
    build.parameter("A_log", heads / parallel, "vector"),
    build.parameter("D", heads / parallel, "vector"),
    build.parameter("dt_bias", heads / parallel, "vector"),
    build.parameter("norm", inner / parallel, "vector")
  ];
  const chunks = rules.batch * Math.ceil(rules.sequence / (version === 1 ? CHUNK_1 : CHUNK_2));
  const out = tokens * inner / parallel;
  const [scanned] = tape.op({
    name: "scan",
    inputs: [all],
    makes: [{ elements: out, itemBytes: all.itemBytes }],
    saves: [all, "output"],
    extraSaved: [
      tokens * (version === 1 ? timeRank + 2 * state : heads / parallel) * all.itemBytes,
      chunks * (inner / parallel) * state * FP325
    ],
    parameters: [...convolution, ...own],
    forwardTemporary: 2 * out * all.itemBytes,
    backwardTemporary: 3 * out * all.itemBytes,
    expensive: "attention"
  });
  const made = build.linear(scanned, {
    name: "out_proj",
    inputs: inner,
    outputs: hidden,
    bias: mixer.bias,
    split: "inputs",
    group: "attention"
  });
  return build.add(x, made);
}

// src/plan/blocks/transformer.ts
function transformerLayer(build, x, layer, place) {
  if (layer.parallel) {
    return parallelLayer(build, x, layer, place);
  }
  let stream = x;
  const part2 = (run) => {
    stream = residual(
      build,
      stream,
      layer,
      place.hidden,
      (input) => build.scatter(run(build.gather(input)))
    );
  };
  const { attention: own, cross, mlp: mlp2 } = layer;
  if (own !== null) {
    part2((input) => attend(build, input, own, layer, place));
  }
  if (cross !== null && place.other !== null) {
    const { other: other2 } = place;
    part2((input) => attend(build, input, cross, layer, place, other2));
  }
  if (mlp2 !== null) {
    part2((input) => feedForward(build, input, place.hidden, mlp2));
  }
  return stream;
}
function attend(build, input, shape, layer, { hidden, positions, isText }, other2 = null) {
  const context2 = shape.bidirectional || !isText ? positions : Math.max(positions, build.rules.context);
  return attention(build, input, {
    shape,
    hidden,
    source: other2?.output ?? input,
    queries: positions,
    keys: other2?.positions ?? context2,
    dropout: build.rules.dropout && layer.attentionDropout,
    maskable: isText,
    prefix: other2 === null ? "" : "cross_"
  });
}
function residual(build, x, layer, hidden, run) {
  const { placement, norm } = layer;
  const dropped = (made) => layer.dropout && build.rules.dropout ? build.dropout(made) : made;
  const held = (input) => {
    const made = run(input);
    build.release(input);
    return made;
  };
  switch (placement) {
    case "after-residual":
      return build.norm(build.add(x, dropped(run(x))), hidden, norm);
    case "after":
      return build.add(x, build.norm(run(x), hidden, norm));
    case "sandwich":
      return build.add(x, build.norm(held(build.norm(x, hidden, norm)), hidden, norm));
    default:
      return build.add(
        x,
        scaled(build, dropped(held(modulated(build, x, layer, hidden))), layer, hidden)
      );
  }
}
function modulated(build, x, layer, hidden) {
  const normed = build.norm(x, hidden, layer.norm);
  if (layer.modulation === 0) {
    return normed;
  }
  const [shifted] = build.tape.op({
    name: "modulate",
    inputs: [normed],
    makes: [{ elements: normed.elements, itemBytes: normed.itemBytes }],
    saves: [normed],
    parameters: [
      // Each of a layer's two parts has half of the modulation's outputs.
      build.parameter("modulation", hidden * (layer.modulation / 2) * hidden, "matrix", hidden),
      build.parameter("modulation.bias", layer.modulation / 2 * hidden, "vector")
    ],
    pointwise: true
  });
  return shifted;
}
function scaled(build, made, layer, hidden) {
  if (layer.scales === 0 && layer.modulation === 0) {
    return made;
  }
  const [product] = build.tape.op({
    name: "scale",
    inputs: [made],
    makes: [{ elements: made.elements, itemBytes: made.itemBytes }],
    saves: [made],
    parameters: layer.scales > 0 ? [build.parameter("scale", hidden, "vector")] : [],
    pointwise: true
  });
  return product;
}
function parallelLayer(build, x, layer, place) {
  const { hidden } = place;
  const dropped = (made) => layer.dropout && build.rules.dropout ? build.dropout(made) : made;
  const first = build.gather(build.norm(x, hidden, layer.norm));
  const second = layer.parallelNorms === 2 ? build.gather(build.norm(x, hidden, layer.norm)) : first;
  let sum = x;
  if (layer.attention !== null) {
    sum = build.add(
      sum,
      dropped(build.scatter(attend(build, first, layer.attention, layer, place)))
    );
  }
  if (layer.mlp !== null) {
    sum = build.add(sum, dropped(build.scatter(feedForward(build, second, hidden, layer.mlp))));
  }
  return sum;
}

// src/plan/blocks/model_tape.ts
var INDEX_BYTES = 8;
function modelTape(model, rules, stage) {
  const build = new LayerBuilder(rules);
  let other2 = null;
  const towers = model.towers;
  for (const [index, tower] of towers.entries()) {
    const last = index === towers.length - 1;
    const positions = tower.positions === "sequence" ? rules.sequence : tower.positions;
    const output = towerTape(build, tower, {
      model,
      positions,
      other: tower.layers.some(({ layer }) => layer.kind === "transformer" && layer.cross !== null) ? other2 : null,
      stage
    });
    other2 = { output, positions };
    if (last && stage.index === stage.count - 1) {
      build.tape.beginUnit("head", [output], false);
      const rows = rules.training ? rules.batch * positions : rules.batch;
      headAndLoss(build, output, model.head, { hidden: tower.hidden, rows });
    }
  }
  build.tape.endUnit();
  return build;
}
function towerTape(build, tower, place) {
  const { tape, rules } = build;
  const { stage, positions } = place;
  tape.beginUnit(`${tower.name}.embedding`, [], false);
  const rows = rules.batch * positions;
  const residualBytes = rules.autocast ? 4 : rules.computeBytes;
  let x = stage.index === 0 ? embed(build, tower, place, rows) : tape.input(rows * tower.hidden, residualBytes, rules.training);
  if (rules.inputNeedsGradient) {
    x = { ...x, needsGradient: true };
  }
  x = build.scatter(x);
  if (!rules.training) {
    x.storage.held = true;
    holdMasks(build, tower, positions);
  }
  const layers = tower.layers.flatMap(
    ({ count: count2, layer }) => Array.from({ length: count2 }, () => layer)
  );
  const from = Math.floor(layers.length * stage.index / stage.count);
  const to = Math.floor(layers.length * (stage.index + 1) / stage.count);
  for (const [index, layer] of layers.slice(from, to).entries()) {
    tape.beginUnit(`${tower.name}.${from + index}`, [x], true);
    const input = x;
    x = oneLayer(build, x, layer, { tower, place });
    build.release(input);
  }
  if (tower.finalNorm !== null && stage.index === stage.count - 1) {
    tape.beginUnit(`${tower.name}.norm`, [x], false);
    x = build.norm(x, tower.hidden, tower.finalNorm);
  }
  return build.gather(x);
}
function holdMasks(build, tower, positions) {
  const { masks, batch, attention: attention2 } = build.rules;
  if (masks === "none" || attention2 !== "sdpa" || tower.positions !== "sequence") {
    return;
  }
  const windows = new Set(
    tower.layers.map(
      ({ layer }) => layer.kind === "transformer" ? layer.attention?.window ?? 0 : 0
    )
  );
  for (const window2 of windows) {
    if (masks === "all" || window2 > 0 && window2 < positions) {
      const elements = (masks === "all" ? batch : 1) * positions ** 2;
      const [mask] = build.tape.op({
        name: "mask",
        inputs: [],
        makes: [{ elements, itemBytes: 1 }]
      });
      mask.storage.held = true;
    }
  }
}
function oneLayer(build, x, layer, { tower, place }) {
  build.tape.part = "residual";
  switch (layer.kind) {
    case "transformer":
      return transformerLayer(build, x, layer, {
        hidden: tower.hidden,
        positions: place.positions,
        isText: tower.positions === "sequence",
        other: place.other
      });
    case "state-space":
      return stateSpaceLayer(build, x, tower.hidden, layer);
    case "convolution":
      return convolutionLayer(build, x, layer);
    case "unet-attention":
      return unetAttentionLayer(build, x, layer);
  }
}
function embed(build, tower, { model, positions }, rows) {
  const { tape, rules } = build;
  tape.part = "embedding";
  const itemBytes = rules.autocast ? 4 : rules.computeBytes;
  const isText = tower.positions === "sequence" || tower.stems.length === 0;
  let x = null;
  for (const [index, table] of tower.embeddings.entries()) {
    const tied = index === 0 && model.head.tied && tower === model.towers.at(-1);
    x = addRows(build, x, table, { rows, itemBytes, tied });
  }
  for (const stem of tower.stems) {
    const source = tape.input(rows * stem.input, itemBytes);
    const made = build.linear(source, {
      name: stem.name,
      inputs: stem.input,
      outputs: stem.output,
      bias: stem.bias,
      group: "other"
    });
    x = x === null || stem.output !== tower.hidden ? made : build.add(made, x);
  }
  if (tower.otherParameters > 0) {
    tape.parameters.push(
      build.parameter(`${tower.name}.other`, tower.otherParameters, "matrix", 1)
    );
  }
  if (x === null) {
    const channels = firstChannels(tower);
    return tape.input(rules.batch * channels.elements, itemBytes);
  }
  if (tower.embeddingNorm !== null) {
    x = build.norm(x, tower.hidden, tower.embeddingNorm);
  }
  return tower.embeddingDropout && rules.dropout && isText && positions > 0 ? build.dropout(x) : x;
}
function firstChannels({ layers }) {
  const [first] = layers;
  const layer = first?.layer;
  return {
    elements: layer?.kind === "convolution" ? layer.inputChannels * layer.inputSide ** 2 : 1
  };
}
function addRows(build, x, table, { rows, itemBytes, tied }) {
  const { tape, rules } = build;
  const tableRows = Math.ceil(table.rows / rules.tensorParallel);
  const parameter = {
    ...build.parameter(table.name, tableRows * table.width, "embedding", tableRows),
    ...tied || table.shared === true ? { tied: true } : {}
  };
  const [made] = tape.op({
    name: table.name,
    inputs: [],
    makes: [{ elements: rows * table.width, itemBytes }],
    extraSaved: [rows * INDEX_BYTES],
    parameters: [parameter]
  });
  if (table.shared === true) {
    tape.parameters.pop();
  }
  return x === null ? made : build.add(x, made);
}

// src/plan/serve/attention_cache.ts
function cacheShape(model, itemBytes, tensorParallel = 1, leavesOneOut = false) {
  const windows = /* @__PURE__ */ new Map();
  let bytesPerToken = 0;
  let bytesPerSequence = 0;
  const tower = cachedTower(model);
  const encoder2 = model.towers.length > 1 ? model.towers.at(-2) : void 0;
  for (const { count: count2, layer } of tower?.layers ?? []) {
    const own = layer.kind === "transformer" ? layer.attention : null;
    if (own !== null) {
      const bytes = count2 * bytesOfToken(own, itemBytes, tensorParallel);
      if (own.window > 0) {
        const window2 = own.window - (leavesOneOut ? 1 : 0);
        windows.set(window2, (windows.get(window2) ?? 0) + bytes);
      } else {
        bytesPerToken += bytes;
      }
    }
    bytesPerSequence += count2 * perSequence(layer, encoder2, itemBytes, tensorParallel);
  }
  return {
    bytesPerToken,
    windows: [...windows].map(([window2, bytes]) => ({ window: window2, bytesPerToken: bytes })),
    bytesPerSequence
  };
}
function cachedTower({ towers, head }) {
  const last = towers.at(-1);
  const isCausal = last?.layers.some(
    ({ layer }) => layer.kind === "state-space" || layer.kind === "transformer" && layer.attention?.bidirectional === false
  );
  return head.kind === "language" && isCausal === true ? last : void 0;
}
function bytesOfToken(shape, itemBytes, tensorParallel) {
  if (shape.latent) {
    return (shape.latent.kvRank + shape.latent.rotarySize) * itemBytes;
  }
  const heads = Math.max(1, shape.kvHeads / tensorParallel);
  return heads * (shape.headSize + (shape.valueHeadSize ?? shape.headSize)) * itemBytes;
}
var STATE_BYTES = 4;
function perSequence(layer, encoder2, itemBytes, tensorParallel) {
  if (layer.kind === "state-space") {
    const { inner, state, convolution, groups, version } = layer.mixer;
    const convolved = (inner + (version === 2 ? 2 * groups * state : 0)) * convolution * itemBytes;
    return (inner * state * STATE_BYTES + convolved) / tensorParallel;
  }
  if (layer.kind !== "transformer" || layer.cross === null) {
    return 0;
  }
  const positions = typeof encoder2?.positions === "number" ? encoder2.positions : 0;
  return positions * bytesOfToken(layer.cross, itemBytes, tensorParallel);
}
function bytesOfSequence(cache, tokens, block = 1) {
  const whole2 = (count2) => Math.ceil(count2 / block) * block;
  const windowed = cache.windows.reduce(
    (sum, { window: window2, bytesPerToken }) => sum + bytesPerToken * whole2(Math.min(tokens, window2)),
    0
  );
  return cache.bytesPerToken * whole2(tokens) + windowed + cache.bytesPerSequence;
}
function bytesOfNextToken(cache) {
  return cache.windows.reduce((sum, { bytesPerToken }) => sum + bytesPerToken, cache.bytesPerToken);
}

// src/plan/device/allocator.ts
function part(name, bytes, width, sketch) {
  return {
    part: name,
    bytes: Math.round(bytes),
    low: Math.round(bytes * Math.max(0, 1 - width)),
    high: Math.round(bytes * (1 + width)),
    formula: sketch.formula,
    source: sketch.source,
    where: sketch.where ?? "allocated"
  };
}
var GAPS = 0.05;
var SEGMENT_ROUNDING = 4e-3;
var LASTING = [
  "weights",
  "adapters",
  "optimizer",
  "kv cache",
  "unused kv cache"
];
function allocatorParts(parts, { gpu: gpu2, threads, outsideBytes, replayedGaps: replayedGaps2 }) {
  const made = [
    part("workspace", threads * gpu2.workspaceBytes, 0.6, {
      formula: `cuBLAS and cuBLASLt workspaces${threads === 2 ? ", of the forward and of the backward thread" : ""}`,
      source: "torch.cuda: CUBLAS_WORKSPACE_CONFIG, 8.125 MiB, 32 MiB from Hopper on; 1 MiB for Lt"
    }),
    fragmentationPart(parts, replayedGaps2),
    contextPart(gpu2)
  ];
  if (outsideBytes > 0) {
    made.push(
      part("communication", outsideBytes, 0.6, {
        formula: "NCCL buffers of each process group",
        source: "NCCL_BUFFSIZE, NCCL_MAX_NCHANNELS",
        where: "device"
      })
    );
  }
  return made;
}
function fragmentationPart(parts, replayed) {
  const sum = (wanted) => parts.reduce((total, each) => total + (wanted(each.part) ? each.bytes : 0), 0);
  const source = "CUDACachingAllocator.cpp: 512 B blocks, segments of 2 MiB, 20 MiB or one tensor";
  if (replayed === void 0) {
    const gaps2 = sum((name) => !LASTING.includes(name)) * GAPS + sum((name) => LASTING.includes(name)) * SEGMENT_ROUNDING;
    return {
      ...part("fragmentation", gaps2, 1, {
        formula: `${GAPS * 100} % of short-lived tensors, ${SEGMENT_ROUNDING * 100} % of weights and cache`,
        source,
        where: "reserved"
      }),
      high: Math.round(gaps2 * 2.6)
    };
  }
  const all = sum(() => true);
  const gaps = all * replayed;
  return {
    ...part("fragmentation", gaps, 0.75, {
      formula: `the caching allocator, replayed, reserves ${(replayed * 100).toFixed(1)} % more than it allocates`,
      source,
      where: "reserved"
    }),
    high: Math.round(gaps * 2 + all * UNREPLAYED)
  };
}
var UNREPLAYED = 0.02;
var EAGER_LOADING = 2 ** 30;
function contextPart(gpu2) {
  const { contextBytes } = gpu2;
  if (gpu2.contextMeasured === true) {
    return part("cuda context", contextBytes, 0.1, {
      formula: "as given with --cuda-context",
      source: "your measurement",
      where: "device"
    });
  }
  const made = part("cuda context", contextBytes, 0.35, {
    formula: `CUDA context and loaded kernels on ${gpu2.name === "" ? "a GPU of this size" : gpu2.name}`,
    source: "nvidia-smi before the first tensor; kernels load lazily from CUDA 11.7 on",
    where: "device"
  });
  const loadsAll = contextBytes > EAGER_LOADING;
  return {
    ...made,
    low: loadsAll ? Math.min(made.low, contextBytes - EAGER_LOADING) : made.low,
    high: made.high + (gpu2.old && !loadsAll ? EAGER_LOADING : 0)
  };
}
function figureOf(parts, level, known = true) {
  const least = known ? LEAST_WIDTH : LEAST_WIDTH_UNKNOWN;
  const levels = ["allocated", "reserved", "device"];
  const counted2 = parts.filter(({ where }) => levels.indexOf(where) <= levels.indexOf(level));
  const bytes = counted2.reduce((sum, each) => sum + each.bytes, 0);
  const width = (of) => {
    const linear = counted2.reduce((sum, each) => sum + of(each), 0);
    const squares = counted2.reduce((sum, each) => sum + of(each) ** 2, 0);
    return (linear + Math.sqrt(squares)) / 2;
  };
  const below = width((each) => each.bytes - each.low);
  const above = width((each) => each.high - each.bytes);
  return {
    bytes,
    low: Math.max(0, Math.round(bytes - Math.max(below, least * bytes))),
    high: Math.round(bytes + Math.max(above, least * bytes))
  };
}
var LEAST_WIDTH = 0.12;
var LEAST_WIDTH_UNKNOWN = 0.25;

// src/plan/job/options.ts
var METHODS = ["full", "lora", "qlora"];
var COMPUTE_DTYPES = ["bf16", "fp16", "fp32"];
var QUANTIZATIONS = ["nf4", "nf4-dq", "int8", "int4", "fp8"];
var SCHEDULES = ["gpipe", "1f1b", "interleaved"];
var LIBRARIES = ["transformers", "torchtune", "torchtitan", "litgpt"];
var ENGINES = ["transformers", "vllm", "sglang", "tgi", "llama.cpp"];
var QUANTIZED_BYTES = {
  // 4 bit and an fp32 scale for 64 weights: bitsandbytes without bnb_4bit_use_double_quant.
  nf4: 0.5 + 4 / 64,
  // An int8 scale for 64 weights, an fp32 scale for 256 scales (QLoRA, section 3: double quantization).
  "nf4-dq": 0.5 + 1 / 64 + 4 / (64 * 256),
  // One fp32 scale for each row.
  int8: 1 + 4 / 4096,
  // Groups of 128 with an fp16 scale and a 4-bit zero point (GPTQ, AWQ).
  int4: 0.5 + 2.5 / 128,
  fp8: 1 + 4 / 16384
};
function bytesOfCompute(dtype) {
  return dtype === "fp32" ? 4 : 2;
}
function quantizationOf(model, { quantize, mode, ...options }) {
  if (quantize !== null) {
    const dtype = quantize === "nf4-dq" ? "nf4" : quantize;
    return { dtype, bytesPerWeight: QUANTIZED_BYTES[quantize] };
  }
  if (mode === "train" && options.method === "full") {
    return null;
  }
  return model.stored.quantization;
}
function deviceCount(options) {
  if (options.mode === "serve") {
    return Math.max(options.tensor * options.pipeline, options.expert);
  }
  const { sharding, tensor, context: context2, pipeline, expert } = options.parallelism;
  return Math.max(sharding.devices * tensor * context2 * pipeline, expert);
}

// src/plan/tape/simulate.ts
function simulateStep(tape, rules, trace) {
  return new Simulation(tape, rules, trace).run();
}
var Simulation = class {
  #tape;
  #rules;
  #trace;
  /** How many operations that have not run backwards yet keep a storage. */
  #keepers = /* @__PURE__ */ new Map();
  #saved = /* @__PURE__ */ new Map();
  #gradientOf = /* @__PURE__ */ new Map();
  #lastUse;
  #heldOnly = /* @__PURE__ */ new Set();
  #savedBytes = 0;
  #working = 0;
  #gradients = 0;
  #recomputed = 0;
  #communication = 0;
  #gathered = [];
  #peak = null;
  constructor(tape, rules, trace) {
    this.#tape = tape;
    this.#rules = rules;
    this.#trace = trace;
    this.#lastUse = lastUses(tape.operations);
    this.#gradients = rules.gradientsStay ? this.#allGradients() : 0;
    if (rules.gradientsStay) {
      for (const parameter of tape.parameters) {
        if (parameter.trainable) {
          trace?.hold(parameter, rules.gradientBytesOf(parameter));
        }
      }
    }
  }
  run() {
    for (const unit of this.#tape.units) {
      this.#forward(unit);
    }
    const savedAfterForward = new Map(this.#saved);
    let savedBytes = this.#savedBytes;
    for (const storage2 of this.#heldOnly) {
      savedBytes -= storage2.bytes;
      savedAfterForward.set(
        storage2.part,
        (savedAfterForward.get(storage2.part) ?? 0) - storage2.bytes
      );
    }
    if (this.#tape.training) {
      for (const unit of [...this.#tape.units].reverse()) {
        this.#backward(unit);
      }
    }
    return {
      peak: this.#peak ?? this.#moment("start", 0),
      savedAfterForward,
      savedBytes,
      recomputedBytes: this.#recomputed,
      gradientBytes: this.#rules.gradientsConsumed ? 0 : this.#allGradients(),
      operations: this.#tape.operations.length
    };
  }
  #allGradients() {
    return this.#tape.parameters.reduce(
      (sum, each) => sum + (each.trainable ? this.#rules.gradientBytesOf(each) : 0),
      0
    );
  }
  #recomputes(unit) {
    return this.#tape.training && unit.checkpointable && this.#rules.checkpointing !== "none";
  }
  /** Gathered weights and buckets while `unit` runs. What a unit needs beyond the one before it is a block of its own. */
  #communicate(unit, backward) {
    this.#communication = this.#rules.communicationOf(unit, backward);
    if (this.#trace === void 0) {
      return;
    }
    let held = this.#gathered.reduce((sum, { bytes }) => sum + bytes, 0);
    while (held > this.#communication) {
      const last = this.#gathered.pop();
      held -= last.bytes;
      this.#trace.drop(last);
    }
    if (held < this.#communication) {
      const block = { bytes: this.#communication - held };
      this.#gathered.push(block);
      this.#trace.hold(block, block.bytes);
    }
  }
  #forward(unit) {
    this.#communicate(unit, false);
    const recomputes = this.#recomputes(unit);
    if (recomputes && !this.#rules.offloadsInputs) {
      for (const storage2 of unit.inputs) {
        this.#keep(storage2);
      }
    }
    const kept = recomputes ? this.#selected(unit) : null;
    this.#runForward(
      unit,
      kept === null ? (op) => op.saves : (op) => kept.get(op) ?? [],
      "forward pass"
    );
  }
  /** What selective checkpointing keeps of a unit: attention and every second product (the policy of torchtitan). */
  #selected(unit) {
    const kept = /* @__PURE__ */ new Map();
    if (this.#rules.checkpointing !== "selective") {
      return kept;
    }
    let products = 0;
    for (const op of this.#operationsOf(unit)) {
      if (op.expensive === "matmul") {
        products += 1;
      }
      if (op.expensive === "attention" || op.expensive === "matmul" && products % 2 === 1) {
        kept.set(
          op,
          op.outputs.map(({ storage: storage2 }) => storage2)
        );
      }
    }
    return kept;
  }
  #operationsOf({ firstOperation, endOperation }) {
    return this.#tape.operations.slice(firstOperation, endOperation);
  }
  #runForward(unit, savedBy, pass) {
    const live = /* @__PURE__ */ new Map();
    const enter = (storage2, index) => {
      if (!live.has(storage2)) {
        live.set(storage2, this.#lastUse.get(storage2) ?? index);
        this.#working += storage2.bytes;
        this.#trace?.hold(storage2, storage2.bytes);
      }
    };
    for (const storage2 of unit.inputs) {
      enter(storage2, unit.firstOperation);
    }
    for (const [offset, op] of this.#operationsOf(unit).entries()) {
      const index = unit.firstOperation + offset;
      for (const { storage: storage2 } of op.outputs) {
        enter(storage2, index);
        if (storage2.held && pass === "forward pass") {
          this.#keep(storage2);
          this.#heldOnly.add(storage2);
        }
      }
      for (const storage2 of savedBy(op)) {
        this.#keep(storage2);
        this.#heldOnly.delete(storage2);
      }
      let twice = 0;
      for (const storage2 of live.keys()) {
        twice += (this.#keepers.get(storage2) ?? 0) > 0 ? storage2.bytes : 0;
      }
      this.#note(op.part === "head and loss" ? "loss" : pass, op.forwardTemporary - twice);
      this.#trace?.pass(op.forwardTemporary);
      for (const [storage2, last] of live) {
        if (last <= index) {
          live.delete(storage2);
          this.#working -= storage2.bytes;
          this.#trace?.drop(storage2);
        }
      }
    }
    for (const storage2 of live.keys()) {
      this.#working -= storage2.bytes;
      this.#trace?.drop(storage2);
    }
  }
  #keep(storage2) {
    const keepers = this.#keepers.get(storage2) ?? 0;
    this.#keepers.set(storage2, keepers + 1);
    if (keepers === 0) {
      this.#trace?.hold(storage2, storage2.bytes);
      this.#savedBytes += storage2.bytes;
      this.#saved.set(storage2.part, (this.#saved.get(storage2.part) ?? 0) + storage2.bytes);
    }
  }
  #release(storage2) {
    const keepers = (this.#keepers.get(storage2) ?? 0) - 1;
    this.#keepers.set(storage2, Math.max(0, keepers));
    if (keepers === 0) {
      this.#trace?.drop(storage2);
      this.#savedBytes -= storage2.bytes;
      this.#saved.set(storage2.part, (this.#saved.get(storage2.part) ?? 0) - storage2.bytes);
    }
  }
  #backward(unit) {
    this.#communicate(unit, true);
    const recomputes = this.#recomputes(unit);
    if (recomputes) {
      const before = this.#savedBytes;
      const kept = this.#selected(unit);
      this.#runForward(unit, (op) => op.saves, `backward pass of ${unit.name}`);
      this.#recomputed = Math.max(this.#recomputed, this.#savedBytes - before);
      for (const storages of kept.values()) {
        for (const storage2 of storages) {
          this.#release(storage2);
        }
      }
    }
    for (const op of [...this.#operationsOf(unit)].reverse()) {
      this.#backwardOperation(op, unit);
    }
    if (recomputes && !this.#rules.offloadsInputs) {
      for (const storage2 of unit.inputs) {
        this.#release(storage2);
      }
    }
  }
  #backwardOperation(op, unit) {
    const needs = op.outputs.some((output) => output.needsGradient);
    if (needs) {
      const temporary = this.#parameterGradients(op);
      let accumulating = 0;
      for (const input of op.inputs) {
        if (input.needsGradient) {
          accumulating += this.#giveGradient(op, input.storage);
        }
      }
      this.#note(
        op.part === "head and loss" ? "backward pass of the loss" : `backward pass of ${unit.name}`,
        op.backwardTemporary + temporary + accumulating
      );
      this.#trace?.pass(op.backwardTemporary, temporary, accumulating);
      for (const { storage: storage2 } of op.outputs) {
        const isInput = op.inputs.some((input) => input.storage === storage2);
        const gradient = this.#gradientOf.get(storage2);
        if (!isInput && gradient !== void 0) {
          this.#working -= gradient.bytes;
          this.#trace?.drop(gradient);
          this.#gradientOf.delete(storage2);
        }
      }
    }
    for (const storage2 of op.saves) {
      this.#release(storage2);
    }
  }
  /** @returns bytes that live only while the gradient is added to another one */
  #giveGradient(op, storage2) {
    const bytes = storage2.bytes;
    if (this.#gradientOf.has(storage2)) {
      return op.passesGradient ? 0 : bytes;
    }
    const from = op.outputs[0]?.storage;
    const moved = from === void 0 ? void 0 : this.#gradientOf.get(from);
    if (op.passesGradient && from !== void 0 && moved?.bytes === bytes) {
      this.#gradientOf.delete(from);
      this.#gradientOf.set(storage2, moved);
      return 0;
    }
    const gradient = { bytes };
    this.#gradientOf.set(storage2, gradient);
    this.#trace?.hold(gradient, bytes);
    this.#working += bytes;
    return 0;
  }
  /** @returns temporary bytes: a tied matrix's second gradient, or one that the optimizer consumes at once */
  #parameterGradients(op) {
    let temporary = 0;
    for (const parameter of op.parameters) {
      if (!parameter.trainable) {
        continue;
      }
      const bytes = this.#rules.gradientBytesOf(parameter);
      if (parameter.tied === true || this.#rules.gradientsConsumed || this.#rules.gradientsStay) {
        temporary += bytes;
      } else {
        this.#trace?.hold(parameter, bytes);
        this.#gradients += bytes;
      }
    }
    return temporary;
  }
  #note(where, extra) {
    const bytes = this.#total(extra);
    if (this.#peak === null || bytes > this.#peak.bytes) {
      this.#peak = this.#moment(where, extra);
    }
  }
  #moment(where, extra) {
    return {
      where,
      bytes: this.#total(extra),
      saved: new Map(this.#saved),
      working: this.#working + extra,
      gradients: this.#gradients,
      communication: this.#communication
    };
  }
  #total(extra) {
    return this.#savedBytes + this.#working + this.#gradients + this.#communication + extra;
  }
};
function lastUses(operations) {
  const last = /* @__PURE__ */ new Map();
  for (const [index, op] of operations.entries()) {
    for (const { storage: storage2 } of [...op.inputs, ...op.outputs]) {
      last.set(storage2, index);
    }
  }
  return last;
}

// src/plan/tape/trace.ts
var AllocationTrace = class {
  /** `id + 1` for an allocation, `-(id + 1)` for a free. */
  events = [];
  /** Bytes of each allocation, by id. */
  bytes = [];
  #held = /* @__PURE__ */ new Map();
  /** One more reason to hold `key`. */
  hold(key, bytes) {
    const held = this.#held.get(key);
    if (held !== void 0) {
      held.reasons += 1;
      return;
    }
    this.#held.set(key, { id: this.#allocate(bytes), reasons: 1 });
  }
  /** One reason less. */
  drop(key) {
    const held = this.#held.get(key);
    if (held === void 0) {
      return;
    }
    held.reasons -= 1;
    if (held.reasons === 0) {
      this.#held.delete(key);
      this.events.push(-(held.id + 1));
    }
  }
  /** The memory of `from` belongs to `to` from now on. */
  move(from, to) {
    const held = this.#held.get(from);
    if (held !== void 0) {
      this.#held.delete(from);
      this.#held.set(to, held);
    }
  }
  /** Allocations that live only while one operation runs. */
  pass(...sizes2) {
    const ids = sizes2.filter((bytes) => bytes > 0).map((bytes) => this.#allocate(bytes));
    for (const id of ids) {
      this.events.push(-(id + 1));
    }
  }
  /** Frees what the step still holds, gradients of parameters included. */
  end() {
    for (const { id } of this.#held.values()) {
      this.events.push(-(id + 1));
    }
    this.#held.clear();
  }
  #allocate(bytes) {
    const id = this.bytes.length;
    this.bytes.push(bytes);
    this.events.push(id + 1);
    return id;
  }
};

// src/plan/train/block_rules.ts
var HELD_LOGITS = {
  transformers: "made",
  torchtune: "none",
  torchtitan: "none",
  litgpt: "fp32"
};
function masksOf({ attention: attention2, padded: padded2, library }, sequences) {
  if (attention2 === "flash" || library !== "transformers") {
    return "none";
  }
  return padded2 && sequences > 1 ? "all" : "windows";
}
function trainingRules(model, options) {
  const { method, parallelism } = options;
  const computeBytes = bytesOfCompute(options.dtype);
  const sharded = parallelism.sharding.kind !== "ddp";
  const trainBase = method === "full";
  const sequence = Math.ceil(options.sequence / parallelism.context);
  const autocast = options.fp32Weights && computeBytes < 4 && !sharded;
  const isPeft = options.library === "transformers";
  return {
    training: true,
    batch: options.batch,
    sequence,
    context: options.sequence,
    computeBytes,
    weightBytes: autocast || computeBytes === 4 ? 4 : 2,
    autocast,
    quantization: quantizationOf(model, options),
    trainBase,
    adapter: trainBase ? null : {
      rank: options.adapterRank,
      targets: options.adapterTargets,
      // PEFT makes adapters of 16-bit models in fp32 (`autocast_adapter_dtype`).
      itemBytes: autocast || isPeft ? 4 : computeBytes,
      dropout: options.adapterDropout,
      copiesInput: computeBytes < 4 && (autocast || isPeft)
    },
    inputNeedsGradient: !trainBase && options.checkpointing !== "none",
    attention: options.attention,
    masks: masksOf(options, options.batch),
    fusesGroups: computeBytes < 4 && !options.gpu.old,
    cachesKeys: false,
    repeatsGroups: !isPeft && options.attention !== "flash",
    loss: options.loss,
    compiled: options.compiled,
    lossCompiled: options.compiled && (!sharded || options.library === "torchtune"),
    fusedGelu: options.library !== "transformers",
    fusedProjection: options.library === "litgpt",
    // lm_head_chunk_size of litgpt's finetuning scripts.
    lossChunkRows: options.library === "litgpt" ? 128 : null,
    holdsLogits: HELD_LOGITS[options.library],
    // litgpt's published figures are those of bitsandbytes 0.41.
    quantizedKeepsInput: options.library === "litgpt",
    dropout: options.dropout,
    tensorParallel: parallelism.tensor,
    sequenceParallel: parallelism.sequenceParallel && parallelism.tensor > 1,
    expertParallel: parallelism.expert,
    imbalance: options.imbalance
  };
}

// src/plan/device/caching_allocator.ts
var MIB2 = 2 ** 20;
var ROUND = 512;
var SMALL_REQUEST = MIB2;
var SMALL_SEGMENT = 2 * MIB2;
var LARGE_SEGMENT = 20 * MIB2;
var OWN_SEGMENT_FROM = 10 * MIB2;
var SEGMENT_ROUND = 2 * MIB2;
var CachingAllocator = class {
  /** @param limit bytes that the device has for this process: free segments are returned before it is exceeded */
  constructor(limit) {
    this.limit = limit;
  }
  #allocated = 0;
  #reserved = 0;
  #blocks = 0;
  #small = [];
  #large = [];
  peakAllocated = 0;
  peakReserved = 0;
  allocate(request) {
    const bytes = Math.max(ROUND, Math.ceil(request / ROUND) * ROUND);
    const isSmall = bytes <= SMALL_REQUEST;
    const pool2 = isSmall ? this.#small : this.#large;
    const at = firstOf(pool2, bytes, -1);
    const found = pool2[at];
    const block = found ?? this.#newSegment(bytes);
    if (found !== void 0) {
      pool2.splice(at, 1);
      found.free = false;
    }
    const rest = block.bytes - bytes;
    if (isSmall ? rest >= ROUND : rest > SMALL_REQUEST) {
      this.#split(block, bytes, pool2);
    }
    this.#allocated += block.bytes;
    this.peakAllocated = Math.max(this.peakAllocated, this.#allocated);
    return block;
  }
  free(block) {
    this.#allocated -= block.bytes;
    const pool2 = block.segment.bytes === SMALL_SEGMENT ? this.#small : this.#large;
    let whole2 = block;
    const { before, after } = block;
    if (after?.free === true) {
      remove(pool2, after);
      whole2.bytes += after.bytes;
      this.#link(whole2, after.after);
    }
    if (before?.free === true) {
      remove(pool2, before);
      before.bytes += whole2.bytes;
      this.#link(before, whole2.after);
      whole2 = before;
    }
    whole2.free = true;
    pool2.splice(firstOf(pool2, whole2.bytes, whole2.order), 0, whole2);
  }
  #newSegment(bytes) {
    const size2 = bytes <= SMALL_REQUEST ? SMALL_SEGMENT : bytes < OWN_SEGMENT_FROM ? LARGE_SEGMENT : Math.ceil(bytes / SEGMENT_ROUND) * SEGMENT_ROUND;
    if (this.#reserved + size2 > this.limit) {
      this.#returnFreeSegments();
    }
    this.#reserved += size2;
    this.peakReserved = Math.max(this.peakReserved, this.#reserved);
    return this.#block(size2, { bytes: size2 });
  }
  #block(bytes, segment) {
    this.#blocks += 1;
    return { bytes, order: this.#blocks, segment, before: null, after: null, free: false };
  }
  #split(block, bytes, pool2) {
    const rest = this.#block(block.bytes - bytes, block.segment);
    block.bytes = bytes;
    this.#link(rest, block.after);
    this.#link(block, rest);
    rest.free = true;
    pool2.splice(firstOf(pool2, rest.bytes, rest.order), 0, rest);
  }
  #link(before, after) {
    before.after = after;
    if (after !== null) {
      after.before = before;
    }
  }
  #returnFreeSegments() {
    for (const pool2 of [this.#small, this.#large]) {
      for (const block of pool2.filter((each) => each.bytes === each.segment.bytes)) {
        remove(pool2, block);
        this.#reserved -= block.bytes;
      }
    }
  }
};
function firstOf(pool2, bytes, order) {
  let low = 0;
  let high = pool2.length;
  while (low < high) {
    const middle = low + high >> 1;
    const each = pool2[middle];
    if (each.bytes < bytes || each.bytes === bytes && each.order < order) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
function remove(pool2, block) {
  pool2.splice(firstOf(pool2, block.bytes, block.order), 1);
}

// src/plan/train/replay.ts
var STEPS = 3;
function gapsOfPrefill(weights, trace, limit) {
  const allocator2 = new CachingAllocator(limit);
  for (const bytes of weights) {
    allocator2.allocate(bytes);
  }
  replayStep(allocator2, trace.events, trace.bytes);
  const { peakAllocated, peakReserved } = allocator2;
  return peakAllocated > 0 ? peakReserved / peakAllocated - 1 : 0;
}
function gapsOf(peak, { gpu: gpu2 }) {
  const room = gpu2.memoryBytes - gpu2.contextBytes - peak.ncclBytes;
  const limit = peak.allocatedBytes < room ? room : Number.POSITIVE_INFINITY;
  const { allocated, reserved } = replay(peak, limit);
  return allocated > 0 ? reserved / allocated - 1 : 0;
}
function replay({ trace, states }, limit) {
  const allocator2 = new CachingAllocator(limit);
  const { weights, states: optimizer, stepTemporaries } = states.tensors;
  const stay = (sizes2) => {
    for (const bytes of sizes2) {
      allocator2.allocate(bytes);
    }
  };
  stay(weights);
  for (let step = 0; step < STEPS; step++) {
    const live = replayStep(allocator2, trace.events, trace.bytes);
    if (step === 0) {
      stay(optimizer);
    }
    const temporaries = stepTemporaries.map((bytes) => allocator2.allocate(bytes));
    for (const block of [...temporaries, ...live]) {
      allocator2.free(block);
    }
  }
  return { allocated: allocator2.peakAllocated, reserved: allocator2.peakReserved };
}
function replayStep(allocator2, events, sizes2) {
  const live = /* @__PURE__ */ new Map();
  for (const event of events) {
    const id = Math.abs(event) - 1;
    if (event > 0) {
      live.set(id, allocator2.allocate(sizes2[id]));
    } else {
      allocator2.free(live.get(id));
      live.delete(id);
    }
  }
  return live.values();
}

// src/plan/serve/plan_serving.ts
var BLOCK_TOKENS = {
  transformers: 1,
  vllm: 16,
  sglang: 1,
  tgi: 1,
  "llama.cpp": 256
};
var PROFILED_SEQUENCES = 256;
var SAMPLED_LOGIT_BYTES = 16;
var MICRO_BATCH = 512;
var UNKNOWN_FACTOR = 2.5;
function planServing(model, options, gaps) {
  const { tape } = modelTape(model, servingRules(model, options), { index: 0, count: 1 });
  const trace = new AllocationTrace();
  const simulation = simulateStep(
    tape,
    {
      checkpointing: "none",
      gradientBytesOf: () => 0,
      gradientsStay: false,
      gradientsConsumed: false,
      offloadsInputs: false,
      communicationOf: () => 0
    },
    trace
  );
  const peak = simulation.peak.bytes - tape.cachedBytes + outsideWindows(model, options);
  const stages = options.pipeline;
  const factor = model.known ? 1 : UNKNOWN_FACTOR;
  const weights = tape.parameters.reduce((sum, each) => sum + each.bytes, 0) / stages;
  const forward = peak + samplerBytes(model, options);
  const parts = [
    part("weights", weights, 6e-3 * factor, {
      formula: weightsFormula(model, options, tape),
      source: "the configuration's shapes; each matrix counted"
    }),
    part("temporaries", forward, 0.35 * factor, {
      formula: `intermediate results of one forward pass over ${tokensOfPass(options)} tokens${options.engine === "vllm" ? `, and the sampler of ${PROFILED_SEQUENCES} sequences` : ""}`,
      source: "lifetimes of all tensors of a prefill"
    })
  ];
  if (options.cudaGraphs && options.engine !== "transformers" && options.engine !== "llama.cpp") {
    parts.push(
      part("cuda graphs", graphBytes(model), 0.8, {
        formula: "memory pools of the captured batch sizes: 180 MiB + 10 MiB per layer",
        source: "vLLM's log: 0.5 to 1.3 GiB for 8 to 70e9 parameters"
      })
    );
  }
  const replayed = options.engine === "transformers" ? gaps ?? replayedGaps(tape, trace, options, simulation.peak.bytes) : null;
  return withCache(model, options, { parts, tape, replayed });
}
function replayedGaps(tape, trace, { gpu: gpu2 }, passBytes) {
  const weights = tape.parameters.map(({ bytes }) => bytes).filter((bytes) => bytes > 0);
  const all = weights.reduce((sum, bytes) => sum + bytes, 0) + passBytes;
  const room = gpu2.memoryBytes - gpu2.contextBytes;
  return gapsOfPrefill(weights, trace, all < room ? room : Number.POSITIVE_INFINITY);
}
function outsideWindows(model, options) {
  const { engine, context: context2, concurrency } = options;
  if (engine !== "transformers") {
    return 0;
  }
  const { windows } = cacheShape(model, kvItemBytes(options), options.tensor);
  return windows.reduce(
    (sum, { window: window2, bytesPerToken }) => sum + concurrency * bytesPerToken * Math.max(0, context2 - window2),
    0
  );
}
function graphBytes(model) {
  const layers = model.towers.reduce(
    (sum, { layers: layers2 }) => sum + layers2.reduce((all, { count: count2 }) => all + count2, 0),
    0
  );
  const MIB11 = 2 ** 20;
  return (180 + 10 * layers) * MIB11;
}
function withCache(model, options, { parts, tape, replayed }) {
  const { engine, gpu: gpu2 } = options;
  const cache = cacheShape(model, kvItemBytes(options), options.tensor, engine === "transformers");
  const block = BLOCK_TOKENS[engine];
  const oneSequence = bytesOfSequence(cache, options.context, block) / options.pipeline;
  const wanted = oneSequence * options.concurrency;
  const outside3 = (options.tensor > 2 ? 420 : options.tensor > 1 ? 250 : 0) * 2 ** 20;
  const fixed = figureOf(
    [...parts, ...allocatorParts(parts, { gpu: gpu2, threads: 1, outsideBytes: outside3 })],
    "device"
  ).bytes;
  const room = Math.max(0, roomOf(options, parts, fixed));
  const preallocates = fillsDevice(options);
  const perToken = bytesOfNextToken(cache) / options.pipeline;
  const source = "keys and values of each layer; one latent row with MLA";
  const sketch = {
    formula: `${options.concurrency} sequences x ${options.context} tokens x ${Math.round(perToken)} B${cache.windows.length > 0 ? "; layers with a window hold at most the window" : ""}`,
    source
  };
  const add = (name, bytes, how) => {
    if (bytes > 0) {
      parts.push(part(name, bytes, 2e-3, how));
    }
  };
  add("kv cache", preallocates ? Math.min(wanted, room) : wanted, sketch);
  if (preallocates) {
    add("unused kv cache", room - Math.min(wanted, room), {
      formula: `${(options.utilization * 100).toFixed(0)} % of the device, less all parts above`,
      source: `${engine} gives the cache what is left`
    });
  }
  const all = [
    ...parts,
    ...allocatorParts(
      parts.filter((each) => !preallocates || !each.part.includes("cache")),
      {
        gpu: gpu2,
        threads: 1,
        outsideBytes: outside3,
        ...replayed === null ? {} : { replayedGaps: replayed }
      }
    )
  ];
  const available = preallocates ? room : Math.max(0, gpu2.memoryBytes - fixed);
  return {
    tape,
    parts: all,
    gaps: replayed ?? 0,
    parameters: tape.parameters.reduce((sum, each) => sum + each.elements, 0),
    serving: {
      engine,
      kvBytesPerToken: Math.round(perToken),
      kvTokens: perToken > 0 ? Math.floor(available / perToken / block) * block : 0,
      maxConcurrency: oneSequence > 0 ? Math.floor(available / oneSequence) : 0,
      longestContext: longestContext(
        available,
        (tokens) => bytesOfSequence(cache, tokens, block) / options.pipeline
      ),
      utilization: options.utilization
    }
  };
}
function fillsDevice({ engine, cacheAsNeeded }) {
  return !cacheAsNeeded && engine !== "transformers" && engine !== "llama.cpp";
}
function roomOf({ engine, gpu: gpu2, utilization }, parts, fixed) {
  const share = utilization * gpu2.memoryBytes;
  switch (engine) {
    case "sglang":
      return share - (parts.find((each) => each.part === "weights")?.bytes ?? 0);
    case "tgi":
      return 0.95 * (gpu2.memoryBytes * utilization - fixed);
    default:
      return share - fixed;
  }
}
var LONGEST = 2 ** 27;
function longestContext(available, bytesOf2) {
  if (bytesOf2(LONGEST) <= available) {
    return LONGEST;
  }
  let low = 0;
  let high = LONGEST;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (bytesOf2(middle) <= available) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
function kvItemBytes({ kvDType, dtype }) {
  switch (kvDType) {
    case "fp8":
    case "int8":
      return 1;
    case "fp32":
      return 4;
    case "auto":
      return bytesOfCompute(dtype);
    default:
      return 2;
  }
}
function tokensOfPass({ engine, batchedTokens, context: context2, concurrency }) {
  if (engine === "transformers") {
    return context2 * concurrency;
  }
  return engine === "llama.cpp" ? Math.min(context2, MICRO_BATCH) : batchedTokens;
}
function samplerBytes({ head }, { engine }) {
  return engine === "vllm" || engine === "sglang" || engine === "tgi" ? PROFILED_SEQUENCES * head.outputs * SAMPLED_LOGIT_BYTES : 0;
}
function weightsFormula(model, options, tape) {
  const elements = tape.parameters.reduce((sum, each) => sum + each.elements, 0);
  const quantization = quantizationOf(model, options);
  const words3 = quantization === null ? options.dtype : `${quantization.dtype}, ${quantization.bytesPerWeight.toFixed(3)} B a weight of linear layers`;
  return `${(elements / 1e9).toFixed(3)}e9 parameters in ${words3}`;
}
function servingRules(model, options) {
  const { engine, context: context2, concurrency, tensor } = options;
  const whole2 = engine === "transformers";
  const computeBytes = bytesOfCompute(options.dtype);
  const attention2 = whole2 ? options.attention : "flash";
  return {
    training: false,
    batch: whole2 ? concurrency : 1,
    sequence: whole2 ? context2 : Math.min(tokensOfPass(options), MOST_TOKENS),
    context: whole2 ? context2 : 0,
    computeBytes,
    weightBytes: computeBytes,
    autocast: false,
    quantization: quantizationOf(model, options),
    trainBase: false,
    adapter: null,
    inputNeedsGradient: false,
    attention: attention2,
    masks: masksOf({ attention: attention2, padded: options.padded, library: "transformers" }, concurrency),
    repeatsGroups: false,
    fusesGroups: computeBytes < 4 && !options.gpu.old,
    cachesKeys: whole2,
    loss: "full",
    compiled: false,
    lossCompiled: false,
    fusedGelu: engine !== "transformers",
    fusedProjection: engine !== "transformers",
    lossChunkRows: null,
    holdsLogits: "made",
    quantizedKeepsInput: false,
    dropout: false,
    tensorParallel: tensor,
    sequenceParallel: false,
    expertParallel: options.expert,
    imbalance: 1
  };
}
var MOST_TOKENS = 2 ** 24;

// src/plan/model_facts.ts
var COUNTING = {
  training: false,
  batch: 1,
  sequence: 1,
  context: 1,
  computeBytes: 2,
  weightBytes: 2,
  autocast: false,
  quantization: null,
  trainBase: false,
  adapter: null,
  inputNeedsGradient: false,
  attention: "flash",
  masks: "none",
  repeatsGroups: false,
  fusesGroups: true,
  cachesKeys: false,
  loss: "full",
  compiled: false,
  lossCompiled: false,
  fusedGelu: false,
  fusedProjection: false,
  lossChunkRows: null,
  holdsLogits: "made",
  quantizedKeepsInput: false,
  dropout: false,
  tensorParallel: 1,
  sequenceParallel: false,
  expertParallel: 1,
  imbalance: 1
};
function parameterCount(model) {
  const { tape } = modelTape(model, COUNTING, { index: 0, count: 1 });
  return tape.parameters.reduce((sum, each) => sum + each.elements, 0);
}
function activeParameters(model, all) {
  let idle = 0;
  for (const { hidden, layers } of model.towers) {
    for (const { count: count2, layer } of layers) {
      if (layer.kind === "transformer" && layer.mlp !== null && isMoe(layer.mlp)) {
        const { experts: experts2, perToken, expert } = layer.mlp;
        idle += count2 * (experts2 - perToken) * hidden * expert.width * (expert.gated ? 3 : 2);
      }
    }
  }
  return all - idle;
}
function describeModel(model, options, trainableParameters) {
  const parameters = parameterCount(model);
  const tower = model.towers.at(-1);
  const attention2 = tower?.layers.map(({ layer }) => layer).find(
    (layer) => layer.kind === "transformer" && layer.attention !== null
  )?.attention;
  const itemBytes = options.mode === "serve" ? kvItemBytes(options) : 2;
  return {
    name: model.name,
    family: model.family,
    known: model.known,
    parameters,
    activeParameters: activeParameters(model, parameters),
    trainableParameters,
    layers: model.towers.reduce(
      (sum, { layers }) => sum + layers.reduce((all, { count: count2 }) => all + count2, 0),
      0
    ),
    hidden: tower?.hidden ?? 0,
    heads: attention2?.heads ?? 0,
    kvHeads: attention2?.kvHeads ?? 0,
    vocabulary: model.head.kind === "language" ? model.head.outputs : 0,
    longestSequence: model.longestSequence,
    kvBytesPerToken: bytesOfNextToken(cacheShape(model, itemBytes))
  };
}

// src/plan/shape/decoder.ts
var GPT2 = {
  norm: "layer",
  plainMlp: true,
  activation: "gelu_python",
  attentionBias: true,
  outputBias: true,
  mlpBias: true,
  fusedQkv: true,
  positions: "learned",
  tied: true,
  dropout: true
};
var FAMILIES = {
  llama: {},
  mistral: {},
  mixtral: {},
  qwen2: { attentionBias: true },
  qwen2_moe: { attentionBias: true },
  qwen3: { headNorm: "head" },
  qwen3_moe: { headNorm: "head" },
  deepseek_v2: {},
  deepseek_v3: {},
  granite: {},
  granitemoe: {},
  gpt_oss: {
    attentionBias: true,
    outputBias: true,
    mlpBias: true,
    activation: "clamped",
    sinks: true
  },
  olmo: { norm: "layer-plain" },
  olmo2: { placement: "after", headNorm: "row" },
  olmoe: { headNorm: "row" },
  phi3: { fusedQkv: true, fusedMlp: true, contiguous: true },
  phimoe: { norm: "layer" },
  glm: { fusedMlp: true, attentionBias: true },
  gemma: { tied: true, activation: "gelu" },
  gemma2: { tied: true, activation: "gelu", placement: "sandwich", softCap: true },
  gemma3_text: { tied: true, activation: "gelu", placement: "sandwich", headNorm: "head" },
  cohere: { norm: "layer-parts", parallel: 1, tied: true },
  stablelm: { norm: "layer" },
  starcoder2: {
    tied: true,
    norm: "layer",
    plainMlp: true,
    activation: "gelu",
    attentionBias: true,
    outputBias: true,
    mlpBias: true
  },
  phi: {
    norm: "layer",
    parallel: 1,
    plainMlp: true,
    activation: "gelu_python",
    attentionBias: true,
    outputBias: true,
    mlpBias: true,
    headBias: true
  },
  gpt2: GPT2,
  gpt_bigcode: { ...GPT2, activation: "gelu" },
  gpt_neox: { ...omit(GPT2, "positions", "tied", "dropout"), activation: "gelu", parallel: 2 },
  gptj: {
    ...omit(GPT2, "positions", "tied", "fusedQkv", "attentionBias", "outputBias", "dropout"),
    parallel: 1,
    headBias: true
  },
  opt: { ...omit(GPT2, "fusedQkv"), activation: "relu", extraPositions: 2 },
  // Its GELU is an autograd function that keeps its input alone (modeling_bloom.py, GeLUFunction).
  bloom: { ...omit(GPT2, "dropout"), activation: "gelu", positions: "alibi", embeddingNorm: true },
  falcon: {
    norm: "layer",
    parallel: 1,
    plainMlp: true,
    activation: "gelu",
    fusedQkv: true,
    tied: true
  },
  mpt: {
    norm: "layer",
    plainMlp: true,
    activation: "gelu",
    fusedQkv: true,
    positions: "alibi",
    tied: true
  }
};
var DECODER_FAMILIES = Object.keys(FAMILIES);
function readDecoder(config, family = config.family) {
  const facts2 = FAMILIES[family] ?? {};
  const hidden = config.size("hidden_size", "n_embd", "d_model", "model_dim");
  const layers = config.layers("num_hidden_layers", "n_layer", "n_layers", "num_layers");
  const vocabulary = config.size("vocab_size");
  const norm = normOf(config, facts2);
  const longest = config.count(
    0,
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length"
  );
  const embedded = config.optionalSize("word_embed_proj_dim") ?? hidden;
  const embeddings = [
    { name: "embed_tokens", rows: vocabulary, width: embedded }
  ];
  if (facts2.positions === "learned") {
    embeddings.push({
      name: "embed_positions",
      rows: (longest === 0 ? 1024 : longest) + (facts2.extraPositions ?? 0),
      width: hidden
    });
  }
  const tied = config.flag(facts2.tied === true, "tie_word_embeddings");
  return {
    tower: {
      name: "decoder",
      hidden,
      positions: "sequence",
      embeddings,
      embeddingNorm: facts2.embeddingNorm === true ? norm : null,
      embeddingDropout: facts2.dropout === true,
      stems: [],
      layers: layerRuns(config, facts2, { hidden, layers, norm }),
      finalNorm: family === "opt" && config.flag(true, "do_layer_norm_before") === false ? null : norm,
      // OPT 350m projects between two widths.
      otherParameters: embedded === hidden ? 0 : 2 * embedded * hidden
    },
    head: {
      kind: "language",
      outputs: vocabulary,
      tied,
      bias: facts2.headBias === true,
      transform: false,
      softCap: config.fraction(0, "final_logit_softcapping") > 0
    },
    longest,
    known: family in FAMILIES
  };
}
function normOf(config, facts2) {
  const kind = facts2.norm === void 0 && !config.has("layer_norm_eps", "layer_norm_epsilon") ? "rms" : "layer";
  const isLayer = facts2.norm !== void 0 || kind === "layer" && !config.has("rms_norm_eps");
  return isLayer ? {
    kind: facts2.norm === "layer-parts" ? "layer-parts" : "layer",
    bias: facts2.norm !== "layer-plain" && facts2.norm !== "layer-parts",
    affine: facts2.norm !== "layer-plain"
  } : { kind: "rms", bias: false, affine: true, wide: config.family.startsWith("gemma") };
}
function layerRuns(config, facts2, sizes2) {
  const windows = windowsOf(config, sizes2.layers);
  const dense = denseLayers(config, sizes2.layers);
  const runs = [];
  for (let index = 0; index < sizes2.layers; index++) {
    const window2 = windows[index] ?? 0;
    const isDense = dense[index] === true;
    const key = `${window2} ${isDense}`;
    const last = runs.at(-1);
    if (last?.key === key) {
      last.count += 1;
    } else {
      runs.push({ count: 1, layer: layerOf(config, facts2, sizes2, { window: window2, isDense }), key });
    }
  }
  return runs.map(({ count: count2, layer }) => ({ count: count2, layer }));
}
function layerOf(config, facts2, { hidden, norm }, { window: window2, isDense }) {
  const parallelDefault = config.family === "gpt_neox" ? "use_parallel_residual" : "parallel_attn";
  const parallel = facts2.parallel !== void 0 && config.flag(true, parallelDefault);
  const twoNorms = facts2.parallel === 2 || config.flag(false, "new_decoder_architecture");
  const mlp2 = mlpOf(config, facts2, hidden);
  return {
    kind: "transformer",
    norm,
    placement: config.family === "opt" && !config.flag(true, "do_layer_norm_before") ? "after-residual" : facts2.placement ?? "before",
    parallel,
    parallelNorms: twoNorms ? 2 : 1,
    attention: attentionOf(config, facts2, hidden, window2),
    cross: null,
    mlp: isDense ? mlp2 : moeOf(config, mlp2),
    dropout: config.fraction(
      facts2.dropout === true ? 0.1 : 0,
      "resid_pdrop",
      "dropout",
      "hidden_dropout"
    ) > 0,
    attentionDropout: config.fraction(0, "attn_pdrop", "attention_dropout") > 0,
    scales: 0,
    modulation: 0
  };
}
function attentionOf(config, facts2, hidden, window2) {
  const heads = config.size("num_attention_heads", "n_head", "n_heads", "num_heads");
  const headSize = config.optionalSize("head_dim", "attention_head_dim", "kv_channels") ?? hidden / heads;
  if (!Number.isInteger(headSize)) {
    throw notAModel(config.source, `${heads} heads do not divide a hidden size of ${hidden}`);
  }
  const latentRank = config.optionalSize("kv_lora_rank");
  const base = {
    heads,
    kvHeads: kvHeadsOf(config, heads),
    bias: config.flag(
      facts2.attentionBias === true,
      "attention_bias",
      "qkv_bias",
      "bias",
      "use_bias"
    ),
    outputBias: outputBiasOf(config, facts2),
    fused: facts2.fusedQkv === true,
    rotary: facts2.positions === void 0 && !config.flag(false, "alibi"),
    rotaryShare: config.fraction(1, "partial_rotary_factor", "rotary_pct"),
    queryKeyNorm: config.flag(false, "use_qk_norm", "qk_layernorm") ? "head" : facts2.headNorm ?? "none",
    window: window2,
    softCap: facts2.softCap === true && config.fraction(0, "attn_logit_softcapping") > 0,
    scoreBias: facts2.positions === "alibi" || config.flag(false, "alibi") ? "alibi" : "none",
    bidirectional: false,
    ...facts2.sinks === true ? { sinks: true } : {},
    ...facts2.contiguous === true ? { contiguous: true } : {},
    ...isOneHead(config) ? { copiesValues: true } : {}
  };
  if (latentRank === void 0) {
    return { ...base, headSize };
  }
  const rotarySize = config.size("qk_rope_head_dim");
  return {
    ...base,
    headSize: config.size("qk_nope_head_dim") + rotarySize,
    valueHeadSize: config.size("v_head_dim"),
    rotary: true,
    latent: { queryRank: config.count(0, "q_lora_rank"), kvRank: latentRank, rotarySize }
  };
}
function outputBiasOf(config, facts2) {
  const fromConfig = facts2.attentionBias !== true && config.flag(false, "attention_bias");
  return config.flag(facts2.outputBias === true || fromConfig, "use_bias", "bias");
}
function kvHeadsOf(config, heads) {
  const found = config.optionalSize("num_key_value_heads", "num_kv_heads", "n_head_kv");
  const kvHeads = isOneHead(config) ? 1 : found ?? heads;
  if (kvHeads > heads || heads % kvHeads !== 0) {
    throw notAModel(config.source, `${kvHeads} key-value heads do not divide ${heads} heads`);
  }
  return kvHeads;
}
function isOneHead(config) {
  return config.flag(false, "multi_query") && !config.flag(false, "new_decoder_architecture");
}
var ACTIVATIONS = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_pytorch_tanh: "gelu",
  gelu_new: "gelu_python",
  gelu_fast: "gelu_python",
  quick_gelu: "quick_gelu",
  relu: "relu",
  relu2: "relu2"
};
function activationOf(config, otherwise) {
  const name = config.text(
    "hidden_activation",
    "hidden_act",
    "activation_function",
    "dense_act_fn"
  );
  return ACTIVATIONS[name] ?? otherwise;
}
function mlpOf(config, facts2, hidden) {
  const width = config.optionalSize(
    "intermediate_size",
    "n_inner",
    "ffn_dim",
    "ffn_hidden_size",
    "d_ff",
    "inner_dim"
  ) ?? 4 * hidden;
  const wanted = activationOf(config, facts2.activation ?? "silu");
  return {
    width,
    gated: facts2.plainMlp !== true,
    activation: facts2.activation === "clamped" || facts2.activation === "gelu" && wanted === "gelu_python" ? facts2.activation : wanted,
    bias: config.flag(facts2.mlpBias === true, "mlp_bias", "use_bias"),
    fused: facts2.fusedMlp === true
  };
}
function moeOf(config, dense) {
  const experts2 = config.optionalSize(
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts"
  );
  if (experts2 === void 0) {
    return dense;
  }
  const perToken = config.optionalSize("num_experts_per_tok", "num_experts_per_token", "moe_top_k") ?? 2;
  if (perToken > experts2) {
    throw notAModel(config.source, `${perToken} experts for each token of ${experts2}`);
  }
  const width = config.optionalSize("moe_intermediate_size") ?? dense.width;
  const sharedCount = config.count(0, "n_shared_experts");
  const sharedWidth = config.count(0, "shared_expert_intermediate_size") || sharedCount * width;
  return {
    experts: experts2,
    perToken,
    expert: { ...dense, width, fused: dense.gated },
    shared: sharedWidth > 0 ? { ...dense, width: sharedWidth } : null,
    sharedGate: config.has("shared_expert_intermediate_size"),
    routerBias: config.family === "gpt_oss",
    wideRouter: config.family.startsWith("deepseek")
  };
}
function denseLayers(config, layers) {
  const first = config.count(0, "first_k_dense_replace");
  const step = config.optionalSize("decoder_sparse_step", "moe_layer_freq") ?? 1;
  const listed = new Set(config.sizes("mlp_only_layers"));
  const isQwen = config.has("decoder_sparse_step");
  return Array.from({ length: layers }, (_, index) => {
    const inStep = isQwen ? (index + 1) % step === 0 : index % step === 0;
    return index < first || listed.has(index) || !inStep;
  });
}
function windowsOf(config, layers) {
  const window2 = config.count(0, "sliding_window");
  if (window2 === 0 || !config.flag(true, "use_sliding_window")) {
    return Array.from({ length: layers }, () => 0);
  }
  const types = config.words("layer_types");
  if (types.length === layers) {
    return types.map((type) => type === "sliding_attention" ? window2 : 0);
  }
  const { family } = config;
  const pattern = config.optionalSize("sliding_window_pattern") ?? (family === "gemma2" || family === "gpt_oss" ? 2 : family.startsWith("gemma3") ? 6 : 0);
  const from = config.count(0, "max_window_layers");
  return Array.from({ length: layers }, (_, index) => {
    if (pattern > 0) {
      return (index + 1) % pattern === 0 ? 0 : window2;
    }
    return index >= from || family === "mistral" ? window2 : 0;
  });
}
function omit(facts2, ...keys) {
  const rest = { ...facts2 };
  for (const key of keys) {
    delete rest[key];
  }
  return rest;
}

// src/plan/shape/encoder.ts
var ENCODER_FAMILIES = [
  "bert",
  "roberta",
  "xlm-roberta",
  "camembert",
  "electra",
  "distilbert",
  "mpnet",
  "ernie"
];
var LAYER_NORM = { kind: "layer", bias: true, affine: true };
function plainAttention(heads, hidden, changes = {}) {
  return {
    heads,
    kvHeads: heads,
    headSize: hidden / heads,
    bias: true,
    outputBias: true,
    fused: false,
    rotary: false,
    rotaryShare: 0,
    queryKeyNorm: "none",
    window: 0,
    softCap: false,
    scoreBias: "none",
    bidirectional: true,
    ...changes
  };
}
function plainLayer(attention2, width, changes = {}) {
  return {
    kind: "transformer",
    norm: LAYER_NORM,
    placement: "before",
    parallel: false,
    parallelNorms: 1,
    attention: attention2,
    cross: null,
    mlp: { width, gated: false, activation: "gelu", bias: true, fused: false },
    dropout: false,
    attentionDropout: false,
    scales: 0,
    modulation: 0,
    ...changes
  };
}
function readEncoder(config) {
  const hidden = config.size("hidden_size", "dim");
  const heads = config.size("num_attention_heads", "n_heads");
  const width = config.size("intermediate_size", "hidden_dim");
  const vocabulary = config.size("vocab_size");
  const longest = config.size("max_position_embeddings");
  const embedded = config.optionalSize("embedding_size") ?? hidden;
  const types = config.family === "distilbert" ? 0 : config.count(2, "type_vocab_size");
  const dropout = config.fraction(0.1, "hidden_dropout_prob", "dropout") > 0;
  const architecture = config.words("architectures")[0] ?? "";
  const layer = plainLayer(plainAttention(heads, hidden), width, {
    placement: "after-residual",
    dropout,
    attentionDropout: config.fraction(0.1, "attention_probs_dropout_prob", "attention_dropout") > 0,
    mlp: {
      width,
      gated: false,
      activation: activationOf(config, "gelu"),
      bias: true,
      fused: false
    }
  });
  const pools = /^(?:bert|ernie)$/.test(config.family) && !architecture.includes("MaskedLM");
  return {
    tower: {
      name: "encoder",
      hidden,
      positions: "sequence",
      embeddings: [
        { name: "word_embeddings", rows: vocabulary, width: embedded },
        { name: "position_embeddings", rows: longest, width: embedded },
        ...types > 0 ? [{ name: "token_type_embeddings", rows: types, width: embedded }] : []
      ],
      embeddingNorm: LAYER_NORM,
      embeddingDropout: dropout,
      stems: [],
      layers: [{ count: config.layers("num_hidden_layers", "n_layers"), layer }],
      finalNorm: null,
      otherParameters: (pools ? hidden * hidden + hidden : 0) + (embedded === hidden ? 0 : (embedded + 1) * hidden)
    },
    head: headOf(config, architecture, vocabulary),
    longest
  };
}
function headOf(config, architecture, vocabulary) {
  const base = { tied: false, bias: true, transform: false, softCap: false };
  if (architecture.includes("MaskedLM") || architecture.includes("PreTraining")) {
    return {
      ...base,
      kind: "language",
      outputs: vocabulary,
      tied: config.flag(true, "tie_word_embeddings"),
      transform: true
    };
  }
  return { ...base, kind: "class", outputs: labelsOf(config, 2) };
}
function labelsOf(config, otherwise) {
  const labels = config.part("id2label");
  return config.optionalSize("num_labels") ?? (labels === null ? otherwise : Math.max(1, Object.keys(labels.values).length));
}

// src/plan/shape/diffusion.ts
var NO_HEAD = {
  kind: "none",
  outputs: 0,
  tied: false,
  bias: false,
  transform: false,
  softCap: false
};
var EMPTY = {
  embeddings: [],
  embeddingNorm: null,
  embeddingDropout: false,
  stems: [],
  finalNorm: null
};
function readUnet(config) {
  const channels = config.sizes("block_out_channels");
  const kinds = config.words("down_block_types");
  if (channels.length === 0 || channels.length > 8 || kinds.length !== channels.length || channels.includes(0)) {
    throw notAModel(config.source, "block_out_channels and down_block_types do not match");
  }
  return {
    ...EMPTY,
    name: "unet",
    hidden: channels[0] ?? 1,
    positions: 1,
    layers: new UnetLayers(config, channels, kinds).all(),
    otherParameters: embeddingParameters(config, channels[0] ?? 1)
  };
}
function embeddingParameters(config, first) {
  const time = 4 * first;
  const added = config.count(0, "projection_class_embeddings_input_dim");
  return (first + 1) * time + (time + 1) * time + (added > 0 ? (added + 1) * time + (time + 1) * time : 0);
}
var UnetLayers = class {
  #runs = [];
  #config;
  #channels;
  #kinds;
  #perBlock;
  /** Channels of what the way down left for the way up. */
  #left = [];
  constructor(config, channels, kinds) {
    this.#config = config;
    this.#channels = channels;
    this.#kinds = kinds;
    this.#perBlock = Math.min(8, config.count(2, "layers_per_block"));
  }
  all() {
    const config = this.#config;
    const side = config.count(64, "sample_size");
    const [first = 1] = this.#channels;
    const inputs = config.count(4, "in_channels");
    this.#convolve("resample", inputs, first, side);
    this.#left.push(first);
    const levels = this.#channels.length;
    let before = first;
    let now = side;
    for (const [level, size2] of this.#channels.entries()) {
      for (let block = 0; block < this.#perBlock; block++) {
        this.#block(block === 0 ? before : size2, size2, now, level);
        this.#left.push(size2);
      }
      before = size2;
      if (level < levels - 1) {
        now = Math.ceil(now / 2);
        this.#convolve("resample", size2, size2, now);
        this.#left.push(size2);
      }
    }
    this.#unet(before, before, now);
    this.#attend(before, now, levels - 1, true);
    this.#unet(before, before, now);
    this.#up(before, now);
    this.#convolve("resample", first, config.count(4, "out_channels"), side);
    return this.#runs;
  }
  #up(from, smallest) {
    let before = from;
    let now = smallest;
    for (const [step, size2] of [...this.#channels].reverse().entries()) {
      const level = this.#channels.length - 1 - step;
      for (let block = 0; block <= this.#perBlock; block++) {
        this.#block(before + (this.#left.pop() ?? 0), size2, now, level);
        before = size2;
      }
      if (level > 0) {
        now *= 2;
        this.#convolve("resample", size2, size2, now);
      }
    }
  }
  #block(inputs, outputs, side, level) {
    this.#unet(inputs, outputs, side);
    this.#attend(outputs, side, level, this.#kinds[level]?.includes("CrossAttn") === true);
  }
  #unet(inputs, outputs, side) {
    this.#convolve("unet", inputs, outputs, side);
  }
  #convolve(block, inputs, outputs, side) {
    this.#runs.push({
      count: 1,
      layer: {
        kind: "convolution",
        name: block,
        inputChannels: inputs,
        outputChannels: outputs,
        inputSide: side,
        outputSide: side,
        block,
        conditionSize: 4 * (this.#channels[0] ?? 1)
      }
    });
  }
  #attend(channels, side, level, attends) {
    if (!attends) {
      return;
    }
    const depths = this.#config.sizes("transformer_layers_per_block");
    const headSizes = this.#config.sizes("attention_head_dim");
    const heads = headSizes[level] ?? this.#config.count(8, "attention_head_dim");
    if (heads === 0 || channels % heads !== 0) {
      throw notAModel(this.#config.source, `${heads} heads do not divide ${channels} channels`);
    }
    this.#runs.push({
      count: 1,
      layer: {
        kind: "unet-attention",
        channels,
        side,
        heads,
        depth: Math.min(40, depths[level] ?? this.#config.count(1, "transformer_layers_per_block")),
        contextSize: this.#config.count(768, "cross_attention_dim")
      }
    });
  }
};
function readDiffusionTransformer(config) {
  const heads = config.size("num_attention_heads");
  const hidden = heads * config.size("attention_head_dim");
  const patch = config.count(2, "patch_size") || 1;
  const positions = Math.max(1, Math.floor(config.count(32, "sample_size") / patch)) ** 2;
  const channels = config.count(4, "in_channels");
  const crosses = config.has("cross_attention_dim");
  const attention2 = plainAttention(heads, hidden);
  return {
    ...EMPTY,
    name: "transformer",
    hidden,
    positions,
    stems: [{ name: "patch_embedding", input: channels * patch ** 2, output: hidden, bias: true }],
    layers: [
      {
        count: config.layers("num_layers"),
        layer: plainLayer(attention2, 4 * hidden, {
          norm: { kind: "layer", bias: false, affine: false },
          cross: null,
          modulation: crosses ? 0 : 6,
          mlp: { width: 4 * hidden, gated: false, activation: "gelu", bias: true, fused: false }
        })
      }
    ],
    // The time step's embedding, once for each layer (AdaLayerNormZero), and the classes'.
    otherParameters: config.layers("num_layers") * (256 * hidden + hidden * hidden + 2 * hidden + config.count(0, "num_embeds_ada_norm") * hidden)
  };
}

// src/plan/shape/sequence_to_sequence.ts
var SEQUENCE_FAMILIES = [
  "t5",
  "mt5",
  "umt5",
  "longt5",
  "bart",
  "mbart",
  "whisper",
  "m2m_100"
];
function readSequenceToSequence(config) {
  return config.has("d_kv") ? readT5(config) : readBart(config);
}
var RMS = { kind: "rms", bias: false, affine: true };
function readT5(config) {
  const hidden = config.size("d_model");
  const heads = config.size("num_heads");
  const vocabulary = config.size("vocab_size");
  const layers = config.layers("num_layers");
  const projection = config.text("feed_forward_proj");
  const gated = projection.startsWith("gated");
  const mlp2 = {
    width: config.size("d_ff"),
    gated,
    // transformers runs "gated-gelu" as gelu_new, one kernel for each operation.
    activation: gated ? "gelu_python" : "relu",
    bias: false,
    fused: false
  };
  const attention2 = plainAttention(heads, hidden, {
    headSize: config.size("d_kv"),
    bias: false,
    outputBias: false,
    scoreBias: "relative"
  });
  const dropout = config.fraction(0.1, "dropout_rate") > 0;
  const layer = plainLayer(attention2, mlp2.width, {
    norm: RMS,
    mlp: mlp2,
    dropout,
    attentionDropout: dropout
  });
  const buckets = config.count(32, "relative_attention_num_buckets") * heads;
  const relative = config.family === "umt5" ? layers : 1;
  const tower = (name, count2, own, shared) => ({
    name,
    hidden,
    positions: "sequence",
    embeddings: [{ name: "embed_tokens", rows: vocabulary, width: hidden, shared }],
    embeddingNorm: null,
    embeddingDropout: dropout,
    stems: [],
    layers: [{ count: count2, layer: own }],
    finalNorm: RMS,
    otherParameters: buckets * relative
  });
  const decoding = {
    ...layer,
    attention: { ...attention2, bidirectional: false },
    cross: { ...attention2, scoreBias: "none" }
  };
  return {
    towers: [
      tower("encoder", layers, layer, false),
      tower("decoder", config.count(layers, "num_decoder_layers"), decoding, true)
    ],
    head: {
      kind: "language",
      outputs: vocabulary,
      tied: config.flag(true, "tie_word_embeddings"),
      bias: false,
      transform: false,
      softCap: false
    },
    longest: config.count(512, "n_positions")
  };
}
function readBart(config) {
  const isSpeech = config.has("num_mel_bins");
  const hidden = config.size("d_model");
  const vocabulary = config.size("vocab_size");
  const activation = activationOf(config, "gelu");
  const before = isSpeech || config.family !== "bart";
  const dropout = config.fraction(0, "dropout") > 0;
  const source = config.count(0, "max_source_positions");
  const positions = config.count(1024, "max_position_embeddings", "max_target_positions");
  const extra = isSpeech ? 0 : 2;
  const tower = (side) => {
    const heads = config.size(`${side}_attention_heads`);
    const width = config.size(`${side}_ffn_dim`);
    const own = isSpeech ? { keyBias: false, contiguous: true } : {};
    const attention2 = plainAttention(heads, hidden, {
      bidirectional: side === "encoder",
      ...own
    });
    const reads = isSpeech && side === "encoder";
    return {
      name: side,
      hidden,
      positions: reads ? source : "sequence",
      embeddings: [
        ...reads ? [] : [
          {
            name: "embed_tokens",
            rows: vocabulary,
            width: hidden,
            shared: side === "decoder" && !isSpeech
          }
        ],
        { name: "embed_positions", rows: (reads ? source : positions) + extra, width: hidden }
      ],
      embeddingNorm: isSpeech ? null : LAYER_NORM,
      embeddingDropout: dropout,
      // A convolution of three frames as a matrix.
      stems: reads ? [
        { name: "conv1", input: 3 * config.size("num_mel_bins"), output: hidden, bias: true },
        { name: "conv2", input: 3 * hidden, output: hidden, bias: true }
      ] : [],
      layers: [
        {
          count: config.layers(`${side}_layers`),
          layer: plainLayer(attention2, width, {
            placement: before ? "before" : "after-residual",
            dropout,
            attentionDropout: config.fraction(0, "attention_dropout") > 0,
            cross: side === "decoder" ? plainAttention(heads, hidden, own) : null,
            mlp: { width, gated: false, activation, bias: true, fused: false }
          })
        }
      ],
      finalNorm: before ? LAYER_NORM : null,
      otherParameters: 0
    };
  };
  return {
    towers: [tower("encoder"), tower("decoder")],
    head: {
      kind: "language",
      outputs: vocabulary,
      tied: true,
      bias: false,
      transform: false,
      softCap: false
    },
    longest: positions
  };
}

// src/plan/shape/state_space_models.ts
var STATE_SPACE_FAMILIES = ["mamba", "mamba2", "falcon_mamba"];
var RMS2 = { kind: "rms", bias: false, affine: true };
function readStateSpace(config) {
  const hidden = config.size("hidden_size", "d_model");
  const vocabulary = config.size("vocab_size");
  const mixer = mixerOf(config, hidden);
  return {
    tower: {
      name: "decoder",
      hidden,
      positions: "sequence",
      embeddings: [{ name: "embeddings", rows: vocabulary, width: hidden }],
      embeddingNorm: null,
      embeddingDropout: false,
      stems: [],
      layers: [
        {
          count: config.layers("num_hidden_layers", "n_layer"),
          layer: { kind: "state-space", norm: RMS2, mixer }
        }
      ],
      finalNorm: RMS2,
      otherParameters: 0
    },
    head: {
      kind: "language",
      outputs: vocabulary,
      tied: config.flag(
        config.family !== "mamba2" && config.family !== "falcon_mamba",
        "tie_word_embeddings"
      ),
      bias: false,
      transform: false,
      softCap: false
    }
  };
}
function mixerOf(config, hidden) {
  const version = config.family === "mamba2" ? 2 : 1;
  const expand = config.fraction(2, "expand", "mamba_expand");
  const inner = version === 2 ? Math.round(expand * hidden) : config.optionalSize("intermediate_size_mamba", "d_inner") ?? Math.round(expand * hidden);
  const rank = config.values.time_step_rank ?? config.values.mamba_dt_rank;
  return {
    version,
    inner,
    state: config.count(
      version === 2 ? 128 : 16,
      "state_size",
      "d_state",
      "mamba_d_state",
      "ssm_state_size"
    ),
    convolution: config.count(4, "conv_kernel", "d_conv", "mamba_d_conv"),
    timeRank: typeof rank === "number" ? config.size("time_step_rank", "mamba_dt_rank") : Math.ceil(hidden / 16),
    heads: config.count(
      version === 2 ? Math.round(inner / config.count(64, "head_dim")) : 0,
      "num_heads"
    ),
    groups: config.count(8, "n_groups"),
    convolutionBias: config.flag(true, "use_conv_bias", "mamba_conv_bias"),
    bias: config.flag(false, "use_bias", "mamba_proj_bias")
  };
}
function readJamba(config) {
  const decoder2 = readDecoder(config);
  const hidden = decoder2.tower.hidden;
  const mixer = mixerOf(config, hidden);
  const period = config.size("attn_layer_period");
  const offset = config.count(0, "attn_layer_offset");
  const expertPeriod = config.count(2, "expert_layer_period");
  const expertOffset = config.count(1, "expert_layer_offset");
  const withExperts = decoder2.tower.layers[0]?.layer;
  const { layer: dense } = readDecoder(config.without("num_experts")).tower.layers[0];
  const layers = [];
  const count2 = config.layers("num_hidden_layers");
  for (let index = 0; index < count2; index++) {
    const shape = (expertPeriod > 0 && index % expertPeriod === expertOffset ? withExperts : dense) ?? dense;
    if (shape.kind !== "transformer") {
      continue;
    }
    const attends = index % period === offset;
    const attention2 = shape.attention === null ? null : { ...shape.attention, rotary: false };
    if (attends) {
      layers.push({ count: 1, layer: { ...shape, attention: attention2 } });
    } else {
      layers.push({ count: 1, layer: { kind: "state-space", norm: RMS2, mixer } });
      layers.push({ count: 1, layer: { ...shape, attention: null } });
    }
  }
  const spaces = layers.filter(({ layer }) => layer.kind === "state-space").length;
  return {
    ...decoder2,
    known: true,
    tower: {
      ...decoder2.tower,
      layers,
      otherParameters: spaces * (mixer.timeRank + 2 * mixer.state)
    }
  };
}

// src/plan/shape/stored_weights.ts
var DTYPES = {
  float32: "fp32",
  bfloat16: "bf16",
  float16: "fp16"
};
function storedWeights(config) {
  const dtype = DTYPES[config.text("torch_dtype", "dtype").replace("torch.", "")] ?? null;
  const quantization = config.part("quantization_config");
  return { dtype, quantization: quantization === null ? null : quantizationOf2(quantization) };
}
function quantizationOf2(config) {
  const method = config.text("quant_method");
  if (config.flag(false, "load_in_4bit", "_load_in_4bit")) {
    const double = config.flag(false, "bnb_4bit_use_double_quant");
    return { dtype: "nf4", bytesPerWeight: double ? 0.5 + 1 / 64 + 4 / (64 * 256) : 0.5 + 4 / 64 };
  }
  if (config.flag(false, "load_in_8bit", "_load_in_8bit")) {
    return { dtype: "int8", bytesPerWeight: 1 + 4 / 4096 };
  }
  if (method === "mxfp4") {
    return { dtype: "int4", bytesPerWeight: 0.5 + 1 / 32 };
  }
  const bits = config.optionalSize("bits", "w_bit", "num_bits");
  if (method === "fp8" || method === "fbgemm_fp8") {
    return { dtype: "fp8", bytesPerWeight: 1 + 4 / 16384 };
  }
  if (bits !== void 0 && bits <= 8) {
    const group = config.optionalSize("group_size", "q_group_size") ?? 128;
    return {
      dtype: bits <= 4 ? "int4" : "int8",
      bytesPerWeight: bits / 8 + (2 + bits / 8) / group
    };
  }
  return method === "compressed-tensors" ? { dtype: "fp8", bytesPerWeight: 1 + 2 / 4096 } : null;
}

// src/plan/shape/vision.ts
var VISION_FAMILIES = ["vit", "deit", "dinov2", "beit", "vit_mae"];
var TWO_TOWER_FAMILIES = ["clip", "siglip", "chinese_clip"];
var CLASS_HEAD = {
  kind: "class",
  tied: false,
  bias: true,
  transform: false,
  softCap: false
};
function imageTower(config, name, extra, activation = "gelu") {
  const hidden = config.size("hidden_size", "embed_dim");
  const heads = config.size("num_attention_heads", "num_heads");
  const image = config.optionalSize("image_size") ?? 224;
  const patch = config.size("patch_size", "spatial_patch_size");
  const channels = config.optionalSize("num_channels", "in_channels") ?? 3;
  if (patch > image) {
    throw notAModel(config.source, `patches of ${patch} in an image of ${image}`);
  }
  const positions = Math.floor(image / patch) ** 2 + extra;
  const width = config.optionalSize("intermediate_size") ?? Math.round(hidden * config.fraction(4, "mlp_ratio"));
  const scaled2 = config.family === "dinov2" ? 2 : 0;
  const layer = plainLayer(plainAttention(heads, hidden), width, {
    mlp: {
      width,
      gated: false,
      activation: activationOf(config, activation),
      bias: true,
      fused: false
    },
    scales: scaled2
  });
  return {
    name,
    hidden,
    positions,
    embeddings: [
      { name: "position_embeddings", rows: positions, width: hidden },
      ...extra > 0 ? [{ name: "class_token", rows: extra, width: hidden }] : []
    ],
    embeddingNorm: null,
    embeddingDropout: false,
    stems: [
      {
        name: "patch_embedding",
        input: channels * patch ** 2,
        output: hidden,
        bias: !/clip/.test(config.family)
      }
    ],
    layers: [{ count: config.layers("num_hidden_layers", "depth"), layer }],
    finalNorm: LAYER_NORM,
    otherParameters: 0
  };
}
function readImageClassifier(config) {
  const extra = config.family === "deit" ? 2 : 1;
  return {
    tower: imageTower(config, "encoder", extra),
    head: { ...CLASS_HEAD, outputs: labelsOf(config, 2) }
  };
}
function readTwoTowers(config) {
  const vision = config.part("vision_config");
  const text = config.part("text_config");
  if (vision === null || text === null) {
    throw notAModel(config.source, "vision_config or text_config is missing");
  }
  const projection = config.count(512, "projection_dim");
  const defaults = {
    hidden_size: 512,
    num_attention_heads: 8,
    num_hidden_layers: 12,
    intermediate_size: 2048,
    vocab_size: 49408
  };
  const own = text.filledFrom(defaults);
  const hidden = own.size("hidden_size");
  const isClip = config.family !== "siglip";
  const eyes = vision.filledFrom({
    hidden_size: 768,
    num_attention_heads: 12,
    num_hidden_layers: 12,
    intermediate_size: 3072,
    patch_size: 32
  });
  const image = imageTower(
    eyes.named(isClip ? "clip_vision" : "siglip_vision"),
    "image",
    isClip ? 1 : 0,
    "quick_gelu"
  );
  const positions = own.optionalSize("max_position_embeddings") ?? (isClip ? 77 : 64);
  return {
    towers: [
      {
        ...image,
        embeddingNorm: isClip ? LAYER_NORM : null,
        otherParameters: isClip ? projection * image.hidden : 0
      },
      {
        name: "text",
        hidden,
        positions,
        embeddings: [
          { name: "token_embedding", rows: own.size("vocab_size"), width: hidden },
          { name: "position_embedding", rows: positions, width: hidden }
        ],
        embeddingNorm: null,
        embeddingDropout: false,
        stems: [],
        layers: [
          {
            count: own.layers("num_hidden_layers"),
            layer: plainLayer(
              plainAttention(own.size("num_attention_heads"), hidden, { bidirectional: !isClip }),
              own.size("intermediate_size"),
              {
                mlp: {
                  width: own.size("intermediate_size"),
                  gated: false,
                  activation: activationOf(own, "quick_gelu"),
                  bias: true,
                  fused: false
                }
              }
            )
          }
        ],
        finalNorm: LAYER_NORM,
        otherParameters: isClip ? projection * hidden + 1 : 0
      }
    ],
    longest: positions
  };
}
function readImageAndText(config) {
  const vision = config.part("vision_config");
  const text = config.part("text_config");
  const decoder2 = readDecoder(text);
  const eyes = vision.filledFrom({ patch_size: 14 });
  const image = imageTower(
    eyes.named(vision.family === "" ? "clip_vision" : vision.family),
    "image",
    1
  );
  const projector = image.hidden * decoder2.tower.hidden + decoder2.tower.hidden * (decoder2.tower.hidden + 2);
  return {
    ...decoder2,
    towers: [{ ...image, otherParameters: projector }, decoder2.tower],
    family: text.family
  };
}
function readResnet(config) {
  const sizes2 = config.sizes("hidden_sizes");
  const depths = config.sizes("depths");
  if (sizes2.length === 0 || sizes2.length !== depths.length || depths.some((depth) => depth > 200)) {
    throw notAModel(config.source, "hidden_sizes and depths do not match");
  }
  const channels = config.count(64, "embedding_size");
  const block = config.text("layer_type") === "basic" ? "resnet-basic" : "resnet-bottleneck";
  const image = config.optionalSize("image_size") ?? 224;
  const layer = (changes) => ({
    kind: "convolution",
    name: "block",
    inputChannels: channels,
    outputChannels: channels,
    inputSide: image / 4,
    outputSide: image / 4,
    block,
    conditionSize: 0,
    ...changes
  });
  const layers = [
    {
      count: 1,
      layer: layer({ block: "stem", inputChannels: 3, inputSide: image, outputSide: image / 2 })
    }
  ];
  let before = channels;
  let side = image / 4;
  for (const [stage, size2] of sizes2.entries()) {
    const halves = stage > 0 || config.flag(false, "downsample_in_first_stage");
    const after = halves ? side / 2 : side;
    layers.push({
      count: 1,
      layer: layer({
        inputChannels: before,
        outputChannels: size2,
        inputSide: side,
        outputSide: after
      })
    });
    const rest = (depths[stage] ?? 1) - 1;
    if (rest > 0) {
      layers.push({
        count: rest,
        layer: layer({
          inputChannels: size2,
          outputChannels: size2,
          inputSide: after,
          outputSide: after
        })
      });
    }
    before = size2;
    side = after;
  }
  return {
    tower: {
      name: "encoder",
      hidden: before,
      positions: 1,
      embeddings: [],
      embeddingNorm: null,
      embeddingDropout: false,
      stems: [],
      layers,
      finalNorm: null,
      otherParameters: 0
    },
    head: { ...CLASS_HEAD, outputs: labelsOf(config, 1e3) }
  };
}

// src/plan/shape/read_shape.ts
function readShape(values, name, source) {
  const config = new ModelConfig(values, source);
  const read = readerOf(config)(config);
  const family = config.family === "" ? config.text("_class_name") : config.family;
  return {
    family,
    name,
    known: true,
    stored: storedWeights(config),
    longestSequence: 0,
    remarks: [],
    ...read
  };
}
function readerOf(config) {
  const { family } = config;
  const diffusion = diffusionReader(config.text("_class_name"));
  if (diffusion !== null) {
    return diffusion;
  }
  if (SEQUENCE_FAMILIES.includes(family)) {
    return (own) => {
      const { towers, head, longest } = readSequenceToSequence(own);
      return { towers, head, longestSequence: longest };
    };
  }
  if (ENCODER_FAMILIES.includes(family)) {
    return (own) => {
      const { tower, head, longest } = readEncoder(own);
      return { towers: [tower], head, longestSequence: longest };
    };
  }
  if (STATE_SPACE_FAMILIES.includes(family)) {
    return oneTower(readStateSpace);
  }
  if (VISION_FAMILIES.includes(family)) {
    return oneTower(readImageClassifier);
  }
  if (family === "resnet") {
    return oneTower(readResnet);
  }
  if (TWO_TOWER_FAMILIES.includes(family)) {
    return (own) => {
      const { towers, longest } = readTwoTowers(own);
      return { towers, head: NO_HEAD, longestSequence: longest };
    };
  }
  return family === "jamba" ? (own) => decoderRead(readJamba(own), own) : readText;
}
function oneTower(read) {
  return (config) => {
    const { tower, head } = read(config);
    return { towers: [tower], head };
  };
}
function diffusionReader(kind) {
  if (/^UNet2D/.test(kind)) {
    return (config) => ({ towers: [readUnet(config)], head: NO_HEAD });
  }
  if (/Transformer2DModel$|^DiT/.test(kind)) {
    const known = /^(?:DiT|PixArt|Transformer2D)/.test(kind);
    return (config) => ({
      towers: [readDiffusionTransformer(config)],
      head: NO_HEAD,
      known: known && !/PixArt/.test(kind),
      remarks: known ? [] : [`${kind} is planned as a DiT with the sizes of its configuration`]
    });
  }
  return null;
}
function readText(config) {
  const text = config.part("text_config");
  if (text !== null && config.part("vision_config") !== null) {
    const { towers, head, longest, known } = readImageAndText(config);
    return {
      towers,
      head,
      longestSequence: longest,
      known,
      remarks: ["one image a sequence; its rows count as tokens of the sequence"]
    };
  }
  return readDecoderAlone(text ?? config);
}
function readDecoderAlone(config) {
  if (!config.has("hidden_size", "n_embd", "d_model")) {
    throw notAModel(config.source, "it has no hidden_size");
  }
  return decoderRead(readDecoder(config), config);
}
function decoderRead({ tower, head, longest, known }, config) {
  return {
    towers: [tower],
    head,
    longestSequence: longest,
    known,
    remarks: known ? [] : [
      `model_type "${config.family}" has no reader; planned as a decoder like Llama with the sizes of its configuration`
    ]
  };
}

// src/plan/files/gguf.ts
var LARGEST_HEADER = 256 * 2 ** 20;
var PIECE = 4 * 2 ** 20;
var MOST_TENSORS = 2e5;
var MOST_ENTRIES = 1e5;
var LONGEST_NAME = 2 ** 20;
var TYPES = {
  0: [4, 1],
  1: [2, 1],
  2: [18, 32],
  3: [20, 32],
  6: [22, 32],
  7: [24, 32],
  8: [34, 32],
  10: [84, 256],
  11: [110, 256],
  12: [144, 256],
  13: [176, 256],
  14: [210, 256],
  15: [292, 256],
  16: [66, 256],
  17: [74, 256],
  18: [98, 256],
  19: [50, 256],
  20: [18, 32],
  21: [110, 256],
  22: [82, 256],
  23: [136, 256],
  24: [1, 1],
  25: [2, 1],
  26: [4, 1],
  28: [8, 1],
  29: [56, 256],
  30: [2, 1],
  39: [17, 32]
};
function ggufHeader(path) {
  const reader = new GgufReader(path);
  if (reader.bytes(4).toString("latin1") !== "GGUF") {
    throw notAModel(path, "it does not begin with GGUF");
  }
  const version = reader.u32();
  if (version !== 2 && version !== 3) {
    throw notAModel(path, `GGUF version ${version}; 2 and 3 are known`);
  }
  const tensors = reader.count(MOST_TENSORS, "tensors");
  const entries2 = reader.count(MOST_ENTRIES, "metadata entries");
  const values = /* @__PURE__ */ new Map();
  for (let entry = 0; entry < entries2; entry++) {
    const key = reader.text();
    values.set(key, reader.value(reader.u32(), 0));
  }
  let parameters = 0;
  let bytes = 0;
  let vocabulary = 0;
  let hasOutput = false;
  for (let tensor = 0; tensor < tensors; tensor++) {
    const { name, sizes: sizes2, type } = reader.tensor();
    const elements = sizes2.reduce((product, size2) => product * size2, 1);
    const [blockBytes2, weights] = TYPES[type] ?? [2, 1];
    parameters += elements;
    bytes += elements / weights * blockBytes2;
    if (name === "token_embd.weight") {
      vocabulary = sizes2[1] ?? 0;
    }
    hasOutput ||= name === "output.weight";
  }
  if (!Number.isSafeInteger(parameters)) {
    throw notAModel(path, "its tensors have impossible sizes");
  }
  return {
    config: configOf(path, values, { vocabulary, hasOutput }),
    parameters,
    bytes: Math.round(bytes)
  };
}
var NAMES = [
  ["block_count", "num_hidden_layers"],
  ["embedding_length", "hidden_size"],
  ["feed_forward_length", "intermediate_size"],
  ["attention.head_count", "num_attention_heads"],
  ["attention.head_count_kv", "num_key_value_heads"],
  ["attention.key_length", "head_dim"],
  ["attention.sliding_window", "sliding_window"],
  ["attention.kv_lora_rank", "kv_lora_rank"],
  ["attention.q_lora_rank", "q_lora_rank"],
  ["context_length", "max_position_embeddings"],
  ["expert_count", "num_experts"],
  ["expert_used_count", "num_experts_per_tok"],
  ["expert_feed_forward_length", "moe_intermediate_size"],
  ["expert_shared_count", "n_shared_experts"],
  ["leading_dense_block_count", "first_k_dense_replace"],
  ["final_logit_softcapping", "final_logit_softcapping"],
  ["attn_logit_softcapping", "attn_logit_softcapping"]
];
var FAMILIES2 = {
  qwen2moe: "qwen2_moe",
  qwen3moe: "qwen3_moe",
  deepseek2: "deepseek_v2",
  gemma3: "gemma3_text",
  gptneox: "gpt_neox",
  "command-r": "cohere",
  "gpt-oss": "gpt_oss",
  phi2: "phi"
};
function configOf(path, values, { vocabulary, hasOutput }) {
  const architecture = values.get("general.architecture");
  if (typeof architecture !== "string") {
    throw notAModel(path, "its metadata names no architecture");
  }
  const config = {
    model_type: FAMILIES2[architecture] ?? architecture,
    tie_word_embeddings: !hasOutput,
    torch_dtype: "float16",
    ...vocabulary > 0 ? { vocab_size: vocabulary } : {}
  };
  for (const [from, to] of NAMES) {
    const value = values.get(`${architecture}.${from}`);
    const number = Array.isArray(value) ? Math.max(0, ...value.filter((each) => typeof each === "number")) : value;
    if (typeof number === "number" && number > 0) {
      config[to] = number;
    }
  }
  if (config.kv_lora_rank !== void 0) {
    const rotary = Number(values.get(`${architecture}.rope.dimension_count`) ?? 64);
    const whole2 = Number(
      values.get(`${architecture}.attention.key_length_mla`) ?? config.head_dim ?? 192
    );
    config.qk_rope_head_dim = rotary;
    config.qk_nope_head_dim = whole2 - rotary;
    config.v_head_dim = Number(
      values.get(`${architecture}.attention.value_length_mla`) ?? values.get(`${architecture}.attention.value_length`) ?? 128
    );
    delete config.head_dim;
  }
  return config;
}
var GgufReader = class {
  #path;
  #piece;
  /** Of the piece's first byte in the file. */
  #start = 0;
  #at = 0;
  constructor(path) {
    this.#path = path;
    this.#piece = readPiece(path, 0, PIECE);
  }
  bytes(length) {
    const from = this.#at - this.#start;
    if (from + length > this.#piece.length) {
      if (this.#at + length > LARGEST_HEADER) {
        throw notAModel(this.#path, "its header is larger than 256 MiB");
      }
      this.#piece = readPiece(this.#path, this.#at, Math.max(PIECE, length));
      this.#start = this.#at;
      if (this.#piece.length < length) {
        throw notAModel(this.#path, "it is cut off within its header");
      }
    }
    const start = this.#at - this.#start;
    this.#at += length;
    return this.#piece.subarray(start, start + length);
  }
  u32() {
    return this.bytes(4).readUInt32LE(0);
  }
  u64() {
    return Number(this.bytes(8).readBigUInt64LE(0));
  }
  count(most, what) {
    const count2 = this.u64();
    if (count2 > most) {
      throw notAModel(this.#path, `${count2} ${what}`);
    }
    return count2;
  }
  text() {
    return this.bytes(this.count(LONGEST_NAME, "bytes in one text")).toString("utf8");
  }
  tensor() {
    const name = this.text();
    const dimensions = this.u32();
    if (dimensions > 8) {
      throw notAModel(this.#path, `${dimensions} dimensions`);
    }
    const sizes2 = Array.from({ length: dimensions }, () => this.u64());
    const type = this.u32();
    this.u64();
    return { name, sizes: sizes2, type };
  }
  /** A value of a type; of arrays only numbers are kept. */
  value(type, depth) {
    switch (type) {
      case 0:
        return this.bytes(1).readUInt8(0);
      case 1:
        return this.bytes(1).readInt8(0);
      case 2:
        return this.bytes(2).readUInt16LE(0);
      case 3:
        return this.bytes(2).readInt16LE(0);
      case 4:
        return this.u32();
      case 5:
        return this.bytes(4).readInt32LE(0);
      case 6:
        return this.bytes(4).readFloatLE(0);
      case 7:
        return this.bytes(1).readUInt8(0) !== 0;
      case 8:
        return this.text();
      case 9:
        return this.#array(depth);
      case 10:
        return this.u64();
      case 11:
        return Number(this.bytes(8).readBigInt64LE(0));
      case 12:
        return this.bytes(8).readDoubleLE(0);
      default:
        throw notAModel(this.#path, `metadata of type ${type}`);
    }
  }
  #array(depth) {
    if (depth > 3) {
      throw notAModel(this.#path, "arrays within arrays");
    }
    const type = this.u32();
    const count2 = this.count(LARGEST_HEADER, "array entries");
    const kept = [];
    for (let entry = 0; entry < count2; entry++) {
      const value = this.value(type, depth + 1);
      if (kept.length < 2e3 && typeof value === "number") {
        kept.push(value);
      }
    }
    return kept;
  }
};

// src/plan/files/safetensors.ts
import { statSync as statSync2 } from "node:fs";
import { join } from "node:path";
var LARGEST_HEADER2 = 100 * 2 ** 20;
var MOST_FILES = 2e3;
function safetensorsHeader(path) {
  const first = readPiece(path, 0, 8);
  if (first.length < 8) {
    throw notAModel(path, "it is cut off within its first 8 bytes");
  }
  const length = Number(first.readBigUInt64LE(0));
  if (length > LARGEST_HEADER2) {
    throw tooLarge(`the header of ${path}`, "100 MiB, that of safetensors");
  }
  if (8 + length > statSync2(path).size) {
    throw notAModel(path, "it is cut off within its header");
  }
  let header2;
  try {
    header2 = JSON.parse(readPiece(path, 8, length).toString("utf8"));
  } catch {
    throw notAModel(path, "its header is not JSON");
  }
  if (typeof header2 !== "object" || header2 === null) {
    throw notAModel(path, "its header is not a JSON object");
  }
  return Object.entries(header2).filter(([name]) => name !== "__metadata__").map(([name, value]) => tensorOf(path, name, value));
}
function tensorOf(path, name, value) {
  const { dtype, shape, data_offsets: offsets } = value ?? {};
  const isWhole = (each) => Number.isSafeInteger(each) && each >= 0;
  if (typeof dtype !== "string" || !Array.isArray(shape) || shape.length > 8 || !shape.every(isWhole) || !Array.isArray(offsets) || !isWhole(offsets[0]) || !isWhole(offsets[1]) || offsets[1] < offsets[0]) {
    throw notAModel(path, `tensor ${name.slice(0, 80)} has no valid shape or offsets`);
  }
  return { name, dtype, shape, bytes: offsets[1] - offsets[0] };
}
function safetensorsOf(folder, names) {
  const index = names.find((name) => name.endsWith(".safetensors.index.json"));
  let files = names.filter((name) => name.endsWith(".safetensors"));
  if (index !== void 0) {
    const map = readJson(join(folder, index)).weight_map;
    if (typeof map !== "object" || map === null) {
      throw notAModel(join(folder, index), "it has no weight_map");
    }
    const listed = [...new Set(Object.values(map).map(String))];
    if (listed.some((name) => name.includes("/") || name.includes("\0"))) {
      throw notAModel(join(folder, index), "it names a file outside of its folder");
    }
    if (!listed.every((name) => names.includes(name))) {
      return null;
    }
    files = listed;
  } else if (files.length > 1) {
    files = files.filter((name) => !/^(?:adapter|consolidated|optimizer)/.test(name));
  }
  if (files.length === 0 || files.length > MOST_FILES) {
    return null;
  }
  return files.flatMap((name) => safetensorsHeader(join(folder, name)));
}

// src/plan/files/tensor_config.ts
var HEAD_SIZES = [128, 64, 96, 80, 256];
function configFromTensors(tensors, source) {
  const layers = /* @__PURE__ */ new Set();
  for (const { name } of tensors) {
    const [, index] = /(?:^|\.)(?:layers?|h|blocks?)\.(\d{1,4})\./.exec(name) ?? [];
    if (index !== void 0) {
      layers.add(Number(index));
    }
  }
  const shapeOf = (pattern) => tensors.find(({ name, shape }) => pattern.test(name) && shape.length === 2)?.shape;
  const embedding = shapeOf(
    /(?:embed_tokens|wte|tok_embeddings|word_embeddings|token_embedding|embed_in)\.weight$/
  );
  const [vocabulary, hidden] = embedding ?? [];
  if (vocabulary === void 0 || hidden === void 0 || layers.size === 0) {
    throw notAModel(
      source,
      "it has no config.json, and its tensors have no embedding or numbered layers"
    );
  }
  const [keys] = shapeOf(/(?:k_proj|\.wk|key)\.weight$/) ?? [hidden];
  const [queries = hidden] = shapeOf(/(?:q_proj|\.wq|query)\.weight$/) ?? [hidden];
  const head = HEAD_SIZES.find((size2) => queries % size2 === 0 && (keys ?? hidden) % size2 === 0) ?? queries;
  const up = shapeOf(/(?:up_proj|gate_proj|w1|fc1|c_fc|fc_in|dense_h_to_4h)\.weight$/);
  const width = up === void 0 ? 4 * hidden : Math.max(...up) === hidden ? Math.min(...up) : Math.max(...up);
  return {
    model_type: "",
    hidden_size: hidden,
    vocab_size: vocabulary,
    num_hidden_layers: layers.size,
    num_attention_heads: queries / head,
    num_key_value_heads: Math.max(1, (keys ?? hidden) / head),
    head_dim: head,
    intermediate_size: width,
    tie_word_embeddings: shapeOf(/(?:lm_head|output|embed_out)\.weight$/) === void 0,
    torch_dtype: DTYPES2[embedding === void 0 ? "" : tensors.find(({ shape }) => shape === embedding)?.dtype ?? ""] ?? "bfloat16"
  };
}
var DTYPES2 = {
  F32: "float32",
  F16: "float16",
  BF16: "bfloat16"
};

// src/plan/files/read_model.ts
function readModel(path) {
  const name = basename(resolve(path));
  if (statOf(path).isDirectory()) {
    return readFolder(path, name);
  }
  if (path.endsWith(".gguf")) {
    return readGguf(path, name);
  }
  if (path.endsWith(".safetensors")) {
    return fromTensors(safetensorsHeader(path), name, path);
  }
  return readShape(readJson(path), basename(dirname(resolve(path))), path);
}
var LARGEST_LOG = 256 * 2 ** 20;
function readFolder(folder, name) {
  let names;
  try {
    names = readdirSync(folder);
  } catch (error) {
    throw fileUnusable(folder, "read", reasonOf(error).message);
  }
  const tensors = safetensorsOf(folder, names);
  if (names.includes("config.json")) {
    const file = join2(folder, "config.json");
    const model = readShape(readJson(file), name, file);
    return tensors === null ? model : withWeightFiles(model, tensors);
  }
  if (tensors !== null) {
    return fromTensors(tensors, name, folder);
  }
  const gguf = names.filter((each) => each.endsWith(".gguf"));
  if (gguf.length === 1) {
    return readGguf(join2(folder, gguf[0]), name);
  }
  throw notAModel(
    folder,
    gguf.length > 1 ? "it holds several GGUF files: name one" : "it holds no config.json"
  );
}
function fromTensors(tensors, name, source) {
  const model = readShape(configFromTensors(tensors, source), name, source);
  return withWeightFiles(
    {
      ...model,
      known: false,
      remarks: ["no config.json: sizes are read from the tensors, heads are guessed"]
    },
    tensors
  );
}
function readGguf(path, name) {
  const { config, parameters, bytes } = ggufHeader(path);
  const model = readShape(config, name, path);
  return corrected({
    ...model,
    stored: {
      dtype: "fp16",
      quantization: bytes / parameters < 1.9 ? { dtype: "int4", bytesPerWeight: bytes / parameters } : null
    },
    weightFiles: { parameters, bytes }
  });
}
function weightsOf({ dtype, shape, name }) {
  const elements = shape.reduce((product, size2) => product * size2, 1);
  const packed = /\.(?:qweight|weight_packed)$/.test(name) && dtype === "I32" ? 8 : 1;
  const isScale = /\.(?:scales|qzeros|g_idx|weight_scale(?:_inv)?|absmax|quant_map|nested_.*|SCB|weight_format)$/.test(
    name
  );
  return isScale ? 0 : elements * (dtype === "U8" ? 2 : packed);
}
function withWeightFiles(model, tensors) {
  const bytes = tensors.reduce((sum, each) => sum + each.bytes, 0);
  const parameters = tensors.reduce((sum, each) => sum + weightsOf(each), 0);
  return Number.isSafeInteger(parameters) && parameters > 0 ? corrected({ ...model, weightFiles: { parameters, bytes } }) : model;
}
var SMALL_DIFFERENCE = 3e-3;
function corrected(model) {
  const stored = model.weightFiles?.parameters ?? 0;
  const planned = parameterCount(model);
  const missing2 = stored - planned;
  if (Math.abs(missing2) <= SMALL_DIFFERENCE * stored) {
    return model;
  }
  const remark = `the weight files hold ${(stored / 1e9).toFixed(3)}e9 parameters, the configuration describes ${(planned / 1e9).toFixed(3)}e9`;
  const last = model.towers.at(-1);
  const towers = missing2 > 0 ? [...model.towers.slice(0, -1), { ...last, otherParameters: last.otherParameters + missing2 }] : model.towers;
  return { ...model, towers, known: false, remarks: [...model.remarks, remark] };
}

// src/plan/fit.ts
var LARGEST_BATCH = 4096;
var LONGEST2 = 2 ** 20;
function fitOf(model, options, measure) {
  const deviceBytes = options.gpu.memoryBytes;
  const room = deviceBytes * shareOf(options);
  const fits = (changed2) => measure(model, changed2) <= room;
  const withBatch = (batch) => options.mode === "train" ? { ...options, batch } : { ...options, concurrency: batch, cacheAsNeeded: true };
  const withLength = (length) => options.mode === "train" ? { ...options, sequence: length } : { ...options, context: length, cacheAsNeeded: true };
  const fitsNow = fits(options.mode === "train" ? options : { ...options, cacheAsNeeded: true });
  return {
    deviceBytes,
    fits: fitsNow,
    maxBatch: largest((batch) => fits(withBatch(batch)), LARGEST_BATCH),
    maxSequence: largestLength((length) => fits(withLength(length)), model.longestSequence)
  };
}
function largestLength(fits, longest) {
  const limit = longest === 0 ? LONGEST2 : Math.min(LONGEST2, longest);
  const found = 64 * largest((units) => fits(64 * units), Math.max(1, Math.floor(limit / 64)));
  return Math.min(found, limit);
}
function shareOf(options) {
  return options.mode === "serve" && fillsDevice(options) ? options.utilization : 1;
}
function largest(holds, limit) {
  if (!holds(1)) {
    return 0;
  }
  let low = 1;
  while (low < limit && holds(Math.min(limit, low * 2))) {
    low = Math.min(limit, low * 2);
  }
  let high = Math.min(limit, low * 2);
  if (low === limit) {
    return limit;
  }
  while (high - low > Math.max(1, low / 64)) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
function fitTable(model, options, gpus, measureFrom2) {
  const jobs = options.mode === "train" ? methodsOf(options) : [{ name: options.engine, options }];
  const measured = jobs.map(
    (job) => measuredOnce(job.options.gpu, measureFrom2(model, job.options))
  );
  return gpus.flatMap(
    (gpu2) => jobs.map((job, index) => {
      const fit = fitOf(model, { ...job.options, gpu: gpu2 }, measured[index]);
      return { device: gpu2.name, method: job.name, ...fit };
    })
  );
}
function measuredOnce(base, measure) {
  const known = /* @__PURE__ */ new Map();
  return (model, options) => {
    const key = options.mode === "train" ? `${options.batch} ${options.sequence}` : `${options.concurrency} ${options.context}`;
    const bytes = known.get(key) ?? measure(model, { ...options, gpu: base });
    known.set(key, bytes);
    const own = (gpu2) => gpu2.contextBytes + gpu2.workspaceBytes;
    return bytes + own(options.gpu) - own(base);
  };
}
function methodsOf(options) {
  const checkpointing = (name, job) => [
    { name, options: job },
    { name: `${name}, checkpointing`, options: { ...job, checkpointing: "full" } }
  ];
  const plain = { ...options, quantize: null, checkpointing: "none" };
  return [
    ...checkpointing("full", { ...plain, method: "full" }),
    ...checkpointing("full, 8-bit AdamW", { ...plain, method: "full", optimizer: "adamw8bit" }),
    ...checkpointing("lora", { ...plain, method: "lora" }),
    ...checkpointing("qlora", { ...plain, method: "qlora", quantize: options.quantize ?? "nf4" })
  ];
}

// src/plan/job/optimizers.ts
var OPTIMIZERS2 = [
  "adamw",
  "adamw-foreach",
  "adam",
  "adamw8bit",
  "paged-adamw8bit",
  "paged-adamw",
  "adafactor",
  "lion",
  "lion8bit",
  "muon",
  "sgd",
  "sgd-momentum",
  "none"
];
var BLOCK = 256;
var SMALLEST_QUANTIZED = 4096;
function stateBytes(name, { elements, role, rows }, wide) {
  switch (name) {
    case "adam":
    case "adamw":
    case "adamw-foreach":
    case "paged-adamw":
      return 2 * wide * elements;
    case "adamw8bit":
    case "paged-adamw8bit":
      return 2 * quantized(elements);
    case "lion8bit":
      return quantized(elements);
    case "adafactor":
      return rows > 1 ? 4 * (rows + elements / rows) : 4 * elements;
    case "lion":
    case "sgd-momentum":
      return wide * elements;
    case "muon":
      return role === "matrix" || role === "expert" ? wide * elements : 2 * wide * elements;
    case "sgd":
    case "none":
      return 0;
  }
}
function quantized(elements) {
  return elements < SMALLEST_QUANTIZED ? 4 * elements : elements * (1 + 4 / BLOCK);
}
function stepTemporary(name, trainableBytes, largest2) {
  switch (name) {
    case "adamw-foreach":
      return trainableBytes;
    case "muon":
      return 4 * largest2;
    case "adafactor":
      return 2 * largest2;
    case "lion":
      return largest2;
    default:
      return 0;
  }
}
var TWO_MOMENTS = { moments: 2 };
var OPTIMIZER_FACTS = {
  adamw: {
    ...facts("2 x bytes of the weight", "torch.optim.AdamW, fused", "none"),
    ...TWO_MOMENTS
  },
  "adamw-foreach": {
    ...facts("2 x bytes of the weight", "torch.optim.AdamW, foreach", "none"),
    ...TWO_MOMENTS,
    foreach: true
  },
  adam: { ...facts("2 x bytes of the weight", "torch.optim.Adam", "none"), ...TWO_MOMENTS },
  adamw8bit: {
    ...facts("2 x (1 + 4/256) B", "bitsandbytes, blocks of 256", "slightly noisier updates"),
    ...TWO_MOMENTS
  },
  "paged-adamw8bit": facts(
    "2 x (1 + 4/256) B in host memory",
    "bitsandbytes, unified memory",
    "slower steps where pages move",
    true
  ),
  "paged-adamw": facts(
    "2 x bytes of the weight in host memory",
    "bitsandbytes, unified memory",
    "slower steps where pages move",
    true
  ),
  adafactor: facts(
    "4 B x (rows + columns) of each matrix",
    "Shazeer and Stern 2018",
    "no momentum; other learning rates"
  ),
  lion: facts("1 x bytes of the weight", "Chen et al. 2023", "other learning rates"),
  lion8bit: facts("(1 + 4/256) B", "bitsandbytes", "other learning rates"),
  muon: facts(
    "1 x bytes of matrices, 2 x of the rest",
    "Jordan et al. 2024",
    "more computation in a step"
  ),
  sgd: facts("0", "torch.optim.SGD", "slower convergence"),
  "sgd-momentum": facts("1 x bytes of the weight", "torch.optim.SGD", "slower convergence"),
  none: facts("0", "no optimizer", "")
};
function facts(formula, source, cost, paged = false) {
  return { formula, source, cost, paged };
}

// src/plan/assumptions.ts
function assumptionsOf(model, options) {
  return options.mode === "train" ? ofTraining(model, options) : ofServing(options);
}
function ofTraining(model, options) {
  const { method, dtype, fp32Weights } = options;
  const weights = options.fp32Weights && dtype !== "fp32" ? "fp32 weights, matrix products in" : "weights and matrix products in";
  const sentences = [
    `${weights} ${dtype}${fp32Weights || model.stored.dtype === null || model.stored.dtype === dtype ? "" : ` (the checkpoint has ${model.stored.dtype})`}`,
    `${options.library} with ${options.attention} attention and ${options.loss} loss, ${options.compiled ? "with" : "without"} torch.compile, ${options.checkpointing === "none" ? "no" : options.checkpointing} checkpointing`,
    `${options.batch} ${options.batch === 1 ? "sequence" : "sequences"} of ${options.sequence} tokens on each device, without shorter ones`
  ];
  if (method !== "full") {
    const targets = typeof options.adapterTargets === "string" ? options.adapterTargets : options.adapterTargets.join(", ");
    sentences.push(
      `adapters of rank ${options.adapterRank} on ${targets === "all" ? "all linear layers" : targets}`
    );
  }
  if (options.optimizer !== "none") {
    sentences.push(
      `optimizer ${options.optimizer}${options.optimizerInBackward ? " that steps in the backward pass" : ""}`
    );
  }
  return sentences;
}
function ofServing(options) {
  const { engine, utilization, batchedTokens } = options;
  const preallocates = engine !== "transformers" && engine !== "llama.cpp";
  return [
    `${engine}${preallocates ? `, which uses ${(utilization * 100).toFixed(0)} % of the device and computes ${batchedTokens} tokens per pass` : ""}`,
    `${options.concurrency} ${options.concurrency === 1 ? "sequence" : "sequences"} of ${options.context} tokens; cache in ${options.kvDType === "auto" ? options.dtype : options.kvDType}`
  ];
}

// src/plan/divisible.ts
function requireDivisible(model, options) {
  const { tensor, pipeline, expert } = options.mode === "train" ? options.parallelism : options;
  const layers = model.towers.flatMap((tower) => tower.layers);
  for (const { layer } of layers) {
    requireLayer(layer, tensor, expert);
  }
  const count2 = layers.reduce((sum, each) => sum + each.count, 0);
  if (pipeline > count2) {
    throw cannotDivide(
      `${count2} layers do not fill ${pipeline} pipeline stages`,
      `use --pp ${count2} or less`
    );
  }
  if (pipeline > 1 && model.towers.length > 1) {
    throw cannotDivide(
      "a model of several towers is not planned in pipeline stages",
      "leave --pp out"
    );
  }
}
function requireLayer(layer, tensor, expert) {
  if (layer.kind !== "transformer") {
    return;
  }
  const heads = layer.attention?.heads ?? tensor;
  if (heads % tensor !== 0) {
    throw cannotDivide(
      `${heads} heads cannot be divided over --tp ${tensor}`,
      `use a divisor of ${heads}`
    );
  }
  const experts2 = layer.mlp !== null && isMoe(layer.mlp) ? layer.mlp.experts : 0;
  if (experts2 > 0 && expert > experts2) {
    throw cannotDivide(
      `${experts2} experts cannot be divided over --ep ${expert}`,
      `use --ep ${experts2} or less`
    );
  }
}

// src/plan/savings.ts
var TRAINING = [
  {
    technique: "activation checkpointing",
    cost: "about a third more computation",
    change: "--checkpointing full; model.gradient_checkpointing_enable()",
    applied: (job) => job.checkpointing === "full" ? null : { ...job, checkpointing: "full" }
  },
  {
    technique: "selective checkpointing",
    cost: "about 10 % more computation",
    change: "--checkpointing selective; torch.utils.checkpoint with a context_fn",
    applied: (job) => job.checkpointing === "none" ? { ...job, checkpointing: "selective" } : null
  },
  {
    technique: "activation offloading",
    cost: "host memory, PCIe traffic in both passes",
    change: "--checkpointing full --offload-activations",
    applied: (job) => job.activationOffload ? null : { ...job, checkpointing: "full", activationOffload: true }
  },
  {
    technique: "FlashAttention kernel",
    cost: "none",
    change: '--attention flash; attn_implementation="flash_attention_2"',
    applied: (job) => job.attention === "flash" || job.gpu.old ? null : { ...job, attention: "flash" }
  },
  {
    technique: "fused linear cross entropy",
    cost: "none known; needs a fused kernel",
    change: "--loss fused; Liger's LigerFusedLinearCrossEntropyLoss, Cut Cross-Entropy",
    applied: (job) => job.loss === "fused" ? null : { ...job, loss: "fused" }
  },
  {
    technique: "chunked cross entropy",
    cost: "none",
    change: "--loss chunked; torchtune's CEWithChunkedOutputLoss",
    applied: (job) => job.loss === "full" ? { ...job, loss: "chunked" } : null
  },
  {
    technique: "torch.compile",
    cost: "compiles for minutes; recompiles for new shapes",
    change: "--compile; torch.compile(model)",
    applied: (job) => job.compiled ? null : { ...job, compiled: true }
  },
  {
    technique: "8-bit AdamW",
    cost: "slightly noisier updates",
    change: '--optimizer adamw8bit; optim="adamw_bnb_8bit"',
    applied: (job) => job.optimizer.startsWith("adam") && !job.optimizer.includes("8") ? { ...job, optimizer: "adamw8bit" } : null
  },
  {
    technique: "paged 8-bit AdamW",
    cost: "slower when pages move; uses host memory",
    change: '--optimizer paged-adamw8bit; optim="paged_adamw_8bit"',
    applied: (job) => job.optimizer.startsWith("adam") ? { ...job, optimizer: "paged-adamw8bit" } : null
  },
  {
    technique: "optimizer step in the backward pass",
    cost: "no gradient accumulation, no clipping by global norm",
    change: "--optimizer-in-backward; register_post_accumulate_grad_hook",
    applied: (job) => job.optimizerInBackward || job.accumulation > 1 ? null : { ...job, optimizerInBackward: true }
  },
  {
    technique: "16-bit weights without an fp32 copy",
    cost: "small updates may be rounded away",
    change: "--dtype bf16 --weights 16bit; torch_dtype=torch.bfloat16",
    applied: (job) => job.fp32Weights && job.dtype !== "fp32" ? { ...job, fp32Weights: false } : null
  },
  {
    technique: "LoRA",
    cost: "trains only a small share of the weights",
    change: "--method lora",
    applied: (job) => job.method === "full" ? { ...job, method: "lora" } : null
  },
  {
    technique: "QLoRA, nf4",
    cost: "weights rounded to 4 bits; dequantized in each pass",
    change: "--method qlora --quantize nf4",
    applied: (job) => job.method === "qlora" ? null : { ...job, method: "qlora", quantize: "nf4" }
  },
  {
    technique: "half the batch, twice the accumulation",
    cost: "more and smaller kernels",
    change: "--batch, --accumulation",
    applied: (job) => job.batch > 1 ? { ...job, batch: Math.ceil(job.batch / 2), accumulation: job.accumulation * 2 } : null
  },
  {
    technique: "twice as many FSDP devices",
    cost: "more communication",
    change: "--fsdp N",
    applied: (job) => {
      const { sharding } = job.parallelism;
      return {
        ...job,
        parallelism: {
          ...job.parallelism,
          sharding: {
            ...sharding,
            kind: sharding.kind === "ddp" ? "fsdp" : sharding.kind,
            devices: sharding.devices * 2
          }
        }
      };
    }
  }
];
var SERVING = [
  {
    technique: "cache in fp8",
    cost: "slightly lower quality in long contexts",
    change: "--kv-dtype fp8; --kv-cache-dtype fp8",
    applied: (job) => job.kvDType === "fp8" || job.kvDType === "int8" ? null : { ...job, kvDType: "fp8" }
  },
  {
    technique: "weights in fp8",
    cost: "faster only on Ada, Hopper and later",
    change: "--quantize fp8; --quantization fp8",
    applied: (job) => job.quantize === null ? { ...job, quantize: "fp8" } : null
  },
  {
    technique: "weights in int4 (AWQ, GPTQ)",
    cost: "lower quality; needs a quantized checkpoint",
    change: "--quantize int4",
    applied: (job) => job.quantize === "int4" || job.quantize?.startsWith("nf4") === true ? null : { ...job, quantize: "int4" }
  },
  {
    technique: "twice the tensor parallelism",
    cost: "communication in each layer",
    change: "--tp N",
    applied: (job) => ({ ...job, tensor: job.tensor * 2 })
  },
  {
    technique: "no CUDA graphs",
    cost: "slower decoding",
    change: "--no-cuda-graphs; --enforce-eager",
    applied: (job) => job.cudaGraphs ? { ...job, cudaGraphs: false } : null
  }
];
function savingsOf(model, options, now, measure) {
  const growing = (job) => ({ ...job, cacheAsNeeded: true });
  const before = options.mode === "serve" ? measure(model, growing(options)) : now;
  const rows = options.mode === "train" ? TRAINING.map((each) => ({ ...each, after: each.applied(options) })) : SERVING.map((each) => ({
    ...each,
    after: each.applied(growing(options))
  }));
  const least = before / 1e3;
  return rows.flatMap(({ technique, cost, change, after }) => {
    if (after === null) {
      return [];
    }
    const bytes = before - measureOrNothing(model, after, measure, before);
    return bytes > least ? [{ technique, bytes: Math.round(bytes), cost, change }] : [];
  }).sort((a, b) => b.bytes - a.bytes);
}
function measureOrNothing(model, options, measure, now) {
  const heads = model.towers.flatMap(({ layers }) => layers).map(({ layer }) => layer);
  const tensor = options.mode === "serve" ? options.tensor : options.parallelism.tensor;
  const divides = heads.every(
    (layer) => layer.kind !== "transformer" || (layer.attention?.heads ?? tensor) % tensor === 0
  );
  return divides ? measure(model, options) : now;
}

// src/plan/train/host.ts
var MIB3 = 2 ** 20;
var PROCESS_BYTES = 2600 * MIB3;
var WORKER_BYTES = 280 * MIB3;
function hostParts(model, options, peak) {
  const { states } = peak;
  const { parameters } = states.counts;
  const stored = model.weightFiles?.bytes ?? parameters * bytesOfCompute(options.dtype);
  const parts = [
    {
      part: "process",
      bytes: PROCESS_BYTES,
      formula: "Python, torch and CUDA's host side, one process for each device"
    },
    {
      part: "loading",
      bytes: stored,
      formula: "the checkpoint's tensors on their way to the device; with low_cpu_mem_usage=False twice"
    }
  ];
  if (states.host > 0) {
    parts.push({
      part: "optimizer and offloaded weights",
      bytes: Math.round(states.host),
      formula: `${OFFLOADED[options.parallelism.sharding.offload]}, pinned`
    });
  }
  if (options.activationOffload) {
    const layers = peak.tape.units.filter(({ checkpointable }) => checkpointable);
    parts.push({
      part: "offloaded activations",
      bytes: layers.reduce(
        (sum, { inputs }) => sum + inputs.reduce((all, { bytes }) => all + bytes, 0),
        0
      ),
      formula: "input of each layer, pinned"
    });
  }
  if (options.workers > 0) {
    parts.push({
      part: "DataLoader workers",
      bytes: options.workers * WORKER_BYTES,
      formula: `${options.workers} workers x 280 MiB of pages that copy-on-write duplicates; more where the data set is a Python list`
    });
  }
  return parts;
}
var OFFLOADED = {
  none: "paged states",
  optimizer: "states and master weights",
  all: "states, master weights and weights"
};

// src/plan/train/communication.ts
var BUCKET_ELEMENTS = 5e8;
var LIVE_ELEMENTS = 1e9;
var FP326 = 4;
function communicationOf(tape, options) {
  const { sharding, tensor } = options.parallelism;
  const computeBytes = bytesOfCompute(options.dtype);
  const { expert } = options.parallelism;
  const units = unitElements(tape, expert > 1 && expert >= sharding.devices);
  const trainable = tape.parameters.reduce(
    (sum, each) => sum + (each.trainable ? each.elements : 0),
    0
  );
  const all = units.layers.reduce((sum, each) => sum + each, units.root);
  switch (sharding.kind) {
    case "fsdp":
      return sharding.devices === 1 ? null : fsdp(units, options);
    case "zero-1":
    case "zero-2": {
      const bucket = 2 * Math.min(BUCKET_ELEMENTS, trainable) * computeBytes;
      return {
        bytesOf: () => bucket,
        formula: `2 buckets x min(5e8, ${count(trainable)}) x ${computeBytes} B`,
        source: "DeepSpeed: reduce_bucket_size, overlap_comm"
      };
    }
    case "zero-3": {
      const live = Math.min(LIVE_ELEMENTS, all);
      const bucket = 2 * Math.min(BUCKET_ELEMENTS, trainable) * computeBytes;
      return {
        bytesOf: () => live * computeBytes + bucket,
        formula: `min(1e9, ${count(all)}) x ${computeBytes} B gathered + 2 buckets x min(5e8, ${count(trainable)}) x ${computeBytes} B`,
        source: "DeepSpeed: stage3_max_live_parameters, reduce_bucket_size"
      };
    }
    default: {
      if (sharding.devices * tensor === 1) {
        return null;
      }
      const gradients = sharding.devices > 1 ? trainable * computeBytes : 0;
      return {
        bytesOf: () => gradients,
        formula: sharding.devices > 1 ? `buckets of all gradients: ${count(trainable)} x ${computeBytes} B` : "none",
        source: "torch DistributedDataParallel: a bucket's copy of each gradient"
      };
    }
  }
}
function fsdp(units, { method, dtype, parallelism }) {
  const computeBytes = bytesOfCompute(dtype);
  const flat = parallelism.sharding.version === 1;
  const layer = Math.max(0, ...units.layers);
  const perElement = method === "full" ? computeBytes + FP326 : flat ? computeBytes : 0;
  const gathered = layer * computeBytes;
  return {
    bytesOf: ({ checkpointable }, backward) => units.root * computeBytes + (checkpointable ? 2 : 1) * gathered + (backward && checkpointable ? perElement * layer : 0),
    formula: `embedding and head ${count(units.root)} x ${computeBytes} B + 2 layers x ${count(layer)} x ${computeBytes} B${perElement > 0 ? ` + gradients of one layer x ${perElement} B` : ""}`,
    source: flat ? "torch.distributed.fsdp, FlatParameter: root unit, prefetch, reduce-scatter" : "torch.distributed.fsdp.fully_shard: root unit, prefetch, reduce-scatter"
  };
}
function unitElements(tape, expertsStay) {
  const layers = /* @__PURE__ */ new Map();
  let root = 0;
  for (const { unit, elements, role } of tape.parameters) {
    if (expertsStay && role === "expert") {
      continue;
    }
    if (tape.units[unit]?.checkpointable === true) {
      layers.set(unit, (layers.get(unit) ?? 0) + elements);
    } else {
      root += elements;
    }
  }
  return { layers: [...layers.values()], root };
}
function count(elements) {
  return elements >= 1e9 ? `${(elements / 1e9).toFixed(2)}e9` : `${(elements / 1e6).toFixed(1)}e6`;
}
function ncclBytes(options) {
  const { sharding, tensor, pipeline, expert, context: context2 } = options.parallelism;
  const groups = [sharding.devices, tensor, pipeline, expert, context2].filter((size2) => size2 > 1);
  return groups.reduce((sum, size2) => sum + (size2 > 2 ? 420 : 250) * 2 ** 20, 0);
}

// src/plan/train/parts.ts
var WIDTHS = {
  weights: 4e-3,
  gradients: 0.02,
  optimizer: 0.02,
  activations: 0.1,
  head: 0.15,
  working: 0.25,
  communication: 0.4
};
var UNKNOWN_FACTOR2 = 2.5;
function trainingParts(peak, options, { model, gaps }) {
  const { states, simulation, communication } = peak;
  const factor = model.known ? 1 : UNKNOWN_FACTOR2;
  const parts = [];
  const add = (name, bytes, width, sketch) => {
    if (bytes > 0) {
      parts.push(part(name, bytes, width * factor, sketch));
    }
  };
  add("weights", states.weights, WIDTHS.weights, {
    formula: weightsFormula2(peak, options),
    source: "the configuration's shapes; each matrix counted"
  });
  add("adapters", states.adapters, WIDTHS.weights, {
    formula: `rank ${options.adapterRank} x (inputs + outputs) of each target: ${counted(states.counts.trainable)} parameters`,
    source: "Hu et al., LoRA (2021), section 4.1"
  });
  const gradients = peak.stepIsPeak ? options.optimizerInBackward ? 0 : states.gradients : simulation.peak.gradients;
  add("gradients", gradients, WIDTHS.gradients, {
    formula: `${counted(states.counts.trainable)} trained parameters in the type of the weights${divided(options)}`,
    source: "torch.autograd: a leaf's gradient has its type"
  });
  add(
    "optimizer",
    states.optimizer + states.master,
    WIDTHS.optimizer,
    optimizerSketch(peak, options)
  );
  if (peak.stepIsPeak) {
    add("temporaries", states.stepTemporary, WIDTHS.working, {
      formula: "temporary copies of the optimizer step",
      source: OPTIMIZER_FACTS[options.optimizer].source
    });
  } else {
    addActivations(add, peak, options);
    if (communication !== null) {
      add("communication", simulation.peak.communication, WIDTHS.communication, communication);
    }
  }
  return [
    ...parts,
    ...allocatorParts(parts, {
      gpu: options.gpu,
      threads: 2,
      outsideBytes: peak.ncclBytes,
      replayedGaps: gaps
    })
  ];
}
function addActivations(add, { simulation, inFlight }, options) {
  const { peak, savedAfterForward, savedBytes } = simulation;
  const others = sumOf(peak.saved, (name) => name !== "head and loss") + (inFlight - 1) * savedBytes;
  add("activations", others, WIDTHS.activations, {
    formula: `${layerWords(savedAfterForward, options)}${inFlight > 1 ? `; ${inFlight.toFixed(1)} microbatches in flight` : ""}`,
    source: "tensors that autograd saves, operation by operation (tools/autograd/derivatives.yaml)"
  });
  const head = peak.saved.get("head and loss") ?? 0;
  const inHead = peak.where.includes("loss");
  add("head and loss", head + (inHead ? peak.working : 0), WIDTHS.head, {
    formula: `logits, their fp32 copies and their gradients; loss: ${options.loss}`,
    source: "torch.nn.functional.cross_entropy: log_softmax keeps its output"
  });
  if (!inHead) {
    add("temporaries", peak.working, WIDTHS.working, {
      formula: "intermediate results, their gradients, and scratch memory of kernels",
      source: "lifetimes of all tensors of the step"
    });
  }
}
function layerWords(saved, options) {
  const positions = options.batch * options.sequence;
  const shown2 = [...saved].filter(([name, bytes]) => name !== "head and loss" && bytes > 0).sort((a, b) => b[1] - a[1]).map(([name, bytes]) => `${name} ${(bytes / positions / 1024).toFixed(1)} KiB`);
  return `${positions} tokens; per token in all layers: ${shown2.join(", ")}`;
}
function sumOf(saved, wanted) {
  return [...saved].reduce((sum, [name, bytes]) => sum + (wanted(name) ? bytes : 0), 0);
}
function weightsFormula2({ states }, options) {
  const { parameters, quantized: quantized2 } = states.counts;
  const words3 = quantized2 > 0 ? `, of which ${counted(quantized2)} are quantized` : "";
  const rank = options.parallelism.pipeline * options.parallelism.tensor > 1 ? " on this rank" : "";
  return `${counted(parameters)} parameters${rank}${words3}${divided(options)}`;
}
function optimizerSketch({ states }, options) {
  const { formula, source } = OPTIMIZER_FACTS[options.optimizer];
  const master = states.master > 0 ? " + 4 B of master weights" : "";
  return {
    formula: `${counted(states.counts.trainable)} parameters x (${formula}${master})${divided(options)}`,
    source
  };
}
function divided({ parallelism }) {
  const { kind, devices } = parallelism.sharding;
  return kind === "ddp" || devices === 1 ? "" : `; divided by ${kind === "fsdp" ? "FSDP" : kind.replace("zero", "ZeRO")} over ${devices} devices`;
}
function counted(elements) {
  return elements >= 1e9 ? `${(elements / 1e9).toFixed(3)}e9` : `${(elements / 1e6).toFixed(2)}e6`;
}

// src/plan/train/states.ts
function divisorsOf({ kind, devices }) {
  return {
    weights: kind === "fsdp" || kind === "zero-3" ? devices : 1,
    gradients: kind === "fsdp" || kind === "zero-3" || kind === "zero-2" ? devices : 1,
    states: kind === "ddp" ? 1 : devices
  };
}
function statesOf(tape, options) {
  const { sharding } = options.parallelism;
  const divisors = divisorsOf(sharding);
  const over = (each, divisor) => each.role === "expert" ? Math.max(1, divisor / options.parallelism.expert) : divisor;
  const computeBytes = bytesOfCompute(options.dtype);
  const isZero = sharding.kind.startsWith("zero");
  const fsdpWide = sharding.kind === "fsdp" && options.fp32Weights && computeBytes < 4;
  const hasMaster = isZero && computeBytes < 4 && options.fp32Weights;
  const widening = (each) => fsdpWide && each.trainable ? 4 / computeBytes : 1;
  const stateWidth = (each) => hasMaster || fsdpWide ? 4 : each.bytes / each.elements;
  const sum = (of) => tape.parameters.reduce((total, each) => total + of(each), 0);
  const trained = (of) => sum((each) => each.trainable ? of(each) : 0);
  const gradientBytesOf = (each) => each.bytes * widening(each) / over(each, divisors.gradients);
  const stateOf3 = (each) => stateBytes(options.optimizer, each, stateWidth(each)) / over(each, divisors.states);
  const masterOf = (each) => hasMaster ? 4 * each.elements / over(each, divisors.states) : 0;
  const weightOf = (each) => each.bytes * widening(each) / over(each, divisors.weights);
  const states = trained(stateOf3);
  const master = trained(masterOf);
  const paged = OPTIMIZER_FACTS[options.optimizer].paged || sharding.offload !== "none";
  const weights = sum((each) => each.role === "adapter" ? 0 : weightOf(each));
  const offloadsAll = sharding.offload === "all";
  const largest2 = Math.max(
    0,
    ...tape.parameters.map((each) => each.trainable ? each.elements * 4 : 0)
  );
  const temporary = paged ? 0 : stepTemporary(
    options.optimizer,
    trained((each) => each.bytes * widening(each)) / divisors.states,
    largest2 / divisors.states
  );
  return {
    weights: offloadsAll ? 0 : weights,
    adapters: sum((each) => each.role === "adapter" ? weightOf(each) : 0),
    gradients: trained(gradientBytesOf),
    optimizer: paged ? 0 : states,
    master: sharding.offload === "none" ? master : 0,
    stepTemporary: temporary,
    host: (paged ? states : 0) + (sharding.offload === "none" ? 0 : master) + (offloadsAll ? weights : 0),
    counts: {
      parameters: sum((each) => each.role === "adapter" ? 0 : each.elements),
      trainable: trained(({ elements }) => elements),
      quantized: sum((each) => each.quantized ? each.elements : 0)
    },
    gradientBytesOf,
    tensors: tensorsOf(tape, options, {
      weight: (each) => offloadsAll ? 0 : weightOf(each),
      state: (each) => paged ? 0 : stateOf3(each),
      master: (each) => sharding.offload === "none" ? masterOf(each) : 0,
      temporary
    })
  };
}
function tensorsOf(tape, { optimizer }, { weight, state, master, temporary }) {
  const trained = tape.parameters.filter((each) => each.trainable);
  const elements = trained.reduce((sum, each) => sum + each.elements, 0);
  const { foreach = false, moments = 1 } = OPTIMIZER_FACTS[optimizer];
  const existing = (sizes2) => sizes2.filter((bytes) => bytes > 0);
  return {
    weights: existing([...tape.parameters.map(weight), ...trained.map(master)]),
    states: existing(
      trained.flatMap((each) => Array.from({ length: moments }, () => state(each) / moments))
    ),
    stepTemporaries: existing(
      foreach ? trained.map((each) => temporary * each.elements / elements) : [temporary]
    )
  };
}

// src/plan/train/plan_training.ts
function planTraining(model, options, gaps) {
  const stages = options.parallelism.pipeline;
  const candidates = stages === 1 ? [0] : [.../* @__PURE__ */ new Set([0, 1, stages - 1])].filter((index) => index < stages);
  const peaks = candidates.map((index) => devicePeak(model, options, { index, count: stages }));
  const peak = peaks.reduce(
    (worst, each) => each.allocatedBytes > worst.allocatedBytes ? each : worst
  );
  const share = gaps ?? gapsOf(peak, options);
  return { peak, parts: trainingParts(peak, options, { model, gaps: share }), gaps: share };
}
function devicePeak(model, options, stage) {
  const { tape } = modelTape(model, trainingRules(model, options), stage);
  const states = statesOf(tape, options);
  const communication = communicationOf(tape, options);
  const trace = new AllocationTrace();
  const simulation = simulateStep(
    tape,
    {
      checkpointing: options.checkpointing,
      gradientBytesOf: states.gradientBytesOf,
      gradientsStay: options.accumulation > 1 && !options.optimizerInBackward,
      gradientsConsumed: options.optimizerInBackward,
      offloadsInputs: options.activationOffload,
      communicationOf: communication?.bytesOf ?? (() => 0)
    },
    trace
  );
  const inFlight = microbatchesInFlight(options, stage);
  const fixed = states.weights + states.adapters + states.optimizer + states.master;
  const backward = fixed + simulation.peak.bytes + (inFlight - 1) * simulation.savedBytes;
  const step = fixed + (options.optimizerInBackward ? 0 : states.gradients) + states.stepTemporary;
  return {
    tape,
    trace,
    simulation,
    states,
    communication,
    ncclBytes: ncclBytes(options),
    inFlight,
    stepIsPeak: step > backward,
    allocatedBytes: Math.max(step, backward) + 2 * options.gpu.workspaceBytes,
    rank: stage.count === 1 ? "" : `pipeline stage ${stage.index} of ${stage.count}`
  };
}
function microbatchesInFlight({ accumulation, parallelism }, { index, count: count2 }) {
  if (count2 === 1) {
    return 1;
  }
  const { virtualStages: pieces, schedule } = parallelism;
  if (schedule === "gpipe") {
    return Math.max(accumulation, count2);
  }
  const warmUp = pieces === 1 ? count2 - index : ((count2 - index - 1) * 2 + (pieces - 1) * count2 + 1) / pieces;
  return Math.max(1, Math.min(accumulation === 1 ? warmUp : accumulation, warmUp));
}

// src/plan/plan.ts
function planMemory(model, options) {
  requireDivisible(model, options);
  const { plan: plan2, gaps } = options.mode === "train" ? trainingDocument(model, options) : servingDocument(model, options);
  const measure = withGaps(gaps);
  return {
    ...plan2,
    savings: savingsOf(model, options, plan2.perDeviceBytes, measure),
    fits: fitOf(model, options, measure)
  };
}
function measureFrom(model, options) {
  const { gaps } = options.mode === "train" ? planTraining(model, options) : planServing(model, options);
  return withGaps(gaps);
}
function withGaps(gaps) {
  return (model, options) => {
    const { parts } = options.mode === "train" ? planTraining(model, options, gaps) : planServing(model, options, gaps);
    return figureOf(parts, "device").bytes;
  };
}
function trainingDocument(model, options) {
  const { peak, parts, gaps } = planTraining(model, options);
  const plan2 = finished(
    {
      schema: "tidemark.plan/1",
      model: describeModel(model, options, peak.states.counts.trainable),
      mode: "train",
      assumptions: assumptionsOf(model, options),
      devices: devicesOf(options, peak.rank),
      savedActivations: [...peak.simulation.savedAfterForward].map(([name, bytes]) => ({
        part: name,
        bytes: Math.round(bytes)
      })),
      peak: peak.stepIsPeak ? "optimizer step" : peak.simulation.peak.where,
      host: hostParts(model, options, peak),
      limits: [...model.remarks]
    },
    parts,
    deviceCount(options)
  );
  return { plan: plan2, gaps };
}
function servingDocument(model, options) {
  const { parts, serving, gaps } = planServing(model, options);
  const plan2 = finished(
    {
      schema: "tidemark.plan/1",
      model: describeModel(model, options, 0),
      mode: "serve",
      assumptions: assumptionsOf(model, options),
      devices: devicesOf(options, ""),
      savedActivations: [],
      peak: "prefill",
      host: [],
      serving,
      limits: [...model.remarks]
    },
    parts,
    deviceCount(options)
  );
  return { plan: plan2, gaps };
}
function finished(plan2, parts, devices) {
  const { known } = plan2.model;
  const device = figureOf(parts, "device", known);
  return {
    ...plan2,
    parts,
    totalBytes: device.bytes * devices,
    perDeviceBytes: device.bytes,
    low: device.low,
    high: device.high,
    memory: {
      allocated: figureOf(parts, "allocated", known),
      reserved: figureOf(parts, "reserved", known),
      device
    },
    savings: [],
    fits: { deviceBytes: 0, fits: false, maxBatch: 0, maxSequence: 0 }
  };
}
function devicesOf(options, worstRank) {
  return {
    count: deviceCount(options),
    name: options.gpu.name,
    memoryBytes: options.gpu.memoryBytes,
    worstRank
  };
}

// src/plan/serve/vllm_log.ts
var GIB2 = 2 ** 30;
var MIB4 = 2 ** 20;
var SIZE = String.raw`(-?\d+(?:\.\d+)?)\s?(GiB|GB|MiB|MB)`;

// src/cli/options/options.ts
import { InvalidArgumentError, Option } from "commander";

// src/model/base/quantities.ts
var UNIT_SHIFTS = { "": 0, k: 10, m: 20, g: 30, t: 40 };
var LONGEST_DURATION = 365 * 864e5;
function bytesIn(text) {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$/i.exec(text.trim());
  const shift = match ? UNIT_SHIFTS[(match[2] ?? "").toLowerCase()] : void 0;
  const bytes = match && shift !== void 0 ? Math.round(Number(match[1]) * 2 ** shift) : null;
  return Number.isSafeInteger(bytes) ? bytes : null;
}

// src/cli/options/options.ts
function parseBytes(text) {
  const bytes = bytesIn(text);
  if (bytes === null) {
    throw new InvalidArgumentError("a size such as 4096, 64K or 10MiB");
  }
  return bytes;
}

// src/cli/options/plan_options.ts
var LARGEST2 = 2 ** 27;
function parseSize(text) {
  const [, figure2, unit] = /^(\d{1,9})([kKmM]?)$/.exec(text) ?? [];
  const value = Number(figure2) * (unit === "" || unit === void 0 ? 1 : unit.toLowerCase() === "k" ? 1024 : 2 ** 20);
  if (!(value >= 1 && value <= LARGEST2)) {
    throw new InvalidArgumentError2("a whole number from 1, such as 8 or 32k");
  }
  return value;
}
function parseCountOrZero(text) {
  return text === "0" ? 0 : parseSize(text);
}
function parseGpu(text) {
  const named = gpuNamed(text);
  if (named !== void 0) {
    return named;
  }
  if (/^\d/.test(text)) {
    const bytes = parseBytes(text);
    if (bytes >= 2 ** 28) {
      return gpuOfSize(bytes);
    }
  }
  const near = didYouMean(
    text,
    GPUS.map(({ name }) => name)
  );
  throw new InvalidArgumentError2(
    `a GPU such as h100 or 4090, or a size such as 24GiB${near === "" ? "" : `; ${near}`}`
  );
}
function parseShare(text) {
  const [, figure2, sign] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const share = Number(figure2) / (sign === "%" ? 100 : 1);
  if (!(share > 0 && share <= 1)) {
    throw new InvalidArgumentError2("a share such as 0.9 or 90%");
  }
  return share;
}
function withPlanOptions(command) {
  const choice = (flags, about, choices) => command.addOption(new Option2(flags, about).choices([...choices]));
  command.option("--train", "plan one training step (the default)").option("--serve", "plan inference");
  choice(
    "--method <method>",
    "what is trained (default: full; qlora for a quantized model)",
    METHODS
  );
  choice("--optimizer <name>", "the optimizer (default: adamw)", OPTIMIZERS2);
  command.option("--batch <n>", "sequences on one device (default: 1)", parseSize).option(
    "--seq <n>",
    "tokens per sequence, such as 4k (default: 2048); not for vision models",
    parseSize
  );
  choice(
    "--checkpointing <kind>",
    "which activations are recomputed (default: none; full with qlora)",
    ["none", "selective", "full"]
  );
  choice("--quantize <type>", "quantize linear layers when they are loaded", QUANTIZATIONS);
  choice(
    "--dtype <type>",
    "type of matrix products (default: that of the checkpoint)",
    COMPUTE_DTYPES
  );
  choice(
    "--weights <width>",
    "width of the weights if products are 16-bit (default: as in the checkpoint; fp32 with full and --fsdp or --zero)",
    ["fp32", "16bit"]
  );
  choice("--attention <kernel>", "the attention kernel (default: sdpa)", [
    "eager",
    "sdpa",
    "flash"
  ]);
  command.option(
    "--no-padding",
    "all sequences of a batch have one length, so that attention needs no padding mask"
  );
  choice(
    "--loss <kind>",
    "how logits and loss are computed (default: full; chunked with torchtune and litgpt)",
    ["full", "chunked", "fused"]
  );
  choice(
    "--library <name>",
    "the library that trains; it decides which kernels are fused (default: transformers)",
    LIBRARIES
  );
  command.option("--compile", "use torch.compile").option("--accumulation <n>", "batches before each optimizer step (default: 1)", parseSize).option("--optimizer-in-backward", "the optimizer consumes each gradient as it appears").option("--offload-activations", "keep the inputs of checkpointed layers in host memory").option("--lora-rank <n>", "rank of the adapters (default: 8)", parseSize).option(
    "--lora-targets <names>",
    "layers with adapters: attention, all, or names such as q_proj,v_proj (default: attention; all with qlora)"
  ).option("--lora-dropout", "apply dropout to the adapters' inputs").option("--ddp <n>", "data parallel: a copy on each of this many devices", parseSize).option("--fsdp <n>", "FSDP over this many devices", parseSize).addOption(
    new Option2(
      "--fsdp-version <n>",
      "1: FullyShardedDataParallel; 2: fully_shard (default)"
    ).choices(["1", "2"])
  );
  command.addOption(
    new Option2("--zero <stage>", "DeepSpeed ZeRO over --devices").choices(["1", "2", "3"]).argParser(parseStage)
  );
  command.option("--devices <n>", "number of devices for --zero (default: 8)", parseSize);
  choice("--offload <what>", "what --fsdp or --zero keeps in host memory", ["optimizer", "all"]);
  command.option("--tp <n>", "tensor parallelism over this many devices", parseSize).option("--sequence-parallel", "with --tp: divide norms and residuals over the same devices").option("--cp <n>", "context parallelism over this many devices", parseSize).option("--pp <n>", "number of pipeline stages", parseSize).addOption(
    new Option2(
      "--schedule <name>",
      "order of the microbatches (--accumulation) in the pipeline\n(default: 1f1b)"
    ).choices([...SCHEDULES])
  ).option(
    "--virtual-stages <n>",
    "with the interleaved schedule: pieces of the model on each stage\n(default: 2)",
    parseSize
  ).option("--ep <n>", "expert parallelism over this many devices", parseSize).option("--workers <n>", "DataLoader workers, for host memory", parseCountOrZero).option(
    "--gpu <name>",
    "the device: h100, a100-40gb, 4090... or a size such as 24GiB (default: a100-80gb)",
    parseGpu
  );
  command.option(
    "--cuda-context <size>",
    "what the process takes on the device before its first tensor, such as 480MiB\n(default: as measured for --gpu, with lazily loaded kernels)",
    parseBytes
  );
  choice("--engine <name>", "with --serve: the engine (default: transformers)", ENGINES);
  command.option("--context <n>", "with --serve: tokens of one sequence (default: 2048)", parseSize).option("--concurrency <n>", "with --serve: sequences at once (default: 1)", parseSize);
  choice("--kv-dtype <type>", "with --serve: type of the cache (default: auto)", [
    "auto",
    "fp8",
    "int8",
    "fp16",
    "bf16",
    "fp32"
  ]);
  command.option(
    "--utilization <share>",
    "with --serve: share of the device that the engine uses (default: the engine's)",
    parseShare
  ).option("--batched-tokens <n>", "with --serve: tokens per pass (default: 8192)", parseSize).option("--no-cuda-graphs", "with --serve: capture no CUDA graphs");
}
function parseStage(text) {
  if (!/^[123]$/.test(text)) {
    throw new InvalidArgumentError2("a stage: 1, 2 or 3");
  }
  return Number(text);
}
function given(values) {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== void 0)
  );
}
var ONLY_SERVING = [
  "engine",
  "context",
  "concurrency",
  "kvDtype",
  "utilization",
  "batchedTokens"
];
var ONLY_TRAINING = [
  "method",
  "optimizer",
  "checkpointing",
  "accumulation",
  "loss",
  "zero",
  "fsdp",
  "ddp",
  "batch",
  "seq"
];
function requestOf(words3) {
  const serves = words3.serve === true;
  if (serves && words3.train === true) {
    throw badUsage("--train and --serve are different plans", "choose one");
  }
  const stray = (serves ? ONLY_TRAINING : ONLY_SERVING).find((name) => words3[name] !== void 0);
  if (stray !== void 0) {
    const flag = `--${stray.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw badUsage(
      `${flag} belongs to ${serves ? "training" : "--serve"}`,
      serves ? servingWord(stray) : "add --serve"
    );
  }
  requireParallel(words3);
  return {
    mode: serves ? "serve" : "train",
    ...given({
      method: words3.method,
      dtype: words3.dtype,
      weights: words3.weights,
      quantize: words3.quantize,
      gpu: gpuOf(words3),
      attention: words3.attention,
      padded: words3.padding,
      tensor: words3.tp,
      pipeline: words3.pp,
      expert: words3.ep,
      sequenceParallel: words3.sequenceParallel,
      contextParallel: words3.cp,
      schedule: words3.schedule,
      virtualStages: words3.virtualStages
    }),
    ...serves ? { serve: servingOf(words3) } : { train: trainingOf(words3), ...given({ sharding: shardingOf2(words3) }) }
  };
}
function requireParallel(words3) {
  const { tp = 1, pp = 1, schedule, virtualStages } = words3;
  if (words3.sequenceParallel === true && tp === 1) {
    throw badUsage("--sequence-parallel divides over the devices of --tp", "add --tp N");
  }
  if (pp === 1 && (schedule !== void 0 || virtualStages !== void 0)) {
    throw badUsage("--schedule and --virtual-stages belong to a pipeline", "add --pp N");
  }
  if (virtualStages !== void 0 && schedule !== void 0 && schedule !== "interleaved") {
    throw badUsage(
      `--virtual-stages has no effect with --schedule ${schedule}`,
      "use --schedule interleaved"
    );
  }
  if (words3.fsdpVersion !== void 0 && words3.fsdp === void 0 && words3.config === void 0) {
    throw badUsage("--fsdp-version belongs to --fsdp", "add --fsdp N");
  }
}
function gpuOf({ gpu: gpu2, cudaContext }) {
  return cudaContext === void 0 ? gpu2 : { ...gpu2 ?? USUAL_GPU, contextBytes: cudaContext, contextMeasured: true };
}
function servingWord(stray) {
  return stray === "batch" ? "use --concurrency" : stray === "seq" ? "use --context" : "leave it out";
}
function trainingOf(words3) {
  const targets = words3.loraTargets;
  return given({
    optimizer: words3.optimizer,
    optimizerInBackward: words3.optimizerInBackward,
    batch: words3.batch,
    sequence: words3.seq,
    accumulation: words3.accumulation,
    checkpointing: words3.checkpointing,
    activationOffload: words3.offloadActivations,
    loss: words3.loss,
    library: words3.library,
    compiled: words3.compile,
    adapterRank: words3.loraRank,
    adapterTargets: targets === void 0 || targets === "attention" || targets === "all" ? targets : targets.split(","),
    adapterDropout: words3.loraDropout,
    workers: words3.workers
  });
}
function shardingOf2(words3) {
  const kinds = ["ddp", "fsdp", "zero"].filter((name) => words3[name] !== void 0);
  if (kinds.length > 1) {
    throw badUsage(`--${kinds[0]} and --${kinds[1]} divide the same job twice`, "choose one");
  }
  const version = words3.fsdpVersion === void 0 ? void 0 : Number(words3.fsdpVersion);
  const rest = given({ devices: words3.devices, offload: words3.offload, version });
  if (words3.fsdp !== void 0) {
    return { ...rest, kind: "fsdp", devices: words3.fsdp };
  }
  if (words3.zero !== void 0) {
    return { ...rest, kind: `zero-${words3.zero}` };
  }
  if (words3.ddp !== void 0) {
    return { kind: "ddp", devices: words3.ddp };
  }
  if (Object.keys(rest).length === 0) {
    return void 0;
  }
  if (words3.config === void 0) {
    throw badUsage(
      "--devices and --offload have no effect without --fsdp, --zero or --config",
      "add one of them"
    );
  }
  return rest;
}
function servingOf(words3) {
  return given({
    engine: words3.engine,
    context: words3.context,
    concurrency: words3.concurrency,
    kvDType: words3.kvDtype,
    utilization: words3.utilization,
    batchedTokens: words3.batchedTokens,
    cudaGraphs: words3.cudaGraphs
  });
}

// src/model/base/columns.ts
function uint32At(column, row) {
  return column[row] ?? outside(column, row);
}
function uint16At(column, row) {
  return column[row] ?? outside(column, row);
}
function uint8At(column, row) {
  return column[row] ?? outside(column, row);
}
function float64At(column, row) {
  return column[row] ?? outside(column, row);
}
function itemAt(list, row) {
  return list[row] ?? outside(list, row);
}
function outside({ length }, row) {
  throw new RangeError(`row ${row} is outside a column of ${length}`);
}

// src/model/profile/profile.ts
var FrameKind = { python: 0, native: 1, mark: 2 };
var Domain = { python: 0, native: 1, mapped: 2 };
var FILES_DOMAIN = 3;

// src/model/profile/frame_text.ts
function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}
var TERMINAL_CELL = /^<ipython-input-(\d+)-[0-9a-f]+>$/;
var KERNEL_CELL = /[/\\]ipykernel_\d+[/\\]\d+\.py$/;
function readableFile(file) {
  const [, number] = TERMINAL_CELL.exec(file) ?? [];
  if (number !== void 0) {
    return `In [${number}]`;
  }
  return KERNEL_CELL.test(file) ? "notebook cell" : file;
}
function frameName({ frames, strings }, frame) {
  const name = itemAt(strings, uint32At(frames.function, frame));
  if (name !== "") {
    return name;
  }
  const file = baseName(itemAt(strings, uint32At(frames.file, frame))) || "?";
  return frames.kind[frame] === FrameKind.native ? `${file}+0x${float64At(frames.address, frame).toString(16)}` : file;
}
function framePlace({ frames, strings }, frame) {
  const file = readableFile(strings[uint32At(frames.file, frame)] ?? "");
  const line = uint32At(frames.line, frame);
  if (frames.kind[frame] === FrameKind.native && line === 0) {
    return baseName(file);
  }
  return line > 0 ? `${file}:${line}` : file;
}
function framesOf({ stacks }, stack) {
  const frames = [];
  for (let node = stack; node !== 0; node = uint32At(stacks.parent, node)) {
    frames.push(uint32At(stacks.frame, node));
  }
  return frames;
}
function labelPairs({ labels, strings }, label) {
  const pairs = /* @__PURE__ */ new Map();
  for (let row = label; row !== 0; row = uint32At(labels.parent, row)) {
    const key = itemAt(strings, uint32At(labels.key, row));
    if (!pairs.has(key)) {
      pairs.set(key, itemAt(strings, uint32At(labels.value, row)));
    }
  }
  return pairs;
}

// src/formats/export/one_text.ts
function oneText(format, make) {
  try {
    return make();
  } catch (error) {
    if (error instanceof RangeError) {
      throw tooLarge(
        `the profile as ${format}`,
        "the longest text; pprof and Parquet have no limit"
      );
    }
    throw error;
  }
}

// src/formats/export/csv.ts
var COLUMNS = [
  "pid",
  "thread",
  "domain",
  "labels",
  "function",
  "file",
  "line",
  "stack",
  "live_bytes",
  "live_standard_error",
  "live_objects",
  "live_samples",
  "peak_bytes",
  "peak_standard_error",
  "peak_objects",
  "allocated_bytes",
  "allocated_standard_error",
  "allocated_objects"
];
var csv = {
  name: "csv",
  extension: ".csv",
  description: "a table with one row per allocation site, for spreadsheets",
  stdout: "always",
  mark: { head: /^pid,/, text: COLUMNS.join(",") },
  kind: "profile",
  encode: toCsv
};
var DOMAIN_NAMES = ["python", "native", "mapped"];
function toCsv(profile) {
  const { sites, frames, strings } = profile;
  const order = Uint32Array.from({ length: sites.length }, (_, site) => site).sort(
    (a, b) => float64At(sites.liveBytes, b) - float64At(sites.liveBytes, a) || a - b
  );
  const lines = [COLUMNS.join(",")];
  for (const site of order) {
    const stack = framesOf(profile, uint32At(sites.stack, site));
    const leaf = stack[0];
    const row = {
      pid: profile.processes[uint16At(sites.process, site)]?.pid ?? 0,
      thread: profile.threads[uint32At(sites.thread, site)]?.name ?? "",
      domain: DOMAIN_NAMES[uint8At(sites.domain, site)] ?? "",
      labels: Array.from(
        labelPairs(profile, uint32At(sites.label, site)),
        (pair) => pair.join("=")
      ).join(";"),
      function: leaf === void 0 ? "" : frameName(profile, leaf),
      file: leaf === void 0 ? "" : itemAt(strings, uint32At(frames.file, leaf)),
      line: leaf === void 0 ? 0 : uint32At(frames.line, leaf),
      stack: stack.map((frame) => `${frameName(profile, frame)} (${framePlace(profile, frame)})`).reverse().join(";"),
      live_bytes: Math.round(float64At(sites.liveBytes, site)),
      live_standard_error: Math.round(Math.sqrt(float64At(sites.liveVariance, site))),
      live_objects: Math.round(float64At(sites.liveObjects, site)),
      live_samples: uint32At(sites.liveSamples, site),
      peak_bytes: Math.round(float64At(sites.peakBytes, site)),
      peak_standard_error: Math.round(Math.sqrt(float64At(sites.peakVariance, site))),
      peak_objects: Math.round(float64At(sites.peakObjects, site)),
      allocated_bytes: Math.round(float64At(sites.allocatedBytes, site)),
      allocated_standard_error: Math.round(Math.sqrt(float64At(sites.allocatedVariance, site))),
      allocated_objects: Math.round(float64At(sites.allocatedObjects, site))
    };
    lines.push(COLUMNS.map((column) => cell(row[column])).join(","));
  }
  return oneText("csv", () => `${lines.join("\r\n")}\r
`);
}
function cell(value) {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// src/formats/export/pprof.ts
import {
  Location,
  Mapping,
  Function as PprofFunction,
  Profile as PprofProfile,
  StringTable
} from "pprof-format";
var OBJECT_SPACE = 2 ** 40;

// src/formats/import/importer.ts
var MOST_CONTENT_BYTES = 2 ** 30;
var MOST_JSON_BYTES = 2 ** 28;

// src/formats/import/input.ts
import { Decompress } from "fzstd";

// src/formats/import/lz4.ts
var LARGEST_BLOCK = 4 << 20;

// src/formats/import/input.ts
var HEAD_BYTES = 1 << 16;
var PIECE_BYTES = 1 << 20;
var LARGEST_WINDOW = 2 ** 27;

// src/formats/import/memory_profiler.ts
var MIB5 = 2 ** 20;

// src/formats/import/memray/allocators.ts
var python = { domain: Domain.python, frees: false, ranged: false };
var native = { domain: Domain.native, frees: false, ranged: false };
var free = { domain: Domain.native, frees: true, ranged: false };
var mmap = { domain: Domain.mapped, frees: false, ranged: true };
var munmap = { domain: Domain.mapped, frees: true, ranged: true };
var VERSION_11 = [
  ...[native, free, ...Array(7).fill(native), mmap, munmap],
  ...[python, python, python, free]
];
var VERSION_12 = [
  ...[free, python, python, python, free, ...Array(8).fill(native), mmap, munmap]
];

// src/formats/import/memray/records.ts
var HIGHEST_ADDRESS = 2 ** 53;

// src/formats/import/pprof.ts
import { Profile } from "pprof-format";

// src/formats/import/scalene.ts
var MIB6 = 2 ** 20;

// src/formats/import/tracemalloc/pickle.ts
var MARK = Symbol("mark");

// src/formats/import/valgrind/massif.ts
var UNKNOWN = {
  function: "below massif's threshold",
  file: "",
  line: 0,
  kind: FrameKind.mark
};

// src/model/gpu/gpu_snapshot.ts
var GpuAction = {
  alloc: 0,
  freeRequested: 1,
  freeCompleted: 2,
  segmentAlloc: 3,
  segmentFree: 4,
  segmentMap: 5,
  segmentUnmap: 6,
  snapshot: 7,
  outOfMemory: 8,
  other: 9,
  /** The program attached a note to an allocation that lives (2.13 and later). */
  annotate: 10
};
var BlockState = { inactive: 0, allocated: 1, pendingFree: 2 };

// src/gpu/replay/block_size.ts
var MIB7 = 2 ** 20;

// src/gpu/snapshot/piece_column.ts
var SHIFT = 12;
var PIECE2 = 2 ** SHIFT;

// src/gpu/analysis/analyse.ts
var WORTH_BYTES = 64 * 2 ** 20;

// src/linux/core/core_file_format.ts
var MOST_HEADERS = 1 << 20;

// src/linux/core/core_file_notes.ts
var STACK_POINTER = 112 + 19 * 8;

// src/linux/core/core_file.ts
var MOST_NOTE_BYTES = 64 * 2 ** 20;

// src/linux/memory/memory_reader.ts
var ADDRESS_LIMIT = 2 ** 53;
var MOST_BYTES = 64 * 2 ** 20;

// src/linux/elf/dynamic_symbols.ts
var MOST_CHAIN = 1 << 16;

// src/linux/hold/held_threads.ts
var LONGEST_STACK = 2 ** 20;
var MOST_BYTES2 = 32 * 2 ** 20;
var MOST_SEARCHED = 64 * 2 ** 10;
var LEAST_STACK = 16 * 2 ** 10;
var BUFFER_BYTES = 2 ** 20;

// src/linux/installation.ts
import { existsSync, readFileSync as readFileSync2 } from "node:fs";
import { createRequire } from "node:module";
import { dirname as dirname2 } from "node:path";
import { fileURLToPath } from "node:url";
var FOLDER = fileURLToPath(new URL("../../", import.meta.url));
var NATIVE_PACKAGE = "@tidemark-profiler/linux-x64";
var NATIVE_FOLDER = findNativeFolder();
var LIBRARY_PATH = `${NATIVE_FOLDER}/libtidemark.so`;
var GUARD_PATH = `${NATIVE_FOLDER}/tidemark-guard`;
var PROGRAM_PATH = `${FOLDER}dist/program/main.js`;
var LAUNCHER_PATH = `${FOLDER}bin/tidemark`;
var PAGE_PATH = `${FOLDER}dist/web/index.html`;
var FLEET_PAGES_PATH = `${FOLDER}dist/web/fleet`;
var PYTHON_FOLDER = `${FOLDER}python/tidemark`;
var HOOKS_FOLDER = `${PYTHON_FOLDER}/_hooks`;
var TIDEMARK_VERSION = JSON.parse(
  readFileSync2(`${FOLDER}package.json`, "utf8")
).version;
function findNativeFolder() {
  const own = `${FOLDER}dist/native`;
  if (existsSync(`${own}/libtidemark.so`)) {
    return own;
  }
  try {
    return dirname2(
      createRequire(`${FOLDER}package.json`).resolve(`${NATIVE_PACKAGE}/package.json`)
    );
  } catch {
    return own;
  }
}

// src/linux/process/permission_reason.ts
var SYS_PTRACE = 1n << 19n;

// src/linux/memory/pagemap.ts
var ENTRY_BYTES = 8;
var ENTRIES_AT_ONCE = 8192;
var entries = new Uint8Array(ENTRIES_AT_ONCE * ENTRY_BYTES);

// src/linux/process/interpreter.ts
var LARGEST_FILE = 512 * 2 ** 20;

// src/linux/this_process/clock.ts
function monotonicMs() {
  return Number(process.hrtime.bigint() / 1000000n);
}
var anchor = Date.now() - monotonicMs();

// src/segment/layout.ts
var CONSTANTS = {
  TM_POOL_MAGIC: 0x4c4f4f504b524d54n,
  TM_SEGMENT_MAGIC: 0x544d47534b524d54n,
  TM_SEGMENT_VERSION: 3,
  TM_PAGE: 4096,
  TM_DEFAULT_SLOT_COUNT: 1024,
  TM_SLOT_STRIDE: 16777216,
  TM_DEFAULT_PERIOD: 65536,
  TM_NONE: 4294967295,
  TM_OPTION_NATIVE: 1,
  TM_OPTION_NO_FOLLOW: 2,
  TM_SLOT_FREE: 0,
  TM_SLOT_CLAIMED: 1,
  TM_SECTION_STRINGS: 0,
  TM_SECTION_FRAMES: 1,
  TM_SECTION_STACKS: 2,
  TM_SECTION_THREADS: 3,
  TM_SECTION_LABELS: 4,
  TM_SECTION_SITES: 5,
  TM_SECTION_LIVE: 6,
  TM_SECTION_EVENTS: 7,
  TM_SECTION_OPENINGS: 8,
  TM_SECTION_COUNT: 9,
  TM_SECTION_BLOCKS: 64,
  TM_STATE_EMPTY: 0,
  TM_STATE_ARMED: 1,
  TM_STATE_DISARMED: 2,
  TM_STATE_ENDED: 3,
  TM_PYTHON_NONE: 0,
  TM_PYTHON_FULL: 1,
  TM_PYTHON_FRAMES_ONLY: 2,
  TM_PYTHON_MALLOC: 3,
  TM_PYTHON_REFUSED: 4,
  TM_LIMIT_DEBUG_ALLOCATOR: 1,
  TM_LIMIT_UNKNOWN_PYTHON: 2,
  TM_LIMIT_FREE_THREADED: 4,
  TM_LIMIT_LAYOUT_MISMATCH: 8,
  TM_LIMIT_SITES_FULL: 16,
  TM_LIMIT_STACKS_FULL: 32,
  TM_LIMIT_STRINGS_FULL: 64,
  TM_LIMIT_NO_MEMORY: 128,
  TM_LIMIT_FOREIGN_ALLOCATOR: 256,
  TM_LIMIT_MALLOC_UNSEEN: 4096,
  TM_LIMIT_COVERED: 8192,
  TM_LIMIT_TURNED_OFF: 1024,
  TM_LIMIT_HOOKS_REPLACED: 2048,
  TM_LOG_BYTES: 704,
  TM_COMMAND_BYTES: 512,
  TM_FRAME_PYTHON: 0,
  TM_FRAME_NATIVE: 1,
  TM_FRAME_MARK: 2,
  TM_DOMAIN_PYTHON: 0,
  TM_DOMAIN_NATIVE: 1,
  TM_DOMAIN_MAPPED: 2,
  TM_DOMAIN_FILES: 3,
  TM_DOMAIN_COUNT: 4,
  TM_LIFETIME_BUCKETS: 24,
  TM_EVENT_STEP_BEGIN: 1,
  TM_EVENT_STEP_END: 2,
  TM_EVENT_PERIOD: 3,
  TM_EVENT_OFF: 4
};
var FRAME = {
  size: 32,
  function: 0,
  file: 4,
  line: 8,
  kind: 12,
  address: 16,
  first_line: 24
};
var STACK_NODE = {
  size: 8,
  parent: 0,
  frame: 4
};
var THREAD = {
  size: 40,
  sequence_begin: 0,
  tid: 4,
  name: 8,
  is_main: 32,
  sequence_end: 36
};
var LABEL = {
  size: 16,
  parent: 0,
  key: 4,
  value: 8
};
var SITE = {
  size: 256,
  sequence_begin: 0,
  stack: 4,
  label: 8,
  thread: 12,
  domain: 14,
  live_samples: 16,
  peak_number: 20,
  live_bytes: 24,
  live_objects: 32,
  live_variance: 40,
  allocated_bytes: 48,
  allocated_objects: 56,
  allocated_variance: 64,
  peak_bytes: 72,
  peak_objects: 80,
  peak_variance: 88,
  allocated_samples: 96,
  first_ms: 104,
  last_ms: 112,
  lifetimes: 120,
  freed_bytes: 216,
  sequence_end: 252
};
var LIVE = {
  size: 48,
  sequence_begin: 0,
  site: 4,
  address: 8,
  bytes: 16,
  birth_ms: 24,
  weight_bytes: 32,
  period_bytes: 40,
  sequence_end: 44
};
var EVENT = {
  size: 32,
  sequence_begin: 0,
  kind: 4,
  ms: 8,
  value: 16,
  label: 24,
  sequence_end: 28
};
var OPENING = {
  size: 8,
  stack: 0,
  after_s: 4
};

// src/segment/bytes.ts
var decoder = new TextDecoder("utf-8");

// src/segment/pool.ts
var MAX_SLOTS = 1 << 16;
var MAX_STRIDE = 64 << 20;

// src/model/profile/ledger.ts
var LEDGER_PARTS = [
  "python.used",
  "python.free",
  "malloc.used",
  "malloc.free",
  "anon.other",
  "file.mapped",
  "libraries",
  "stacks",
  "shm",
  "gpu.driver",
  "tidemark",
  "unexplained"
];

// src/model/profile/series.ts
var POLLED = [
  "rssBytes",
  "anonRssBytes",
  "fileRssBytes",
  "shmemRssBytes",
  "pssBytes",
  "ussBytes",
  "swapBytes",
  "vmsBytes",
  "vmPeakBytes",
  "vmHwmBytes",
  "vmDataBytes",
  "threads",
  "openFiles",
  "openSockets",
  "liveBytes",
  "liveObjects",
  "allocatedBytes",
  "allocatedObjects",
  "periodBytes",
  "treeRssBytes",
  "treePssBytes",
  "children",
  "shmUsedBytes",
  "writtenBytes",
  "cgroupUsageBytes",
  "cgroupLimitBytes",
  "cgroupOomKills",
  "cgroupHighEvents",
  "cgroupMaxEvents"
];
var DEVICE_FIGURES = [
  "totalBytes",
  "freeBytes",
  "reservedBytes",
  "allocatedBytes",
  "activeBytes",
  "peakReservedBytes",
  "peakAllocatedBytes",
  "splitBytes",
  "largestFreeBytes",
  "fragmentationRatio",
  "inactiveSplitBlocks",
  "allocationRetries",
  "outOfMemory"
];
var MOST_DEVICES = 16;
var DEVICE_METRICS = [
  "gpu.pinnedBytes",
  ...Array.from(
    { length: MOST_DEVICES },
    (_, device) => DEVICE_FIGURES.map((figure2) => deviceMetric(device, figure2))
  ).flat()
];
function deviceMetric(device, figure2) {
  return `gpu.${device}.${figure2}`;
}
var LEDGER_METRICS = LEDGER_PARTS.map(ledgerMetric);
var METRICS = [...POLLED, ...LEDGER_METRICS, ...DEVICE_METRICS];
function ledgerMetric(part2) {
  return `ledger.${part2}`;
}

// src/cpython/interpreter/version_facts.ts
var PYTHON_3_9 = {
  minor: 9,
  addedFunction: "PyFrame_GetCode",
  debuggerSupport: null,
  lineTable: "pairs",
  lastInstructionUnit: 1,
  clearsFrameLine: false,
  awaitedBelowTop: 8,
  values: "dict",
  countFlags: false,
  leastDigits: 0,
  exceptionNotes: false,
  byteArrayHoldsObject: false
};
var PYTHON_3_10 = {
  ...PYTHON_3_9,
  minor: 10,
  addedFunction: "Py_NewRef",
  lineTable: "ranges",
  lastInstructionUnit: 2,
  clearsFrameLine: true
};
var PYTHON_3_11 = {
  ...PYTHON_3_10,
  minor: 11,
  addedFunction: null,
  lineTable: "locations",
  values: "pointer",
  leastDigits: 1,
  exceptionNotes: true
};
var PYTHON_3_12 = { ...PYTHON_3_11, minor: 12, values: "tagged" };
var PYTHON_3_13 = { ...PYTHON_3_12, minor: 13, values: "inline" };
var PYTHON_3_14 = {
  ...PYTHON_3_13,
  minor: 14,
  debuggerSupport: 712,
  countFlags: true
};
var PYTHON_3_15 = {
  ...PYTHON_3_14,
  minor: 15,
  debuggerSupport: 840,
  awaitedBelowTop: 16,
  // a word that belongs to SEND (an index, or NULL) is on top
  byteArrayHoldsObject: true
};

// src/cpython/layouts/changed.ts
function changed(base, changes) {
  const { version, debug, published = base.published, ...groups } = changes;
  const merged = Object.entries(groups).map(([name, fields]) => [
    name,
    { ...base[name], ...fields }
  ]);
  return { ...base, ...Object.fromEntries(merged), version, debug, published };
}

// src/cpython/layouts/python_3_9_18.ts
var PYTHON_3_9_18 = {
  version: "3.9.18",
  debug: false,
  runtime: {
    size: 656,
    initialized: 12,
    finalizing: 16,
    interpretersHead: 32,
    interpretersMain: 40,
    gil: 352,
    pendingMainThread: null,
    mainThread: 72
  },
  interpreter: {
    size: 5656,
    id: 24,
    next: 0,
    threadsHead: 8,
    threadsMain: null,
    runtime: 16,
    modules: 856,
    sysDict: 872,
    builtins: 880,
    gc: 616,
    evalBreaker: 72,
    pending: 80,
    gilPointer: null,
    obmalloc: null,
    obmallocIsPointer: null,
    remoteDebug: null,
    asyncioTasks: null
  },
  thread: {
    size: 264,
    previous: 0,
    next: 8,
    interpreter: 16,
    frame: 24,
    cframeFrame: null,
    threadId: 176,
    nativeThreadId: null,
    id: 256,
    status: null,
    state: null,
    evalBreaker: null,
    asyncException: 168,
    exceptionInfo: 144,
    dataStack: null,
    context: 240,
    dict: 152,
    remoteDebuggerSupport: null,
    asyncioRunningLoop: null,
    asyncioRunningTask: null,
    asyncioTasks: null
  },
  remoteDebugger: { pendingCall: null, scriptPath: null, scriptPathSize: null },
  gil: { size: 208, lastHolder: 8, locked: 16 },
  pending: {
    size: 536,
    busy: null,
    handlingThread: null,
    lock: 0,
    mutex: null,
    count: 8,
    asyncException: 12,
    max: null,
    maxLoop: null,
    calls: 16,
    entrySize: 16,
    slots: 32,
    entryFlags: null,
    first: 528,
    next: 532
  },
  gc: {
    size: 240,
    enabled: 12,
    collecting: 200,
    generations: 24,
    generationCount: 3,
    generationSize: 24,
    permanent: 104,
    headSize: 16,
    headNext: 0,
    headPrevious: 8
  },
  frame: {
    size: 368,
    code: 32,
    previous: 24,
    instruction: 104,
    owner: null,
    firstShimOwner: null,
    isEntry: null,
    function: null,
    globals: 48,
    locals: 56,
    localsPlus: 360,
    stackTop: null,
    stackPointer: 72,
    stackDepth: null,
    valueStack: 64,
    state: null,
    executing: 116,
    line: 108,
    trace: 80,
    generator: 96,
    objectFrame: null,
    objectOwned: null
  },
  code: {
    size: 176,
    name: 112,
    qualifiedName: null,
    file: 104,
    flags: 36,
    firstLine: 40,
    lines: 120,
    bytes: 48,
    firstTraceable: null,
    stackSize: 32,
    localCount: 28,
    localsPlusCount: null,
    localsPlusNames: null,
    variableNames: 72,
    cellNames: 88,
    freeNames: 80,
    constants: 56,
    names: 64
  },
  object: { size: 16, references: 0, type: 8, variableSize: 16 },
  type: {
    size: 408,
    name: 24,
    basicSize: 32,
    itemSize: 40,
    deallocate: 48,
    flags: 168,
    traverse: 184,
    weakListOffset: 208,
    base: 256,
    dict: 264,
    dictOffset: 288,
    allocate: 304,
    free: 320,
    resolutionOrder: 344,
    subclasses: 360,
    heapSize: 880,
    heapName: 840,
    heapQualifiedName: 856,
    heapSlots: 848,
    heapCachedKeys: 864,
    heapModule: 872
  },
  unicode: {
    length: 16,
    state: 32,
    kindShift: 2,
    compactShift: 5,
    asciiShift: 6,
    asciiSize: 48,
    compactSize: 72,
    pointer: 72,
    utf8: 56,
    utf8Length: 48,
    size: 80
  },
  bytes: { data: 32 },
  byteArray: { allocated: 24, buffer: 32, start: 40 },
  long: { tag: null, digit: 24 },
  float: { value: 16 },
  tuple: { items: 24 },
  list: { items: 24, allocated: 32 },
  dict: {
    size: 48,
    used: 16,
    keys: 32,
    values: 40,
    valuesCapacity: null,
    valuesSize: null,
    valuesEmbedded: null,
    valuesValid: null,
    valuesItems: null,
    managedDictOffset: null,
    managedValuesOffset: null,
    managedWeakListOffset: null,
    managedDictTag: null
  },
  dictKeys: {
    references: 0,
    size: 8,
    lookup: 16,
    log2Size: null,
    log2IndexBytes: null,
    kind: null,
    usable: 24,
    entries: 32,
    indices: 40,
    entrySize: 24,
    entryKey: 8,
    entryValue: 16,
    unicodeEntrySize: null,
    unicodeEntryKey: null,
    unicodeEntryValue: null
  },
  set: { fill: 16, used: 24, mask: 32, table: 40, smallTable: 64, entrySize: 16, entryKey: 0 },
  module: { dict: 16, definition: 24, state: 32, weakList: 40, name: 48 },
  cell: { value: 16 },
  method: { function: 16, self: 24 },
  builtinFunction: { definition: 16, self: 24, module: 32 },
  function: {
    globals: 24,
    builtins: null,
    code: 16,
    defaults: 32,
    keywordDefaults: 40,
    closure: 48,
    name: 64,
    qualifiedName: 104,
    dict: 72,
    module: 88
  },
  generator: {
    code: 32,
    frame: 16,
    frameIsPointer: 1,
    frameState: null,
    frameGone: null,
    running: 24,
    name: 48,
    qualifiedName: 56
  },
  weakReference: { object: 16, callback: 24, next: 48 },
  arena: { size: 48, address: 0, poolAddress: 8, freePools: 16, totalPools: 20, bytes: 262144 },
  pool: {
    headerSize: 48,
    count: 0,
    freeBlock: 8,
    nextPool: 16,
    previousPool: 24,
    arenaIndex: 32,
    sizeIndex: 36,
    nextOffset: 40,
    maxNextOffset: 44,
    bytes: 4096,
    alignment: 16
  },
  obmalloc: { size: null, usedPools: null, arenas: null, maxArenas: null, arenasAllocated: null },
  published: null
};
var PYTHON_3_9_18_DEBUG = changed(PYTHON_3_9_18, {
  version: "3.9.18",
  debug: true
});

// src/cpython/layouts/python_3_10_13.ts
var PYTHON_3_10_13 = changed(PYTHON_3_9_18, {
  version: "3.10.13",
  debug: false,
  runtime: { size: 672 },
  interpreter: { size: 113528, evalBreaker: 68 },
  thread: { size: 280 },
  frame: {
    size: 360,
    instruction: 96,
    localsPlus: 352,
    stackPointer: null,
    stackDepth: 80,
    state: 108,
    executing: null,
    line: 100,
    trace: 72,
    generator: 88
  },
  type: {
    heapSize: 888,
    heapName: 848,
    heapQualifiedName: 864,
    heapSlots: 856,
    heapCachedKeys: 872,
    heapModule: 880
  },
  function: {
    globals: 16,
    builtins: 24,
    code: 48,
    defaults: 56,
    keywordDefaults: 64,
    closure: 72,
    name: 32,
    qualifiedName: 40,
    dict: 88,
    module: 104
  },
  generator: { code: 24, frameGone: 4, running: null, name: 40, qualifiedName: 48 },
  arena: { bytes: 1048576 },
  pool: { bytes: 16384 }
});
var PYTHON_3_10_13_DEBUG = changed(PYTHON_3_10_13, {
  version: "3.10.13",
  debug: true
});

// src/cpython/layouts/python_3_11_2.ts
var PYTHON_3_11_2 = changed(PYTHON_3_10_13, {
  version: "3.11.2",
  debug: false,
  runtime: {
    size: 166688,
    initialized: 16,
    finalizing: 24,
    interpretersHead: 40,
    interpretersMain: 48,
    gil: 360,
    mainThread: 80
  },
  interpreter: {
    size: 107752,
    id: 48,
    threadsHead: 16,
    runtime: 40,
    modules: 888,
    sysDict: 904,
    builtins: 912,
    gc: 648,
    evalBreaker: 100,
    pending: 112
  },
  thread: {
    size: 360,
    frame: 56,
    cframeFrame: 8,
    threadId: 152,
    nativeThreadId: 160,
    id: 240,
    asyncException: 144,
    exceptionInfo: 120,
    dataStack: 296,
    context: 224,
    dict: 128
  },
  frame: {
    size: 80,
    previous: 48,
    instruction: 56,
    owner: 69,
    firstShimOwner: 3,
    isEntry: 68,
    function: 0,
    globals: 8,
    locals: 24,
    localsPlus: 72,
    stackTop: 64,
    stackDepth: null,
    valueStack: null,
    state: null,
    line: 40,
    trace: 32,
    generator: null,
    objectFrame: 24,
    objectOwned: 48
  },
  code: {
    size: 192,
    name: 120,
    qualifiedName: 128,
    file: 112,
    flags: 48,
    firstLine: 72,
    lines: 136,
    bytes: 184,
    firstTraceable: 168,
    stackSize: 68,
    localCount: 80,
    localsPlusCount: 76,
    localsPlusNames: 96,
    variableNames: null,
    cellNames: null,
    freeNames: null,
    constants: 24,
    names: 32
  },
  type: { heapSize: 904 },
  dict: { valuesItems: 0, managedDictOffset: -24, managedValuesOffset: -32 },
  dictKeys: {
    size: null,
    lookup: null,
    log2Size: 8,
    log2IndexBytes: 9,
    kind: 10,
    usable: 16,
    entries: 24,
    indices: 32,
    unicodeEntrySize: 16,
    unicodeEntryKey: 0,
    unicodeEntryValue: 8
  },
  generator: {
    code: 16,
    frame: 80,
    frameIsPointer: 0,
    frameState: 75,
    frameGone: 1,
    name: 32,
    qualifiedName: 40
  }
});
var PYTHON_3_11_2_DEBUG = changed(PYTHON_3_11_2, {
  version: "3.11.2",
  debug: true
});

// src/cpython/layouts/python_3_12_1.ts
var PYTHON_3_12_1 = changed(PYTHON_3_11_2, {
  version: "3.12.1",
  debug: false,
  runtime: { size: 459944, gil: null, pendingMainThread: 2016, mainThread: 64 },
  interpreter: {
    size: 383552,
    id: 8,
    threadsHead: 72,
    runtime: 96,
    modules: 944,
    sysDict: 352,
    builtins: 360,
    gc: 112,
    evalBreaker: 368,
    pending: 400,
    gilPointer: 384,
    obmalloc: 3960,
    obmallocIsPointer: 0
  },
  thread: {
    size: 288,
    cframeFrame: 0,
    threadId: 136,
    nativeThreadId: 144,
    id: 224,
    status: 24,
    asyncException: 128,
    exceptionInfo: 104,
    dataStack: 232,
    context: 208,
    dict: 112
  },
  pending: {
    size: 544,
    busy: 0,
    lock: 8,
    count: 16,
    asyncException: 20,
    calls: 24,
    first: 536,
    next: 540
  },
  frame: { code: 0, previous: 8, owner: 70, isEntry: null, function: 16, globals: 24, locals: 40 },
  code: {
    size: 200,
    firstLine: 68,
    bytes: 192,
    firstTraceable: 176,
    stackSize: 64,
    localsPlusCount: 72
  },
  type: {
    size: 416,
    heapSize: 920,
    heapName: 856,
    heapQualifiedName: 872,
    heapSlots: 864,
    heapCachedKeys: 880,
    heapModule: 888
  },
  unicode: { asciiSize: 40, compactSize: 56, pointer: 56, utf8: 48, utf8Length: 40, size: 64 },
  long: { tag: 16 },
  dict: { managedValuesOffset: -24, managedWeakListOffset: -32, managedDictTag: 1 },
  generator: { code: null, frame: 72, frameState: 67, name: 24, qualifiedName: 32 },
  obmalloc: { size: 263248, usedPools: 0, arenas: 512, maxArenas: 520, arenasAllocated: 1064 }
});
var PYTHON_3_12_1_DEBUG = changed(PYTHON_3_12_1, {
  version: "3.12.1",
  debug: true,
  runtime: { size: 475960, pendingMainThread: 18008 },
  interpreter: { size: 383568 }
});

// src/cpython/layouts/python_3_13_0.ts
var PYTHON_3_13_0 = changed(PYTHON_3_12_1, {
  version: "3.13.0",
  debug: false,
  runtime: {
    size: 283320,
    initialized: 600,
    finalizing: 608,
    interpretersHead: 632,
    interpretersMain: 640,
    pendingMainThread: 2640,
    mainThread: 656
  },
  interpreter: {
    size: 194968,
    id: 7272,
    next: 7264,
    threadsHead: 7344,
    threadsMain: 7352,
    runtime: 7376,
    modules: 7656,
    sysDict: 7640,
    builtins: 7648,
    gc: 7400,
    evalBreaker: null,
    pending: 32,
    gilPointer: 16,
    obmalloc: 10800,
    obmallocIsPointer: 1
  },
  thread: {
    size: 304,
    frame: 72,
    cframeFrame: null,
    threadId: 152,
    nativeThreadId: 160,
    status: 32,
    state: 40,
    evalBreaker: 24,
    asyncException: 144,
    exceptionInfo: 120,
    dict: 128,
    asyncioRunningLoop: 304
  },
  pending: {
    size: 7232,
    busy: null,
    handlingThread: 0,
    lock: null,
    mutex: 8,
    count: 12,
    asyncException: null,
    max: 16,
    maxLoop: 20,
    entrySize: 24,
    slots: 300,
    entryFlags: 16,
    first: 7224,
    next: 7228
  },
  frame: { objectOwned: 64 },
  code: { size: 208, bytes: 200, firstTraceable: 184 },
  type: { heapSize: 928 },
  dict: {
    valuesCapacity: 0,
    valuesSize: 1,
    valuesEmbedded: 2,
    valuesValid: 3,
    valuesItems: 8,
    managedValuesOffset: null,
    managedDictTag: null
  },
  published: {
    size: 584,
    slots: {
      "runtime.size": 24,
      "runtime.finalizing": 32,
      "runtime.interpretersHead": 40,
      "interpreter.size": 48,
      "interpreter.id": 56,
      "interpreter.next": 64,
      "interpreter.threadsHead": 72,
      "interpreter.gc": 80,
      "interpreter.modules": 88,
      "interpreter.sysDict": 96,
      "interpreter.builtins": 104,
      "interpreter.gilPointer": 112,
      "thread.size": 152,
      "thread.previous": 160,
      "thread.next": 168,
      "thread.interpreter": 176,
      "thread.frame": 184,
      "thread.threadId": 192,
      "thread.nativeThreadId": 200,
      "thread.dataStack": 208,
      "thread.status": 216,
      "frame.size": 224,
      "frame.previous": 232,
      "frame.code": 240,
      "frame.instruction": 248,
      "frame.localsPlus": 256,
      "frame.owner": 264,
      "code.size": 272,
      "code.file": 280,
      "code.name": 288,
      "code.qualifiedName": 296,
      "code.lines": 304,
      "code.firstLine": 312,
      "code.localsPlusNames": 328,
      "code.bytes": 344,
      "object.size": 352,
      "object.type": 360,
      "type.size": 368,
      "type.name": 376,
      "type.flags": 392,
      "tuple.items": 408,
      "list.items": 432,
      "dict.size": 448,
      "dict.keys": 456,
      "dict.values": 464,
      "float.value": 480,
      "long.tag": 496,
      "long.digit": 504,
      "bytes.data": 528,
      "unicode.size": 536,
      "unicode.state": 544,
      "unicode.length": 552,
      "unicode.asciiSize": 560,
      "gc.size": 568,
      "gc.collecting": 576
    }
  }
});
var PYTHON_3_13_0_DEBUG = changed(PYTHON_3_13_0, {
  version: "3.13.0",
  debug: true,
  runtime: { size: 299336, pendingMainThread: 18632 },
  interpreter: { size: 194984, obmalloc: 10808 }
});

// src/cpython/layouts/python_3_13_15.ts
var PYTHON_3_13_15 = changed(PYTHON_3_13_0, {
  version: "3.13.15",
  debug: false,
  runtime: { size: 283408, pendingMainThread: 2664 },
  interpreter: { size: 194984 },
  thread: { size: 312, asyncioRunningLoop: 312 },
  gc: { generations: 20 }
});
var PYTHON_3_13_15_DEBUG = changed(PYTHON_3_13_15, {
  version: "3.13.15",
  debug: true,
  runtime: { size: 299424, pendingMainThread: 18656 },
  interpreter: { size: 195e3, obmalloc: 10808 }
});

// src/cpython/layouts/python_3_14_8.ts
var PYTHON_3_14_8 = changed(PYTHON_3_13_15, {
  version: "3.14.8",
  debug: false,
  runtime: {
    size: 316616,
    initialized: 776,
    finalizing: 784,
    interpretersHead: 808,
    interpretersMain: 816,
    pendingMainThread: 2848,
    mainThread: 832
  },
  interpreter: {
    size: 225864,
    id: 7280,
    next: 7272,
    threadsMain: 7360,
    runtime: 7384,
    modules: 7688,
    sysDict: 7672,
    builtins: 7680,
    gc: 7408,
    obmalloc: 10904,
    remoteDebug: 8076,
    asyncioTasks: 10880
  },
  thread: {
    size: 832,
    state: 44,
    remoteDebuggerSupport: 304,
    asyncioRunningLoop: 864,
    asyncioRunningTask: 872,
    asyncioTasks: 880
  },
  remoteDebugger: { pendingCall: 0, scriptPath: 4, scriptPathSize: 512 },
  gc: { size: 264, collecting: 192, generations: 24, permanent: 96 },
  frame: { size: 88, owner: 74, localsPlus: 80, stackTop: null, stackPointer: 64, objectOwned: 72 },
  code: { size: 216, bytes: 208, firstTraceable: 192 },
  type: { heapSize: 936 },
  tuple: { items: 32 },
  published: {
    size: 760,
    slots: {
      "runtime.size": 24,
      "runtime.finalizing": 32,
      "runtime.interpretersHead": 40,
      "interpreter.size": 48,
      "interpreter.id": 56,
      "interpreter.next": 64,
      "interpreter.threadsHead": 72,
      "interpreter.threadsMain": 80,
      "interpreter.gc": 88,
      "interpreter.modules": 96,
      "interpreter.sysDict": 104,
      "interpreter.builtins": 112,
      "interpreter.gilPointer": 120,
      "thread.size": 176,
      "thread.previous": 184,
      "thread.next": 192,
      "thread.interpreter": 200,
      "thread.frame": 208,
      "thread.threadId": 216,
      "thread.nativeThreadId": 224,
      "thread.dataStack": 232,
      "thread.status": 240,
      "frame.size": 248,
      "frame.previous": 256,
      "frame.code": 264,
      "frame.instruction": 272,
      "frame.localsPlus": 280,
      "frame.owner": 288,
      "frame.stackPointer": 296,
      "code.size": 312,
      "code.file": 320,
      "code.name": 328,
      "code.qualifiedName": 336,
      "code.lines": 344,
      "code.firstLine": 352,
      "code.localsPlusNames": 368,
      "code.bytes": 384,
      "object.size": 400,
      "object.type": 408,
      "type.size": 416,
      "type.name": 424,
      "type.flags": 440,
      "tuple.items": 456,
      "list.items": 480,
      "set.used": 504,
      "set.table": 512,
      "set.mask": 520,
      "dict.size": 528,
      "dict.keys": 536,
      "dict.values": 544,
      "float.value": 560,
      "long.tag": 576,
      "long.digit": 584,
      "bytes.data": 608,
      "unicode.size": 616,
      "unicode.state": 624,
      "unicode.length": 632,
      "unicode.asciiSize": 640,
      "gc.size": 648,
      "gc.collecting": 656,
      "generator.name": 672,
      "generator.frame": 680,
      "generator.frameState": 688,
      "thread.evalBreaker": 712,
      "thread.remoteDebuggerSupport": 720,
      "interpreter.remoteDebug": 728,
      "remoteDebugger.pendingCall": 736,
      "remoteDebugger.scriptPath": 744,
      "remoteDebugger.scriptPathSize": 752
    }
  }
});
var PYTHON_3_14_8_DEBUG = changed(PYTHON_3_14_8, {
  version: "3.14.8",
  debug: true,
  runtime: { size: 332632, pendingMainThread: 18840 },
  interpreter: { size: 225880, obmalloc: 10912, asyncioTasks: 10888 }
});

// src/cpython/layouts/python_3_15_0.ts
var PYTHON_3_15_0 = changed(PYTHON_3_14_8, {
  version: "3.15.0",
  debug: false,
  runtime: {
    size: 346560,
    initialized: 904,
    finalizing: 912,
    interpretersHead: 936,
    interpretersMain: 944,
    pendingMainThread: 2976,
    mainThread: 960
  },
  interpreter: {
    size: 226232,
    id: 7272,
    next: 7264,
    threadsHead: 7336,
    threadsMain: 7352,
    runtime: 7376,
    modules: 7592,
    sysDict: 7576,
    builtins: 7584,
    gc: 7400,
    obmalloc: 10880,
    remoteDebug: 8028,
    asyncioTasks: 10856
  },
  thread: {
    size: 888,
    threadId: 176,
    nativeThreadId: 184,
    id: 248,
    state: 48,
    asyncException: 168,
    exceptionInfo: 144,
    dataStack: 256,
    context: 232,
    dict: 152,
    remoteDebuggerSupport: 344,
    asyncioRunningLoop: 1024,
    asyncioRunningTask: 1032,
    asyncioTasks: 1048
  },
  gc: { size: 176, enabled: 0, collecting: 112, generations: 8, permanent: 80 },
  type: {
    size: 424,
    heapSize: 944,
    heapName: 864,
    heapQualifiedName: 880,
    heapSlots: 872,
    heapCachedKeys: 888,
    heapModule: 896
  },
  module: { definition: 88, state: 24, weakList: 32, name: 40 },
  generator: { frameGone: 5 },
  published: {
    size: 888,
    slots: {
      "runtime.size": 24,
      "runtime.finalizing": 32,
      "runtime.interpretersHead": 40,
      "interpreter.size": 48,
      "interpreter.id": 56,
      "interpreter.next": 64,
      "interpreter.threadsHead": 72,
      "interpreter.threadsMain": 80,
      "interpreter.gc": 88,
      "interpreter.modules": 96,
      "interpreter.sysDict": 104,
      "interpreter.builtins": 112,
      "interpreter.gilPointer": 120,
      "thread.size": 176,
      "thread.previous": 184,
      "thread.next": 192,
      "thread.interpreter": 200,
      "thread.frame": 208,
      "thread.threadId": 240,
      "thread.nativeThreadId": 248,
      "thread.dataStack": 256,
      "thread.status": 264,
      "frame.size": 312,
      "frame.previous": 320,
      "frame.code": 328,
      "frame.instruction": 336,
      "frame.localsPlus": 344,
      "frame.owner": 352,
      "frame.stackPointer": 360,
      "code.size": 376,
      "code.file": 384,
      "code.name": 392,
      "code.qualifiedName": 400,
      "code.lines": 408,
      "code.firstLine": 416,
      "code.localsPlusNames": 432,
      "code.bytes": 448,
      "object.size": 464,
      "object.type": 472,
      "type.size": 480,
      "type.name": 488,
      "type.flags": 504,
      "tuple.items": 552,
      "list.items": 576,
      "set.used": 600,
      "set.table": 608,
      "set.mask": 616,
      "dict.size": 624,
      "dict.keys": 632,
      "dict.values": 640,
      "float.value": 656,
      "long.tag": 672,
      "long.digit": 680,
      "bytes.data": 704,
      "unicode.size": 712,
      "unicode.state": 720,
      "unicode.length": 728,
      "unicode.asciiSize": 736,
      "gc.size": 752,
      "gc.collecting": 760,
      "generator.name": 800,
      "generator.frame": 808,
      "generator.frameState": 816,
      "thread.evalBreaker": 840,
      "thread.remoteDebuggerSupport": 848,
      "interpreter.remoteDebug": 856,
      "remoteDebugger.pendingCall": 864,
      "remoteDebugger.scriptPath": 872,
      "remoteDebugger.scriptPathSize": 880
    }
  }
});
var PYTHON_3_15_0_DEBUG = changed(PYTHON_3_15_0, {
  version: "3.15.0",
  debug: true,
  runtime: { size: 362584, pendingMainThread: 18976 },
  interpreter: { size: 226248, obmalloc: 10888, asyncioTasks: 10864 }
});
var PYTHON_3_15_0_JIT = changed(PYTHON_3_15_0, {
  version: "3.15.0",
  debug: false,
  runtime: { size: 346568 },
  interpreter: { size: 226240 }
});

// src/cpython/entry/entry_point.ts
var RESTORER = Buffer.from([72, 199, 192, 15, 0, 0, 0, 15, 5]);

// src/cpython/entry/pending_call.ts
var CALLS_TO_DO = 1 << 2;
var DEBUGGER_CALL = 1 << 5;

// src/native/elf_sections.ts
var MOST_NAMES_BYTES = 2 ** 24;

// src/native/bundled_allocators.ts
var MESSAGES = [
  ["jemalloc", Buffer.from("<jemalloc>: ")],
  ["mimalloc", Buffer.from("mimalloc: error: ")],
  ["tcmalloc", Buffer.from("tcmalloc: large alloc ")]
];
var LONGEST_MESSAGE = Math.max(...MESSAGES.map(([, message]) => message.length));
var PIECE_BYTES2 = 1 << 22;

// src/native/demangle.ts
import * as glue from "gecko-profiler-demangle/index_bg.js";

// src/native/elf_symbols.ts
var SYMBOL_BYTES = 24;
var SYMBOL_WORDS = SYMBOL_BYTES / 4;
var MOST_SYMBOLS = 2 ** 21;
var PIECE_SYMBOLS = 2 ** 13;

// src/native/unwind/frame_description.ts
var LONGEST_ENTRY = 2 ** 20;

// src/native/unwind/elf_object.ts
var MOST_DESCRIPTIONS = 2 ** 22;

// src/native/unwind/unwinder.ts
var MOST_FRAMES = 2 ** 16;

// src/record/devices/device_line.ts
var LONGEST_LINE = 256 << 20;

// src/record/budget/schedule.ts
var SMALLEST_PEAK_BYTES = 4 << 20;

// src/cpython/interpreter/objects.ts
var TypeFlag = {
  InlineValues: 1 << 2,
  ManagedDict: 1 << 4,
  HeapType: 1 << 9,
  Long: 1 << 24,
  List: 1 << 25,
  Tuple: 1 << 26,
  Bytes: 1 << 27,
  Unicode: 1 << 28,
  Dict: 1 << 29
};

// src/cpython/interpreter/dicts.ts
var MOST_ENTRIES2 = 2 ** 26;

// src/cpython/interpreter/published_offsets.ts
var LARGEST_OFFSET = 2 ** 22;

// src/cpython/interpreter/thread_list.ts
var MOST_THREADS = 1 << 16;

// src/cpython/interpreter/runtime_places.ts
var PIECE3 = 2 ** 20;

// src/cpython/stacks/code.ts
var LONGEST_TABLE = 2 ** 24;

// src/cpython/stacks/frames.ts
var MOST_FRAMES2 = 2 ** 17;

// src/linux/memory/resident_words.ts
var PAGE = 4096;
var WORDS_A_PAGE = PAGE / 4;
var STRETCH = 2 ** 21;
var HIGH = 2 ** 32;

// src/cpython/interpreter/arenas.ts
var SHAPES = [
  { poolBytes: 16384, arenaBytes: 2 ** 20 },
  { poolBytes: 4096, arenaBytes: 2 ** 18 }
];
var MOST_ENTRIES3 = 2 ** 21;
var PIECE4 = 2 ** 20;
var HIGH2 = 2 ** 32;

// src/native/glibc_layout.ts
var LARGEST_DATA = 16 * 2 ** 20;

// src/native/glibc_heaps.ts
var HEAP_ALIGNMENTS = [64 * 2 ** 20, 8 * 2 ** 20, 4 * 2 ** 30, 128 * 2 ** 20, 2 ** 20];

// src/native/glibc_lists.ts
var CACHE_LAYOUTS = [
  { chunkBytes: 592, countBytes: 1, bins: 64 },
  { chunkBytes: 656, countBytes: 2, bins: 64 },
  { chunkBytes: 768, countBytes: 2, bins: 76 }
];
var CACHE_SIZES = new Set(
  CACHE_LAYOUTS.map(({ chunkBytes }) => chunkBytes)
);
var HIGH3 = 2 ** 32;

// src/native/glibc_mmapped.ts
var SLICE = 2 ** 28;

// src/native/glibc_walk.ts
var PIECE5 = 2 ** 20;
var SEARCH = 4 * 2 ** 20;
var HIGH4 = 2 ** 32;

// src/native/glibc_heap.ts
var CHEAP_SPACE = 2 ** 34;
var FULL_PAGES = 2 ** 26;
var FULL_SPACE = 2 ** 39;
var ALL = Number.POSITIVE_INFINITY;

// src/ledger/figures.ts
var MUCH_UNKNOWN_BYTES = 16 << 20;

// src/ledger/held_pages.ts
var PAGE2 = 4096;
var PIECE6 = 4 * 2 ** 20;
var ZEROES = Buffer.alloc(PAGE2);

// src/ledger/thread_stacks.ts
var PAGE3 = 4096;
var LEAST_STACK2 = 4 * PAGE3;
var DEEPEST_WORDS = 2 ** 18;

// src/record/process/unsampled_growth.ts
var ANON_OTHER = ledgerMetric("anon.other");
var LEAST_UNKNOWN_RISE = 4e6;
var LEAST_RISE = {
  openFiles: 15,
  openSockets: 15,
  threads: 15,
  fileRssBytes: 4e6,
  shmemRssBytes: 4e6,
  [ANON_OTHER]: LEAST_UNKNOWN_RISE
};

// src/record/process/process_tree.ts
var SHM_WORTH_ASKING = 2 ** 20;

// src/diagnose/series/daily_cycle.ts
var DAY_MS = 24 * 36e5;

// src/diagnose/series/growth.ts
var NO_SLOPE = { slope: 0, low: 0, high: 0 };
var UNKNOWN2 = {
  shape: "short",
  ...NO_SLOPE,
  late: NO_SLOPE,
  rise: 0,
  spanMs: 0,
  lastThird: 0,
  z: 0
};

// src/diagnose/sites/site_history.ts
var DOMAIN_NAMES2 = {
  [Domain.python]: "python",
  [Domain.native]: "native",
  [Domain.mapped]: "mapped",
  [FILES_DOMAIN]: "files"
};
var KIND_NAMES = {
  [FrameKind.python]: "python",
  [FrameKind.native]: "native",
  [FrameKind.mark]: "mark"
};

// src/diagnose/rules/allocator.rule.ts
var FREE_PARTS = ["malloc.free", "python.free"];
var KEPT_PARTS = [...FREE_PARTS, "python.used"];

// src/diagnose/wording/window_needed.ts
var SECOND2 = 1e3;
var MINUTE2 = 60 * SECOND2;
var HOUR2 = 60 * MINUTE2;
var WINDOWS = [
  [30 * SECOND2, "30s"],
  [MINUTE2, "1min"],
  [2 * MINUTE2, "2min"],
  [5 * MINUTE2, "5min"],
  [10 * MINUTE2, "10min"],
  [20 * MINUTE2, "20min"],
  [30 * MINUTE2, "30min"],
  [HOUR2, "1h"],
  [2 * HOUR2, "2h"],
  [4 * HOUR2, "4h"],
  [8 * HOUR2, "8h"],
  [24 * HOUR2, "24h"]
];
var LONGEST3 = [24 * HOUR2, "24h"];
function watchFor(neededMs) {
  return windowFor(neededMs)[1];
}
function windowFor(neededMs) {
  return WINDOWS.find(([lengthMs]) => lengthMs >= neededMs) ?? LONGEST3;
}

// src/diagnose/wording/advice.ts
var WORKER_FRAMEWORK = /\b(?:gunicorn|celery|billiard|uvicorn)\b|multiprocessing\/pool\.py|concurrent\/futures\/process\.py/;
var USUAL_WATCH_MS = 6e5;
var ADVICE = [
  {
    id: "TM-A001",
    text: "Bound the list or deque: keep the last N entries, or write older ones to disk.",
    when: "A list or deque that lives as long as the program grows.",
    kinds: ["python-leak", "child-growth"],
    holder: /^(?:list|collections\.deque|deque|queue)/,
    before: "history = []\nhistory.append(record)",
    after: "history = collections.deque(maxlen=10_000)\nhistory.append(record)"
  },
  {
    id: "TM-A002",
    text: "Bound the dict: evict the oldest entry, or let entries expire.",
    when: "A dict gains a key for each request, user or document, and keys are never removed.",
    kinds: ["python-leak", "child-growth"],
    holder: /^(?:dict|collections\.(?:OrderedDict|defaultdict|Counter))/,
    before: "stats[key] = value",
    after: "stats[key] = value\nwhile len(stats) > LIMIT:\n    stats.pop(next(iter(stats)))"
  },
  {
    id: "TM-A003",
    text: "Bound the cache (lru_cache(maxsize=...)), and do not cache methods, whose key includes self.",
    when: "functools.lru_cache has no bound, or decorates a method and keeps every self alive.",
    kinds: ["python-leak"],
    holder: /lru_cache/,
    before: "@lru_cache(maxsize=None)\ndef permissions(self, scope): ...",
    after: "@lru_cache(maxsize=1024)\ndef permissions(user_id, scope): ..."
  },
  {
    id: "TM-A007",
    text: "The buffer itself grows: keep its last part, or write out older parts.",
    when: "An array, a bytearray or a table is extended for as long as the program runs.",
    kinds: ["python-leak", "child-growth"],
    holder: /^(?:numpy\.ndarray|bytearray|array\.array|_?io\.(?:BytesIO|StringIO)|pandas\.)/,
    before: "rows = numpy.concatenate([rows, batch])",
    after: "rows = numpy.concatenate([rows, batch])[-LIMIT:].copy()"
  },
  {
    id: "TM-A004",
    text: "Find out what the container is for, and remove entries that are no longer needed.",
    when: "Objects accumulate in a container of another type.",
    kinds: ["python-leak", "child-growth"],
    before: "registry.add(listener)",
    after: "registry.add(listener)\n...\nregistry.discard(listener)   # or weakref.WeakSet()"
  },
  {
    id: "TM-A005",
    text: "Store the text of the error (traceback.format_exc()), not the exception. An exception refers to its traceback, which refers to the locals of every frame.",
    when: "Exceptions or sys.exc_info() are stored, and tracebacks and frames accumulate with them.",
    kinds: [],
    before: "errors.append(sys.exc_info())",
    after: "errors.append(traceback.format_exc())"
  },
  {
    id: "TM-A006",
    text: "Bound the queue (maxsize=...), so that the producer waits, or add consumers until they keep up.",
    when: "A backlog grows: items enter a queue faster than they are consumed.",
    kinds: [],
    before: "jobs = queue.Queue()",
    after: "jobs = queue.Queue(maxsize=1000)   # put() waits while it is full"
  },
  {
    id: "TM-A010",
    text: "Let the garbage collector run (gc.enable(), a lower threshold), or break the cycle with a weak reference.",
    when: "Unreachable cycles accumulate because the collector is disabled, frozen or rarely runs.",
    kinds: ["cycle-garbage"],
    before: "child.parent = parent",
    after: "child.parent = weakref.ref(parent)"
  },
  {
    id: "TM-A020",
    text: "Keep numbers, not tensors: loss.item(), output.detach(); run inference under torch.inference_mode().",
    when: "A tensor that requires grad is kept with its autograd graph: in a list, by a hook, on ctx, or in .grad.",
    kinds: ["graph-retention"],
    before: "losses.append(loss)",
    after: "losses.append(loss.item())"
  },
  {
    id: "TM-A021",
    text: "Compute gradients with torch.autograd.grad(..., create_graph=True) instead of backward(create_graph=True).",
    when: "backward(create_graph=True) creates a reference cycle between parameters and their gradients.",
    kinds: ["graph-retention"],
    code: /backward/,
    before: "loss.backward(create_graph=True)",
    after: "grads = torch.autograd.grad(loss, parameters, create_graph=True)"
  },
  {
    id: "TM-A030",
    text: "Free the memory that the native code returns. tidemark run --native shows the C stack that allocates it.",
    when: "Memory allocated by C or C++ code grows, and no Python object refers to it.",
    kinds: ["native-leak"],
    before: "result = lib.encode(data)",
    after: "result = lib.encode(data)\ntry:\n    use(result)\nfinally:\n    lib.encode_free(result)"
  },
  {
    id: "TM-A040",
    text: "Return the freed memory to the kernel: malloc_trim(0) when the program is idle, MALLOC_ARENA_MAX=2, or another allocator (jemalloc). Allocate long-lived objects before short-lived ones.",
    when: "The program freed the memory, but the allocator keeps it.",
    kinds: ["allocator-retention"],
    before: "python app.py",
    after: "MALLOC_ARENA_MAX=2 python app.py"
  },
  {
    id: "TM-A050",
    text: "Close each mapping after its last use, and release all views of it.",
    when: "Mapped files accumulate.",
    kinds: ["file-growth"],
    before: "segments[name] = mmap.mmap(file.fileno(), 0)",
    after: "with mmap.mmap(file.fileno(), 0) as segment:\n    ..."
  },
  {
    id: "TM-A051",
    text: "Call close() in every process and unlink() in one after the block's last use.",
    when: "Shared memory blocks accumulate.",
    kinds: ["shm-growth"],
    before: "block = SharedMemory(create=True, size=n)",
    after: "block = SharedMemory(create=True, size=n)\n...\nblock.close()\nblock.unlink()"
  },
  {
    id: "TM-A060",
    text: "Store read-only data of workers in arrays (NumPy, Arrow, torch) instead of lists of objects, and call gc.freeze() before the fork.",
    when: "Shared pages become private after a fork because reading Python objects updates their reference counts.",
    kinds: ["copy-on-write"],
    before: "self.rows = [(text, label), ...]",
    after: "self.texts = numpy.array(texts)\nself.labels = numpy.array(labels)"
  },
  {
    id: "TM-A061",
    text: "Fix the leak in the worker; until then, let each worker exit after N jobs so that its parent starts a new one.",
    when: "Worker processes grow, and no server or pool listed below starts them.",
    kinds: ["child-growth"],
    unlessCode: WORKER_FRAMEWORK,
    before: "while True:\n    work(jobs.get())",
    after: "for _ in range(1000):\n    work(jobs.get())"
  },
  {
    id: "TM-A062",
    text: "Fix the leak in the worker; until then, let gunicorn restart each worker after N requests.",
    when: "gunicorn workers grow.",
    kinds: ["child-growth"],
    code: /\bgunicorn\b/,
    before: "gunicorn app:app",
    after: "gunicorn --max-requests 1000 --max-requests-jitter 100 app:app"
  },
  {
    id: "TM-A063",
    text: "Fix the leak in the worker; until then, let celery replace each worker process after N tasks.",
    when: "celery workers grow.",
    kinds: ["child-growth"],
    code: /\b(?:celery|billiard)\b/,
    before: "celery -A app worker",
    after: "celery -A app worker --max-tasks-per-child=1000"
  },
  {
    id: "TM-A064",
    text: "Fix the leak in the worker; until then, let uvicorn restart each worker after N requests.",
    when: "uvicorn workers grow.",
    kinds: ["child-growth"],
    code: /\buvicorn\b(?!.*\bgunicorn\b)/,
    before: "uvicorn app:app --workers 4",
    after: "uvicorn app:app --workers 4 --limit-max-requests 1000"
  },
  {
    id: "TM-A065",
    text: "Fix the leak in the worker; until then, let the pool replace each worker after N tasks.",
    when: "Workers of a multiprocessing.Pool or of a ProcessPoolExecutor (Python 3.11 and later: max_tasks_per_child) grow.",
    kinds: ["child-growth"],
    code: /multiprocessing\/pool\.py|concurrent\/futures\/process\.py/,
    before: "multiprocessing.Pool(8)",
    after: "multiprocessing.Pool(8, maxtasksperchild=1000)"
  },
  {
    id: "TM-A070",
    text: "Close each in the code that opened it: use a with block, contextlib.closing, or a bounded pool.",
    when: "Open files, sockets, connections or threads accumulate.",
    kinds: ["handle-leak"],
    before: "file = open(path)",
    after: "with open(path) as file:\n    ..."
  },
  {
    id: "TM-A080",
    text: "Store the numbers in an array (array.array, NumPy, a tensor): 8 bytes each, or fewer.",
    when: "A list or dict holds hundreds of thousands of ints or floats as separate objects. This is not a leak.",
    kinds: [],
    before: "prices = [float(row[3]) for row in rows]",
    after: 'prices = array.array("d", (float(row[3]) for row in rows))'
  },
  {
    id: "TM-A090",
    text: watchLonger(USUAL_WATCH_MS),
    when: "The window was too short or too quiet.",
    kinds: ["insufficient-evidence"],
    before: "tidemark diagnose 4242",
    after: `tidemark diagnose 4242 --for ${watchFor(USUAL_WATCH_MS)}`
  },
  {
    id: "TM-A095",
    text: "Raise the limit if the program needs that much at its peak. Otherwise, check which objects held most of the memory at the end.",
    when: "A process was killed because its container or control group reached its limit.",
    kinds: ["out-of-memory"],
    before: "docker run --memory 400m app",
    after: "docker run --memory 600m app   # or: tidemark run app.py, to see what uses the memory"
  },
  {
    id: "TM-A096",
    text: "Raise the limit (ulimit -v) if the program needs that much at its peak; otherwise, check which objects held most of the memory at the end.",
    when: "An allocation failed because the process had reached its own limit (ulimit -v, ulimit -d).",
    kinds: [],
    before: "ulimit -v 2000000; python app.py",
    after: "ulimit -v 3000000; python app.py   # KiB; or: tidemark run app.py, to see what uses the memory"
  },
  {
    id: "TM-A097",
    text: "Give the machine more memory, or limit the program with a control group.",
    when: "The kernel killed a process because the machine ran out of memory.",
    kinds: [],
    before: "python app.py",
    after: "systemd-run --scope -p MemoryMax=8G python app.py   # other programs survive"
  },
  {
    id: "TM-A091",
    text: "Record about 20 steps of the job before you write the snapshot; they show what grows.",
    when: "A snapshot without a history, or with too few steps in it.",
    kinds: [],
    before: 'torch.cuda.memory._dump_snapshot("job.pickle")',
    after: 'torch.cuda.memory._record_memory_history()\nfor step in range(20): train()\ntorch.cuda.memory._dump_snapshot("job.pickle")'
  }
];
function watchLonger(neededMs) {
  return `Watch longer, or under load: tidemark diagnose PID --for ${watchFor(neededMs)}.`;
}

// src/diagnose/rules/gpu_contention.rule.ts
var LARGEST_CONTEXT = 1.5 * 2 ** 30;

// src/diagnose/rules/handles.rule.ts
var MOST_OF_ONE_HANDLE = 1.25 * 2 ** 20;

// src/diagnose/rules/ledger_parts.rule.ts
var MEANING = {
  "python.used": "python-leak",
  "python.free": "allocator-retention",
  "malloc.used": "native-leak",
  "malloc.free": "allocator-retention",
  "anon.other": "native-leak",
  "file.mapped": "file-growth",
  shm: "shm-growth"
};
var PARTS = Object.keys(MEANING);
var LEAST_COVERED_OF_FREE = 1 / 3;

// src/diagnose/rules/small_growth.rule.ts
var LEAST_SLOPE = 2 ** 19 / 6e4;

// src/diagnose/verdict/memory_end.ts
var MIB8 = 2 ** 20;

// src/record/process/chosen_samples.ts
var LEAST_STEP_BYTES = 2 ** 18;

// src/record/process/suspect_watch.ts
var EXPECTED_MS_A_BYTE = 4 / 2 ** 20;

// src/record/launch/hand_over.ts
var LEAST_ROOM = 100 * 2 ** 20;

// src/record/launch/recorder.ts
var WIDE_ROOM = 512 * 2 ** 20;

// src/recording/frames/file_sink.ts
var MOST_IN_MEMORY = 128 << 20;

// src/model/wire/frames.ts
var MOST_FRAMES_BYTES = 32 << 20;

// src/model/documents/columns.ts
import { Decoder, Encoder, ExtensionCodec } from "@msgpack/msgpack";

// src/model/documents/message_structure.ts
var MAX_DEPTH = 64;
function checkMessageStructure(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pending = new Float64Array(MAX_DEPTH + 1);
  pending[0] = 1;
  let depth = 0;
  let promised = 1;
  let position = 0;
  while (promised > 0) {
    if (promised > bytes.length - position) {
      throw new Error("it ends too early");
    }
    while (pending[depth] === 0) {
      depth -= 1;
    }
    pending[depth] = float64At(pending, depth) - 1;
    promised -= 1;
    const header2 = headerAt(view, position);
    position += header2.bytes;
    if (position > bytes.length) {
      throw new Error("it ends too early");
    }
    if (header2.children > 0) {
      if (depth === MAX_DEPTH) {
        throw new Error("it is nested too deeply");
      }
      depth += 1;
      pending[depth] = header2.children;
      promised += header2.children;
    }
  }
  if (position !== bytes.length) {
    throw new Error("more bytes follow its end");
  }
}
var header = { bytes: 0, children: 0 };
function headerAt(view, position) {
  const head = view.getUint8(position);
  header.children = 0;
  if (head < 128 || head >= 224) {
    return taking(1);
  }
  if (head < 144) {
    return holding(1, 2 * (head & 15));
  }
  if (head < 160) {
    return holding(1, head & 15);
  }
  if (head < 192) {
    return taking(1 + (head & 31));
  }
  switch (head) {
    case 193:
      throw new Error("it contains a byte that no value begins with");
    case 196:
    // bin 8
    case 217:
      return taking(2 + view.getUint8(position + 1));
    case 197:
    case 218:
      return taking(3 + view.getUint16(position + 1));
    case 198:
    case 219:
      return taking(5 + view.getUint32(position + 1));
    case 199:
      return taking(3 + view.getUint8(position + 1));
    case 200:
      return taking(4 + view.getUint16(position + 1));
    case 201:
      return taking(6 + view.getUint32(position + 1));
    case 204:
    // 8-bit numbers
    case 208:
      return taking(2);
    case 205:
    case 209:
      return taking(3);
    case 202:
    case 206:
    case 210:
      return taking(5);
    case 203:
    case 207:
    case 211:
      return taking(9);
    case 212:
    // fixext 1, 2, 4, 8, 16: type, payload
    case 213:
    case 214:
    case 215:
    case 216:
      return taking(2 + (1 << head - 212));
    case 220:
      return holding(3, view.getUint16(position + 1));
    case 221:
      return holding(5, view.getUint32(position + 1));
    case 222:
      return holding(3, 2 * view.getUint16(position + 1));
    case 223:
      return holding(5, 2 * view.getUint32(position + 1));
    default:
      return taking(1);
  }
}
function taking(bytes) {
  header.bytes = bytes;
  return header;
}
function holding(bytes, children2) {
  header.bytes = bytes;
  header.children = children2;
  return header;
}

// src/model/documents/columns.ts
var COLUMN_TYPES = [
  [2, Int8Array],
  [3, Uint16Array],
  [4, Int16Array],
  [5, Uint32Array],
  [6, Int32Array],
  [7, Float32Array],
  [8, Float64Array]
];
var MAP_TYPE = 16;
var ALIGNMENT = 8;
var MAX_MAP_DEPTH = 16;
function encoder() {
  return new Encoder({ extensionCodec: encodingCodec, ignoreUndefined: true });
}
function decode(bytes, mapDepth) {
  checkMessageStructure(bytes);
  return new Decoder({ extensionCodec: itemAt(decodingCodecs, mapDepth) }).decode(bytes);
}
var encodingCodec = new ExtensionCodec();
for (const [type, Class] of COLUMN_TYPES) {
  encodingCodec.register({
    type,
    encode: (value) => value instanceof Class ? (position) => padded(position, new Uint8Array(value.buffer, value.byteOffset, value.byteLength)) : null,
    decode: notUsed
  });
}
encodingCodec.register({
  type: MAP_TYPE,
  encode: (value) => value instanceof Map ? (position) => padded(position, encoder().encode([...value])) : null,
  decode: notUsed
});
var decodingCodecs = Array.from({ length: MAX_MAP_DEPTH + 1 }, (_, depth) => {
  const codec = new ExtensionCodec();
  for (const [type, Class] of COLUMN_TYPES) {
    codec.register({
      type,
      encode: () => null,
      decode: (payload) => columnOf(Class, unpadded(payload))
    });
  }
  codec.register({
    type: MAP_TYPE,
    encode: () => null,
    decode: (payload) => mapOf(unpadded(payload), depth + 1)
  });
  return codec;
});
function notUsed() {
  throw new Error("the encoding codec does not decode");
}
function padded(position, body) {
  const padding = (ALIGNMENT - (position + 1) % ALIGNMENT) % ALIGNMENT;
  const payload = new Uint8Array(1 + padding + body.length);
  payload[0] = padding;
  payload.set(body, 1 + padding);
  return payload;
}
function unpadded(payload) {
  const padding = payload[0];
  if (padding === void 0 || padding >= ALIGNMENT || padding + 1 > payload.length) {
    throw new Error("a column's padding is wrong");
  }
  return payload.subarray(1 + padding);
}
function columnOf(Class, body) {
  if (body.byteLength % Class.BYTES_PER_ELEMENT !== 0) {
    throw new Error("a column ends within an element");
  }
  const length = body.byteLength / Class.BYTES_PER_ELEMENT;
  if (body.byteOffset % Class.BYTES_PER_ELEMENT === 0) {
    return new Class(body.buffer, body.byteOffset, length);
  }
  return new Class(body.slice().buffer, 0, length);
}
function mapOf(body, depth) {
  if (depth > MAX_MAP_DEPTH) {
    throw new Error("maps are nested too deeply");
  }
  const pairs = decode(body, depth);
  if (!Array.isArray(pairs) || !pairs.every((pair) => Array.isArray(pair) && pair.length === 2)) {
    throw new Error("a map is not made of pairs");
  }
  return new Map(pairs);
}

// src/recording/frames/checksum.ts
var TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) {
    value = value & 1 ? value >>> 1 ^ 3988292384 : value >>> 1;
  }
  return value >>> 0;
});

// src/recording/frames/frames.ts
var MAX_BATCH_BYTES = 256 << 20;
var MAX_PAYLOAD_BYTES = MAX_BATCH_BYTES + (1 << 20);
var MAGIC = Buffer.from("TIDEMARK");

// src/recording/sender/post_connection.ts
var LONGEST_ANSWER = 64 << 10;

// src/recording/sender/stream_sender.ts
var CHUNK_BYTES = 1 << 20;

// src/recording/census_batch.ts
var SMALLEST_TYPE_BYTES = 32 * 1024;

// src/recording/checked_frames.ts
var KNOWN_METRICS = new Set(METRICS);

// src/segment/header.ts
var STRIDES = [
  1,
  FRAME.size,
  STACK_NODE.size,
  THREAD.size,
  LABEL.size,
  SITE.size,
  LIVE.size,
  EVENT.size,
  OPENING.size
];

// src/segment/dictionary.ts
var MAX_ADDRESS = 2 ** 53;
var KINDS = [FrameKind.python, FrameKind.native, FrameKind.mark];

// src/segment/events.ts
var KINDS2 = {
  [CONSTANTS.TM_EVENT_STEP_BEGIN]: { name: "step-begin", detail: (_, words3) => words3 },
  [CONSTANTS.TM_EVENT_STEP_END]: { name: "step-end", detail: (_, words3) => words3 },
  [CONSTANTS.TM_EVENT_PERIOD]: {
    name: "period",
    detail: (value) => `one sample every ${value} bytes`
  },
  [CONSTANTS.TM_EVENT_OFF]: { name: "limit", detail: () => "the agent disabled itself" }
};

// src/segment/limits.ts
var SENTENCES = [
  [
    CONSTANTS.TM_LIMIT_DEBUG_ALLOCATOR,
    () => "a debug allocator is enabled: small Python objects appear only as its arenas"
  ],
  [
    CONSTANTS.TM_LIMIT_UNKNOWN_PYTHON,
    ({ python: python2 }) => `Python ${python2 || "of unknown version"} is not supported by the agent: only native memory is recorded`
  ],
  [
    CONSTANTS.TM_LIMIT_FREE_THREADED,
    () => "free-threaded Python: only native memory is recorded"
  ],
  [
    CONSTANTS.TM_LIMIT_LAYOUT_MISMATCH,
    ({ python: python2 }) => `this build of Python ${python2} has different structures: only native memory is recorded`
  ],
  [
    CONSTANTS.TM_LIMIT_SITES_FULL,
    () => "the table of sites was full: later sites are merged into one"
  ],
  [
    CONSTANTS.TM_LIMIT_STACKS_FULL,
    () => "the table of stacks was full: later stacks are truncated"
  ],
  [CONSTANTS.TM_LIMIT_STRINGS_FULL, () => "the table of names was full: later names are missing"],
  [
    CONSTANTS.TM_LIMIT_NO_MEMORY,
    () => "no memory was left for the profile: recording stopped at that point"
  ],
  [
    CONSTANTS.TM_LIMIT_FOREIGN_ALLOCATOR,
    () => "another allocator provides malloc: memory from its own operator new is not recorded"
  ],
  [
    CONSTANTS.TM_LIMIT_MALLOC_UNSEEN,
    () => "an allocator loaded before the agent provides malloc: only memory mapped from the system is recorded"
  ],
  [
    CONSTANTS.TM_LIMIT_COVERED,
    () => "another tool (such as memray) wrapped the allocators: nothing was sampled during that time, and earlier live memory counts as freed"
  ],
  [CONSTANTS.TM_LIMIT_TURNED_OFF, () => "the agent disabled itself"],
  [
    CONSTANTS.TM_LIMIT_HOOKS_REPLACED,
    () => "the program replaced Python's allocator hooks: small Python objects are not recorded after that"
  ]
];

// src/linux/hold/pause.ts
var sleeper = new Int32Array(new SharedArrayBuffer(4));

// src/record/attach/attached_agent.ts
var FIND = `import sys
agent = sys.modules.get("_tidemark_agent")
def load(path):
    import _imp
    import _frozen_importlib
    spec = _frozen_importlib.ModuleSpec("_tidemark_agent", None, origin=path)
    module = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    return module
`;
var FIND_PRELOADED = `${FIND}if agent is None:
    with open("/proc/self/maps", "rb") as maps:
        words = [line.rstrip(b"\\n").split(None, 5) for line in maps]
    names = (b"/libtidemark.so", b"/libtidemark-keyed.so")
    paths = [each[5] for each in words if len(each) == 6 and each[5].endswith(names)]
    if paths:
        agent = load(sys.modules["os"].fsdecode(paths[0]))
        sys.modules["_tidemark_agent"] = agent
`;

// src/record/attach/probe.ts
var USED = ["python.used", "malloc.used"];
var PRIVATE = [...USED, "python.free", "malloc.free", "anon.other"];

// src/record/census/census_watch.ts
var START_SHARE = 1 / 3;

// src/cpython/heap/memory/heap_parts.ts
var PART = 32 * 2 ** 20;
var SEARCHED = 2 * 2 ** 20;

// src/cpython/heap/objects/small_objects.ts
var MOST_ENTRY_BYTES = 1 << 22;
var POWERS = Float64Array.from({ length: 48 }, (_, n) => 2 ** n);

// src/cpython/heap/objects/type_table.ts
var SHAPE_LIST = 2;
var SHAPE_TUPLE = 3;
var SHAPE_DICT = 6;
var SHAPE_SET = 8;
var SHAPE_DEQUE = 11;
var SHAPE_ORDERED_DICT = 16;
var FLAG_INLINE_VALUES = 1 << 2;
var FLAG_MANAGED_WEAKREF = 1 << 3;
var FLAG_MANAGED_DICT = 1 << 4;
var FLAG_HEAPTYPE = 1 << 9;
var FLAG_READY = 1 << 12;
var FLAG_HAVE_GC = 1 << 14;
var LARGEST_BASIC = 1 << 20;

// src/cpython/heap/objects/object_size.ts
var LARGEST_FRAME = 1 << 20;

// src/cpython/heap/objects/heap_scan.ts
var WINDOW = 2 ** 20;
var OVERLAP = 64 * 1024;
var MOST_BLOCKS = 1024;
var MOST_FOUND = 2 * MOST_BLOCKS;
var HOOK_BYTES = 16;
var HOOKS_IN_MALLOC = [0, HOOK_BYTES, 2 * HOOK_BYTES];
var windowBytes = new Uint8Array(WINDOW + OVERLAP);
var words = new Uint32Array(windowBytes.buffer);
var isFree = new Uint8Array(MOST_BLOCKS);
var foundTypes = new Int32Array(MOST_FOUND);
var foundPlaces = new Int32Array(MOST_FOUND);
var foundRooms = new Float64Array(MOST_FOUND);
var UNKNOWN_ROOM = Number.POSITIVE_INFINITY;

// src/cpython/heap/graph/edge_column.ts
var PIECE7 = 2 ** 20;

// src/cpython/heap/graph/node_index.ts
var PLACES = 2 ** 18;

// src/cpython/heap/memory/memory_blocks.ts
var LARGEST_CHUNK = 2 ** 40;

// src/cpython/heap/objects/buffer_references.ts
var MOST_WORDS = 2 ** 34;

// src/cpython/heap/graph/references.ts
var MOST_DEQUE_BLOCKS = 1 << 22;
var MOST_STATE_BYTES = 16 * 1024;
var MOST_WORDS2 = 2 ** 34;

// src/cpython/heap/graph/reread_values.ts
var LARGEST_PIECE = 16 * 2 ** 20;
var LOWEST_MAPPED = 2 ** 40;
var NEAR = 2 ** 30;

// src/cpython/heap/graph/roots.ts
var LEAST_IMMORTAL = 2 ** 30;

// src/cpython/heap/memory/copy_plan.ts
var LARGE_CHUNK = 256 * 1024;

// src/cpython/heap/memory/heap_copy.ts
var PAGE4 = 4096;
var WORDS_A_PAGE2 = PAGE4 / 4;
var PAGES_A_TABLE = 2 ** 14;
var TABLE_BYTES = PAGE4 * PAGES_A_TABLE;
var PIECE8 = 4 * 2 ** 20;
var LARGEST_COPY = 2 ** 33 - 2 * PAGE4;

// src/cpython/heap/objects/frame_locals.ts
var MOST_FRAMES3 = 1 << 17;

// src/cpython/heap/objects/deferred_tables.ts
var PIECE9 = 32 * 1024;

// src/cpython/heap/census/census_threads.ts
var LEAST_BYTES = 256 * 2 ** 20;

// src/cpython/heap/census/paused_reads.ts
var MOST_BYTES_A_MS = 8 * 2 ** 30 / 1e3;
var TRIAL_BYTES = 16 * 2 ** 20;
var MOST_CHUNKS2 = 1 << 16;
var LARGEST_CHUNK2 = 2 ** 30;
var GROWTH_BYTES = 16 * 2 ** 20;

// src/cpython/heap/names/field_names.ts
var EXCEPTION_FLAG = 2 ** 30;

// src/cpython/heap/names/step_names.ts
var MOST_ENTRIES4 = 2 ** 22;

// src/cpython/heap/objects/tensor_shape.ts
var IN_PLACE = 5;
var OFFSET = 1 + 2 * IN_PLACE;
var ELEMENTS = OFFSET + 1;
var TYPE = ELEMENTS + 1;

// src/cpython/heap/holders/accumulation.ts
var LARGE = 2 ** 20;

// src/cpython/heap/holders/holders.ts
var ENTRIES_AT = {
  [SHAPE_DICT]: 16,
  [SHAPE_ORDERED_DICT]: 16,
  [SHAPE_LIST]: 16,
  [SHAPE_TUPLE]: 16,
  [SHAPE_DEQUE]: 16,
  [SHAPE_SET]: 24
};
var LEAST_GATHERED = 1 / 5e3;

// src/cpython/heap/names/root_paths.ts
var MOST_TAILS = 2 ** 26;

// src/cpython/heap/holders/kv_pools.ts
var SGLANG_FREED = ["release_pages", "num_staged_pages"];
var POOLS = [
  // vllm/v1/core/block_pool.py, kv_cache_utils.py
  {
    type: "vllm.v1.core.block_pool.BlockPool",
    all: "num_gpu_blocks",
    free: "free_block_queue.num_free_blocks"
  },
  // sglang: python/sglang/srt/mem_cache/allocator.py, later allocator/token.py and paged.py. A block is a token
  // or a page of tokens.
  ...["", ".token"].map((module) => ({
    type: `sglang.srt.mem_cache.allocator${module}.TokenToKVPoolAllocator`,
    all: "size",
    free: "free_pages",
    freed: SGLANG_FREED
  })),
  ...["", ".paged"].map((module) => ({
    type: `sglang.srt.mem_cache.allocator${module}.PagedTokenToKVPoolAllocator`,
    all: "num_pages",
    free: "free_pages",
    freed: SGLANG_FREED
  })),
  // lmdeploy/pytorch/paging/block_manager/base_block_manager.py
  {
    type: "lmdeploy.pytorch.paging.block_manager.base_block_manager.LogicalAllocator",
    all: "_gpu_allocator._num_blocks",
    free: "_gpu_allocator._free_count"
  },
  // lightllm/common/kv_cache_mem_manager/mem_manager.py, later partly in allocator.py. A block is a token.
  ...["mem_manager.MemoryManager", "allocator.KvCacheAllocator"].map((name) => ({
    type: `lightllm.common.kv_cache_mem_manager.${name}`,
    all: "size",
    free: "can_use_mem_size"
  }))
];

// src/record/devices/device_snapshot.ts
var WRITE_MS = 10 * 6e4;

// src/record/launch/program/script_file.ts
var ZIP_START = Buffer.from("PK", "latin1");
var ELF_START = Buffer.from("\x7FELF", "latin1");

// src/gpu/devices/device_instances.ts
var MIB9 = 2 ** 20;

// src/gpu/devices/device_totals.ts
var LONGEST_ANSWER2 = 64 * 2 ** 20;
var MIB10 = 2 ** 20;

// src/inspect/live/doctor/machine.ts
var ROOM_BYTES = 64 << 20;

// src/inspect/live/doctor/namesakes.ts
var LARGEST_LAUNCHER = 1 << 16;

// src/gpu/snapshot/read_snapshot.ts
import { Decompress as Decompress2 } from "fzstd";

// src/gpu/pickle/memo.ts
var SHIFT2 = 12;
var PIECE10 = 2 ** SHIFT2;

// src/gpu/pickle/pickle_opcodes.ts
var Opcode = {
  MARK: 40,
  STOP: 46,
  BINFLOAT: 71,
  BININT: 74,
  BININT1: 75,
  BININT2: 77,
  NONE: 78,
  BINUNICODE: 88,
  APPEND: 97,
  APPENDS: 101,
  BINGET: 104,
  LONG_BINGET: 106,
  BINPUT: 113,
  LONG_BINPUT: 114,
  SETITEM: 115,
  SETITEMS: 117,
  TUPLE: 116,
  EMPTY_TUPLE: 41,
  EMPTY_LIST: 93,
  EMPTY_DICT: 125,
  PROTO: 128,
  TUPLE1: 133,
  TUPLE2: 134,
  TUPLE3: 135,
  NEWTRUE: 136,
  NEWFALSE: 137,
  LONG1: 138,
  SHORT_BINUNICODE: 140,
  BINUNICODE8: 141,
  MEMOIZE: 148,
  FRAME: 149
};

// src/gpu/pickle/pickle_machine.ts
var LONGEST_STRING = 16 * 2 ** 20;
var MOST_VALUES = 48 * 2 ** 20;
var OPERAND_BYTES = new Uint8Array(256);
for (const [bytes, ...opcodes] of [
  [1, Opcode.BINGET, Opcode.BINPUT, Opcode.LONG1, Opcode.BININT1, Opcode.SHORT_BINUNICODE],
  [1, Opcode.PROTO],
  [2, Opcode.BININT2],
  [4, Opcode.LONG_BINGET, Opcode.LONG_BINPUT, Opcode.BININT, Opcode.BINUNICODE],
  [8, Opcode.BINFLOAT, Opcode.BINUNICODE8, Opcode.FRAME]
]) {
  for (const opcode of opcodes) {
    OPERAND_BYTES[opcode] = bytes;
  }
}

// src/gpu/pickle/json_records.ts
var LARGEST3 = 2 ** 20;
var LARGEST_TOGETHER = 256 * 2 ** 20;

// src/gpu/snapshot/snapshot_keys.ts
var KEYS = [
  "action",
  "addr",
  "device_free",
  "size",
  "stream",
  "time_us",
  "frames",
  "forward_frames",
  "user_metadata",
  "pool_id",
  "category",
  "name",
  "filename",
  "line",
  "device",
  "address",
  "total_size",
  "allocated_size",
  "active_size",
  "requested_size",
  "segment_type",
  "segment_pool_id",
  "is_expandable",
  "blocks",
  "state",
  "history",
  "real_size",
  "stage",
  "segments",
  "device_traces",
  "host_segments",
  "host_traces",
  "allocator_settings",
  "external_annotations"
];
var numbers = new Map(KEYS.map((key, index) => [key, index]));
var KEY = Object.fromEntries(numbers);

// src/gpu/snapshot/snapshot_rows.ts
var ACTIONS = {
  alloc: GpuAction.alloc,
  free_requested: GpuAction.freeRequested,
  free_completed: GpuAction.freeCompleted,
  segment_alloc: GpuAction.segmentAlloc,
  segment_free: GpuAction.segmentFree,
  segment_map: GpuAction.segmentMap,
  segment_unmap: GpuAction.segmentUnmap,
  snapshot: GpuAction.snapshot,
  oom: GpuAction.outOfMemory,
  annotate: GpuAction.annotate
};

// src/gpu/snapshot/snapshot_shapes.ts
var OF_EVENTS = [KEY.frames, KEY.size, KEY.time_us, KEY.stream];

// src/gpu/snapshot/read_snapshot.ts
var PIECE_BYTES3 = 2 ** 20;
var OTHERS = [
  [[80, 75, 3, 4], "it is a zip archive, as torch.save writes checkpoints"],
  [[137, 72, 68, 70], "it is an HDF5 file"],
  [[147, 78, 85, 77, 80, 89], "it is a NumPy array"],
  [[...Buffer.from("TIDEMARK")], "it is a recording, which tidemark summary reads"],
  [[...Buffer.from("TIDEHEAP")], "it is a saved heap, which tidemark heap diff reads"],
  [[...Buffer.from("TMRKPOOL")], "it is an agent's pool, which tidemark import reads"],
  [[127, 69, 76, 70], "it is an ELF file"],
  [[31, 139], "it is compressed twice"],
  [[40, 181, 47, 253], "it is compressed twice"]
];

// src/inspect/recorded/gpu/recorded_snapshots.ts
var LARGEST4 = 256 << 20;

// src/inspect/recorded/rows/profile_sites.ts
var DOMAIN_NAMES3 = {
  [Domain.python]: "python",
  [Domain.native]: "native",
  [Domain.mapped]: "mapped"
};
var KIND_NAMES2 = {
  [FrameKind.python]: "python",
  [FrameKind.native]: "native",
  [FrameKind.mark]: "mark"
};

// src/inspect/recorded/summary.ts
var RSS_LAG_BYTES = 1 << 20;

// src/inspect/live/file_kind.ts
import { Decompress as Decompress3 } from "fzstd";
var HEAD_BYTES2 = 1 << 16;
var TAIL_BYTES = 1 << 20;

// src/gpu/analysis/live_segments.ts
var STATES = {
  inactive: BlockState.inactive,
  allocated: BlockState.allocated,
  pending: BlockState.pendingFree
};

// src/inspect/live/measured_growth.ts
var SMALLEST_CHANGE = 1 << 20;
var NO_COURSE = {
  timesMs: [],
  rssBytes: [],
  leastBytes: Number.POSITIVE_INFINITY,
  polls: 0,
  every: 1
};

// src/inspect/recorded/diff.ts
var NOTHING = { live: 0, variance: 0, allocated: 0, allocatedVariance: 0 };
var NO_SITE = { ...NOTHING, stack: [], domain: "python" };

// src/gpu/oom/log/log_bytes.ts
var PACKED_PIECE = 2 ** 14;
var KEPT = 2 ** 24;

// src/gpu/oom/log/log_lines.ts
var LONGEST4 = 2 ** 17;

// src/gpu/oom/messages/message_sizes.ts
var FIGURE = "\\d{1,20}(?:\\.\\d{1,9})?";
var UNIT = "bytes|B|KiB|MiB|GiB|TiB|KB|MB|GB|TB";
var XLA_UNIT = "[KMGT]?(?:iB|B)?";
var SIZE2 = `(${FIGURE})(${UNIT})`;
var XLA_SIZE = `(${FIGURE})(${XLA_UNIT})`;
var size = (name) => `(?<${name}>${FIGURE})(?<${name}Unit>${UNIT})`;
var xlaSize = (name) => `(?<${name}>${FIGURE})(?<${name}Unit>${XLA_UNIT})`;
var figure = (name) => `(?<${name}>${FIGURE})`;
var whole = (name, digits = 20) => `(?<${name}>\\d{1,${digits}})`;
var POWERS2 = { K: 1, M: 2, G: 3, T: 4 };
function bytesOf(figure2, unit) {
  const power = unit === "bytes" ? 0 : POWERS2[unit[0] ?? ""] ?? 0;
  return Math.round(Number(figure2) * 1024 ** power);
}
var BEYOND_ALL = 2 ** 60;
function credible(bytes) {
  return bytes === null || bytes >= BEYOND_ALL ? null : bytes;
}
function squeeze(text) {
  return text.replace(/\s+/g, "");
}

// src/gpu/oom/messages/bfc_request.ts
var DTYPE_BYTES = {
  ...{ float: 4, double: 8, half: 2, bfloat16: 2, bool: 1 },
  ...{ int8: 1, int16: 2, int32: 4, int64: 8, uint8: 1, uint16: 2, uint32: 4, uint64: 8 },
  ...{ complex64: 8, complex128: 16, qint8: 1, quint8: 1, qint16: 2, quint16: 2, qint32: 4 },
  ...{ float8_e4m3fn: 1, float8_e5m2: 1, float8_e4m3b11fnuz: 1, float8_e4m3fnuz: 1 },
  ...{ float8_e5m2fnuz: 1 }
};

// src/gpu/oom/messages/message_source.ts
var SOURCES = [
  [/external\/local_(?:xla|tsl)\//, "tensorflow", ""],
  [
    /external\/(?:xla|tsl|org_tensorflow)\/|jaxlib|\bjax[./]|XlaRuntimeError|JaxRuntimeError/,
    "jax",
    ""
  ],
  [/\btensorflow[./]|\bitex\//, "tensorflow", ""],
  [/\bnumba\./, "other", "Numba"],
  [/\bcupy\./, "other", "CuPy"],
  [/[Xx][Gg][Bb]oost/, "other", "XGBoost"],
  [/LightGBM/, "other", "LightGBM"],
  [/\brmm\/|\bRMM\b/, "other", "RMM"],
  [/\bthrust::|std::bad_alloc: cudaErrorMemoryAllocation/, "other", "Thrust"],
  [/\bmxnet|MXNet/, "other", "MXNet"],
  [/\bpycuda\b/, "other", "PyCUDA"],
  [/\bggml|\bllama/, "other", "llama.cpp"],
  [/TensorRT-LLM|\btensorrt_llm\b/, "other", "TensorRT-LLM"],
  [/\[TRT\]|TensorRT/, "other", "TensorRT"],
  [/onnxruntime|ONNXRuntime/, "other", "ONNX Runtime"],
  [/\[TM\]|turbomind|lmdeploy/, "other", "LMDeploy"],
  [/\[FT\]|fastertransformer/, "other", "FasterTransformer"],
  [/CUDA failed with error/, "other", "CTranslate2"],
  [/\bcumm\b|tensorview/, "other", "spconv"],
  [/code #2, ERROR_OUT_OF_MEMORY|CUDA\.jl/, "other", "CUDA.jl"],
  [/\bDriverError\(/, "other", "cudarc (Rust)"],
  [/cudaSuccess \(2 vs/, "other", "Caffe"],
  [/\btorch_memory_saver\b/, "other", "torch_memory_saver"],
  [
    /torch|c10|\bATen\b|THCuda|\/THC\/|CUDA_LAUNCH_BLOCKING|AcceleratorError|CUDA kernel errors|ncclUnhandled|NCCL|RuntimeError(?:: |\(["'])(?:CUDA|HIP|XPU|cu[A-Z]\w{1,12}|NCCL|Triton|miopen\w{0,30}|Native API|level_zero)\b/,
    "pytorch",
    ""
  ]
];
function sourceOf(text) {
  for (const [pattern, framework, library] of SOURCES) {
    if (pattern.test(text)) {
      return { framework, library };
    }
  }
  return { framework: "other", library: "" };
}

// src/gpu/oom/messages/bfc_message.ts
var DRIVER = new RegExp(
  `failed to alloc(?:ate)? (?:${XLA_SIZE} \\((\\d{1,20})(?: bytes|B)\\)|(\\d{1,20}) bytes) (from device|on host): (?:CUDA_ERROR_OUT_OF_MEMORY|HIP_ERROR_OutOfMemory|hipErrorOutOfMemory)`
);

// src/gpu/oom/messages/bfc_verdict.ts
var NO_DEVICE = 2 ** 40;
var LARGE_PROGRAM = 2 * 2 ** 30;

// src/gpu/oom/messages/oom_reading.ts
var NO_FIGURES = {
  requestedBytes: null,
  totalBytes: null,
  freeBytes: null,
  allocatedBytes: null,
  reservedUnallocatedBytes: null,
  processBytes: null,
  otherProcesses: [],
  privatePoolBytes: null,
  allowedBytes: null
};
function reading(verdict, figures = {}, rest = {}) {
  return {
    framework: "pytorch",
    library: "",
    memory: "device",
    device: null,
    torch: "",
    ...rest,
    figures: { ...NO_FIGURES, ...figures },
    verdict
  };
}

// src/gpu/oom/messages/quoted.ts
var QUOTES = "\"'`\u201C\u201D|";
function lineWith(text, index) {
  const end = text.indexOf("\n", index);
  return text.slice(text.lastIndexOf("\n", index - 1) + 1, end < 0 ? void 0 : end);
}
var SAID = /(?:(?:err|exc)\w{0,20}|message|msg|reason|cause|detail|text|log|output|stderr|failed)["']?\s{0,4}[:=]?\s{0,4}["'`]$|(?:Error|Exception)\(["'`]$/i;
function isQuoted(text, index, length) {
  const before = text.slice(Math.max(0, index - 120), index).replace(/(?:[\w.]{1,60}(?:Error|Exception): ?){1,2}$/, "");
  const next = text.slice(index + length, index + length + 2).replace(/^\./, "");
  const open2 = before.at(-1) ?? "";
  const close = next[0] ?? "";
  const tight = open2 !== "" && QUOTES.includes(open2) && close !== "" && QUOTES.includes(close);
  return tight && !SAID.test(before);
}

// src/gpu/oom/messages/library_message.ts
var PHRASE = /(?:CUDA|HIP|XPU) (?:(?:driver|Runtime|runtime) )?[Ee]rror(?: \(\d\)| in [^\n]{0,120})?: ?out of memory|CUDA Runtime Error \(out of memory\)|[Cc]uda runtime error \(2\) ?: out of memory|C(?:uda|UDA) failure.{0,12}out of memory|CUDA failed with error out of memory|cuda failed with error 2 out of memory|Triton Error \[(?:CUDA|HIP)\]: out of memory|cudaMalloc (?:retry )?failed: out of memory|cuMemAlloc failed: out of memory|cudaError_enum 2 out of memory|\[CUDA\] out of memory|kIOGPUCommandBufferCallbackErrorOutOfMemory|CUresult error {1,2}result=2\b|std::bad_alloc: out_of_memory: CUDA error|cudaSuccess \(2 vs\. 0\) {1,2}out of memory|cuFFT failed to allocate GPU or CPU memory|CUDA error 2 at [^\n]{1,120}: out of memory/;
var NAME = /\b(?:CU(?:BLAS|DNN|SOLVER|SPARSE)_STATUS_ALLOC_FAILED|CUDNN_STATUS_INTERNAL_ERROR_(?:DEVICE|HOST)_ALLOCATION_FAILED|CUSPARSE_STATUS_INSUFFICIENT_RESOURCES|CURAND_STATUS_ALLOCATION_FAILED|CUFFT_ALLOC_FAILED|(?:HIPBLAS|ROCBLAS|MIOPEN)_STATUS_ALLOC_FAILED|miopenStatusAllocFailed|rocblas_status_memory_error|(?:CUDA|HIP)_ERROR_(?:OUT_OF_MEMORY|OutOfMemory)|(?:cuda|hip)Error(?:MemoryAllocation|OutOfMemory)|(?:UR|ZE)_RESULT_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)|PI_ERROR_OUT_OF_RESOURCES)\b/;
var MASKED = /NVML_SUCCESS == \w{1,8} INTERNAL ASSERT FAILED at "[^"\n]{0,200}CUDACachingAllocator/;
var OUTSIDE = /ran out of memory outside PyTorch's allocator/;
var LIBRARY_START = new RegExp(
  [PHRASE, NAME, MASKED, OUTSIDE].map(({ source }) => source).join("|")
);
var BEFORE = /(?:\b\w{0,40}(?:Error|Exception)\b ?[:([]|\b(?:error|failure)\b ?[\d:('"]|\b[Ff]ail(?:ed|ure)\b|\bFAIL\b|[Cc]ould not|bad_alloc|what\(\)|results in|returned|\bERROR\b)[^\n]{0,200}$/;
var BEHIND = /^(?:\)?["'`]?[:,]? ?["'(]?out of memory| when calling)/;
var DEFINED = /^\s*(?:=|\])/;
var COMPARED = /(?:[=!]=|\bcase|\breturn)\s{1,8}(?:\w{1,20}::)?$/;
var NAMED = [
  [/^CUBLAS/, "cuBLAS"],
  [/^CUDNN/, "cuDNN"],
  [/^CUSOLVER/, "cuSOLVER"],
  [/^CUSPARSE/, "cuSPARSE"],
  [/^CURAND/, "cuRAND"],
  [/^(?:CUFFT|cuFFT)/, "cuFFT"],
  [/^HIPBLAS/, "hipBLAS"],
  [/^(?:ROCBLAS|rocblas)/, "rocBLAS"],
  [/^(?:MIOPEN|miopen)/, "MIOpen"],
  [/^(?:UR|ZE|PI)_/, "Level Zero"],
  [/^Triton/, "Triton"],
  [/^kIOGPU/, "Metal"]
];
function parseLibraryMessage(text) {
  if (MASKED.test(text)) {
    return masked();
  }
  if (OUTSIDE.test(text)) {
    return reading(
      outside2("cuDNN", { framework: "pytorch", library: "" }),
      {},
      { library: "cuDNN" }
    );
  }
  const found = errorIn(text);
  if (found === null) {
    return null;
  }
  const { index, words: words3 } = found;
  const line = lineWith(text, index);
  const source = sourceOf(line + behind(text, index));
  const named = NAMED.find(([pattern]) => pattern.test(words3))?.[1] ?? "";
  if (/THC\/(?:generic\/)?THC(?:Storage|Tensor)\.(?:cu|c)\b/.test(line)) {
    return storage();
  }
  return reading(
    outside2(named, source, words3),
    {},
    {
      framework: source.framework,
      library: [source.library, named].filter((name) => name !== "").join(", ")
    }
  );
}
function errorIn(text) {
  const phrases = text.matchAll(new RegExp(PHRASE.source, "g"));
  for (const { 0: words3, index } of phrases) {
    if (!isQuoted(text, index, words3.length)) {
      return { index, words: words3 };
    }
  }
  for (const { 0: words3, index } of text.matchAll(new RegExp(NAME.source, "g"))) {
    const before = text.slice(Math.max(0, index - 240), index);
    const after = text.slice(index + words3.length, index + words3.length + 40);
    if (DEFINED.test(after) || COMPARED.test(before)) {
      continue;
    }
    if (BEFORE.test(before) || BEHIND.test(after)) {
      return { index, words: words3 };
    }
  }
  return null;
}
function behind(text, index) {
  return text.slice(index).split("\n").slice(1, 4).join("\n");
}
var ADVICE2 = {
  pytorch: ["TM-A109", "TM-A108"],
  tensorflow: ["TM-A118", "TM-A108"],
  jax: ["TM-A117", "TM-A108"],
  other: ["TM-A108", "TM-A129"]
};
function outside2(named, { framework, library }, words3 = "") {
  const anyone = framework === "other" ? "a program or library that the message does not name" : "the driver or a library (cuBLAS, cuDNN, NCCL)";
  const who = [named, library].find((name) => name !== "") ?? anyone;
  const where = framework === "pytorch" ? "outside PyTorch's allocator" : framework === "other" ? "on the device" : `outside ${framework === "jax" ? "JAX" : "TensorFlow"}'s pool, which may hold the whole device`;
  const mapping = /driver error/.test(words3) ? "; expandable segments and private pools make such driver calls" : "";
  return {
    kind: "context",
    because: `${who} could not allocate memory ${where}; the message has no figures${mapping}`,
    advice: [...ADVICE2[framework]]
  };
}
function storage() {
  return reading({
    kind: "unknown",
    because: "PyTorch (up to 0.4) could not allocate a tensor; its messages have no figures: nvidia-smi shows whether other processes use the device",
    advice: ["TM-A115", "TM-A108"]
  });
}
function masked() {
  return reading({
    kind: "unknown",
    because: "this error hides an out-of-memory error: PyTorch requested the figures of its message from NVML, which is not available here (Jetson, vGPU, MIG, some containers)",
    advice: ["TM-A115", "TM-A108"]
  });
}

// src/gpu/oom/messages/message_verdict.ts
function genuine(because, advice) {
  return { kind: "genuine", because, advice };
}
var NO_DEVICE2 = 2 ** 44;
function judgeFigures({
  requestedBytes: request = null,
  freeBytes: free2 = null
}) {
  if (request !== null && request >= NO_DEVICE2) {
    return {
      kind: "genuine",
      because: `${formatBytesLikePyTorch(request)} was requested, more than any device has: the size was computed wrong`,
      advice: []
    };
  }
  if (request !== null && free2 !== null && free2 < request) {
    return {
      kind: "genuine",
      because: `${formatBytesLikePyTorch(request)} was requested, but only ${formatBytesLikePyTorch(free2)} is free`,
      advice: ["TM-A108", "TM-A129"]
    };
  }
  return {
    kind: "unknown",
    because: request === null ? "the message has no figures" : `${formatBytesLikePyTorch(request)} was requested; the message does not report the memory of the device, or what uses it`,
    advice: ["TM-A108", "TM-A129"]
  };
}
function judgeMetal({ bytes, size: size2 }) {
  const [allocated, other2] = [bytes("allocatedBytes") ?? 0, bytes("other") ?? 0];
  const request = bytes("requestedBytes");
  const missing2 = allocated + other2 + (request ?? 0) - (bytes("allowedBytes") ?? 0);
  const outside3 = other2 >= missing2 && other2 > allocated;
  return {
    kind: outside3 ? "context" : "genuine",
    because: `${size2("allocatedBytes")} of tensors and ${size2("other")} of other allocations are in use; ${request === null ? "the request" : `${size2("requestedBytes")} more`} would exceed the ${size2("allowedBytes")} that Metal allows`,
    advice: ["TM-A115", "TM-A123"]
  };
}
function memoryOfSpace({ text }) {
  return ["", "hbm"].includes(text("space")) ? "device" : "scratch";
}
function judgeCompiled(found) {
  const { text, size: size2, bytes } = found;
  if (memoryOfSpace(found) === "device") {
    return compiled(bytes("requestedBytes") ?? 0, size2("totalBytes"));
  }
  const beyond = text("over") === "" ? "" : `: ${size2("over")} more is needed`;
  return genuine(
    `a kernel needs ${size2("requestedBytes")} of ${text("space")}, the scratch memory of a core, which has ${size2("totalBytes")}${beyond}`,
    ["TM-A128"]
  );
}
function compiled(used, limit) {
  return genuine(
    `the compiled program needs ${formatBytesLikePyTorch(used)}, but the device has ${limit} for it`,
    ["TM-A127"]
  );
}
function judgeTpuBuffer({ text, bytes, size: size2 }) {
  const where = text("chip") === "" ? "" : ` on the chip ${text("chip")}`;
  const [request, free2] = [bytes("requestedBytes") ?? 0, bytes("freeBytes")];
  const advice = ["TM-A127"];
  if (free2 === null) {
    return { kind: "unknown", because: "the message is truncated before the free memory", advice };
  }
  if (free2 >= request) {
    return {
      kind: "fragmentation",
      because: `${size2("freeBytes")} is free${where} and ${size2("requestedBytes")} was requested: no free block was large enough, or none was at the address that a program requires`,
      advice
    };
  }
  return genuine(
    `${size2("requestedBytes")} was requested${where}, but only ${size2("freeBytes")} is free: the rest is used by arrays and compiled programs of this process`,
    advice
  );
}
function figuresOfAsync({ bytes }) {
  const [total, limit] = [credible(bytes("totalBytes")), credible(bytes("limit"))];
  return {
    totalBytes: total,
    freeBytes: credible(bytes("freeBytes")),
    allocatedBytes: credible(bytes("allocatedBytes")),
    allowedBytes: limit !== null && total !== null && limit < total ? limit : null
  };
}
var NOTABLE_SHARE = 0.15;
function judgeAsync(_, figures) {
  const {
    requestedBytes: request = null,
    totalBytes: total = null,
    freeBytes: free2 = null
  } = figures;
  const { allocatedBytes: allocated = null, allowedBytes: allowed = null } = figures;
  if (request === null || total === null || free2 === null || allocated === null) {
    return { kind: "unknown", because: "the message is truncated: it has no figures", advice: [] };
  }
  if (allowed !== null && allocated + request > allowed) {
    return {
      kind: "genuine",
      because: `the program allows itself ${formatBytesLikePyTorch(allowed)}, holds ${formatBytesLikePyTorch(allocated)} and requested ${formatBytesLikePyTorch(request)} more`,
      advice: ["TM-A115", "TM-A126"]
    };
  }
  if (request > total || allocated > total) {
    return {
      kind: "genuine",
      because: `PyTorch uses ${formatBytesLikePyTorch(allocated)} and requested ${formatBytesLikePyTorch(request)}; the device has ${formatBytesLikePyTorch(total)}`,
      advice: ["TM-A115", "TM-A104"]
    };
  }
  if (free2 >= request) {
    return {
      kind: "unknown",
      because: `${formatBytesLikePyTorch(free2)} was free when the message was written, and ${formatBytesLikePyTorch(request)} was requested`,
      advice: ["TM-A108"]
    };
  }
  const rest = total - free2 - allocated;
  const missing2 = request - free2;
  return rest >= missing2 && rest >= NOTABLE_SHARE * total ? {
    kind: "contention",
    because: `PyTorch uses ${formatBytesLikePyTorch(allocated)} of ${formatBytesLikePyTorch(total)}; other processes, the CUDA context and the unused part of the driver's pool hold ${formatBytesLikePyTorch(rest)}; ${formatBytesLikePyTorch(missing2)} was missing`,
    advice: ["TM-A108", "TM-A109"]
  } : {
    kind: "genuine",
    because: `PyTorch uses ${formatBytesLikePyTorch(allocated)} of ${formatBytesLikePyTorch(total)}; ${formatBytesLikePyTorch(request)} more was requested, and ${formatBytesLikePyTorch(free2)} is free`,
    advice: ["TM-A115", "TM-A104"]
  };
}

// src/gpu/oom/messages/message_row.ts
function words2(literal, ...groups) {
  const parts = literal.raw.map((part2) => part2.replace(/\s+/g, ""));
  return new RegExp(String.raw({ raw: parts }, ...groups));
}
function readRow(row, text, squeezed) {
  if (row.startWraps === void 0 && !row.start.test(text)) {
    return null;
  }
  const match = row.text?.exec(squeezed) ?? null;
  const { framework, library } = row;
  if (match === null && row.text !== void 0) {
    return row.figuresOptional === true ? reading(judgeFigures({}), {}, { framework, library }) : null;
  }
  const found = foundIn(row, squeezed, match);
  const figures = { ...figuresOf(found), ...row.computed?.(found) };
  const verdict = typeof row.verdict === "function" ? row.verdict(found, figures) : row.verdict ?? judgeFigures(figures);
  const memory = typeof row.memory === "function" ? row.memory(found) : row.memory;
  const device = found.text("device");
  return reading(verdict, figures, {
    framework,
    library,
    memory: memory ?? "device",
    device: device === "" ? null : Number(device)
  });
}
function foundIn(row, squeezed, match) {
  const others = (row.elsewhere ?? []).map((pattern) => pattern.exec(squeezed)?.groups);
  const groups = Object.assign({}, match?.groups, ...others);
  const bytes = (name) => {
    const figure2 = groups[name]?.replaceAll(",", "");
    return figure2 === void 0 ? null : bytesOf(figure2, groups[`${name}Unit`] ?? row.unit ?? "bytes");
  };
  return {
    text: (name) => groups[name] ?? "",
    bytes,
    size: (name) => {
      const figure2 = bytes(name);
      return figure2 === null ? "" : formatBytesLikePyTorch(figure2);
    }
  };
}
function figuresOf({ bytes }) {
  return {
    requestedBytes: bytes("requestedBytes"),
    totalBytes: bytes("totalBytes"),
    freeBytes: bytes("freeBytes"),
    allocatedBytes: bytes("allocatedBytes"),
    allowedBytes: bytes("allowedBytes")
  };
}

// src/gpu/oom/messages/message_table.ts
var VLLM = {
  framework: "pytorch",
  library: "vLLM",
  unit: "GiB",
  start: /is less than desired GPU memory utilization|No available memory for the cache blocks|To serve at least one request with|KV cache is needed, which is larger|than the maximum number of tokens that can be stored in KV cache|out of memory occurred when warming up|Error in memory profiling\. Initial/
};
var METAL = { framework: "pytorch", library: "", startWraps: true };
var XLA_TPU = { framework: "jax", library: "", startWraps: true };
var other = (library) => ({ framework: "other", library });
var ROWS = [
  {
    ...VLLM,
    text: words2`[Ff]ree memory on device (?:\w{1,12}:${whole("device", 4)})? \(${figure("freeBytes")}/${figure("totalBytes")} GiB\) on startup is less than desired GPU memory utilization \(${figure("share")}, ${figure("requestedBytes")} GiB\)`,
    verdict: ({ size: size2, text, bytes }) => ({
      kind: "contention",
      because: `the server needs ${size2("requestedBytes")} to start (a share of ${text("share")}), but only ${size2("freeBytes")} of ${size2("totalBytes")} is free: ${formatBytesLikePyTorch((bytes("totalBytes") ?? 0) - (bytes("freeBytes") ?? 0))} is already in use`,
      advice: ["TM-A108", "TM-A120"]
    })
  },
  {
    ...VLLM,
    text: words2`${figure("requestedBytes")} GiB KV cache is needed, which is larger than the available KV cache memory \(${figure("freeBytes")} GiB\) (?:.*? estimated maximum model length is ${whole("longest", 12)})?`,
    verdict: ({ size: size2, text }) => genuine(
      `one request of the maximum length needs ${size2("requestedBytes")} of KV cache, but the weights leave only ${size2("freeBytes")}${text("longest") === "" ? "" : `; a length of ${text("longest")} would fit`}`,
      ["TM-A121", "TM-A120"]
    )
  },
  {
    ...VLLM,
    text: words2`max seq len \(${whole("longest", 12)}\) is larger than the maximum number of tokens that can be stored in KV cache \(${whole("stored", 12)}\)`,
    verdict: ({ text }) => genuine(
      `the maximum length is ${text("longest")} tokens, but the KV cache holds ${text("stored")}`,
      ["TM-A121", "TM-A120"]
    )
  },
  {
    ...VLLM,
    text: words2`No available memory for the cache blocks`,
    verdict: genuine(
      "the weights and the largest forward pass use the server's whole share of the device: no memory is left for the KV cache",
      ["TM-A120", "TM-A121"]
    )
  },
  {
    ...VLLM,
    text: words2`out of memory occurred when warming up (?<part>\w{1,30}?) with ${whole("requests", 9)} dummy requests`,
    verdict: ({ text }) => genuine(
      `the server ran out of memory when it warmed up its ${text("part")} with ${text("requests")} concurrent requests: the weights and the KV cache use its share`,
      ["TM-A121", "TM-A120"]
    )
  },
  {
    ...VLLM,
    text: words2`Error in memory profiling\. Initial free memory ${figure("before")} GiB, current free memory ${figure("freeBytes")} GiB`,
    verdict: ({ size: size2 }) => ({
      kind: "contention",
      because: `${size2("before")} was free when the server began to measure, and ${size2("freeBytes")} afterwards: another process freed memory in the meantime, which makes the measurement invalid`,
      advice: ["TM-A108", "TM-A120"]
    })
  },
  {
    ...METAL,
    start: /Invalid buffer size: [\d.]{1,16} [KMGT]i?B/,
    text: words2`Invalid buffer size: ${size("requestedBytes")}`,
    verdict: ({ size: size2 }) => genuine(
      `one buffer of ${size2("requestedBytes")} was requested, which is more than Metal allows`,
      ["TM-A115", "TM-A123"]
    )
  },
  {
    ...METAL,
    start: /MPS backend out of memory/,
    text: words2`MPS backend out of memory \(MPS allocated: ${size("allocatedBytes")}, other allocations: ${size("other")}, max allowed: ${size("allowedBytes")}\) (?:\. Tried to allocate ${size("requestedBytes")})?`,
    computed: ({ bytes }) => ({
      processBytes: (bytes("allocatedBytes") ?? 0) + (bytes("other") ?? 0)
    }),
    verdict: judgeMetal
  },
  {
    framework: "pytorch",
    library: "NCCL",
    start: /Failed to CUDA (?:calloc|malloc)/,
    startWraps: true,
    text: words2`Failed to CUDA (?:calloc|malloc) | NCCL WARN Cuda failure .{0,12} out of memory`,
    // The number in brackets is the device of the process, not its rank.
    elsewhere: [
      words2`Failed to CUDA (?:calloc|malloc) ${whole("requestedBytes")}`,
      words2`:\d{1,9}:\d{1,9} \[${whole("device", 4)}\]`
    ],
    verdict: ({ size: size2 }) => ({
      kind: "context",
      because: `NCCL could not allocate ${size2("requestedBytes") === "" ? "a buffer" : `a buffer of ${size2("requestedBytes")}`}: PyTorch's allocator holds the memory of the device`,
      advice: ["TM-A109", "TM-A124"]
    })
  },
  {
    framework: "pytorch",
    library: "cudaMallocAsync",
    // The second is ComfyUI's report, which holds only the first words of the exception.
    start: /Allocation on device ?\d* would exceed allowed memory|Exception Message:\W{1,4}Allocation on device/,
    elsewhere: [
      words2`Allocation on device ${whole("device", 4)} would`,
      words2`Currently allocated: ${size("allocatedBytes")}`,
      words2`Requested: ${size("requestedBytes")}`,
      words2`Device limit: ${size("totalBytes")}`,
      words2`Free \(according to CUDA\): ${size("freeBytes")}`,
      words2`memory fraction\): ${size("limit")}`
    ],
    computed: figuresOfAsync,
    verdict: judgeAsync
  },
  {
    ...XLA_TPU,
    start: /Ran out of memory in memory space/,
    text: words2`memory space (?<space>[a-z]{2,8})\. Used ${xlaSize("requestedBytes")} of ${xlaSize("totalBytes")} (?:[a-z]{2,8}\. Exceeded [a-z]{2,8} capacity by ${xlaSize("over")})?`,
    memory: memoryOfSpace,
    verdict: judgeCompiled
  },
  {
    ...XLA_TPU,
    start: /Allocation \(size=\d{1,20}\) would exceed memory/,
    text: words2`Allocation \(size=${whole("requestedBytes")}\) would exceed memory \(size=${whole("totalBytes")}\) (?:.{0,400}? space=(?<space>[a-z]{2,8}))?`,
    memory: memoryOfSpace,
    verdict: judgeCompiled
  },
  {
    ...XLA_TPU,
    start: /Hbm usage: ?[\d.]{1,12}[KMGT]/,
    text: words2`Hbm usage: ${xlaSize("dense")}, SparseCore Hbm usage ${xlaSize("sparse")}, exceeding available bytes: ${xlaSize("totalBytes")}`,
    computed: ({ bytes }) => ({ requestedBytes: (bytes("dense") ?? 0) + (bytes("sparse") ?? 0) }),
    verdict: ({ bytes, size: size2 }) => compiled((bytes("dense") ?? 0) + (bytes("sparse") ?? 0), size2("totalBytes"))
  },
  {
    ...XLA_TPU,
    start: /Error allocating device buffer|Attempting to reserve [\d.]{1,12}[KMGT] at the bottom/,
    text: words2`Attempting to (?:allocate|reserve) ${xlaSize("requestedBytes")} (?:at the bottom of memory)? \. (?:.{0,30}? There are ${xlaSize("freeBytes")} free)?`,
    elsewhere: [/\((?<chip>\d{1,4}x\d{1,4}x\d{1,4}_HBM\d)\)/],
    verdict: judgeTpuBuffer
  },
  {
    ...other("llama.cpp"),
    start: /allocating [\d.]{1,16} MiB on device \d{1,4}: cudaMalloc failed/,
    text: words2`allocating ${size("requestedBytes")} on device ${whole("device", 4)}:`
  },
  {
    ...other("llama.cpp"),
    start: /failed to allocate \w{2,12} buffer of size \d/,
    text: words2`failed to allocate [A-Za-z]{2,10}(?<device>\d{0,3}) buffer of size ${whole("requestedBytes")}`
  },
  {
    ...other("ONNX Runtime"),
    start: /Failed to allocate memory for requested buffer of size/,
    text: words2`Failed to allocate memory for requested buffer of size ${whole("requestedBytes")}`
  },
  {
    ...other("TensorRT"),
    figuresOptional: true,
    start: /Requested amount of GPU memory \(|Error Code \d{1,2}: OutOfMemory|Error Code 1: Cuda Runtime \(out of memory\)/,
    text: words2`(?:Requested amount of GPU memory \(|OutOfMemory \(Requested size was) ${whole("requestedBytes")} bytes`
  },
  {
    ...other("Paddle"),
    figuresOptional: true,
    start: /Out of memory error on GPU \d/,
    text: words2`Out of memory error on GPU ${whole("device", 4)}\. Cannot allocate ${size("requestedBytes")} memory on GPU \d{1,4}, (?:${size("allocatedBytes")} memory has been allocated and)? available memory is only ${size("freeBytes")}`
  },
  {
    ...other("CuPy"),
    start: /Out of memory allocating [\d,]{1,26} bytes \(allocated|out of memory to allocate \d{1,20} bytes/,
    text: words2`(?:allocating|to allocate) (?<requestedBytes>[\d,]{1,26}) bytes \((?:allocated so far:|total) (?<allocatedBytes>[\d,]{1,26}) bytes`
  },
  {
    ...other("CUDA.jl"),
    start: /Out of GPU memory trying to allocate/,
    text: words2`Out of GPU memory trying to allocate ${size("requestedBytes")} (?:Effective GPU memory usage: [\d.]{1,8}% \(${size("used")}/${size("totalBytes")}\))?`,
    computed: ({ bytes }) => ({
      freeBytes: bytes("totalBytes") === null ? null : Math.max(0, (bytes("totalBytes") ?? 0) - (bytes("used") ?? 0))
    })
  },
  {
    ...other("RMM"),
    start: /RMM failure at:? ?\S{1,200} Maximum pool size exceeded/,
    verdict: genuine("RMM's pool has reached the maximum size that the program set", [
      "TM-A115",
      "TM-A129"
    ])
  },
  {
    ...other("MIOpen"),
    start: /Memory not available to allocate buffer: \d/,
    text: words2`available to allocate buffer: ${whole("requestedBytes")}`
  },
  {
    ...other("SGLang"),
    start: /Not enough memory\. Please try to increase --mem-fraction-static|runs out of memory\. Please set a smaller number for|(?:Prefill|Decode) out of memory\. Try to lower your batch size/,
    verdict: genuine(
      "the server's share of the device is too small: its KV cache is full, or does not fit next to the weights",
      ["TM-A120", "TM-A121"]
    )
  },
  {
    ...other("TGI"),
    start: /Not enough memory to handle \d{1,9} prefill tokens/,
    text: words2`to handle ${whole("tokens", 9)} prefill tokens`,
    verdict: ({ text }) => genuine(
      `the server's share of the device is too small: a prefill of ${text("tokens")} tokens does not fit next to the weights (--max-batch-prefill-tokens)`,
      ["TM-A120", "TM-A121"]
    )
  },
  {
    framework: "pytorch",
    library: "",
    memory: "host",
    start: /DefaultCPUAllocator: (?:can't allocate|not enough) memory/,
    text: words2`you tried to allocate ${whole("requestedBytes")} bytes`,
    verdict: ({ size: size2 }) => genuine(
      `PyTorch could not allocate ${size2("requestedBytes")} of host memory for a tensor on the CPU`,
      ["TM-A132"]
    )
  }
];
var TABLE_START = new RegExp(
  [...new Set(ROWS.map(({ start }) => start.source))].join("|")
);
function readTableMessage(text) {
  const squeezed = squeeze(text);
  for (const row of ROWS) {
    const found = readRow(row, text, squeezed);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

// src/gpu/oom/messages/torch_message.ts
var TORCH_START = /(?:CUDA|HIP|XPU|NPU|MLU|MUSA) ?out ?of ?memory|virtual-address-space \(VSZ\) exhaustion/;
var ERROR_ITSELF = /(?:Error|Exception):[^"'`\n]{0,20}(?:CUDA|HIP|XPU|NPU|MLU|MUSA) ?out of memory/;
var REQUEST = new RegExp(`outofmemory\\.?(?:.{0,40}?)Triedtoallocate${SIZE2}`);
function parseTorchMessage(text) {
  const squeezed = squeeze(text);
  if (!TORCH_START.test(text) && !/(?:CUDA|HIP|XPU)outofmemory/.test(squeezed)) {
    return null;
  }
  const at = squeezed.search(REQUEST);
  const cause = causeOf(squeezed);
  if (at < 0 && cause === "device" && !mentionsError(text)) {
    return null;
  }
  const body = at < 0 ? "" : squeezed.slice(at);
  const size2 = (before, after) => {
    const match = new RegExp(before + SIZE2 + after).exec(body);
    return match === null ? null : bytesOf(match[1] ?? "", match[2] ?? "");
  };
  const allocated = credible(
    size2("", "(?:already|is)allocated(?:byPyTorch|;)") ?? size2("", "alreadyallocated")
  );
  const reserved = credible(size2("", "reservedintotal"));
  const split = size2("and", "isreservedbyPyTorchbutunallocated") ?? size2("", "cached\\)") ?? (reserved === null || allocated === null ? null : Math.max(0, reserved - allocated));
  const own = credible(size2("thisprocesshas", "memoryinuse"));
  const device = /(?:GPU|XPU|NPU|MLU)(\d{1,5})(?:;|has)/.exec(body)?.[1];
  return {
    platform: platformOf(squeezed),
    device: device === void 0 ? null : Number(device),
    requestedBytes: size2("Triedtoallocate", "") ?? sizeIn(squeezed, "memory_fractionlimit\\.Requestedsize:"),
    totalBytes: credible(size2("totalcapac(?:i?ty)of", "") ?? size2("", "total(?:capacity)?;")),
    freeBytes: credible(size2("ofwhich", "isfree") ?? size2(";", "free")),
    allocatedBytes: allocated,
    reservedUnallocatedBytes: credible(split),
    // If NVML cannot see the process, it reports 0 or "not available" (2^64 - 1).
    processBytes: own !== null && own < KNOWN_SHARE * ((allocated ?? 0) + (split ?? 0)) ? null : own,
    otherProcesses: [...body.matchAll(new RegExp(`Process(\\d{1,10})has${SIZE2}memoryinuse`, "g"))].map(([, pid, figure2 = "", unit = ""]) => ({
      pid: Number(pid),
      bytes: bytesOf(figure2, unit)
    })).filter(({ bytes }) => credible(bytes) !== null),
    privatePoolBytes: size2("with", "allocatedinprivatepools"),
    allowedBytes: credible(size2("", "allowed;")),
    torch: versionOf2(squeezed, body, reserved !== null),
    splitNamed: /max_split_size_mb/.test(squeezed),
    cause
  };
}
var KNOWN_SHARE = 0.95;
function mentionsError(text) {
  const error = ERROR_ITSELF.exec(text.replace(/\s*\n\s*/g, " "));
  if (error === null) {
    return false;
  }
  const words3 = /(?:CUDA|HIP|XPU|NPU|MLU|MUSA) ?out of memory/.exec(text);
  return words3 === null || !isQuoted(text, words3.index, words3[0].length);
}
function platformOf(squeezed) {
  if (/HIPoutofmemory/.test(squeezed)) {
    return "HIP";
  }
  if (/XPUoutofmemory/.test(squeezed)) {
    return "XPU";
  }
  return /(?:NPU|MLU|MUSA)outofmemory/.test(squeezed) ? "other" : "CUDA";
}
function sizeIn(squeezed, before) {
  const match = new RegExp(before + SIZE2).exec(squeezed);
  return match === null ? null : bytesOf(match[1] ?? "", match[2] ?? "");
}
function causeOf(squeezed) {
  if (/\(VSZ\)exhaustionfromexpandable/.test(squeezed)) {
    return "address space";
  }
  if (/preemptivelyrejected/.test(squeezed)) {
    return "own limit";
  }
  if (/Triedtoallocatemorethan1EB/.test(squeezed)) {
    return "size beyond all";
  }
  return "device";
}
var NAMED_ANEW = "2.9 or later";
function versionOf2(squeezed, body, reservedInTotal) {
  if (body === "") {
    return "";
  }
  if (/(?:NPU|MLU|MUSA)outofmemory/.test(squeezed)) {
    return "";
  }
  if (/(?:iB|bytes)cached\)/.test(body)) {
    return "up to 1.3";
  }
  if (reservedInTotal) {
    return "1.4 to 2.0";
  }
  if (/totalcapactyof/.test(body)) {
    return "2.1";
  }
  if (/PYTORCH_ALLOC_CONF/.test(body)) {
    return NAMED_ANEW;
  }
  if (/#optimizing-memory-usage/.test(body)) {
    return "2.10 or later";
  }
  if (/HIPoutofmemory.*PYTORCH_CUDA_ALLOC_CONF=.*#environment-variables/.test(squeezed)) {
    return NAMED_ANEW;
  }
  if (/torch\.OutOfMemoryError/.test(squeezed)) {
    return /#environment-variables/.test(body) ? "2.5 to 2.8" : "2.5 or later";
  }
  if (/torch\.cuda\.OutOfMemoryError/.test(squeezed)) {
    return "2.2 to 2.4";
  }
  return /totalcapacityof/.test(body) ? "2.2 or later" : "";
}

// src/gpu/oom/messages/torch_verdict.ts
var NOTABLE_SHARE2 = 0.1;
var LARGE_SPLIT = 0.02;
var SEGMENT = 20 * 2 ** 20;
var CROWDED_SHARE = 0.2;
var CROWDED_TIMES = 4;
function judgeTorchMessage(message) {
  const request = message.requestedBytes;
  switch (message.cause) {
    case "address space":
      return {
        kind: "unknown",
        because: "the process ran out of address space, which expandable segments reserve, not of memory",
        advice: ["TM-A125"]
      };
    case "own limit":
      return ownLimit(
        `${request === null ? "the request" : formatBytesLikePyTorch(request)} would exceed the share of the device that the program set for itself (per_process_memory_fraction)`
      );
    case "size beyond all":
      return {
        kind: "genuine",
        because: "more than an exabyte was requested: the size was computed wrong, or is negative",
        advice: []
      };
    default:
      return request === null ? {
        kind: "unknown",
        because: "the message is truncated: PyTorch's allocator could not allocate memory, and the figures are missing",
        advice: ["TM-A115", "TM-A108"]
      } : judgeRequest(message, request);
  }
}
function confName({ platform, torch: version }) {
  if (platform === "HIP") {
    return "PYTORCH_HIP_ALLOC_CONF";
  }
  return version === NAMED_ANEW ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
}
function judgeRequest(message, request) {
  const { totalBytes: total, freeBytes: free2, allowedBytes: allowed } = message;
  const { allocatedBytes: allocated, reservedUnallocatedBytes: split } = message;
  if (allowed !== null) {
    const limited2 = judgeLimit(message, request, allowed);
    if (limited2 !== null) {
      return limited2;
    }
  }
  if (allocated !== null && total !== null && allocated > total) {
    return {
      kind: "genuine",
      because: `PyTorch has ${formatBytesLikePyTorch(allocated)} allocated on a device of ${formatBytesLikePyTorch(total)}: the driver has already moved a part to the host's memory; ${formatBytesLikePyTorch(request)} more was requested`,
      advice: ["TM-A115", "TM-A104"]
    };
  }
  if (total !== null && request > total) {
    return {
      kind: "genuine",
      because: `${formatBytesLikePyTorch(request)} was requested at once, but the device has ${formatBytesLikePyTorch(total)} in total`,
      advice: ["TM-A115", "TM-A104"]
    };
  }
  if (total === null || free2 === null) {
    return {
      kind: "unknown",
      because: "the message does not report the free memory",
      advice: []
    };
  }
  if (free2 >= SEGMENT && free2 >= request + SEGMENT) {
    return enoughFree(request, free2);
  }
  if (allocated === null || split === null) {
    return {
      kind: "unknown",
      because: `the message is truncated: ${formatBytesLikePyTorch(request)} was requested, ${formatBytesLikePyTorch(free2)} of ${formatBytesLikePyTorch(total)} is free, and the memory that PyTorch holds is missing`,
      advice: ["TM-A108", "TM-A115"]
    };
  }
  return judgeState(message, stateOf2(message, { request, total, free: free2, allocated, split }));
}
function judgeLimit(message, request, allowed) {
  const { allocatedBytes: allocated, reservedUnallocatedBytes: split, freeBytes: free2 } = message;
  if (request > allowed) {
    return ownLimit(
      `${formatBytesLikePyTorch(request)} was requested at once, but the program allows itself ${formatBytesLikePyTorch(allowed)} in total`
    );
  }
  if (allocated === null || split === null) {
    return free2 !== null && free2 >= request ? ownLimit(
      `the program allows itself ${formatBytesLikePyTorch(allowed)} and requested ${formatBytesLikePyTorch(request)}; the device had ${formatBytesLikePyTorch(free2)} free`
    ) : null;
  }
  const held = allocated + split;
  const over = held + request - allowed;
  if (over <= 0 && (free2 === null || free2 < request)) {
    return null;
  }
  if (over > 0 && split >= over && split >= NOTABLE_SHARE2 * held) {
    return {
      kind: "fragmentation",
      because: `the program allows itself ${formatBytesLikePyTorch(allowed)}: ${formatBytesLikePyTorch(allocated)} is allocated, and ${formatBytesLikePyTorch(split)} is reserved in pieces that are each too small for ${formatBytesLikePyTorch(request)}`,
      advice: [...ofFragmentation(message, split), "TM-A126"]
    };
  }
  return ownLimit(
    `the program allows itself ${formatBytesLikePyTorch(allowed)}, holds ${formatBytesLikePyTorch(held)} and requested ${formatBytesLikePyTorch(request)} more${free2 === null ? "" : `; the device had ${formatBytesLikePyTorch(free2)} free`}`
  );
}
function ownLimit(because) {
  return { kind: "genuine", because, advice: ["TM-A126", "TM-A115"] };
}
function enoughFree(request, free2) {
  if (free2 < request + SEGMENT) {
    return {
      kind: "unknown",
      because: `${formatBytesLikePyTorch(request)} was requested and ${formatBytesLikePyTorch(free2)} was free: about the same, and the driver keeps some pages for itself`,
      advice: ["TM-A115", "TM-A108"]
    };
  }
  return {
    kind: "unknown",
    because: `${formatBytesLikePyTorch(free2)} was free when the message was written, and ${formatBytesLikePyTorch(request)} was requested: another process may have used it a moment before, or the driver refused it although it was free`,
    advice: ["TM-A108"]
  };
}
function stateOf2(figures, known) {
  const { request, total, free: free2, allocated, split } = known;
  const usable = free2 < SEGMENT ? 0 : free2;
  const own = figures.processBytes ?? allocated + split;
  const listed = figures.otherProcesses.reduce((sum, { bytes }) => sum + bytes, 0);
  const rest = Math.max(0, total - free2 - own);
  return {
    ...known,
    missing: Math.max(0, request - usable),
    // "Process N" may be this process if it runs in a container: nothing else then reports its size.
    others: figures.processBytes === null ? rest : Math.max(listed, rest),
    outside: figures.processBytes === null ? 0 : Math.max(0, own - allocated - split)
  };
}
function judgeState(message, state) {
  const { request, total, free: free2, allocated, split, missing: missing2, others, outside: outside3 } = state;
  const notable = NOTABLE_SHARE2 * total;
  if (missing2 > 0 && others >= missing2 && others >= notable && crowded(message, state)) {
    return contention(message, state);
  }
  if (inPieces(state)) {
    return {
      kind: "fragmentation",
      because: `${formatBytesLikePyTorch(split)} is reserved and unallocated, and ${formatBytesLikePyTorch(free2)} is free: enough for ${formatBytesLikePyTorch(request)} in total, but not in one piece`,
      advice: ofFragmentation(message, split)
    };
  }
  if (outside3 >= missing2 && outside3 >= notable && outside3 > others) {
    return context(state);
  }
  if (missing2 === 0) {
    return enoughFree(request, free2);
  }
  if (others >= missing2 && others >= notable && others > outside3) {
    return contention(message, state);
  }
  if (outside3 >= missing2 && outside3 >= notable) {
    return context(state);
  }
  return {
    kind: "genuine",
    because: `PyTorch uses ${formatBytesLikePyTorch(allocated)} of ${formatBytesLikePyTorch(total)}; ${formatBytesLikePyTorch(request)} more was requested, ${formatBytesLikePyTorch(free2)} is free and only ${formatBytesLikePyTorch(split)} is reserved and unallocated`,
    advice: ["TM-A115", "TM-A104"]
  };
}
function crowded({ processBytes }, { total, split, others, outside: outside3 }) {
  return processBytes === null ? others >= CROWDED_SHARE * total && others >= CROWDED_TIMES * split : others > split && others > outside3;
}
function inPieces({ request, total, allocated, split, missing: missing2 }) {
  const held = allocated + split;
  return split >= missing2 && split >= LARGE_SPLIT * total && (split >= request || split >= NOTABLE_SHARE2 * held || split >= 2 * missing2 && split >= NOTABLE_SHARE2 / 2 * held);
}
function ofFragmentation(message, split) {
  const { torch, platform, splitNamed } = message;
  if (platform === "XPU" || platform === "other") {
    return ["TM-A131"];
  }
  if (torch === "up to 1.3") {
    return ["TM-A130", "TM-A131"];
  }
  if (torch === "1.4 to 2.0") {
    return splitNamed ? ["TM-A102", "TM-A130", "TM-A131"] : ["TM-A130", "TM-A131"];
  }
  return (message.privatePoolBytes ?? 0) > split ? ["TM-A114", "TM-A101"] : ["TM-A101", "TM-A103", "TM-A102"];
}
function context({ allocated, split, outside: outside3 }) {
  return {
    kind: "context",
    because: `this process holds ${formatBytesLikePyTorch(allocated + split + outside3)}, of which PyTorch's allocator has ${formatBytesLikePyTorch(allocated + split)}: the CUDA context, NCCL and other libraries hold the remaining ${formatBytesLikePyTorch(outside3)}`,
    advice: ["TM-A109"]
  };
}
function contention(figures, { others, missing: missing2 }) {
  const named = figures.otherProcesses.map(({ pid, bytes }) => `process ${pid} ${formatBytesLikePyTorch(bytes)}`).join(", ");
  const own = figures.processBytes !== null;
  const who = named === "" ? "processes or libraries that the message does not name" : own ? named : `one of which is this process: ${named}`;
  return {
    kind: "contention",
    because: `${formatBytesLikePyTorch(others)} of the device is held by others (${who}); ${formatBytesLikePyTorch(missing2)} was missing`,
    advice: ["TM-A108", ...own ? [] : ["TM-A109"]]
  };
}

// src/gpu/oom/messages/message_readers.ts
var READERS = [
  { start: TABLE_START, parse: readTableMessage },
  { start: TORCH_START, parse: readTorchMessage },
  { start: LIBRARY_START, parse: parseLibraryMessage }
];
var START = new RegExp(READERS.map(({ start }) => start.source).join("|"));
function readTorchMessage(text) {
  const message = parseTorchMessage(text);
  if (message === null) {
    return null;
  }
  const { device, torch, platform, splitNamed, cause, ...figures } = message;
  return {
    ...reading(judgeTorchMessage(message), figures, { device, torch }),
    conf: confName(message)
  };
}

// src/lint/files/settings.ts
import { parse, TomlError } from "smol-toml";

// src/lint/scopes/uses.ts
var GROWING = new Set(
  "append add insert extend extendleft appendleft update setdefault put put_nowait".split(" ")
);
var SHRINKING = new Set(
  "pop popitem popleft remove discard clear difference_update intersection_update symmetric_difference_update get_nowait task_done expire evict prune purge cache_clear popall subtract truncate delete invalidate".split(" ")
);
var READERS2 = new Set(
  "list dict set tuple sorted sum min max any all print str repr iter enumerate zip map filter reversed isinstance id next bool frozenset join dumps format hash type".split(" ")
);

// src/lint/flow/repeats.ts
var SUBSCRIPTIONS = "subscribe psubscribe basic_consume consume add_job add_url_rule add_api_route add_api_websocket_route add_event_handler add_message_handler add_periodic_task message_callback_add add_get add_post add_put add_delete start_server create_server serve_forever websocket_serve set_message_handler".split(" ");

// src/lint/check_source.ts
var OF_CONTAINERS = "L006 L012 L017 L019 L020 L021 L022 L024 L035 L039 L040";
var MORE_PRECISE = new Map(
  Object.entries({
    L001: OF_CONTAINERS,
    L002: OF_CONTAINERS,
    L003: OF_CONTAINERS,
    L004: "L017",
    L005: "L012 L022 L024"
  }).map(([rule, precise]) => [
    `TM-${rule}`,
    new Set(precise.split(" ").map((each) => `TM-${each}`))
  ])
);

// src/lint/files/read_source.ts
var LARGEST_FILE2 = 8 * 2 ** 20;

// src/lint/files/removals.ts
var REMOVAL = "(?:clear|pop|popitem|popleft|remove|discard|difference_update)\\(";
var OF_MODULE = new RegExp(`\\b([A-Za-z_]\\w*)\\.([A-Za-z_]\\w*)\\.${REMOVAL}`, "g");
var OF_NAME = new RegExp(`(?<![.\\w])([A-Za-z_]\\w*)\\.${REMOVAL}`, "g");

// src/lint/grammar.ts
import { fileURLToPath as fileURLToPath2 } from "node:url";
var GRAMMAR_PATH = fileURLToPath2(
  new URL("../../grammars/tree-sitter-python.wasm", import.meta.url)
);

// src/inspect/recorded/plan.ts
function planDocument(path, words3, { withFitTable, configs }) {
  const model = readModel(path);
  const request = configs.map(readJobConfig).reduce(withJobConfig, words3);
  const options = planOptions(model, request);
  const plan2 = planMemory(model, options);
  const gpus = request.gpu === void 0 ? GPUS : [request.gpu];
  return {
    model,
    options,
    plan: withFitTable ? { ...plan2, fitTable: fitTable(model, options, gpus, measureFrom) } : plan2
  };
}

// src/inspect/recorded/report_sources.ts
var LARGEST_FILE3 = 512 << 10;
var MOST_TEXT = 2 << 20;

// src/inspect/recorded/report.ts
var NO_TABLES = {
  strings: [""],
  frames: {
    length: 0,
    function: new Uint32Array(0),
    file: new Uint32Array(0),
    line: new Uint32Array(0),
    firstLine: new Uint32Array(0),
    kind: new Uint8Array(0),
    address: new Float64Array(0)
  },
  stacks: { length: 1, parent: new Uint32Array(1), frame: new Uint32Array(1) },
  processes: [],
  threads: [],
  labels: {
    length: 1,
    parent: new Uint32Array(1),
    key: new Uint32Array(1),
    value: new Uint32Array(1)
  }
};

// scratch_cmp.mjs
function plan(path, words3) {
  const c = new Command("plan");
  withPlanOptions(c);
  c.parse(words3.split(" ").filter(Boolean), { from: "user" });
  return planDocument(path, requestOf(c.opts()), { withFitTable: false, configs: [] }).plan;
}
var pct = (x) => (x >= 0 ? "+" : "") + (100 * x).toFixed(1) + "%";
if (process.argv[2] === "lib") {
  for (const line of readFileSync3(process.argv[3], "utf8").trim().split("\n")) {
    const m = JSON.parse(line);
    const name = `${basename2(m.path, ".json")} ${m.attention}`;
    if (process.argv[4] && !name.startsWith(process.argv[4])) continue;
    if (m.error) {
      console.log(name, m.error.slice(0, 100));
      continue;
    }
    let p;
    try {
      p = plan(m.path.replace("../test", "./test"), `--dtype fp32 --batch 2 --seq 192 --attention ${m.attention} --no-padding${""}`);
    } catch (e) {
      console.log(name, String(e.message));
      continue;
    }
    const saved = p.savedActivations.reduce((s, { bytes }) => s + bytes, 0);
    const flag = Math.abs(saved / m.saved - 1) > 0.02 || p.model.parameters !== m.parameters ? " <<<" : "";
    console.log(name.padEnd(22), "params", m.parameters, p.model.parameters - m.parameters, "saved", m.saved, pct(saved / m.saved - 1), flag);
    if (process.argv[4]) {
      for (const a of p.savedActivations) console.log("   plan", a.part, a.bytes);
      for (const l of m.largest ?? []) console.log("   real", l.count, "x", l.tensor);
    }
  }
}

// scratch_gpu.mjs
var given2 = JSON.parse(readFileSync4("bench/plan_device_cases.json", "utf8"));
var pub = JSON.parse(readFileSync4("test/data/plan/models.json", "utf8"));
var cases = [];
for (const f of process.argv[2].split(",")) {
  cases.push(...JSON.parse(readFileSync4(f, "utf8")).cases);
}
mkdirSync("/tmp/plan/configs", { recursive: true });
var M = 2 ** 20;
var err = { allocated: [], reserved: [], device: [] };
var ins = { allocated: 0, reserved: 0, device: 0 };
var only = process.argv[3]?.split(",");
for (const e of given2.cases) {
  if (only && !only.includes(e.id)) continue;
  const r = cases.filter((c2) => c2.id === e.id).at(-1);
  if (!r) continue;
  if (r.allocated === void 0) {
    console.log(e.id, (r.error ?? r.outOfMemory ?? "").slice(0, 200));
    continue;
  }
  const c = { ...given2.models[e.model] ?? pub[e.model].config };
  if (e.layers !== void 0) c["num_hidden_layers" in c ? "num_hidden_layers" : "n_layer"] = e.layers;
  const path = `/tmp/plan/configs/${e.id}.json`;
  writeFileSync(path, JSON.stringify(c));
  const p = plan(path, e.words + " --gpu h200");
  const cell2 = (k) => {
    const f = p.memory[k], b = r[k];
    const x = f.bytes / b - 1;
    if (!e.reference) {
      err[k].push(Math.abs(x));
      const inside = f.low <= b && b <= f.high;
      ins[k] += inside ? 1 : 0;
    }
    return `${k[0]} ${(b / M).toFixed(0)}/${(f.bytes / M).toFixed(0)} ${x >= 0 ? "+" : ""}${(100 * x).toFixed(1)}%${f.low <= b && b <= f.high ? "" : "!"}`;
  };
  const kv = p.parts.find((q) => q.part === "kv cache")?.bytes;
  console.log(e.id, e.model, e.words.replace("--attention sdpa --no-padding", "nomask").replace(/--/g, ""), e.layers ?? "");
  console.log("    ", cell2("allocated"), "|", cell2("reserved"), "|", cell2("device"), r.cache !== void 0 ? `| kv ${r.cache}/${kv} ${kv === r.cache ? "exact" : ((kv / r.cache - 1) * 100).toFixed(2) + "%"}` : "", r.saved !== void 0 ? `| saved ${(r.saved / M).toFixed(0)}/${(p.savedActivations.reduce((s, { bytes }) => s + bytes, 0) / M).toFixed(0)}` : "");
  if (only) {
    console.log("  peak planned", p.peak, p.parts.map((q) => `${q.part} ${(q.bytes / M).toFixed(0)}`).join(", "));
    const s = r.steps?.at(-1);
    if (s) console.log("  measured: before", (s.before.allocated / M).toFixed(0), "after fwd", (s.forward.allocated / M).toFixed(0), "peak fwd", (s.forward.peakAllocated / M).toFixed(0), "peak bwd", (s.backward.peakAllocated / M).toFixed(0), "after bwd", (s.backward.allocated / M).toFixed(0), "step peak", (s.step.peakAllocated / M).toFixed(0), "| weights", (r.weights / M).toFixed(0), "grads", (s.gradients / M).toFixed(0), "opt", (r.optimizer / M).toFixed(0));
    if (r.prefill) console.log("  prefill", (r.prefill.peakAllocated / M).toFixed(0), "after", (r.prefill.allocated / M).toFixed(0), "decode", (r.decode.peakAllocated / M).toFixed(0), "weights", (r.weights / M).toFixed(0), "built", (r.built.allocated / M).toFixed(0), r.cacheShapes?.join(" "));
    if (r.peakBlocks) {
      console.log("  peak: before", (r.peakBlocks.before / M).toFixed(0), "more", (r.peakBlocks.more / M).toFixed(0), "event", r.peakBlocks.event, "/", r.peakBlocks.events, "last", r.peakBlocks.lastAllocated.map((b) => (b / M).toFixed(1)).join(" "));
      console.log("   ", r.peakBlocks.blocks.slice(0, 16).map(({ bytes, count: count2 }) => `${count2}x${(bytes / M).toFixed(2)}`).join(" "));
    }
    for (const a of p.savedActivations) console.log("   plan", a.part, (a.bytes / M).toFixed(1));
    for (const k of (r.savedKinds ?? []).slice(0, 16)) console.log("   real", k.count, "x", k.tensor);
  }
}
for (const k of Object.keys(err)) console.log(k, err[k].length, "mean", (100 * err[k].reduce((a, b) => a + b, 0) / err[k].length).toFixed(1) + "%", "max", (100 * Math.max(...err[k])).toFixed(1) + "%", "inside", ins[k]);
