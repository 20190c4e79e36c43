/** One layer of a transformer in its variants: norm before, after or around; attention and MLP in series or parallel. */
import type { AttentionShape } from "../shape/attention_shape.js";
import { isMoe } from "../shape/layers.js";
import type { MoeShape, TransformerLayer } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import { alternatingLayer } from "./alternating_updates.js";
import { attention, CROSS } from "./attention.js";
import type { LayerBuilder } from "./layer_builder.js";
import { fromLayerInput } from "./layer_inputs.js";
import { feedForward } from "./mlp.js";
import { learnsCondition, modulate } from "./modulation.js";
import { normalized } from "./norms.js";
import { stateSpaceMixer } from "./state_space.js";

export interface LayerPlace {
  readonly hidden: number;
  /** Positions of this tower, and of the tower that cross attention reads. */
  readonly positions: number;
  readonly isText: boolean;
  readonly other: { readonly output: Tensor; readonly positions: number } | null;
}

export function transformerLayer(
  build: LayerBuilder,
  x: Tensor,
  layer: TransformerLayer,
  place: LayerPlace,
): Tensor {
  if (layer.parallel) {
    return parallelLayer(build, x, layer, place);
  }
  const { attention: own, beside, cross, mlp, inputWidth = 0 } = layer;
  if (layer.streams !== undefined && own !== null) {
    const run = (input: Tensor): Tensor => attend(build, input, own, layer, place);
    return alternatingLayer(build, x, layer, { hidden: place.hidden, attend: run });
  }
  let stream = x;
  const part = (run: (input: Tensor) => Tensor, readsNormed = false): void => {
    stream = residual(build, stream, layer, { hidden: place.hidden, readsNormed }, (input) =>
      build.scatter(run(build.gather(input))),
    );
  };
  if (own !== null) {
    part((input) => {
      if (beside === undefined) {
        return attend(build, input, own, layer, place);
      }
      // Each reads the input times a factor of its own.
      const scaled = (): Tensor => build.pointwise("scale", [input], []);
      const mixed = stateSpaceMixer(build, scaled(), place.hidden, beside);
      return build.add(mixed, attend(build, scaled(), own, layer, place));
    }, layer.readsNormed === true);
  }
  if (cross !== null && place.other !== null) {
    const { other } = place;
    part((input) => attend(build, input, cross, layer, place, other));
  }
  if (mlp !== null && isMoe(mlp) && mlp.apart === true) {
    const both = expertsApart(build, stream, layer, { hidden: place.hidden, mlp });
    stream = build.add(stream, normalized(build, both, place.hidden, layer.norm));
  } else if (mlp !== null) {
    part((input) => feedForward(build, input, place.hidden, mlp));
  }
  return inputWidth > 0
    ? build.add(stream, fromLayerInput(build, stream, place.hidden, inputWidth))
    : stream;
}

/** Gemma 4: an MLP and routed experts, each between norms of its own, and added up. */
function expertsApart(
  build: LayerBuilder,
  x: Tensor,
  { norm }: TransformerLayer,
  { hidden, mlp }: { readonly hidden: number; readonly mlp: MoeShape },
): Tensor {
  const { shared } = mlp;
  const normed = (from: Tensor): Tensor => normalized(build, from, hidden, norm);
  const dense = shared === null ? x : normed(feedForward(build, normed(x), hidden, shared));
  const plain = normalized(build, x, hidden, { ...norm, affine: false });
  const [scaled] = build.tape.op({
    name: "router.scale",
    inputs: [plain],
    makes: [{ elements: plain.elements, itemBytes: plain.itemBytes }],
    saves: [plain],
    parameters: [
      build.parameter("router.scale", hidden, "vector"),
      build.parameter("router.per_expert_scale", mlp.experts, "vector"),
    ],
    pointwise: true,
  });
  const routed = build.pointwise("scale", [scaled as Tensor], []);
  const own = { ...mlp, shared: null };
  return build.add(dense, normed(feedForward(build, normed(x), hidden, own, routed)));
}

function attend(
  build: LayerBuilder,
  input: Tensor,
  shape: AttentionShape,
  layer: TransformerLayer,
  { hidden, positions, isText }: LayerPlace,
  other: LayerPlace["other"] = null,
): Tensor {
  const context =
    shape.bidirectional || !isText ? positions : Math.max(positions, build.rules.context);
  const joined = shape.joinsBatch === true ? build.rules.batch : 1;
  const place = {
    shape,
    hidden,
    source: other?.output ?? input,
    queries: positions * joined,
    keys: (other?.positions ?? context) * joined,
    dropout: build.rules.dropout && layer.attentionDropout,
    maskable: isText,
    prefix: other === null ? "" : CROSS,
  };
  return build.divided("attention", () => attention(build, input, place));
}

interface PartPlace {
  readonly hidden: number;
  /** The part's input is normalized already. */
  readonly readsNormed: boolean;
}

function residual(
  build: LayerBuilder,
  x: Tensor,
  layer: TransformerLayer,
  place: PartPlace,
  run: (input: Tensor) => Tensor,
): Tensor {
  const { placement, norm } = layer;
  const { hidden } = place;
  const dropped = (made: Tensor): Tensor =>
    layer.dropout && build.rules.dropout ? build.dropout(made) : made;
  const held = (input: Tensor): Tensor => {
    const made = run(input);
    build.release(input);
    return made;
  };
  switch (placement) {
    case "after-residual":
      return normalized(build, build.add(x, dropped(run(x))), hidden, norm);
    case "after":
      return build.add(x, normalized(build, run(x), hidden, norm));
    case "sandwich":
      return build.add(
        x,
        normalized(build, held(normalized(build, x, hidden, norm)), hidden, norm),
      );
    default:
      return build.add(
        x,
        scaled(build, dropped(held(modulated(build, x, layer, place))), layer, hidden),
      );
  }
}

/** DiT: the norm's output is scaled and shifted by rows that depend on the condition. */
function modulated(
  build: LayerBuilder,
  x: Tensor,
  layer: TransformerLayer,
  { hidden, readsNormed }: PartPlace,
): Tensor {
  const normed = readsNormed ? x : normalized(build, x, hidden, layer.norm);
  if (layer.modulation === 0) {
    return normed;
  }
  // Each of a layer's two parts has half of the modulation's outputs.
  return modulate(build, normed, { name: "modulation", hidden, factors: layer.modulation / 2 });
}

/** LayerScale and the gate of DiT multiply a part's output, which is kept where they have a gradient. */
function scaled(
  build: LayerBuilder,
  made: Tensor,
  layer: TransformerLayer,
  hidden: number,
): Tensor {
  if (layer.scales === 0 && layer.modulation === 0) {
    return made;
  }
  const [product] = build.tape.op({
    name: "scale",
    inputs: [made],
    makes: [{ elements: made.elements, itemBytes: made.itemBytes }],
    saves: learnsCondition(build) ? [made] : [],
    parameters: layer.scales > 0 ? [build.parameter("scale", hidden, "vector")] : [],
    pointwise: true,
  });
  return product as Tensor;
}

/** GPT-J, NeoX, Falcon, Phi, Command R: x + attention(norm(x)) + mlp(norm(x)). */
function parallelLayer(
  build: LayerBuilder,
  x: Tensor,
  layer: TransformerLayer,
  place: LayerPlace,
): Tensor {
  const { hidden } = place;
  const dropped = (made: Tensor): Tensor =>
    layer.dropout && build.rules.dropout ? build.dropout(made) : made;
  const first = build.gather(normalized(build, x, hidden, layer.norm));
  const second =
    layer.parallelNorms === 2 ? build.gather(normalized(build, x, hidden, layer.norm)) : first;
  let sum = x;
  if (layer.attention !== null) {
    sum = build.add(
      sum,
      dropped(build.scatter(attend(build, first, layer.attention, layer, place))),
    );
  }
  if (layer.mlp !== null) {
    sum = build.add(sum, dropped(build.scatter(feedForward(build, second, hidden, layer.mlp))));
  }
  return sum;
}
