/** `tidemark plan` as users run it: text, JSON, comparisons, and the page. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PlanJson } from "../../src/model/documents/plan_document.js";
import { pickle } from "../gpu/pickle_writer.mjs";
import { CachingAllocator } from "../gpu/simulator.mjs";
import { snapshotOf } from "../gpu/snapshot_file.mjs";
import { validate } from "../recorded_app.js";
import { execute, removeScratch, repository, scratch, tidemark } from "../run.js";

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { parameters: number; config: object }>;
let folder: string;

beforeAll(() => {
  folder = scratch();
  for (const [name, { config }] of Object.entries(MODELS)) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "config.json"), JSON.stringify(config));
  }
});
afterAll(removeScratch);

const plan = (...words: string[]) => execute([tidemark, "plan", ...words], { cwd: folder });

async function planned(...words: string[]): Promise<PlanJson> {
  const { stdout, stderr, status } = await plan(...words, "--json");
  expect([status, stderr]).toEqual([0, ""]);
  return validate(stdout, "plan") as unknown as PlanJson;
}

/** A safetensors file whose tensors take no space on the disk beyond the header. */
function safetensors(path: string, tensors: Record<string, number[]>): void {
  let offset = 0;
  const entries = Object.entries(tensors).map(([name, shape]) => {
    const bytes = 2 * shape.reduce((product, size) => product * size, 1);
    offset += bytes;
    return [name, { dtype: "BF16", shape, data_offsets: [offset - bytes, offset] }];
  });
  const header = Buffer.from(JSON.stringify({ __metadata__: {}, ...Object.fromEntries(entries) }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  writeFileSync(path, Buffer.concat([length, header]));
}

describe("a plan", () => {
  test("as text names the three figures, parts and savings", async () => {
    const { stdout, status } = await plan(
      "llama-3.1-8b",
      "--method",
      "lora",
      "--seq",
      "4k",
      "--gpu",
      "4090",
    );
    expect(status).toBe(0);
    expect(stdout).toMatch(/^llama-3\.1-8b: llama, 8\.03 billion parameters, 32 layers$/m);
    for (const part of ["allocated", "reserved", "on device", "weights", "cuda context"]) {
      expect(stdout).toMatch(new RegExp(`^ {2}${part} +\\d`, "m"));
    }
    expect(stdout).toMatch(/does not fit on RTX 4090/);
    expect(stdout).toMatch(/QLoRA, nf4/);
  });

  test("as JSON obeys its schema, and its parts add up", async () => {
    const document = await planned("mixtral", "--train", "--fsdp", "8", "--batch", "2");
    expect(document.parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(document.perDeviceBytes);
    expect(document.model.parameters).toBe(MODELS.mixtral?.parameters);
    expect(document.model.activeParameters).toBeLessThan(14e9);
    expect(document.devices.count).toBe(8);
  });

  test("of vLLM fills its share of the device", async () => {
    const document = await planned(
      "llama-3.1-8b",
      "--serve",
      "--engine",
      "vllm",
      "--gpu",
      "h100",
      "--tp",
      "2",
    );
    expect(document.perDeviceBytes / document.devices.memoryBytes).toBeCloseTo(0.9, 2);
    expect(document.serving?.kvBytesPerToken).toBe(65_536);
    expect(document.serving?.kvTokens).toBeGreaterThan(900_000);
  });

  test("--fit lists methods on common GPUs", async () => {
    const document = await planned("gpt2", "--fit", "--gpu", "24GiB");
    const methods = document.fitTable?.map(({ method }) => method);
    expect(methods).toContain("qlora, checkpointing");
    expect(document.fitTable?.every(({ maxBatch }) => maxBatch > 0)).toBe(true);
  });

  test("more memory is saved by each technique than by none", async () => {
    const { savings, perDeviceBytes } = await planned("llama-3.1-8b", "--batch", "4");
    expect(savings.length).toBeGreaterThan(5);
    for (const { bytes } of savings) {
      expect(bytes).toBeGreaterThan(0);
      expect(bytes).toBeLessThan(perDeviceBytes);
    }
  });
});

describe("weight files", () => {
  const hidden = 256;
  const tensors = (layers: number): Record<string, number[]> => ({
    "model.embed_tokens.weight": [1000, hidden],
    "lm_head.weight": [1000, hidden],
    ...Object.fromEntries(
      Array.from({ length: layers }, (_, index) => [
        [`model.layers.${index}.self_attn.q_proj.weight`, [hidden, hidden]],
        [`model.layers.${index}.self_attn.k_proj.weight`, [hidden / 2, hidden]],
        [`model.layers.${index}.self_attn.v_proj.weight`, [hidden / 2, hidden]],
        [`model.layers.${index}.self_attn.o_proj.weight`, [hidden, hidden]],
        [`model.layers.${index}.mlp.gate_proj.weight`, [512, hidden]],
        [`model.layers.${index}.mlp.up_proj.weight`, [512, hidden]],
        [`model.layers.${index}.mlp.down_proj.weight`, [hidden, 512]],
      ]).flat(),
    ),
  });

  test("a folder without config.json is planned by its tensors", async () => {
    mkdirSync(join(folder, "bare"));
    const path = join(folder, "bare", "model.safetensors");
    safetensors(path, tensors(3));
    const length = 8 + Number(readFileSync(path).readBigUInt64LE(0));
    expect(length).toBe(readFileSync(path).length);
    const { model, limits } = await planned("bare");
    expect([model.layers, model.hidden, model.known]).toEqual([3, hidden, false]);
    const stored = Object.values(tensors(3)).reduce((sum, [a = 1, b = 1]) => sum + a * b, 0);
    expect(Math.abs(model.parameters / stored - 1)).toBeLessThan(0.004);
    expect(limits.join()).toMatch(/no config\.json/);
  });

  test("a family without a reader is planned by its tensors, with a wider interval", async () => {
    mkdirSync(join(folder, "odd"));
    const odd = {
      "emb.weight": [500, 128],
      "blocks.0.time_mix.key.weight": [128, 128],
      "blocks.0.channel_mix.up.weight": [384, 128],
      "blocks.0.channel_mix.down.weight": [128, 384],
      "blocks.0.ln.weight": [128],
      "blocks.1.experts.0.w1.weight": [256, 128],
      "blocks.1.experts.1.w1.weight": [256, 128],
    };
    const elements = (shapes: Record<string, number[]>): number =>
      Object.values(shapes).reduce((sum, shape) => sum + shape.reduce((a, b) => a * b, 1), 0);
    safetensors(join(folder, "odd", "model.safetensors"), odd);
    writeFileSync(join(folder, "odd", "config.json"), '{"model_type": "odd_one"}');
    const { model, limits, parts, perDeviceBytes, low } = await planned("odd", "--seq", "64");
    expect(model).toMatchObject({ family: "odd_one", known: false, layers: 2, hidden: 128 });
    expect(model.parameters).toBe(elements(odd));
    expect(parts.find(({ part }) => part === "weights")?.bytes).toBe(2 * elements(odd));
    expect(low / perDeviceBytes).toBeLessThan(0.76);
    expect(limits).toEqual([
      expect.stringMatching(/"odd_one" has no reader for these weights; planned by its tensors/),
    ]);
    expect((await plan("odd", "--serve")).stderr).toMatch(/TM-E086 .*no known cache/);
    expect((await plan("odd", "--tp", "2")).stderr).toMatch(/TM-E086 .*no known heads/);
    safetensors(join(folder, "odd", "model.safetensors"), {
      "stages.0.conv.weight": [64, 3, 7, 7],
    });
    expect((await plan("odd")).stderr).toMatch(/TM-E085 [^\n]+ has no reader[^\n]+\n$/);
  });

  test("copies of tied matrices and layers that libraries leave out do not count", async () => {
    mkdirSync(join(folder, "more"));
    const { "lm_head.weight": head = [], ...own } = tensors(3);
    const config = {
      model_type: "llama",
      hidden_size: hidden,
      intermediate_size: 512,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      vocab_size: 1000,
      tie_word_embeddings: true,
    };
    writeFileSync(join(folder, "more", "config.json"), JSON.stringify(config));
    safetensors(join(folder, "more", "model.safetensors"), { ...own, "lm_head.weight": head });
    safetensors(join(folder, "more", "model.fp16.safetensors"), own);
    const { model, limits } = await planned("more");
    expect([model.known, limits]).toEqual([true, []]);
  });

  test.each([
    [
      "an endless header",
      Buffer.from([255, 255, 255, 255, 255, 255, 255, 127]),
      /TM-E008 .*too large/,
    ],
    ["a cut header", Buffer.from([200, 0, 0, 0, 0, 0, 0, 0, 123]), /TM-E085 .*cut off/],
    ["nothing", Buffer.alloc(0), /TM-E085 .*cut off/],
    ["no JSON", Buffer.from("\x04\0\0\0\0\0\0\0abcd"), /TM-E085 .*not JSON/],
  ])("a safetensors file of %s is refused in one line", async (_, bytes, message) => {
    writeFileSync(join(folder, "bad.safetensors"), bytes);
    const { status, stdout, stderr } = await plan("bad.safetensors");
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("a GGUF header has sizes and bytes", async () => {
    writeFileSync(join(folder, "tiny.gguf"), gguf());
    const { model, parts, serving } = await planned("tiny.gguf", "--serve");
    expect([model.family, model.layers, model.hidden]).toEqual(["llama", 2, 256]);
    expect(serving?.engine).toBe("llama.cpp");
    // The embedding in Q6_K: 210 B for 256 weights.
    expect(parts.find(({ part }) => part === "weights")?.bytes).toBe(1000 * 210);
    writeFileSync(join(folder, "cut.gguf"), gguf().subarray(0, 90));
    expect((await plan("cut.gguf")).stderr).toMatch(/^tidemark: TM-E085 .*cut off[^\n]*\n$/);
    for (const [architecture, type, what] of [
      ["llama", "adapter", "an adapter"],
      ["clip", "mmproj", "an encoder of images or speech"],
      ["clip", "", "an encoder of images or speech"],
    ] as const) {
      writeFileSync(join(folder, "beside.gguf"), gguf(architecture, type));
      expect((await plan("beside.gguf", "--serve")).stderr).toMatch(
        new RegExp(
          `^tidemark: TM-E085 .*it holds ${what}, without the model that reads it[^\\n]*\\n$`,
        ),
      );
    }
    const whole = Buffer.concat([gguf(), Buffer.alloc(1000)]);
    writeFileSync(join(folder, "part.gguf"), whole);
    expect((await plan("part.gguf")).stderr).toMatch(
      /^tidemark: TM-E085 .*cut off: its header names [\d.]+ \wiB of tensors, and [^\n]*\n$/,
    );
  });
});

/**
 * A small Llama that q4_k_m.py wrote with the PyPI package gguf 0.19, in the types of llama.cpp's Q4_K_M: Q4_K, of
 * half of the value and down projections and the head Q6_K, norms F32.
 */
test("a Q4_K_M file with a type for each tensor", async () => {
  const path = join(folder, "q4_k_m.gguf");
  writeFileSync(path, gunzipSync(readFileSync(join(repository, "test/data/plan/q4_k_m.gguf.gz"))));
  const served = await planned("q4_k_m.gguf", "--serve", "--context", "4096");
  expect(served.model).toMatchObject({ family: "llama", known: true, layers: 4, kvHeads: 2 });
  expect(served.model.parameters).toBe(2_515_200);
  expect(served.limits).toEqual([]);
  const bytes = (plan: PlanJson, part: string) =>
    plan.parts.find((each) => each.part === part)?.bytes;
  // The table of tokens, 300 blocks of Q4_K, stays in host memory.
  expect(served.host).toEqual([expect.objectContaining({ part: "weights", bytes: 300 * 144 })]);
  expect(bytes(served, "weights")).toBe(1_527_000 - 300 * 144);
  // 2 x 4 layers x 2 heads x 64 x 2 B for each of 4096 tokens.
  expect(bytes(served, "kv cache")).toBe(8 * 2 * 64 * 2 * 4096);
  const trained = await planned("q4_k_m.gguf", "--method", "lora");
  expect(bytes(trained, "weights")).toBe(2 * 2_515_200);
  expect(trained.limits.join()).toMatch(/converts the quantized tensors of a GGUF file/);
});

test("serving of a longer context than the device has room for: the longest is named, and the cache is cut", async () => {
  const words = ["llama-3.1-8b", "--serve", "--engine", "vllm", "--gpu", "4090", "--context"];
  const long = await planned(...words, "128k");
  const longest = (await planned(...words, "8k")).serving?.longestContext ?? 0;
  expect(longest).toBeGreaterThan(8192);
  expect(long.fits).toMatchObject({ fits: false, maxBatch: 0, maxSequence: longest });
  expect(long.serving).toMatchObject({ maxConcurrency: 0, longestContext: longest });
  expect(long.parts.find(({ part }) => part === "kv cache")?.formula).toMatch(
    /^1 sequence x 131072 tokens x 131072 B, cut to the room: 9\d % of 23\.\d GiB, less/,
  );
});

test("ZeRO: only what a stage divides is said to be divided", async () => {
  for (const [stage, what] of [
    ["1", "optimizer"],
    ["2", "gradients optimizer"],
    ["3", "gradients optimizer weights"],
  ] as const) {
    const { parts } = await planned("gpt2", "--zero", stage, "--batch", "1");
    const divided = parts.filter(({ formula }) => formula.includes("divided by ZeRO"));
    expect(
      divided
        .map(({ part }) => part)
        .sort()
        .join(" "),
    ).toBe(what);
  }
});

test("--fail-on lets a pipeline stop where a plan does not fit", async () => {
  const status = async (...words: string[]) =>
    (await plan("gpt2", "--train", "--quiet", ...words)).status;
  expect(await status("--gpu", "4090", "--fail-on", "over")).toBe(0);
  expect(await status("--gpu", "1GiB")).toBe(0);
  expect(await status("--gpu", "1GiB", "--fail-on", "over")).toBe(1);
  expect(await status("--gpu", "1GiB", "--fail-on", "over", "--json")).toBe(1);
  // A device of a little more than the plan, and less than the end of its interval.
  const { perDeviceBytes } = await planned("gpt2", "--train", "--gpu", "24GiB");
  const tight = `${Math.ceil((perDeviceBytes * 1.05) / 2 ** 20)}MiB`;
  expect(await status("--gpu", tight, "--fail-on", "over")).toBe(0);
  expect(await status("--gpu", tight, "--fail-on", "unsure")).toBe(1);
  expect(await status("--fail-on", "never")).toBe(2);
});

test("a plan that does not fit does not call the batch of the plan another one", async () => {
  const { stdout } = await plan("llama-3.1-8b", "--train", "--batch", "1", "--gpu", "3060");
  expect(stdout).toMatch(
    /does not fit on RTX 3060; no batch fits at this length, and no length of 64 tokens or more at this batch$/m,
  );
});

test("the weights of QLoRA are called quantized", async () => {
  const assumed = async (...words: string[]) =>
    (await planned("llama-3.1-8b", "--method", "qlora", ...words)).assumptions[0];
  expect(await assumed()).toBe(
    "quantized weights in nf4, the others in fp32, matrix products in bf16",
  );
  expect(await assumed("--quantize", "int8", "--weights", "16bit")).toBe(
    "quantized weights in int8, the others in bf16, matrix products in bf16",
  );
});

test("experts that bitsandbytes keeps are compared with those of transformers 4", async () => {
  const { limits } = await planned("mixtral", "--method", "qlora");
  // 8 experts of 32 layers with 3 matrices of 4,096 x 14,336, at 0.5625 B.
  expect(limits.join()).toContain(
    "in transformers 4 each expert has linear layers, which are quantized, and all of them take 23.6 GiB in nf4",
  );
});

test("ZeRO's fp32 weights are master weights, and FSDP's are the weights themselves", async () => {
  const assumed = async (...words: string[]) =>
    (await planned("llama-3.1-8b", ...words)).assumptions[0];
  expect(await assumed("--zero", "1")).toBe(
    "weights and matrix products in bf16, master weights in fp32",
  );
  expect(await assumed("--fsdp", "8")).toBe("fp32 weights, matrix products in bf16");
});

test("the cache of a state space is one of each sequence, and a model without any is named", async () => {
  const screen = async (name: string) => (await plan(name, "--serve")).stdout;
  expect(await screen("mamba-130m")).toMatch(
    /^ {2}cache: 2\.81 MiB per sequence at any length; room for [\d,]+ sequences$/m,
  );
  expect(await screen("bert-base")).toMatch(/^ {2}no cache: the model makes its output in one/m);
});

test("the figures of llama.cpp are not said to be those of torch", async () => {
  const { stdout } = await plan("llama-3.1-8b", "--serve", "--engine", "llama.cpp");
  expect(stdout).toMatch(/allocated .* the buffers in llama\.cpp's log/);
  expect(stdout).not.toContain("torch");
});

test("with adapters, nothing is kept for the factors of a diffusion model's condition", async () => {
  const words = ["--method", "lora", "--dtype", "bf16", "--weights", "16bit", "--batch", "4"];
  const { memory } = await planned("sd3-medium", ...words);
  // The peak on an H100: v23 of bench/plan_measured_diffusion.json.
  expect(Math.abs(memory.allocated.bytes / 25_760_167_424 - 1)).toBeLessThan(0.02);
});

/** Version 3, with the metadata of a Llama of two layers and its embedding. */
function gguf(architecture = "llama", type = ""): Buffer {
  const u32 = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
  };
  const u64 = (value: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    return bytes;
  };
  const text = (words: string) => Buffer.concat([u64(words.length), Buffer.from(words)]);
  const sizes: [string, number][] = [
    ["block_count", 2],
    ["embedding_length", 256],
    ["feed_forward_length", 512],
    ["attention.head_count", 4],
    ["attention.head_count_kv", 2],
    ["context_length", 2048],
  ];
  return Buffer.concat([
    Buffer.from("GGUF"),
    u32(3),
    u64(1),
    u64((type === "" ? 1 : 2) + sizes.length),
    text("general.architecture"),
    u32(8),
    text(architecture),
    ...(type === "" ? [] : [text("general.type"), u32(8), text(type)]),
    ...sizes.flatMap(([name, value]) => [text(`${architecture}.${name}`), u32(4), u32(value)]),
    text("token_embd.weight"),
    u32(2),
    u64(256),
    u64(1000),
    u32(14),
    u64(0),
  ]);
}

test("a log of vLLM that found too little free memory is one line", async () => {
  const log = join(folder, "busy.log");
  writeFileSync(
    log,
    "ValueError: Free memory on device (2.51/23.57 GiB) on startup is less than desired GPU memory utilization (0.9, 21.21 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n",
  );
  const { stderr, status } = await plan("gpt2", "--serve", "--engine", "vllm", "--check", log);
  expect([status, stderr.split("\n").length]).toEqual([2, 2]);
  expect(stderr).toMatch(/2\.51 GiB of the device's 23\.6 GiB were free, less than its share/);
});

describe("what a plan cannot know is noted", () => {
  test.each([
    ["gpt2 --seq 4096", /--seq 4096 is longer than the 1024 positions/],
    ["gpt2 --serve --context 2048", /--context 2048 is longer than the 1024 positions/],
    ["gpt2 --attention flash", /FlashAttention has no kernels for fp32/],
    ["gpt2 --attention flash --dtype fp16 --gpu t4", /FlashAttention has no kernels for T4/],
    ["gpt2 --lora-rank 16", /--lora-rank has no effect: .*; add --method lora/],
    ["gpt2 --method lora --lora-targets c_attn,nonsense", /no layer is named nonsense/],
  ])("%s", async (words, message) => {
    const { limits, savings } = await planned(...words.split(" "));
    expect(limits).toHaveLength(1);
    expect(limits[0]).toMatch(message);
    expect(savings.map(({ change }) => change)).not.toContain("--attention flash");
  });

  test("RoPE scaling lengthens what the model was made for, an unknown torch_dtype is named", async () => {
    const { config } = MODELS["qwen2.5-7b"] ?? { config: {} };
    mkdirSync(join(folder, "scaled"));
    const scaled = { type: "yarn", factor: 4, original_max_position_embeddings: 32_768 };
    writeFileSync(
      join(folder, "scaled", "config.json"),
      JSON.stringify({
        ...config,
        max_position_embeddings: 32_768,
        rope_scaling: scaled,
        torch_dtype: "floaty",
      }),
    );
    const { limits, model } = await planned("scaled", "--seq", "65536", "--method", "lora");
    expect(model.longestSequence).toBe(131_072);
    expect(limits).toEqual([expect.stringMatching(/torch_dtype "floaty" is not float32/)]);
  });
});

describe("comparisons", () => {
  test("with an allocator snapshot, part by part", async () => {
    const allocator = new CachingAllocator();
    allocator.allocate(500 * 2 ** 20);
    writeFileSync(join(folder, "snapshot.pickle"), pickle(snapshotOf([allocator], "plain")));
    const { comparison, limits } = await planned("gpt2", "--compare", "snapshot.pickle");
    expect(limits.filter((limit) => limit.includes("another program"))).toEqual([]);
    expect(comparison?.kind).toBe("allocated");
    expect(comparison?.measuredBytes).toBe(500 * 2 ** 20);
    expect(comparison?.explanation).toMatch(/than planned/);
  });

  test("with vLLM's start-up log", async () => {
    writeFileSync(
      join(folder, "vllm.log"),
      "gpu_memory_utilization (0.80)\nModel loading took 14.99 GiB\nAvailable KV cache memory: 44.9 GiB\nGPU KV cache size: 367,821 tokens\n",
    );
    const words = [
      "llama-3.1-8b",
      "--serve",
      "--engine",
      "vllm",
      "--gpu",
      "h100",
      "--check",
      "vllm.log",
    ];
    const { comparison } = await planned(...words);
    expect(comparison?.parts.map(({ part }) => part)).toEqual(["weights", "KV cache"]);
    expect(comparison?.explanation).toMatch(/131072 B of cache per token, as planned/);
    expect(comparison?.explanation).toMatch(
      /gpu_memory_utilization 0\.8, the plan has --utilization 0\.9/,
    );
    expect((await plan(...words)).stdout).toMatch(/^ {2}KV cache +\d/m);
  });

  test("a log of another number of devices is a caution", async () => {
    writeFileSync(join(folder, "whole.log"), "Model loading took 14.99 GiB\n");
    const words = "llama-3.1-8b --serve --engine vllm --gpu h100 --check whole.log".split(" ");
    const [same, divided] = await Promise.all([planned(...words), planned(...words, "--tp", "2")]);
    expect(same.limits).toEqual([]);
    expect(divided.limits.join()).toMatch(/of weights on a device, the plan .*another model, --tp/);
  });
});

test("-o writes a page that holds the model", async () => {
  const { status, stdout } = await plan("gpt2", "-o", "plan.html");
  expect(status).toBe(0);
  expect(stdout).toMatch(/^plan\.html/);
  expect(readFileSync(join(folder, "plan.html"), "utf8")).toContain("tidemark-document");
});

test("--quiet keeps the cautions, without which the figures would be misread", async () => {
  const words = ["gpt2", "--seq", "4096"];
  const [quiet, full] = await Promise.all([plan(...words, "--quiet"), plan(...words)]);
  const caution = /^ {2}caution: --seq 4096 is longer than the 1024 positions that/m;
  expect([quiet.stdout, full.stdout]).toEqual([
    expect.stringMatching(caution),
    expect.stringMatching(caution),
  ]);
  expect(full.stdout).toMatch(/^ {2}assumed: weights and matrix products in fp32/m);
  expect(full.stdout.replaceAll(/\s+/g, " ")).toMatch(
    /sources: weights: .*; optimizer: .*; cuda context: /,
  );
  expect(quiet.stdout).not.toMatch(/assumed:|host memory of each process|sources:/);
});
