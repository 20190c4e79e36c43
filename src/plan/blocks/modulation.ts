/** Rows that are scaled and shifted by factors of the condition: a time step and a class (DiT). */
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";

/** `factors`: rows of `hidden` elements that one matrix computes from the condition; 0: it belongs to another norm. */
export interface Modulation {
  readonly name: string;
  readonly hidden: number;
  readonly factors: number;
}

/**
 * Whether the factors have a gradient, for which what they multiply is kept. Adapters of the layers' matrices leave the
 * condition as it is.
 */
export function learnsCondition(build: LayerBuilder): boolean {
  return build.needsGradient(build.parameter("condition", 0, "vector"));
}

/** x * (1 + scale) + shift: autograd keeps x where the factors have a gradient. The factors are small. */
export function modulate(build: LayerBuilder, x: Tensor, { name, hidden, factors }: Modulation) {
  const [made] = build.tape.op({
    name: "modulate",
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    saves: learnsCondition(build) ? [x] : [],
    parameters:
      factors === 0
        ? []
        : [
            build.parameter(name, hidden * factors * hidden, "matrix", hidden),
            build.parameter(`${name}.bias`, factors * hidden, "vector"),
          ],
    pointwise: true,
  });
  return made as Tensor;
}
