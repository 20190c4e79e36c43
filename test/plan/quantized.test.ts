/** Bytes of quantized checkpoints, with the modules that they keep in 16 bits. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PlanRequest } from "../../src/plan/defaults.js";
import { type Gpu, gpuNamed, gpuOfSize } from "../../src/plan/device/gpus.js";
import { fitTable } from "../../src/plan/fit.js";
import { planMemory } from "../../src/plan/plan.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { repository } from "../run.js";

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: Record<string, unknown> }>;

function planned(name: string, quantization: object | null, changes: object = {}) {
  const values = {
    ...MODELS[name]?.config,
    torch_dtype: "bfloat16",
    ...(quantization === null ? {} : { quantization_config: quantization }),
    ...changes,
  };
  const plan = planMemory(readShape(values, name, name), {
    mode: "serve",
    gpu: gpuNamed("h100") as Gpu,
  });
  const weights = plan.parts.find(({ part }) => part === "weights");
  return { weights: weights?.bytes ?? 0, limits: plan.limits, formula: weights?.formula ?? "" };
}

describe("mxfp4 of gpt-oss: experts alone, blocks of 32 with a scale of 8 bits", () => {
  /** `total_size` of the published checkpoints, in model.safetensors.index.json. */
  test.each([
    [24, 32, 13_761_264_768],
    [36, 128, 65_248_815_744],
  ])("%i layers of %i experts", (layers, experts, total) => {
    const sizes = {
      num_hidden_layers: layers,
      num_local_experts: experts,
      layer_types: undefined,
    };
    const { weights, formula } = planned("gpt-oss-20b", null, {
      ...sizes,
      quantization_config: MODELS["gpt-oss-20b"]?.config.quantization_config,
    });
    expect(weights).toBe(total);
    expect(formula).toMatch(/0\.531 B a weight of the experts/);
  });
});

/** Of one layer of Llama 3.1 8B. */
const ATTENTION = 4096 * (4096 + 1024) * 2;
const MLP = 3 * 4096 * 14_336;
const ALL = 32 * (ATTENTION + MLP);
const REST = 8_030_261_248 - ALL;

describe("modules that stay in 16 bits", () => {
  const nf4 = { load_in_4bit: true, quant_method: "bitsandbytes" };
  const nf4Bytes = (kept: number) => (ALL - kept) * 0.5625 + (REST + kept) * 2;
  test.each([
    ["none", undefined, 0],
    ["the head, which is kept anyway", ["lm_head"], 0],
    ["MLPs of two layers", ["lm_head", "model.layers.1.mlp", "model.layers.31.mlp"], 2 * MLP],
    ["a matrix in all layers", ["down_proj"], 32 * (MLP / 3)],
    ["attention by a wildcard", ["model.layers.*.self_attn"], 32 * ATTENTION],
    ["a layer of another number", ["model.layers.1"], ATTENTION + MLP],
  ])("bitsandbytes: %s", (_, skip, kept) => {
    const { weights } = planned("llama-3.1-8b", { ...nf4, llm_int8_skip_modules: skip ?? null });
    expect(weights).toBe(nf4Bytes(kept));
  });

  const packed = (weights: object, ignore: readonly string[]) => ({
    quant_method: "compressed-tensors",
    config_groups: { group_0: { targets: ["Linear"], weights } },
    ignore,
  });
  const w4 = { num_bits: 4, type: "int", group_size: 128, strategy: "group", symmetric: true };
  test.each([
    ["lm_head", 0],
    ["re:.*self_attn.*", 32 * ATTENTION],
    ["re:.*\\.layers\\.0\\..*", ATTENTION + MLP],
    ["re:.*down_proj$", 32 * (MLP / 3)],
    ["model.layers.3.mlp.up_proj", MLP / 3],
    ["re:model\\.layers\\.\\d+\\.mlp\\.gate$", 0],
  ])("compressed-tensors in 4 bits, ignore %s", (ignored, kept) => {
    const { weights, limits } = planned("llama-3.1-8b", packed(w4, ["lm_head", ignored]));
    expect(weights).toBe((ALL - kept) * 0.515_625 + (REST + kept) * 2);
    expect(limits).toEqual([]);
  });

  test.each([
    [{ num_bits: 8, type: "float", strategy: "tensor" }, 1],
    [{ num_bits: 8, type: "int", strategy: "channel" }, 1.000_488_281_25],
    [{ num_bits: 4, type: "float", group_size: 16, strategy: "tensor_group" }, 0.5625],
    [{ ...w4, symmetric: false }, 0.519_531_25],
  ])("compressed-tensors %j", (weights, each) => {
    expect(planned("llama-3.1-8b", packed(weights, [])).weights).toBeCloseTo(
      ALL * each + REST * 2,
      0,
    );
  });

  test("fp8 and AWQ keep what they list", () => {
    const fp8 = { quant_method: "fp8", modules_to_not_convert: ["model.layers.0"] };
    const kept = ATTENTION + MLP;
    expect(planned("llama-3.1-8b", fp8).weights).toBeCloseTo(
      (ALL - kept) * 1.000_244_140_625 + (REST + kept) * 2,
      0,
    );
    const awq = {
      quant_method: "awq",
      bits: 4,
      group_size: 128,
      modules_to_not_convert: ["o_proj"],
    };
    const output = 32 * 4096 * 4096;
    expect(planned("llama-3.1-8b", awq).weights).toBe(
      (ALL - output) * 0.519_531_25 + (REST + output) * 2,
    );
  });

  test("a group of -1 is a row", () => {
    const gptq = { quant_method: "gptq", bits: 4, group_size: -1 };
    expect(planned("llama-3.1-8b", gptq).weights).toBeCloseTo(
      ALL * 0.500_610_351_562_5 + REST * 2,
      0,
    );
  });

  test("expressions that are not read are a caution, and endless lists end", () => {
    const hostile = [
      `re:(${"a|".repeat(30)}a)+$`,
      ...Array.from({ length: 100_000 }, (_, i) => `x.${i}`),
    ];
    const { limits, weights } = planned("llama-3.1-8b", packed(w4, hostile));
    expect(limits.join()).toMatch(/keeps modules by expressions that are not read/);
    expect(weights).toBe(ALL * 0.515_625 + REST * 2);
  });
});

/** prepare_model_for_kbit_training of PEFT: embedding, head and norms in fp32, but not beside GPTQ and its like. */
test.each([
  ["awq", 0.519_531_25, 4],
  ["gptq", 0.519_531_25, 2],
  ["hqq", 0.531_25, 2],
  ["eetq", 1.000_488_281_25, 2],
])("adapters beside %s of %d B: the other weights have %i B", (quant_method, each, bytes) => {
  const quantization_config = { quant_method, bits: 4, group_size: 128 };
  const values = { ...MODELS["llama-3.1-8b"]?.config, quantization_config };
  const plan = planMemory(readShape(values, "llama", "llama"), { mode: "train" });
  const weights = plan.parts.find(({ part }) => part === "weights")?.bytes ?? 0;
  const others = 2 * 128_256 * 4096 + 65 * 4096;
  const quantized = (plan.model.parameters - others) * each;
  expect(Math.abs(weights - quantized - bytes * others)).toBeLessThan(1e6);
});

describe("what transformers loads in 16 bits", () => {
  const train = (name: string, gpu: string, request: object, changes: object = {}) => {
    const values = { ...MODELS[name]?.config, torch_dtype: "bfloat16", ...changes };
    return planMemory(readShape(values, name, name), {
      mode: "train",
      ...request,
      gpu: gpuNamed(gpu) as Gpu,
    });
  };
  const served = (quant_method: string, gpu: string, engine: "transformers" | "vllm") => {
    const values = {
      ...MODELS["llama-3.1-8b"]?.config,
      torch_dtype: "bfloat16",
      quantization_config: { quant_method },
    };
    const plan = planMemory(readShape(values, "llama", "llama"), {
      mode: "serve",
      serve: { engine },
      gpu: gpuNamed(gpu) as Gpu,
    });
    const weights = plan.parts.find(({ part }) => part === "weights")?.bytes ?? 0;
    return { isWide: weights === 2 * 8_030_261_248, limits: plan.limits.join("\n") };
  };

  test.each([
    ["a100", "transformers", true],
    ["3090", "transformers", true],
    ["t4", "transformers", true],
    ["4090", "transformers", false],
    ["h100", "transformers", false],
    ["a100", "vllm", false],
  ] as const)("fp8 on %s with %s: %s", (gpu, engine, isWide) => {
    const { isWide: found, limits } = served("fp8", gpu, engine);
    expect(found).toBe(isWide);
    expect(
      /fp8 kernels from compute capability 8\.9 on, and .* has compute capability \d+\.\d/.test(
        limits,
      ),
    ).toBe(isWide);
  });

  test("rows of --fit are those of their own device, whatever the one before loads", () => {
    const values = {
      ...MODELS["qwen3-0.6b"]?.config,
      quantization_config: { quant_method: "fp8" },
    };
    const model = readShape(values, "qwen", "qwen");
    const devices = ["a10", "l4"].map((name) => gpuNamed(name) as Gpu);
    // The request's own device decides nothing; below 8.9 the weights are in 16 bits, and QLoRA has nothing to read.
    for (const request of [
      {},
      { method: "qlora" },
      { method: "lora" },
      { gpu: devices[1] as Gpu },
    ] as const) {
      const rows = fitTable(model, { mode: "train", ...request }, devices);
      const methods = (device: string) =>
        new Set(
          rows.filter((row) => row.device === device).map(({ method }) => method.split(",")[0]),
        );
      expect(methods("A10")).toEqual(new Set(["full", "lora"]));
      expect(methods("L4")).toEqual(new Set(["full", "lora", "qlora"]));
    }
    const request = { mode: "train", method: "lora" } as const;
    const alone = devices.flatMap((gpu) => fitTable(model, request, [gpu]));
    expect(fitTable(model, request, devices)).toEqual(alone);
  });

  test("a device given by its size is assumed to be like another one", () => {
    const values = {
      ...MODELS["qwen3-0.6b"]?.config,
      quantization_config: { quant_method: "fp8" },
    };
    const { limits } = planMemory(readShape(values, "qwen", "qwen"), {
      mode: "train",
      gpu: gpuOfSize(40 * 2 ** 30),
    });
    expect(limits.join()).toMatch(/is assumed to have that of A100-40GB, compute capability 8\.0/);
  });

  test.each([
    ["nf4", "transformers", 2],
    ["nf4-dq", "transformers", 2],
    ["int8", "transformers", 2],
    ["nf4", "litgpt", 0.5625],
    ["fp8", "transformers", 1.000_244_140_625],
  ] as const)("experts with %s of %s take %f B", (quantize, library, bytes) => {
    const model = readShape(MODELS["qwen3-30b-a3b"]?.config ?? {}, "qwen", "qwen");
    const { limits, parts } = planMemory(model, {
      mode: "train",
      method: "lora",
      quantize,
      train: { library },
      gpu: gpuNamed("h200") as Gpu,
    });
    // 48 layers, 128 experts, three matrices of 2048 x 768; embedding and head are in 16 bits.
    const experts = 48 * 128 * 3 * 2048 * 768;
    const weights = parts.find(({ part }) => part === "weights")?.bytes ?? 0;
    const rest = weights - experts * bytes;
    expect(rest).toBeGreaterThan(2 * 2 * 151_936 * 2048);
    expect(rest).toBeLessThan(7 * 2 ** 30);
    expect(/parameters of three dimensions/.test(limits.join())).toBe(bytes === 2);
  });

  test("--fit leaves out the devices on which serving is refused, and them alone", () => {
    const values = {
      ...MODELS["qwen3-0.6b"]?.config,
      quantization_config: { quant_method: "fbgemm_fp8" },
    };
    const devices = ["a10", "h100"].map((name) => gpuNamed(name) as Gpu);
    const rows = fitTable(readShape(values, "qwen", "qwen"), { mode: "serve" }, devices);
    expect(rows.map(({ device }) => device)).toEqual(["H100-80GB"]);
  });

  test("--quantize fp8 on a device without its kernels trains adapters of 16-bit weights", () => {
    const fp8 = { quantize: "fp8" } as const;
    const plan = train("qwen3-0.6b", "a100", fp8);
    expect(plan.assumptions.join()).toMatch(/adapters of rank 8/);
    expect(plan.limits.join()).toMatch(
      /fp8 kernels from .* 8\.9 on, and A100-80GB has compute capability 8\.0: .*16 bits/,
    );
    expect(train("qwen3-0.6b", "a100", { ...fp8, method: "lora" }).parts).toEqual(plan.parts);
    expect(() => train("qwen3-0.6b", "a100", { ...fp8, method: "qlora" })).toThrow(/--method lora/);
    expect(() => train("qwen3-0.6b", "a100", { ...fp8, method: "full" })).toThrow(
      /cannot be trained; leave --quantize out/,
    );
  });

  test("fbgemm_fp8 below Hopper, and adapters beside formats that the Trainer refuses", () => {
    expect(() => served("fbgemm_fp8", "4090", "transformers")).toThrow(/capability 9\.0 on/);
    const fbgemm = { quantization_config: { quant_method: "fbgemm_fp8" } };
    for (const method of ["full", "lora", "qlora"]) {
      expect(() => train("llama-3.1-8b", "h100", { method }, fbgemm)).toThrow(
        /trains neither weights quantized by fbgemm_fp8 nor adapters/,
      );
    }
  });

  test("adapters beside fp8 are a caution, and those beside mxfp4 are of 16-bit weights", () => {
    const fp8 = { quantization_config: { quant_method: "fp8" } };
    const { limits } = train("llama-3.1-8b", "h100", { method: "lora" }, fp8);
    expect(limits.join()).toMatch(/Trainers of earlier versions refuse them/);
    const gptOss = train("gpt-oss-20b", "h100", { method: "lora" });
    expect(gptOss.parts[0]?.bytes).toBe(gptOss.model.parameters * 2);
    expect(gptOss.limits.join()).toMatch(/Mxfp4Config\(dequantize=True\)/);
    expect(() => train("gpt-oss-20b", "h100", { method: "qlora" })).toThrow(
      /cannot train adapters beside/,
    );
  });
});

describe("formats with fields of their own", () => {
  const of = (quantization_config: object, request: Partial<PlanRequest> = {}) =>
    planMemory(
      readShape(
        { ...MODELS["llama-3.1-8b"]?.config, torch_dtype: "bfloat16", quantization_config },
        "llama",
        "llama",
      ),
      { mode: "serve", gpu: gpuNamed("h100") as Gpu, ...request },
    );
  const torchao = (_type: string) => ({
    quant_method: "torchao",
    quant_type: { default: { _type, _data: { group_size: 64 } } },
  });
  const torchaoBefore = (quant_type: string) => ({
    quant_method: "torchao",
    quant_type,
    quant_type_kwargs: { group_size: 32 },
  });
  const master = { store_master_weights: true, keep_master_weights: true };

  /** Whether transformers 5.24 trains adapters beside it: `is_trainable` of its quantizers. */
  test.each([
    [{ quant_method: "bitnet" }, 0.25, false],
    [{ quant_method: "fp_quant", forward_dtype: "mxfp4" }, 0.531_25, false],
    [{ quant_method: "fp_quant", forward_dtype: "nvfp4", ...master }, 2, true],
    [{ quant_method: "fp_quant" }, 0.5625, false],
    [{ quant_method: "fp_quant", pseudoquantization: true }, 2, false],
    [{ quant_method: "fouroversix" }, 0.5625, false],
    [{ quant_method: "fouroversix", ...master }, 2.5625, true],
    [torchao("Int4WeightOnlyConfig"), 0.5625, false],
    [torchaoBefore("int4_weight_only"), 0.625, false],
    [torchaoBefore("int8_weight_only"), 1.000_488_281_25, true],
    [torchao("Int8WeightOnlyConfig"), 1.000_488_281_25, true],
    [torchao("Float8DynamicActivationFloat8WeightConfig"), 1.000_488_281_25, true],
    [{ quant_method: "hqq", quant_config: { weight_quant_params: { nbits: 4 } } }, 0.5625, true],
    [{ quant_method: "hqq", nbits: 3, group_size: null }, 0.400_976_562_5, true],
    [{ quant_method: "sinq", nbits: 4, group_size: 64 }, 0.533_691_406_25, true],
    [{ quant_method: "eetq", weights: "int8" }, 1.000_488_281_25, true],
    [{ quant_method: "quanto", weights: "int4" }, 0.531_25, true],
    [{ quant_method: "quanto", weights: "float8" }, 1.000_488_281_25, true],
    [{ quant_method: "nvfp4" }, 0.5625, false],
    [{ quant_method: "mxfp8" }, 1.031_25, true],
    [{ quant_method: "metal", bits: 4, group_size: 64 }, 0.539_062_5, false],
  ])("%j: %d B a weight; adapters: %s", (config, bytes, isTrained) => {
    const { parts, limits } = of(config);
    expect(limits).toEqual([]);
    expect(parts.find(({ part }) => part === "weights")?.bytes).toBeCloseTo(
      ALL * bytes + REST * 2,
      -1,
    );
    const train = () => of(config, { mode: "train", method: "lora" });
    if (isTrained) {
      expect(train).not.toThrow();
    } else {
      expect(train).toThrow(/trains neither weights quantized by \w+ .*nor adapters/);
    }
  });

  test("bitnet that quantizes in each pass is trained in 16 bits, and others are not", () => {
    const online = {
      quant_method: "bitnet",
      linear_class: "autobitlinear",
      quantization_mode: "online",
    };
    const { parts, limits } = of(online, { mode: "train", method: "full" });
    expect([parts[0]?.bytes, limits]).toEqual([8_030_261_248 * 2, []]);
  });

  test.each(["vptq", "a-new-method"])("%s, which is not read, is a caution", (quant_method) => {
    const { parts, limits } = of({ quant_method });
    expect(parts[0]?.bytes).toBe(8_030_261_248 * 2);
    expect(limits.join()).toMatch(/quantization_config \(.*\) has no size .*count in 16 bits/);
    const train = () => of({ quant_method }, { mode: "train", method: "full" });
    if (quant_method === "vptq") {
      expect(train).toThrow(/trains neither/);
    } else {
      expect(train().limits).toEqual(limits);
    }
  });
});
