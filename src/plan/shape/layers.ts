/** Questions about the layers of a shape. */
import type {
  LayerShape,
  MlpShape,
  ModelShape,
  MoeShape,
  StateSpaceShape,
  TowerShape,
} from "./model_shape.js";

/** Layers as the configuration counts them. */
export function layerCount({ layers }: Pick<TowerShape, "layers">): number {
  return layers.reduce((sum, { count, isPart }) => sum + (isPart === true ? 0 : count), 0);
}

/** One by one, each with its parts. */
export function layersOf({ layers }: Pick<TowerShape, "layers">): LayerShape[][] {
  const all: LayerShape[][] = [];
  let first: LayerShape[] = [];
  for (const { count, layer, isPart } of layers) {
    if (isPart === true) {
      (all.at(-1) ?? first).push(layer);
    } else {
      all.push(
        ...Array.from({ length: count }, (_, index) => [...(index === 0 ? first : []), layer]),
      );
      first = [];
    }
  }
  return all;
}

/** The state space or delta rule of a layer, alone or beside attention. */
export function mixerOf(layer: LayerShape): StateSpaceShape | null {
  return layer.kind === "state-space"
    ? layer.mixer
    : ((layer.kind === "transformer" ? layer.beside : undefined) ?? null);
}

/** Whether the job decides the length of its sequences; images and audio have the sizes of the model. */
export function readsText({ towers }: ModelShape): boolean {
  return towers.some(({ positions }) => positions === "sequence");
}

/** Configurations of diffusers name a class, those of transformers a type. */
export function isOfDiffusers({ family }: ModelShape): boolean {
  return /^[A-Z]/.test(family);
}

export function isMoe(mlp: MlpShape | MoeShape): mlp is MoeShape {
  return "experts" in mlp;
}
