/** Weights of quantized checkpoints: the files that were published, and the tensors that the libraries make. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { gpuNamed } from "../../src/plan/device/gpus.js";
import { planMemory } from "../../src/plan/plan.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { repository } from "../run.js";

const { config: LLAMA } = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
)["llama-3.1-8b"] as { config: object };

const shapeOf = (quantization_config: object) =>
  readShape({ ...LLAMA, torch_dtype: "bfloat16", quantization_config }, "llama", "llama");

const vptq = (num_res_centroids: number) => ({
  quant_method: "vptq",
  config_for_layers: {
    "model.layers.0.self_attn.q_proj": {
      vector_lens: [-1, 8],
      num_centroids: [-1, 65_536],
      num_res_centroids: [-1, num_res_centroids],
      group_num: 1,
    },
  },
});

/** Sizes of the safetensors files of Llama 3.1 8B on the Hugging Face hub, as its pages round them. */
describe("published checkpoints of Llama 3.1 8B", () => {
  const w8 = { num_bits: 8, type: "int", strategy: "channel", symmetric: true };
  test.each<[string, object, number, boolean]>([
    ["hugging-quants/...-AWQ-INT4", { quant_method: "awq", bits: 4, group_size: 128 }, 5.73, true],
    [
      "neuralmagic/...-quantized.w4a16",
      { quant_method: "gptq", bits: 4, group_size: 128 },
      5.74,
      true,
    ],
    [
      "neuralmagic/...-quantized.w8a8",
      {
        quant_method: "compressed-tensors",
        config_groups: { group_0: { weights: w8 } },
        ignore: ["lm_head"],
      },
      9.08,
      true,
    ],
    ["ISTA-DASLab/...-AQLM-PV-2Bit-1x16-hf", { quant_method: "aqlm" }, 4.08, true],
    [
      "ISTA-DASLab/...-AQLM-PV-1Bit-1x16-hf",
      { quant_method: "aqlm", in_group_size: 16 },
      3.45,
      true,
    ],
    ["VPTQ-community/...-v8-k65536-256-woft", vptq(256), 4.96, false],
    ["VPTQ-community/...-v8-k65536-4096-woft", vptq(4096), 5.41, false],
    ["VPTQ-community/...-v8-k65536-65536-woft", vptq(65_536), 6.07, false],
  ])("%s %j has %f GB", (_, quantization, gigabytes, isTrained) => {
    const gpu = gpuNamed("h100");
    const plan = planMemory(shapeOf(quantization), {
      mode: "serve",
      ...(gpu === null ? {} : { gpu }),
    });
    const weights = plan.parts.find(({ part }) => part === "weights")?.bytes ?? 0;
    // Two files are rounded to 0.005 GB each.
    expect(Math.abs(weights / 1e9 - gigabytes)).toBeLessThan(0.0125);
    expect(plan.limits).toEqual([]);
    const train = () => planMemory(shapeOf(quantization), { mode: "train", method: "lora" });
    if (isTrained) {
      expect(train).not.toThrow();
    } else {
      expect(train).toThrow(/trains neither weights quantized by vptq/);
    }
  });
});

/**
 * Bytes of the tensors that a Linear of 4,096 inputs and 1,024 outputs in bf16 becomes: torchao 0.9 and 0.18, optimum-quanto
 * 0.2.7, hqq 0.2.8 and sinq 0.2.0 on a CPU. The plan takes scales of each row for those of a square matrix.
 */
describe("a quantized Linear", () => {
  const torchao = (_type: string, _data: object = {}) => ({
    quant_method: "torchao",
    quant_type: { default: { _type, _data } },
  });
  test.each<[object, number]>([
    [{ quant_method: "quanto", weights: "int2" }, 1_179_648],
    [{ quant_method: "quanto", weights: "int4" }, 2_228_224],
    [{ quant_method: "quanto", weights: "int8" }, 4_196_352],
    [{ quant_method: "quanto", weights: "float8" }, 4_196_352],
    [torchao("Int8WeightOnlyConfig"), 4_199_424],
    [torchao("Int8DynamicActivationInt8WeightConfig"), 4_199_424],
    [torchao("Float8WeightOnlyConfig"), 4_198_400],
    [torchao("Int8DynamicActivationIntxWeightConfig", { group_size: 32 }), 4_587_520],
    [{ quant_method: "torchao", quant_type: "int8_dynamic_activation_int4_weight" }, 4_718_592],
    [{ quant_method: "torchao", quant_type: "int8_weight_only" }, 4_204_544],
    [{ quant_method: "hqq", nbits: 8, group_size: 64 }, 4_456_448],
    [{ quant_method: "hqq", nbits: 4, group_size: 64 }, 2_359_296],
    [{ quant_method: "hqq", nbits: 4, group_size: null }, 2_101_248],
    [{ quant_method: "hqq", nbits: 3, group_size: 64 }, 1_939_968],
    [{ quant_method: "hqq", nbits: 2, group_size: 64 }, 1_310_720],
    [{ quant_method: "sinq", nbits: 8, group_size: 64 }, 4_341_764],
    [{ quant_method: "sinq", nbits: 4, group_size: 64 }, 2_244_612],
    [{ quant_method: "sinq", nbits: 4, group_size: 128 }, 2_174_980],
    [{ quant_method: "sinq", nbits: 3, group_size: 64 }, 1_825_284],
    [{ quant_method: "sinq", nbits: 2, group_size: 64 }, 1_196_036],
  ])("%j takes %i B", (quantization, bytes) => {
    const each = shapeOf(quantization).stored.quantization?.bytesPerWeight ?? 0;
    expect(Math.abs((each * 4096 * 1024) / bytes - 1)).toBeLessThan(0.01);
  });
});
