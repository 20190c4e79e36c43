/** Shares of the device that engines use by default. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { planOptions } from "../defaults.js";
import { type Gpu, gpuNamed } from "../device/gpus.js";
import { readShape } from "../shape/read_shape.js";
import type { Engine, ServeOptions } from "./options.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);

const shareOf = (gpu: string, serve: object = {}, tensor = 1, name = "llama-3.1-8b"): number => {
  const model = readShape(MODELS[name].config, name, "config.json");
  const request = { mode: "serve", gpu: gpuNamed(gpu) as Gpu, tensor } as const;
  const options = planOptions(model, {
    ...request,
    serve: { engine: "sglang" as Engine, ...serve },
  });
  return (options as ServeOptions).utilization;
};

it("SGLang reserves memory for tokens of a pass, CUDA graphs and devices", () => {
  // MiB of an H100: 512 + 1.5 x 8,192 + 2 x 256 + 128 for each device.
  const h100 = 79.1 * 1024;
  expect(shareOf("h100")).toBeCloseTo(1 - (512 + 12_288 + 512 + 128) / h100, 3);
  expect(shareOf("h100", {}, 2)).toBeCloseTo(1 - (512 + 12_288 + 512 + 256) / h100, 3);
  expect(shareOf("h100", {}, 4)).toBeCloseTo(1 - (512 + 12_288 + 1024 + 512) / h100, 3);
  // At least 10 GiB of a device above 60 GiB, and 2,048 tokens.
  expect(shareOf("h100", { batchedTokens: 128 })).toBeCloseTo(1 - 10_240 / h100, 3);
  expect(shareOf("4090")).toBeCloseTo(1 - (512 + 3072 + 48 + 128) / (23.5 * 1024), 3);
  expect(shareOf("4090", { batchedTokens: 128 })).toBe(shareOf("4090"));
  expect(shareOf("b200")).toBeCloseTo(1 - (512 + 24_576 + 1024 + 128) / (178.3 * 1024), 3);
});

it("a share that the job gives replaces the engine's, and others have one for all devices", () => {
  expect(shareOf("h100", { utilization: 0.7 })).toBe(0.7);
  expect(shareOf("h100", { engine: "vllm" })).toBe(0.9);
  expect(shareOf("t4", { engine: "vllm" })).toBe(0.9);
});

it("SGLang leaves more room beside an encoder of images", () => {
  // As large as ViT-L: 95 %.
  expect(shareOf("h100", {}, 1, "llava")).toBeCloseTo(0.95 * shareOf("h100"), 2);
});
