/** `tidemark plan` with the files of a job: configurations of other tools, shards, recordings, hostile contents. */
import { closeSync, mkdirSync, openSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PlanJson } from "../../src/model/documents/plan_document.js";
import { commandHere } from "../command_here.js";
import { anyInterpreter } from "../environment.js";
import { pickle } from "../gpu/pickle_writer.mjs";
import { snapshotOf } from "../gpu/snapshot_file.mjs";
import { runOut } from "../gpu/workload.mjs";
import { validate } from "../recorded_app.js";
import { execute, removeScratch, repository, scratch, tidemark } from "../run.js";

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: Record<string, unknown> }>;
let folder: string;

beforeAll(() => {
  folder = scratch();
  process.chdir(folder);
  for (const name of ["llama-3.1-8b", "gpt2"]) {
    mkdirSync(join(folder, name));
    write(`${name}/config.json`, MODELS[name]?.config);
  }
});
afterAll(removeScratch);

function write(name: string, content: unknown): string {
  writeFileSync(
    join(folder, name),
    typeof content === "string" ? content : JSON.stringify(content),
  );
  return name;
}

const plan = (...words: string[]) => commandHere("plan", ...words);

async function planned(...words: string[]): Promise<PlanJson> {
  const { stdout, stderr, status } = await plan(...words, "--json");
  expect([status, stderr]).toEqual([0, ""]);
  return validate(stdout, "plan") as unknown as PlanJson;
}

const partOf = ({ parts }: PlanJson, name: string): number =>
  parts.find(({ part, where }) => part === name && where !== "device")?.bytes ?? 0;

describe("--config", () => {
  test("DeepSpeed: stage, offload, batch and type are those of the file", async () => {
    write("ds.json", {
      train_micro_batch_size_per_gpu: 2,
      gradient_accumulation_steps: 4,
      bf16: { enabled: true },
      optimizer: { type: "AdamW", params: { lr: 1e-5 } },
      zero_optimization: { stage: 3, offload_optimizer: { device: "cpu" } },
    });
    const [file, words] = await Promise.all([
      planned("llama-3.1-8b", "--config", "ds.json", "--devices", "16"),
      planned(
        ..."llama-3.1-8b --zero 3 --devices 16 --offload optimizer --batch 2 --accumulation 4 --dtype bf16".split(
          " ",
        ),
      ),
    ]);
    expect(file.perDeviceBytes).toBe(words.perDeviceBytes);
    expect(file.devices.count).toBe(16);
    expect(partOf(file, "optimizer")).toBe(0);
  });

  test("DeepSpeed: sizes of buffers are read, and those without effect are named", async () => {
    const zero = (stage: number, sizes: object) =>
      write("sizes.json", { zero_optimization: { stage, ...sizes }, train_batch_size: 8 });
    const formula = async () => {
      const { parts } = await planned(
        "llama-3.1-8b",
        "--config",
        "sizes.json",
        "--checkpointing",
        "full",
        "--batch",
        "8",
        "--loss",
        "fused",
      );
      return parts.find(({ part }) => part === "communication")?.formula ?? "";
    };
    zero(2, { reduce_bucket_size: 2e8 });
    expect(await formula()).toBe("bucket 200.0e6 x 2 B + flat copy 200.0e6 x 2 B");
    zero(2, { reduce_bucket_size: 2e8, overlap_comm: true });
    expect(await formula()).toMatch(/^2 buckets x 200\.0e6 .* \+ flat copy 200\.0e6 /);
    zero(2, { reduce_bucket_size: "auto" });
    expect(await formula()).toMatch(/^bucket 16\.78e6 /);
    zero(3, { stage3_max_live_parameters: 3e8, reduce_bucket_size: 1e8 });
    expect(await formula()).toMatch(/^gathered 300\.0e6 .* bucket 100\.0e6 x 2 B/);
    zero(3, {
      allgather_bucket_size: 2e8,
      stage3_prefetch_bucket_size: 1e7,
      stage3_param_persistence_threshold: 1e5,
    });
    const { limits } = await planned("llama-3.1-8b", "--config", "sizes.json");
    expect(limits.join()).toMatch(
      /sizes\.json sets allgather_bucket_size, stage3_prefetch_bucket_size, stage3_param_persistence_threshold, on which/,
    );
  });

  test('DeepSpeed: "auto" is left to the options', async () => {
    write("auto.json", {
      train_micro_batch_size_per_gpu: "auto",
      gradient_accumulation_steps: "auto",
      zero_optimization: { stage: 2 },
    });
    const file = await planned("gpt2", "--config", "auto.json", "--batch", "3");
    expect(file.assumptions.join()).toMatch(/3 sequences/);
    expect(file.devices.count).toBe(8);
  });

  const ACCELERATE = `compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_activation_checkpointing: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_offload_params: false
  fsdp_sharding_strategy: FULL_SHARD
mixed_precision: 'bf16'
num_machines: 1
num_processes: 4  # one for each GPU
`;

  test("accelerate: FSDP with its processes and checkpointing", async () => {
    write("fsdp.yaml", ACCELERATE);
    const [file, words] = await Promise.all([
      planned("llama-3.1-8b", "--config", "fsdp.yaml"),
      planned(
        ..."llama-3.1-8b --fsdp 4 --fsdp-version 1 --checkpointing full --dtype bf16".split(" "),
      ),
    ]);
    expect(file.perDeviceBytes).toBe(words.perDeviceBytes);
  });

  test("accelerate: SHARD_GRAD_OP keeps gathered weights, NO_SHARD everything", async () => {
    write("grad.yaml", ACCELERATE.replace("FULL_SHARD", "SHARD_GRAD_OP"));
    write("none.yaml", ACCELERATE.replace("FULL_SHARD", "NO_SHARD"));
    const [full, gradients, none] = await Promise.all(
      ["fsdp", "grad", "none"].map((name) =>
        planned("llama-3.1-8b", "--config", `${name}.yaml`, "--weights", "16bit"),
      ),
    );
    expect(partOf(gradients as PlanJson, "weights")).toBe(partOf(full as PlanJson, "weights"));
    expect(partOf(gradients as PlanJson, "communication")).toBeGreaterThan(
      2 * (gradients as PlanJson).model.parameters * 0.99,
    );
    const rows = JSON.stringify((gradients as PlanJson).parts);
    expect(rows).toMatch(/divided by FSDP over 4 devices/);
    expect(rows).not.toMatch(/ZeRO|DeepSpeed/);
    expect(partOf(none as PlanJson, "optimizer")).toBe(
      4 * partOf(gradients as PlanJson, "optimizer"),
    );
  });

  test("accelerate: weights that stay gathered stay on the device, although they are offloaded", async () => {
    const grad = ACCELERATE.replace("FULL_SHARD", "SHARD_GRAD_OP");
    write("offloaded.yaml", grad.replace("offload_params: false", "offload_params: true"));
    const plan = await planned("llama-3.1-8b", "--config", "offloaded.yaml");
    expect(partOf(plan, "communication")).toBeGreaterThan(2 * plan.model.parameters * 0.99);
    expect([partOf(plan, "weights"), partOf(plan, "optimizer")]).toEqual([0, 0]);
  });

  test.each([2, 3])("offload_param counts in stage 3 alone: stage %i", async (stage) => {
    write(
      "offload.yaml",
      `distributed_type: DEEPSPEED
deepspeed_config:
  offload_optimizer_device: none
  offload_param_device: cpu
  zero_stage: ${stage}
num_processes: 4
`,
    );
    write("offload.json", {
      zero_optimization: { stage, offload_param: { device: "cpu" } },
      train_micro_batch_size_per_gpu: 1,
    });
    const devices = ["--devices", "4"];
    const plans = await Promise.all([
      planned("gpt2", "--config", "offload.yaml"),
      planned("gpt2", "--config", "offload.json", ...devices),
      planned(
        "gpt2",
        "--zero",
        `${stage}`,
        ...devices,
        ...(stage === 3 ? ["--offload", "all"] : []),
      ),
    ]);
    const bytes = plans.map(({ perDeviceBytes }) => perDeviceBytes);
    expect(bytes).toEqual([bytes[2], bytes[2], bytes[2]]);
  });

  test("the Trainer's fsdp_config, version 2", async () => {
    write("trainer.json", {
      fsdp_version: 2,
      transformer_layer_cls_to_wrap: ["LlamaDecoderLayer"],
      activation_checkpointing: true,
    });
    const file = await planned("llama-3.1-8b", "--config", "trainer.json", "--devices", "4");
    const words = await planned(..."llama-3.1-8b --fsdp 4 --checkpointing full".split(" "));
    expect(file.perDeviceBytes).toBe(words.perDeviceBytes);
  });

  test('DeepSpeed: every "auto" is left to the options, and said so', async () => {
    write("all-auto.json", {
      bf16: { enabled: "auto" },
      gradient_accumulation_steps: "auto",
      gradient_clipping: "auto",
      optimizer: { type: "AdamW", params: { lr: "auto" } },
      train_batch_size: "auto",
      train_micro_batch_size_per_gpu: "auto",
      zero_optimization: { stage: 3, reduce_bucket_size: "auto" },
    });
    // The Trainer sets the bucket to the square of the hidden size.
    write("bucket.json", { zero_optimization: { stage: 3, reduce_bucket_size: 768 ** 2 } });
    const [file, words] = await Promise.all([
      planned("gpt2", "--config", "all-auto.json", "--dtype", "bf16", "--batch", "2"),
      planned(..."gpt2 --config bucket.json --dtype bf16 --batch 2".split(" ")),
    ]);
    expect(file.perDeviceBytes).toBe(words.perDeviceBytes);
    expect(file.limits.join()).toMatch(
      /all-auto\.json leaves "auto" values .*bf16\.enabled, .*train_micro/,
    );
  });

  test("a file that does not go with the others ends in one line", async () => {
    write("ds-a.json", { zero_optimization: { stage: 1 } });
    write("ds-b.json", { zero_optimization: { stage: 2 } });
    write("broken.json", "{");
    for (const [words, message] of [
      [
        "gpt2 --config ds-a.json --config ds-b.json",
        /ds-a\.json and ds-b\.json both configure DeepSpeed/,
      ],
      ["gpt2 --serve --config ds-a.json", /TM-E002 --config belongs to training/],
      [
        "gpt2 --config broken.json",
        /TM-E085 broken\.json is not a configuration that --config reads: it is not JSON; give/,
      ],
    ] as const) {
      const { status, stdout, stderr } = await plan(...words.split(" "));
      expect([words, status, stdout]).toEqual([words, 2, ""]);
      expect(stderr).toMatch(message);
      expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1);
    }
  });

  test("PEFT's adapter_config.json, with options that take precedence", async () => {
    write("adapter_config.json", {
      peft_type: "LORA",
      r: 64,
      lora_dropout: 0.05,
      target_modules: ["q_proj", "v_proj", "down_proj"],
    });
    const file = await planned("llama-3.1-8b", "--config", "adapter_config.json");
    // Of 32 layers: rank 64 x (inputs + outputs) of three matrices.
    const expected = 32 * 64 * (4096 + 4096 + (4096 + 1024) + (14_336 + 4096));
    expect(file.model.trainableParameters).toBe(expected);
    const smaller = await planned(
      "llama-3.1-8b",
      "--config",
      "adapter_config.json",
      "--lora-rank",
      "8",
    );
    expect(smaller.model.trainableParameters).toBe(expected / 8);
  });

  test("an adapter's settings are counted, and an expression that is left out is named", async () => {
    const base = { peft_type: "LORA", r: 8, target_modules: ["q_proj"], exclude_modules: null };
    write("adapter_config.json", { ...base, use_dora: true, modules_to_save: ["lm_head"] });
    write("pattern.json", { ...base, target_modules: ".*(a+)+$", rank_pattern: {} });
    write("plain.json", base);
    const [set, pattern, plain] = await Promise.all(
      ["adapter_config.json", "pattern.json", "plain.json"].map((file) =>
        planned("llama-3.1-8b", "--config", file),
      ),
    );
    // Counted, and not left out.
    expect(set?.limits).toEqual([]);
    const bytes = (each: typeof set) =>
      each?.parts.find(({ part }) => part === "adapters")?.bytes ?? 0;
    const head = 128_256 * 4096 * 2;
    const magnitudes = 32 * 4096 * 4;
    expect(bytes(set) - bytes(plain)).toBe(head + magnitudes);
    expect(pattern?.limits.join()).toMatch(/leaves out: target_modules as a regular expression/);
    expect(plain?.limits).toEqual([]);
  });

  test("DeepSpeed and FSDP together are refused, and YAML with a broken line", async () => {
    write("zero.json", { zero_optimization: { stage: 2 } });
    write("fsdp.yaml", "distributed_type: FSDP\nnum_processes: 4\n");
    write("broken.yaml", "distributed_type: FSDP\nnum_processes 4\n");
    const both = await plan("gpt2", "--config", "zero.json", "--config", "fsdp.yaml");
    const broken = await plan("gpt2", "--config", "broken.yaml");
    expect([both.status, broken.status]).toEqual([2, 2]);
    expect(both.stderr).toMatch(/^[^\n]*zero\.json configures DeepSpeed, and fsdp\.yaml[^\n]*\n$/);
    expect(broken.stderr).toMatch(/^[^\n]*line 2 is not YAML[^\n]*\n$/);
  });

  test.each([
    ["--train --offload-activations", /--offload-activations has no effect/],
    ["--serve --utilization 0.5", /--utilization has no effect/],
  ])("%s is a caution", async (words, caution) => {
    expect((await planned("gpt2", ...words.split(" "))).limits.join()).toMatch(caution);
  });

  test("experts that --ep does not divide are refused", async () => {
    write("mixtral.json", {
      ...MODELS["llama-3.1-8b"]?.config,
      model_type: "mixtral",
      num_local_experts: 8,
      num_experts_per_tok: 2,
    });
    const { status, stderr } = await plan("mixtral.json", "--train", "--ep", "3");
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(/8 experts cannot be divided evenly over --ep 3/),
    ]);
  });

  test.each([
    ["a list", "[]", /TM-E085/],
    ["something else", '{"a": 1}', /neither an adapter_config\.json nor a configuration/],
    ["another adapter", '{"peft_type": "IA3"}', /IA3/],
    ["an adapter of rank -4", '{"peft_type": "LORA", "r": -4}', /r is -4/],
    ["an impossible stage", '{"zero_optimization": {"stage": 9}}', /stage/],
    ["a batch of words", '{"train_micro_batch_size_per_gpu": "many"}', /train_micro_batch/],
  ])("%s is refused in one line", async (_, text, message) => {
    write("bad.json", text);
    const { status, stdout, stderr } = await plan("gpt2", "--config", "bad.json");
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1);
  });
});

/** A safetensors file with only a header, because tensors are never read. */
function shard(name: string, tensors: Record<string, number[]>): void {
  let offset = 0;
  const entries = Object.entries(tensors).map(([tensor, shape]) => {
    const bytes = 2 * shape.reduce((product, size) => product * size, 1);
    offset += bytes;
    return [tensor, { dtype: "BF16", shape, data_offsets: [offset - bytes, offset] }];
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  writeFileSync(join(folder, name), Buffer.concat([length, header]));
}

describe("shards", () => {
  const config = {
    model_type: "llama",
    hidden_size: 64,
    intermediate_size: 128,
    num_hidden_layers: 1,
    num_attention_heads: 4,
    vocab_size: 100,
    torch_dtype: "bfloat16",
  };
  const first = { "model.embed_tokens.weight": [100, 64], "lm_head.weight": [100, 64] };
  const second = { "model.extra.weight": [64, 6400] };

  beforeAll(() => {
    mkdirSync(join(folder, "sharded"));
    write("sharded/config.json", config);
    shard("sharded/model-00001-of-00002.safetensors", first);
    shard("sharded/model-00002-of-00002.safetensors", second);
  });
  const index = (files: Record<string, string>) =>
    write("sharded/model.safetensors.index.json", { metadata: {}, weight_map: files });

  test("the index names the files, each of which is read once", async () => {
    index({
      "model.embed_tokens.weight": "model-00001-of-00002.safetensors",
      "lm_head.weight": "model-00001-of-00002.safetensors",
      "model.extra.weight": "model-00002-of-00002.safetensors",
    });
    const { model, limits } = await planned("sharded");
    expect(model.parameters).toBe(2 * 6400 + 64 * 6400);
    expect(limits.join()).toMatch(/weight files/);
  });

  test("shards that are not there leave the configuration alone", async () => {
    index({ a: "model-00001-of-00002.safetensors", b: "model-00003-of-00002.safetensors" });
    const { model, limits } = await planned("sharded");
    expect(model.known).toBe(true);
    expect(limits).toEqual([
      "1 of the 2 weight files that model.safetensors.index.json lists is missing; planned from config.json alone",
    ]);
  });

  test.each([
    ["a file outside of the folder", { a: "../config.safetensors" }, /outside of its folder/],
    ["itself", { a: "model.safetensors.index.json" }, /TM-E0\d\d/],
    ["no map", null, /no weight_map/],
  ])("an index with %s ends in one line", async (_, files, message) => {
    index(files as unknown as Record<string, string>);
    const { status, stderr } = await plan("sharded");
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1);
  });
});

describe("hostile configurations end in one line", () => {
  const base = MODELS["llama-3.1-8b"]?.config ?? {};
  test.each([
    ["a negative size", { hidden_size: -4096 }, /hidden_size is -4096/],
    ["a size of words", { num_hidden_layers: "many" }, /num_hidden_layers/],
    ["a fraction", { vocab_size: 1.5 }, /vocab_size is 1\.5/],
    ["an object", { num_attention_heads: {} }, /num_attention_heads/],
    ["a size beyond all", { hidden_size: 1e300 }, /hidden_size/],
    ["a billion layers", { num_hidden_layers: 1e9 }, /layers/],
    ["heads that do not divide", { num_attention_heads: 7, head_dim: null }, /heads/],
    ["more key heads than heads", { num_key_value_heads: 64 }, /key-value heads/],
    [
      "a class that is no word",
      { ...MODELS["vit-b"]?.config, architectures: [{ a: 1 }] },
      /architectures is not a list of words/,
    ],
    [
      "more experts for a token than there are",
      { num_experts: 2, num_experts_per_tok: 8 },
      /experts/,
    ],
  ])("%s", async (_, changes, message) => {
    write("hostile.json", { ...base, ...changes });
    const { status, stdout, stderr } = await plan("hostile.json");
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1);
  });

  test("all sizes at their largest give finite figures or one line", async () => {
    write("huge.json", {
      ...base,
      hidden_size: 1e9,
      intermediate_size: 1e9,
      vocab_size: 1e9,
      num_hidden_layers: 1000,
      num_attention_heads: 1e6,
      num_key_value_heads: 1e6,
      head_dim: null,
    });
    const words = [tidemark, "plan", "huge.json", "--json"]; // a bundle plans faster than modules
    const { status, stdout, stderr } = await execute(words, { cwd: folder });
    if (status === 0) {
      expect(stdout).not.toMatch(/null|NaN|Infinity/);
    } else {
      expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1);
    }
  });

  test("a file of 1 GiB is not read", async () => {
    const path = join(folder, "large.json");
    closeSync(openSync(path, "w"));
    truncateSync(path, 2 ** 30);
    const { status, stderr } = await plan("large.json");
    expect(status).toBe(2);
    expect(stderr).toMatch(/^tidemark: TM-E008 [^\n]+\n$/);
  });
});

/** Runs on a stand-in for torch (test/gpu/stand_in_torch.py), so this machine needs no device. */
const TRAINING = `
import os, time
from stand_in_torch import *
say = print
device = Device(0, 10_000 * MIB, [[(1000 * MIB, "active_allocated"), (800 * MIB, "active_allocated")]])
torch = StandIn([device], os.environ["STAND_IN_SNAPSHOT"])
torch.begin()
assert wait_for(lambda: torch.recording), "the history was not switched on"
time.sleep(3)
`;

test("--compare reads the allocator's figures of a recording", async () => {
  writeFileSync(join(folder, "simulated.pickle"), pickle(snapshotOf([runOut()], "plain")));
  const program = write("train.py", TRAINING);
  const words = ["run", "--gpu", "-o", "run.tmrec", "--", anyInterpreter().path, program];
  const ran = await execute([tidemark, ...words], {
    cwd: folder,
    env: {
      PYTHONPATH: join(repository, "test/gpu"),
      PYTHONDONTWRITEBYTECODE: "1",
      STAND_IN_FOLDER: folder,
      STAND_IN_SNAPSHOT: join(folder, "simulated.pickle"),
    },
  });
  expect(ran.status, ran.stderr).toBe(0);
  const { comparison } = await planned("gpt2", "--compare", "run.tmrec");
  expect(comparison?.kind).toBe("allocated");
  // The stand-in's allocator holds 1800 MiB; the recorder's own warm-up may add a block.
  expect(comparison?.measuredBytes).toBeGreaterThanOrEqual(1800 * 2 ** 20);
  expect(comparison?.measuredBytes).toBeLessThan(1810 * 2 ** 20);
  expect(comparison?.explanation).toMatch(/only the total was measured/);
});

test("--compare with a recording without a device names the option", async () => {
  const words = ["run", "-o", "host.tmrec", "--", anyInterpreter().path, "-c", "pass"];
  expect((await execute([tidemark, ...words], { cwd: folder })).status).toBe(0);
  const { status, stderr } = await plan("gpt2", "--compare", "host.tmrec");
  expect(status).not.toBe(0);
  expect(stderr).toMatch(/no figures of a device's allocator.*tidemark run --gpu/);
});
