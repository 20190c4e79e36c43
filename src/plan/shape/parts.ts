/** Parts of shapes for models that read no text and predict no classes. */
import type { HeadShape, TowerShape } from "./model_shape.js";

export const NO_HEAD: HeadShape = {
  kind: "none",
  outputs: 0,
  tied: false,
  bias: false,
  transform: false,
  softCap: false,
};

export const NO_TEXT: Pick<
  TowerShape,
  "embeddings" | "embeddingNorm" | "embeddingDropout" | "stems" | "finalNorm"
> = {
  embeddings: [],
  embeddingNorm: null,
  embeddingDropout: false,
  stems: [],
  finalNorm: null,
};
