/**
 * Layers of diffusion transformers whose rows are patches of an image beside rows of a prompt (diffusers,
 * transformer_flux.py, transformer_sd3.py, pixart_transformer_2d.py). A norm's output is shifted and scaled, and a part's
 * output multiplied, by rows of the condition.
 */
import type { PatchLayer } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import { attention, jointAttention } from "./attention.js";
import type { LayerBuilder } from "./layer_builder.js";
import { feedForward } from "./mlp.js";
import { learnsCondition, modulate } from "./modulation.js";
import { normalized } from "./norms.js";

/** Rows of the image and of the prompt. */
export interface Streams {
  readonly image: Tensor;
  readonly prompt: Tensor;
}

interface PatchPlace {
  readonly layer: PatchLayer;
  readonly hidden: number;
}

const NORM = { kind: "layer", bias: false, affine: false } as const;

export function patchLayer(build: LayerBuilder, streams: Streams, place: PatchPlace): Streams {
  switch (place.layer.streams) {
    case "prompt":
      return promptLayer(build, streams, place);
    case "single":
      return singleLayer(build, streams, place);
    default:
      return doubleLayer(build, streams, place);
  }
}

/** PixArt: attention to itself and, without a norm, to the prompt. One matrix has the factors of all layers. */
function promptLayer(build: LayerBuilder, { image, prompt }: Streams, place: PatchPlace): Streams {
  const { hidden } = place;
  build.tape.parameters.push(build.parameter("scale_shift_table", 6 * hidden, "vector"));
  const first = shifted(build, image, hidden);
  const seen = build.add(image, gated(build, attend(build, first, place, "attn1.")));
  const read = build.add(seen, attend(build, seen, place, "attn2.", prompt));
  const made = build.add(read, gated(build, mlp(build, shifted(build, read, hidden), hidden)));
  return { image: made, prompt };
}

/** SD3, and the first layers of Flux: both streams have matrices of their own, and attend to each other. */
function doubleLayer(build: LayerBuilder, { image, prompt }: Streams, place: PatchPlace): Streams {
  const { layer, hidden } = place;
  const isLast = layer.streams === "last";
  const normed = normalized(build, image, hidden, NORM);
  const own = modulate(build, normed, { name: "norm1", hidden, factors: layer.dual ? 9 : 6 });
  const dual = layer.dual ? modulate(build, normed, { name: "", hidden, factors: 0 }) : null;
  const text = shifted(build, prompt, hidden, "norm1_context", isLast ? 2 : 6);
  const mixed = jointAttention(build, [own, text], { ...layer, hidden, isLast });
  const seen = build.add(image, gated(build, mixed.image));
  const again =
    dual === null ? seen : build.add(seen, gated(build, attend(build, dual, place, "attn2.")));
  const made = build.add(again, gated(build, mlp(build, shifted(build, again, hidden), hidden)));
  if (mixed.prompt === null) {
    return { image: made, prompt };
  }
  const read = build.add(prompt, gated(build, mixed.prompt));
  return {
    image: made,
    prompt: build.add(read, gated(build, mlp(build, shifted(build, read, hidden), hidden))),
  };
}

/** The other layers of Flux: both streams as one, the MLP beside attention, and a matrix that reads both results. */
function singleLayer(build: LayerBuilder, { image, prompt }: Streams, place: PatchPlace): Streams {
  const { tape } = build;
  const { hidden } = place;
  const width = 4 * hidden;
  const all = build.join([prompt, image]);
  const normed = shifted(build, all, hidden, "norm", 3);
  tape.part = "mlp";
  const wide = build.linear(normed, {
    name: "proj_mlp",
    inputs: hidden,
    outputs: width,
    bias: true,
    split: "outputs",
    group: "mlp",
  });
  const active = build.activation(wide, "gelu");
  const both = build.join([attend(build, normed, place, "attn."), active]);
  const out = build.linear(both, {
    name: "proj_out",
    inputs: hidden + width,
    outputs: hidden,
    bias: true,
    split: "inputs",
    group: "mlp",
  });
  tape.part = "residual";
  const sum = build.add(all, gated(build, out));
  return { image: tape.slice(sum, image.elements), prompt: tape.slice(sum, prompt.elements) };
}

function attend(
  build: LayerBuilder,
  x: Tensor,
  { layer, hidden }: PatchPlace,
  prefix: string,
  source = x,
): Tensor {
  const { batch } = build.rules;
  const rows = (of: Tensor): number => of.elements / hidden / batch;
  return attention(build, x, {
    shape: layer.attention,
    hidden,
    source,
    queries: rows(x),
    keys: rows(source),
    dropout: false,
    maskable: false,
    prefix,
    projects: layer.streams !== "single",
  });
}

function mlp(build: LayerBuilder, x: Tensor, hidden: number): Tensor {
  return feedForward(build, x, hidden, {
    width: 4 * hidden,
    gated: false,
    activation: "gelu",
    bias: true,
    fused: false,
  });
}

/** The gate is a factor, too: see {@link learnsCondition}. */
function gated(build: LayerBuilder, x: Tensor): Tensor {
  return build.pointwise("scale", [x], learnsCondition(build) ? [x] : []);
}

/** @param factors rows that a matrix of this norm computes; 0: another norm's matrix has them */
function shifted(build: LayerBuilder, x: Tensor, hidden: number, name = "", factors = 0): Tensor {
  return modulate(build, normalized(build, x, hidden, NORM), { name, hidden, factors });
}
