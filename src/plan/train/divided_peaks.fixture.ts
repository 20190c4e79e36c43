/** Peaks of training jobs of test/data/plan/models.json, for tests of how they are divided. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type PlanRequest, planOptions } from "../defaults.js";
import type { TrainOptions } from "../job/options.js";
import { readShape } from "../shape/read_shape.js";
import type { Tape, Unit } from "../tape/tape.js";
import type { Communication } from "./communication.js";
import { planTraining } from "./plan_training.js";

export const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);

export const modelOf = (name: string) => readShape(MODELS[name].config, name, "config.json");

export function peakOf(name: string, request: Partial<PlanRequest> = {}) {
  const model = modelOf(name);
  const options = planOptions(model, { mode: "train", ...request }) as TrainOptions;
  return planTraining(model, options).peak;
}

/** In the backward pass of the first layer. */
export function formulaIn(communication: Communication | null, tape: Tape): string {
  return communication?.formulaOf(tape.units[1] as Unit, true) ?? "";
}

export const savedOf = (
  peak: ReturnType<typeof peakOf>,
  part: "norm" | "mlp" | "attention",
): number => peak.simulation.savedAfterForward.get(part) ?? 0;
