import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { planOptions } from "../defaults.js";
import type { TrainOptions } from "../job/options.js";
import { parameterCount } from "../model_facts.js";
import { readShape } from "../shape/read_shape.js";
import { planTraining } from "../train/plan_training.js";

/**
 * What diffusers 0.42.1 has and what torch 2.15 saves for a batch of 2 (`npm run bench -- plan --library PYTHON`).
 * DiT has no attention but that of torch, and neither have SD3 and Flux, whose eager row is sdpa in fp32.
 */
const MEASURED = [
  { name: "unet_sd", parameters: 37_522_628, sdpaIn16Bit: 95_696_768, eager: 580_608_768 },
  { name: "unet_sdxl", parameters: 64_290_052, sdpaIn16Bit: 98_248_448, eager: 233_451_008 },
  { name: "unet_ddpm", parameters: 28_447_235, sdpaIn16Bit: 16_592_128, eager: 33_105_152 },
  { name: "pixart", parameters: 2_778_848, sdpaIn16Bit: 19_903_232, eager: 51_865_088 },
  { name: "sd3", parameters: 5_146_816, sdpaIn16Bit: 35_437_912, eager: 70_407_216 },
  { name: "sd35", parameters: 5_666_560, sdpaIn16Bit: 55_624_280, eager: 92_959_024 },
  { name: "dit", parameters: 7_952_000, sdpaIn16Bit: 24_693_456, eager: null },
];

test.each(MEASURED)("$name: parameters and saved tensors are those of diffusers", (measured) => {
  const path = `../../../test/data/plan/library/${measured.name}.json`;
  const values = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
  const model = readShape(values, measured.name, path);
  expect(parameterCount(model)).toBe(measured.parameters);
  const savedBytes = (attention: "sdpa" | "eager"): number => {
    const options = planOptions(model, {
      mode: "train",
      attention,
      ...(attention === "eager" ? { dtype: "fp32" } : { dtype: "bf16", weights: "16bit" }),
      train: { batch: 2 },
    }) as TrainOptions;
    return planTraining(model, options).peak.simulation.savedBytes;
  };
  expect(Math.abs(savedBytes("sdpa") / measured.sdpaIn16Bit - 1)).toBeLessThan(0.02);
  if (measured.eager !== null) {
    expect(Math.abs(savedBytes("eager") / measured.eager - 1)).toBeLessThan(0.02);
  }
});
