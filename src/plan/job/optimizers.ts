/** Bytes of optimizer states, by optimizer. Sources: torch.optim, bitsandbytes, transformers' Adafactor, the Muon paper. */
import type { Bytes } from "../../model/base/units.js";
import type { Parameter } from "../tape/tape.js";

export const OPTIMIZERS = [
  "adamw",
  "adamw-foreach",
  "adam",
  "adamw8bit",
  "paged-adamw8bit",
  "paged-adamw",
  "adafactor",
  "lion",
  "lion8bit",
  "muon",
  "sgd",
  "sgd-momentum",
  "none",
] as const;
export type OptimizerName = (typeof OPTIMIZERS)[number];

export interface OptimizerFacts {
  /** Bytes of states of one element with states as wide as the parameter (`wide` bytes). */
  readonly formula: string;
  readonly source: string;
  /** States lie in host memory and come in pages. */
  readonly paged: boolean;
  readonly cost: string;
  /** State tensors of one parameter; absent: one. */
  readonly moments?: number;
  /** A step computes with one list of all parameters, and has a temporary tensor for each. */
  readonly foreach?: boolean;
  /** `formula` is of matrices, not of one parameter. */
  readonly ofMatrices?: boolean;
}

/** bitsandbytes quantizes in blocks of 256, with an fp32 maximum for each; tensors below 4,096 elements stay in fp32. */
const BLOCK = 256;
const SMALLEST_QUANTIZED = 4096;

/** States of one parameter. @param wide bytes of an element of states that are not quantized */
export function stateBytes(
  name: OptimizerName,
  { elements, role, rows }: Parameter,
  wide: number,
): Bytes {
  switch (name) {
    case "adam":
    case "adamw":
    case "adamw-foreach":
    case "paged-adamw":
      return 2 * wide * elements;
    case "adamw8bit":
    case "paged-adamw8bit":
      return 2 * quantized(elements);
    case "lion8bit":
      return quantized(elements);
    case "adafactor":
      // Row and column means instead of a matrix of second moments (Shazeer and Stern, 2018).
      return rows > 1 ? 4 * (rows + elements / rows) : 4 * elements;
    case "lion":
    case "sgd-momentum":
      return wide * elements;
    case "muon":
      // Momentum for matrices; AdamW for embeddings and vectors (Jordan et al., 2024).
      return role === "matrix" ? wide * elements : 2 * wide * elements;
    case "sgd":
    case "none":
      return 0;
  }
}

function quantized(elements: number): Bytes {
  return elements < SMALLEST_QUANTIZED ? 4 * elements : elements * (1 + 4 / BLOCK);
}

/** Bytes that a step takes beside states and gradients. `foreach` makes a copy of all square roots (torch.optim's docs). */
export function stepTemporary(name: OptimizerName, trainableBytes: Bytes, largest: Bytes): Bytes {
  switch (name) {
    case "adamw-foreach":
      return trainableBytes;
    case "muon":
      return 4 * largest;
    case "adafactor":
      return 2 * largest;
    case "lion":
      // The sign of the interpolated momentum, one parameter at a time.
      return largest;
    default:
      // Fused kernels, those of bitsandbytes included, update in place.
      return 0;
  }
}

const TWO_MOMENTS = { moments: 2 } as const;

export const OPTIMIZER_FACTS: Readonly<Record<OptimizerName, OptimizerFacts>> = {
  adamw: {
    ...facts("2 x bytes of the weight", "torch.optim.AdamW, fused", "none"),
    ...TWO_MOMENTS,
  },
  "adamw-foreach": {
    ...facts("2 x bytes of the weight", "torch.optim.AdamW, foreach", "none"),
    ...TWO_MOMENTS,
    foreach: true,
  },
  adam: { ...facts("2 x bytes of the weight", "torch.optim.Adam", "none"), ...TWO_MOMENTS },
  adamw8bit: {
    ...facts("2 x (1 + 4/256) B", "bitsandbytes, blocks of 256", "slightly noisier updates"),
    ...TWO_MOMENTS,
  },
  "paged-adamw8bit": facts(
    "2 x (1 + 4/256) B in host memory",
    "bitsandbytes, unified memory",
    "slower steps where pages move",
    true,
  ),
  "paged-adamw": facts(
    "2 x bytes of the weight in host memory",
    "bitsandbytes, unified memory",
    "slower steps where pages move",
    true,
  ),
  adafactor: {
    ...facts(
      "the sum of 4 B x (rows + columns) of each matrix and 4 B for each element of a vector",
      "Shazeer and Stern 2018",
      "no momentum; other learning rates",
    ),
    ofMatrices: true,
  },
  lion: facts("1 x bytes of the weight", "Chen et al. 2023", "other learning rates"),
  lion8bit: facts("(1 + 4/256) B", "bitsandbytes", "other learning rates"),
  muon: facts(
    "1 x bytes of matrices, 2 x of the rest",
    "Jordan et al. 2024",
    "more computation in a step",
  ),
  sgd: facts("0", "torch.optim.SGD", "slower convergence"),
  "sgd-momentum": facts("1 x bytes of the weight", "torch.optim.SGD", "slower convergence"),
  none: facts("0", "no optimizer", ""),
};

function facts(formula: string, source: string, cost: string, paged = false): OptimizerFacts {
  return { formula, source, cost, paged };
}
