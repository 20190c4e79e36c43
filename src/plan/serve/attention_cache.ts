/**
 * The cache of keys and values.
 *
 * | attention | bytes of one token in one layer |
 * |---|---|
 * | heads (MHA, GQA, MQA) | 2 x kv_heads x head_size x bytes |
 * | latent (MLA) | (kv_rank + rotary_size) x bytes: one row for keys and values, no factor of 2 |
 * | window | as heads, of at most `window` tokens |
 * | state space | none; a state of fixed size for each sequence |
 */
import type { Bytes } from "../../model/base/units.js";
import type { AttentionShape, LayerShape, ModelShape, TowerShape } from "../shape/model_shape.js";

export interface CacheShape {
  /** Of one token in all layers that see all tokens. */
  readonly bytesPerToken: Bytes;
  /** Layers with a window: bytes of one token, and the window. */
  readonly windows: readonly { readonly bytesPerToken: Bytes; readonly window: number }[];
  /** Of one sequence, however long: states, keys and values of an encoder. */
  readonly bytesPerSequence: Bytes;
}

/** Of one device: keys of fewer heads than devices are on several of them; a latent row is on all. */
export function cacheShape(
  model: ModelShape,
  itemBytes: number,
  tensorParallel = 1,
  leavesOneOut = false,
): CacheShape {
  const windows = new Map<number, Bytes>();
  let bytesPerToken = 0;
  let bytesPerSequence = 0;
  const tower = cachedTower(model);
  const encoder = model.towers.length > 1 ? model.towers.at(-2) : undefined;
  for (const { count, layer } of tower?.layers ?? []) {
    const own = layer.kind === "transformer" ? layer.attention : null;
    if (own !== null) {
      const bytes = count * bytesOfToken(own, itemBytes, tensorParallel);
      if (own.window > 0) {
        const window = own.window - (leavesOneOut ? 1 : 0);
        windows.set(window, (windows.get(window) ?? 0) + bytes);
      } else {
        bytesPerToken += bytes;
      }
    }
    bytesPerSequence += count * perSequence(layer, encoder, itemBytes, tensorParallel);
  }
  return {
    bytesPerToken,
    windows: [...windows].map(([window, bytes]) => ({ window, bytesPerToken: bytes })),
    bytesPerSequence,
  };
}

/** The tower that writes text, if any does: the last one, unless it sees all positions at once. */
function cachedTower({ towers, head }: ModelShape): TowerShape | undefined {
  const last = towers.at(-1);
  const isCausal = last?.layers.some(
    ({ layer }) =>
      layer.kind === "state-space" ||
      (layer.kind === "transformer" && layer.attention?.bidirectional === false),
  );
  return head.kind === "language" && isCausal === true ? last : undefined;
}

function bytesOfToken(shape: AttentionShape, itemBytes: number, tensorParallel: number): Bytes {
  if (shape.latent) {
    return (shape.latent.kvRank + shape.latent.rotarySize) * itemBytes;
  }
  const heads = Math.max(1, shape.kvHeads / tensorParallel);
  return heads * (shape.headSize + (shape.valueHeadSize ?? shape.headSize)) * itemBytes;
}

const STATE_BYTES = 4;

function perSequence(
  layer: LayerShape,
  encoder: TowerShape | undefined,
  itemBytes: number,
  tensorParallel: number,
): Bytes {
  if (layer.kind === "state-space") {
    const { inner, state, convolution, groups, version } = layer.mixer;
    const convolved = (inner + (version === 2 ? 2 * groups * state : 0)) * convolution * itemBytes;
    return (inner * state * STATE_BYTES + convolved) / tensorParallel;
  }
  if (layer.kind !== "transformer" || layer.cross === null) {
    return 0;
  }
  const positions = typeof encoder?.positions === "number" ? encoder.positions : 0;
  return positions * bytesOfToken(layer.cross, itemBytes, tensorParallel);
}

/** Of one sequence of `tokens`, in whole blocks. */
export function bytesOfSequence(cache: CacheShape, tokens: number, block = 1): Bytes {
  const whole = (count: number): number => Math.ceil(count / block) * block;
  const windowed = cache.windows.reduce(
    (sum, { window, bytesPerToken }) => sum + bytesPerToken * whole(Math.min(tokens, window)),
    0,
  );
  return cache.bytesPerToken * whole(tokens) + windowed + cache.bytesPerSequence;
}

/** Of one more token while all windows are open: what libraries print. */
export function bytesOfNextToken(cache: CacheShape): Bytes {
  return cache.windows.reduce((sum, { bytesPerToken }) => sum + bytesPerToken, cache.bytesPerToken);
}
