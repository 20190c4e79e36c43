/** Refuses a job that no library could run, instead of computing with fractions of heads. */
import { cannotDivide } from "../model/errors/plan_errors.js";
import type { PlanOptions } from "./job/options.js";
import { isMoe, type LayerShape, type ModelShape } from "./shape/model_shape.js";

/** @throws TidemarkError TM-E086 */
export function requireDivisible(model: ModelShape, options: PlanOptions): void {
  const { tensor, pipeline, expert } = options.mode === "train" ? options.parallelism : options;
  const layers = model.towers.flatMap((tower) => tower.layers);
  for (const { layer } of layers) {
    requireLayer(layer, tensor, expert);
  }
  const count = layers.reduce((sum, each) => sum + each.count, 0);
  if (pipeline > count) {
    throw cannotDivide(
      `${count} layers do not fill ${pipeline} pipeline stages`,
      `use --pp ${count} or less`,
    );
  }
  if (pipeline > 1 && model.towers.length > 1) {
    throw cannotDivide(
      "a model of several towers is not planned in pipeline stages",
      "leave --pp out",
    );
  }
}

function requireLayer(layer: LayerShape, tensor: number, expert: number): void {
  if (layer.kind !== "transformer") {
    return;
  }
  const heads = layer.attention?.heads ?? tensor;
  if (heads % tensor !== 0) {
    throw cannotDivide(
      `${heads} heads cannot be divided over --tp ${tensor}`,
      `use a divisor of ${heads}`,
    );
  }
  const experts = layer.mlp !== null && isMoe(layer.mlp) ? layer.mlp.experts : 0;
  if (experts > 0 && expert > experts) {
    throw cannotDivide(
      `${experts} experts cannot be divided over --ep ${expert}`,
      `use --ep ${experts} or less`,
    );
  }
}
