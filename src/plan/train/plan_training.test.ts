import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { planOptions } from "../defaults.js";
import type { TrainOptions } from "../job/options.js";
import type { ModelShape } from "../shape/model_shape.js";
import { readShape } from "../shape/read_shape.js";
import { trainingPeak } from "./plan_training.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);

it("the backward pass holds the gradients of parameters that no layer describes, too", () => {
  const model = readShape(MODELS.llava.config, "llava", "config.json");
  const [image, ...rest] = model.towers as [ModelShape["towers"][0], ...ModelShape["towers"]];
  expect(image.otherParameters).toBeGreaterThan(0);
  const wide = { ...image, otherParameters: image.otherParameters + 20e9 };
  const peakOf = (shape: ModelShape): number => {
    const request = { mode: "train", method: "full", dtype: "bf16", weights: "16bit" } as const;
    const options = planOptions(shape, request) as TrainOptions;
    return trainingPeak(shape, options).simulation.peak.bytes;
  };
  const added = peakOf({ ...model, towers: [wide, ...rest] }) - peakOf(model);
  expect(added).toBeGreaterThan(0.9 * 20e9 * 2);
});
