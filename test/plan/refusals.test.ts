/** A job that no library or engine runs is refused in one line; one that it runs differently gets a caution. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PlanJson } from "../../src/model/documents/plan_document.js";
import { TidemarkError } from "../../src/model/errors/errors.js";
import { comparePlan, otherProgram } from "../../src/plan/compare/compare.js";
import { GPUS, gpuNamed } from "../../src/plan/device/gpus.js";
import { fitTable } from "../../src/plan/fit.js";
import { ENGINES, type Engine } from "../../src/plan/job/options.js";
import { planMemory } from "../../src/plan/plan.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { type PlanWords, requestOf } from "../../src/plan/words.js";
import { repository } from "../run.js";

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: Record<string, unknown> }>;

const shapeOf = (name: string, changes: object = {}) =>
  readShape({ ...MODELS[name]?.config, ...changes }, name, name);

const planned = (name: string, words: PlanWords, changes: object = {}): PlanJson =>
  planMemory(shapeOf(name, changes), requestOf(words));

/** The error's line; "" if there is a plan. */
function refusal(name: string, words: PlanWords, changes: object = {}): string {
  try {
    planned(name, words, changes);
    return "";
  } catch (error) {
    if (error instanceof TidemarkError) {
      return error.message;
    }
    throw error;
  }
}

describe("what an engine does not serve", () => {
  const all: readonly Engine[] = ENGINES;
  test.each<[string, object, readonly Engine[]]>([
    ["llama-3.1-8b", {}, all],
    ["mamba-130m", {}, all],
    ["llava", {}, all],
    ["vit-b", {}, ["transformers"]],
    ["resnet50", {}, ["transformers"]],
    ["sd15-unet", {}, ["transformers"]],
    ["dit-xl-2", {}, ["transformers"]],
    ["clip", {}, ["transformers", "vllm", "sglang"]],
    ["bert-base", {}, ["transformers", "vllm", "sglang", "llama.cpp"]],
    ["bert-base", { model_type: "electra" }, ["transformers"]],
    ["t5-small", {}, ["transformers", "tgi", "llama.cpp"]],
    ["bart-base", {}, ["transformers", "tgi"]],
    ["whisper-small", {}, ["transformers", "vllm", "sglang"]],
  ])("%s %j: %j", (name, changes, engines) => {
    const lines = ENGINES.map((engine) => refusal(name, { serve: true, engine }, changes));
    expect(ENGINES.filter((_, index) => lines[index] === "")).toEqual(engines);
    for (const line of lines.filter(Boolean)) {
      expect(line).toMatch(/^TM-E086 \S+ does not serve .*; use --engine transformers/);
    }
  });

  test("an encoder is served for embeddings: no cache, no sampler, no language head", () => {
    const masked = { architectures: ["BertForMaskedLM"] };
    const plan = planned("bert-base", { serve: true, engine: "vllm", dtype: "bf16" }, masked);
    const names = plan.parts.map(({ part }) => part);
    expect(names.filter((name) => name.includes("cache"))).toEqual([]);
    expect(plan.parts.find(({ part }) => part === "temporaries")?.formula).not.toMatch(/sampler/);
    expect(plan.assumptions.join()).toMatch(/for embeddings, without its language head/);
    const weights = plan.parts.find(({ part }) => part === "weights")?.bytes ?? 0;
    expect(weights).toBeLessThan(2 * plan.model.parameters);
  });
});

const QUANTIZED = {
  awq: { quant_method: "awq", bits: 4, group_size: 128 },
  gptq: { quant_method: "gptq", bits: 4, group_size: 128 },
  nf4: { quant_method: "bitsandbytes", load_in_4bit: true },
  int8: { quant_method: "bitsandbytes", load_in_8bit: true },
  tensors: {
    quant_method: "compressed-tensors",
    config_groups: { group_0: { weights: { num_bits: 4, group_size: 128, type: "int" } } },
  },
  "FP8 of compressed-tensors": {
    quant_method: "compressed-tensors",
    config_groups: { group_0: { weights: { num_bits: 8, strategy: "channel", type: "float" } } },
  },
  "FP8 of ModelOpt": { quant_method: "modelopt", quant_algo: "FP8" },
};

describe("attention of classes without sdpa in transformers", () => {
  const deberta = { model_type: "deberta-v2", relative_attention: true, position_buckets: 256 };
  test.each([
    ["gpt-oss-20b", {}],
    ["bert-base", deberta],
  ] as const)("%s %j is planned as eager, and sdpa is refused", (name, changes) => {
    const usual = planned(name, {}, changes);
    expect(usual.assumptions.join()).toMatch(/with eager attention/);
    expect(usual.parts).toEqual(planned(name, { attention: "eager" }, changes).parts);
    const served = { serve: true, engine: "transformers" } as const;
    for (const words of [{}, served]) {
      expect(refusal(name, { ...words, attention: "sdpa" }, changes)).toMatch(
        /no sdpa attention for .*--attention eager/,
      );
    }
    expect(refusal(name, { attention: "sdpa", library: "torchtitan" }, changes)).toBe("");
  });
});

test.each([
  ["a10g", "A10G"],
  ["L40S", "L40S"],
  ["rtx 6000 ada", "RTX 6000 Ada"],
  ["RTX-PRO-6000", "RTX PRO 6000"],
  ["b200", "B200"],
  ["h20", "H20"],
  ["t4g", "T4"],
  ["gh200", "H100-96GB"],
])("--gpu %s is known", (name, device) => {
  expect(gpuNamed(name)?.name).toBe(device);
});

test("a saving of more than its tensors names the fragmentation in it", () => {
  const rows = planned("llama-3.1-8b", { batch: 4 }).savings;
  const named = rows.filter(({ cost }) =>
    /; [\d.]+ [MG]iB of it is less fragmentation$/.test(cost),
  );
  expect(named.length).toBeGreaterThan(0);
  for (const { cost, bytes } of named) {
    const [, size = "", unit] = /; ([\d.]+) ([MG])iB of it/.exec(cost) ?? [];
    expect(Number(size) * 2 ** (unit === "G" ? 30 : 20)).toBeGreaterThan(bytes * 0.049);
  }
});

describe("cautions of training", () => {
  const limits = (words: object) => planned("llama-3.1-8b", words).limits.join();

  test("fp16 gradients, which GradScaler refuses", () => {
    const fp16 = { dtype: "fp16", weights: "16bit" } as const;
    expect(limits(fp16)).toMatch(/Attempting to unscale FP16 gradients/);
    for (const words of [
      { ...fp16, weights: "fp32" },
      { ...fp16, dtype: "bf16" },
      { ...fp16, method: "lora" },
      { ...fp16, zero: 2 },
    ] as const) {
      expect(limits(words)).not.toMatch(/FP16 gradients/);
    }
  });

  test("lengths that --cp does not divide", () => {
    expect(limits({ cp: 3, seq: 4096 })).toMatch(/--seq 4096 is not a multiple of --cp 3/);
    expect(limits({ cp: 2, attention: "eager" })).toMatch(/only with SDPA attention/);
    expect(limits({ cp: 2, attention: "sdpa" })).not.toMatch(/SDPA/);
    expect(limits({ cp: 4, seq: 4096 })).not.toMatch(/multiple of --cp/);
  });
});

describe("a checkpoint that is quantized", () => {
  test.each(Object.entries(QUANTIZED))("%s is not trained whole", (_, quantization_config) => {
    const changes = { quantization_config };
    expect(refusal("llama-3.1-8b", { method: "full" }, changes)).toMatch(
      /^TM-E002 the checkpoint has quantized weights .*; use --method lora or qlora/,
    );
    expect(refusal("llama-3.1-8b", { method: "lora" }, changes)).toBe("");
    const model = shapeOf("llama-3.1-8b", changes);
    const rows = fitTable(model, requestOf({}), GPUS.slice(0, 1));
    expect(rows.map(({ method }) => method).filter((name) => name.startsWith("full"))).toEqual([]);
  });

  test.each([
    ["llama-3.1-8b", { quantization_config: { quant_method: "fp8" } }],
    ["gpt-oss-20b", {}],
  ] as const)("of %s %j, a full training is that of the converted weights", (name, changes) => {
    const { limits, parts, model } = planned(name, { method: "full" }, changes);
    expect(limits.join()).toMatch(/converted to bf16 .*dequantize=True.*--method lora/);
    const weights = parts.find(({ part }) => part === "weights")?.bytes ?? 0;
    expect(weights).toBeGreaterThanOrEqual(2 * model.parameters);
  });

  test.each(Object.entries(QUANTIZED))("%s is not quantized again", (_, quantization_config) => {
    for (const words of [
      { quantize: "nf4" },
      { serve: true, engine: "vllm", quantize: "fp8" },
      { serve: true, quantize: "int8" },
    ] as PlanWords[]) {
      expect(refusal("llama-3.1-8b", words, { quantization_config })).toMatch(
        /^TM-E002 --quantize \S+ cannot be applied to a checkpoint that is quantized already/,
      );
    }
  });
});

describe("a server whose share is too small", () => {
  test.each(["vllm", "sglang", "tgi"] as const)(
    "%s: what is left, and what it must hold",
    (engine) => {
      const words = { serve: true, engine, utilization: 0.01, context: 2048 } as const;
      const { fits } = planned("llama-3.1-8b", words);
      expect(fits.fits).toBe(false);
      expect(fits.reason).toMatch(
        /1 % of 7[89]\.\d GiB.*, less [\d.]+ GiB of .* is nothing; 1 sequence of 2,048 tokens takes 256 MiB$/,
      );
    },
  );

  test("names the bytes that the sequences of the job take", () => {
    const { fits } = planned("llama-3.1-8b", {
      serve: true,
      engine: "vllm",
      context: 8192,
      concurrency: 500,
    });
    expect(fits.reason).toMatch(/500 sequences of 8,192 tokens take 500 GiB$/);
    expect(planned("llama-3.1-8b", { serve: true, engine: "vllm" }).fits.reason).toBeUndefined();
  });
});

test.each([
  [{ batch: 2 ** 27, seq: 2 ** 27 }, "activations"],
  [{ serve: true, context: 2 ** 27, concurrency: 2 ** 27 }, "temporaries"],
] as const)("an impossible size is refused: %j", (words, part) => {
  expect(refusal("llama-3.1-8b", words)).toMatch(
    new RegExp(
      `^TM-E002 the job takes more than 8\\.00 PiB, most of it for ${part}; use a smaller`,
    ),
  );
});

test("llama.cpp's cache is in f16, whatever the checkpoint has", () => {
  const { assumptions } = planned("llama-3.1-8b", { serve: true, engine: "llama.cpp" });
  expect(assumptions.join()).toMatch(/cache in f16/);
  const bf16 = planned("llama-3.1-8b", { serve: true, engine: "llama.cpp", kvDtype: "bf16" });
  expect(bf16.assumptions.join()).toMatch(/cache in bf16/);
});

test("weights are offloaded in stage 3 alone, where each device has a part of them", () => {
  for (const zero of [1, 2]) {
    expect(refusal("llama-3.1-8b", { zero, offload: "all" })).toMatch(
      /^TM-E002 ZeRO-[12] keeps all weights on each device[^\n]*; use --zero 3, or --offload optimizer$/,
    );
    expect(refusal("llama-3.1-8b", { zero, offload: "optimizer" })).toBe("");
  }
  expect(refusal("llama-3.1-8b", { zero: 3, offload: "all" })).toBe("");
});

test.each([[{ num_hidden_layers: 0 }], [{ num_attention_heads: -1 }], [{ hidden_size: null }]])(
  "values of a whole configuration are not cut off: %j",
  (changes) => {
    expect(() => shapeOf("llama-3.1-8b", changes)).toThrow(
      /; it was edited, or belongs to another/,
    );
  },
);

test("a part of a device's name is none, but each name and its usual short form is one", () => {
  for (const part of ["a", "h", "h10", "40", "3", "rtx", "nvidia", "l40", "a100-4", ""]) {
    expect([part, gpuNamed(part)?.name]).toEqual([part, undefined]);
  }
  for (const { name } of GPUS) {
    expect(gpuNamed(name.toLowerCase().replace(" ", "-"))?.name).toBe(name);
    expect(gpuNamed(`NVIDIA ${name.replace("GB", "")}`)?.name).toBe(name);
  }
  expect(["h100", "a100", "v100", "4070"].map((text) => gpuNamed(text)?.name)).toEqual([
    "H100-80GB",
    "A100-80GB",
    "V100-16GB",
    "RTX 4070",
  ]);
});

test("options of a pipeline name only themselves", () => {
  expect(refusal("gpt2", { schedule: "gpipe" })).toMatch(/^TM-E002 --schedule belongs to a pipel/);
  expect(refusal("gpt2", { virtualStages: 2 })).toMatch(/^TM-E002 --virtual-stages belongs to/);
});

test.each([
  ["vit-b", { concurrency: 8 }, "8 images of 197 positions"],
  ["sd15-unet", {}, "1 image"],
  ["gpt2", { concurrency: 2, context: 100 }, "200 tokens"],
] as const)("temporaries of %s %j name what is read: %s", (name, words, read) => {
  const { parts } = planned(name, { serve: true, ...words });
  const formula = parts.find(({ part }) => part === "temporaries")?.formula;
  expect(formula).toBe(`intermediate results of one forward pass over ${read}`);
});

test("Adafactor's formula is a sum over matrices, not of each parameter", () => {
  const { parts } = planned("gpt2", { optimizer: "adafactor", dtype: "fp32" });
  const formula = parts.find(({ part }) => part === "optimizer")?.formula;
  expect(formula).toMatch(/^the sum of 4 B x \(rows \+ columns\) of each matrix/);
});

test.each([
  [1 / 1000, 1],
  [0.8, 0],
  [1.3, 0],
  [20, 1],
])("a measurement of %f of the plan: %i cautions", (share, cautions) => {
  const plan = planned("gpt2", {});
  const bytes = share * plan.memory.allocated.bytes;
  const measured = { file: "x.pickle", kind: "allocated", bytes, categories: new Map() } as const;
  const limits = otherProgram(comparePlan(plan, measured));
  expect(limits).toHaveLength(cautions);
  expect(limits.join()).toMatch(cautions === 0 ? /^$/ : /probably of another program/);
});
