/**
 * The cache of keys and values.
 *
 * | attention | bytes of one token in one layer |
 * |---|---|
 * | heads (MHA, GQA, MQA) | kv_heads x (head_size x bytes of a key + value_head_size x bytes of a value) |
 * | latent (MLA) | (kv_rank + rotary_size) x bytes: one row for keys and values, no factor of 2; some engines expand it (latent.ts) |
 * | window | as heads, of at most `window` tokens; llama.cpp has windows for some families alone (llama_cpp.ts) |
 * | to an encoder (T5, Whisper) | as heads, of each position that the encoder read |
 * | state space, delta rule | none; a state of fixed size for each sequence |
 */
import type { Bytes } from "../../model/base/units.js";
import { bytesOfCacheType } from "../job/cache_types.js";
import { bytesOfCompute, type ComputeDType, type ServeOptions } from "../job/options.js";
import { undividedBy } from "../job/tensor_plan.js";
import type { AttentionShape } from "../shape/attention_shape.js";
import { layersOf, mixerOf } from "../shape/layers.js";
import type { LayerShape, ModelShape, TowerShape } from "../shape/model_shape.js";
import { type LatentCache, latentCache } from "./latent.js";
import { hasWindows } from "./llama_cpp.js";

export interface CacheShape {
  /** Of one token in all layers that see all tokens. */
  readonly bytesPerToken: Bytes;
  /** Layers with a window: bytes of one token, and the window. */
  readonly windows: readonly { readonly bytesPerToken: Bytes; readonly window: number }[];
  /** Keys and values of one token that the encoder read, if the job decides how many these are (T5). */
  readonly bytesPerSourceToken: Bytes;
  /** Of one sequence, however long: states; keys and values of an encoder whose positions the model fixes (Whisper). */
  readonly bytesPerSequence: Bytes;
}

/** How an engine stores the cache on one device. */
export interface CacheFormat {
  readonly keyBytes: number;
  readonly valueBytes: number;
  /** Of the last inputs of a convolution, and how many columns fewer than its width are kept. */
  readonly convolutionBytes: number;
  readonly convolutionLess: number;
  /** Of an element of a recurrent state. */
  readonly stateBytes: number;
  /** The same where the configuration has a 16-bit `mamba_ssm_dtype`. */
  readonly narrowStateBytes: number;
  readonly tensorParallel: number;
  /** Devices over which states and convolutions are divided. */
  readonly stateParallel: number;
  /** Keys and values as the model gives them to its kernel: repeated for each head where it does so itself (Falcon). */
  readonly expandsGroups: boolean;
  /** Tokens that a layer with a window keeps beside it. */
  readonly besideWindow: number;
  readonly latent: LatentCache;
  /** False: layers with a window keep every token. */
  readonly keepsWindows: boolean;
  /** Layers of the last tower whose cache is on the device: from the first up to, but without, the second. */
  readonly layers: readonly [number, number];
}

/** Of values of so many bytes, before any division. */
export function plainFormat(itemBytes: number): CacheFormat {
  return {
    keyBytes: itemBytes,
    valueBytes: itemBytes,
    convolutionBytes: itemBytes,
    convolutionLess: 0,
    stateBytes: 4,
    narrowStateBytes: 4,
    tensorParallel: 1,
    stateParallel: 1,
    expandsGroups: false,
    besideWindow: 0,
    latent: "rows",
    keepsWindows: true,
    layers: [0, Number.POSITIVE_INFINITY],
  };
}

/** Tokens of a compute batch of llama.cpp, `n_ubatch`. */
export const MICRO_BATCH = 512;

/** Whether `--tp` divides heads: plans of transformers leave some whole, or gather them. */
export function dividesAttention(model: ModelShape, options: ServeOptions): boolean {
  return divides("attention", model, options);
}

function divides(
  part: "attention" | "state space",
  { family }: ModelShape,
  { engine }: ServeOptions,
): boolean {
  return engine !== "transformers" || undividedBy(family)[part] === undefined;
}

/** llama.cpp's own default is f16, whatever the weights are. */
export function autoCacheType({ engine, dtype }: ServeOptions): ComputeDType {
  return engine === "llama.cpp" ? "fp16" : dtype;
}

export function cacheFormat(
  model: ModelShape,
  options: ServeOptions,
  layers: CacheFormat["layers"] = [0, Number.POSITIVE_INFINITY],
): CacheFormat {
  const { engine, kvDType, valueDType = kvDType, tensor } = options;
  const computeBytes = bytesOfCompute(options.dtype);
  const autoBytes = bytesOfCompute(autoCacheType(options));
  const isLlamaCpp = engine === "llama.cpp";
  return {
    ...plainFormat(bytesOfCacheType(kvDType, autoBytes)),
    valueBytes: bytesOfCacheType(isLlamaCpp ? valueDType : kvDType, autoBytes),
    // llama.cpp keeps recurrent states and convolutions in fp32 (llama_memory_recurrent: R (f32), S (f32)).
    // SGLANG_MAMBA_CONV_DTYPE of SGLang is bfloat16, whatever the model's type is.
    convolutionBytes: isLlamaCpp ? 4 : engine === "sglang" ? 2 : computeBytes,
    // transformers and TGI keep as many columns as the convolution is wide; others leave out the newest one.
    convolutionLess: engine === "transformers" || engine === "tgi" ? 0 : 1,
    // mamba_ssm_cache_dtype "auto" of vLLM, and ssm_states of TGI; SGLang takes mamba_ssm_dtype of the configuration, or fp32.
    stateBytes: engine === "vllm" || engine === "tgi" ? computeBytes : 4,
    narrowStateBytes:
      engine === "sglang" ? 2 : engine === "vllm" || engine === "tgi" ? computeBytes : 4,
    tensorParallel: dividesAttention(model, options) ? tensor : 1,
    stateParallel: divides("state space", model, options) ? tensor : 1,
    expandsGroups: engine === "transformers",
    // A cache of transformers holds one token less than a window: the next one completes it. llama.cpp adds the tokens
    // of a compute batch (llama-kv-cache-iswa.cpp: n_swa + n_ubatch).
    besideWindow: engine === "transformers" ? -1 : isLlamaCpp ? MICRO_BATCH : 0,
    latent: latentCache(model, options),
    keepsWindows: !isLlamaCpp || hasWindows(model),
    layers,
  };
}

/** Of one device: keys of fewer heads than devices are on several of them; a latent row is on all. */
export function cacheShape(model: ModelShape, format: CacheFormat): CacheShape {
  const windows = new Map<number, Bytes>();
  let bytesPerToken = 0;
  let bytesPerSourceToken = 0;
  let bytesPerSequence = 0;
  const tower = cachedTower(model);
  const source = (model.towers.length > 1 ? model.towers.at(-2) : undefined)?.positions ?? 0;
  const layers = tower === undefined ? [] : layersOf(tower);
  for (const layer of layers.slice(...format.layers).flat()) {
    const own = layer.kind === "transformer" ? layer.attention : null;
    if (own !== null) {
      const bytes = bytesOfToken(own, format);
      if (own.window > 0 && format.keepsWindows) {
        const window = own.window + format.besideWindow;
        windows.set(window, (windows.get(window) ?? 0) + bytes);
      } else {
        bytesPerToken += bytes;
      }
    }
    const cross = layer.kind === "transformer" ? layer.cross : null;
    if (cross !== null) {
      const bytes = bytesOfToken(cross, format);
      bytesPerSourceToken += source === "sequence" ? bytes : 0;
      bytesPerSequence += source === "sequence" ? 0 : source * bytes;
    }
    bytesPerSequence += stateOf(layer, format);
  }
  return {
    bytesPerToken,
    windows: [...windows].map(([window, bytes]) => ({ window, bytesPerToken: bytes })),
    bytesPerSourceToken,
    bytesPerSequence,
  };
}

/** The tower that writes text, if any does: the last one, unless it sees all positions at once. */
export function cachedTower({ towers, head }: ModelShape): TowerShape | undefined {
  const last = towers.at(-1);
  const isCausal = last?.layers.some(
    ({ layer }) =>
      layer.kind === "state-space" ||
      (layer.kind === "transformer" && layer.attention?.bidirectional === false),
  );
  return head.kind === "language" && isCausal === true ? last : undefined;
}

export function bytesOfToken(shape: AttentionShape, format: CacheFormat): Bytes {
  if (shape.keys === "shared") {
    return 0;
  }
  if (shape.latent && format.latent.startsWith("rows")) {
    const { kvRank, rotarySize } = shape.latent;
    const again = format.latent === "rows and values" ? kvRank * format.valueBytes : 0;
    return (kvRank + rotarySize) * format.keyBytes + again;
  }
  const isExpanded = format.expandsGroups && shape.expandsGroups === true;
  const heads = Math.max(1, (isExpanded ? shape.heads : shape.kvHeads) / format.tensorParallel);
  const ownSize = shape.valueHeadSize ?? shape.headSize;
  const valueSize = format.latent === "padded heads" ? Math.max(shape.headSize, ownSize) : ownSize;
  return heads * (shape.headSize * format.keyBytes + valueSize * format.valueBytes);
}

const WIDE_STATE_BYTES = 4;

export function stateOf(layer: LayerShape, format: CacheFormat): Bytes {
  const mixer = mixerOf(layer);
  if (mixer === null) {
    return 0;
  }
  const { inner, state, convolution, groups, version, narrowState, wideState } = mixer;
  const stateBytes =
    narrowState === true
      ? format.narrowStateBytes
      : wideState === true
        ? WIDE_STATE_BYTES
        : format.stateBytes;
  const columns = Math.max(0, convolution - format.convolutionLess);
  const convolved =
    (inner + (version === 2 || version === "delta" ? 2 * groups * state : 0)) *
    columns *
    format.convolutionBytes;
  return (inner * state * stateBytes + convolved) / format.stateParallel;
}

/** Of one sequence of `tokens`, read and written, in whole blocks. */
export function bytesOfSequence(cache: CacheShape, tokens: number, block = 1): Bytes {
  const whole = (count: number): number => Math.ceil(count / block) * block;
  const windowed = cache.windows.reduce(
    (sum, { window, bytesPerToken }) => sum + bytesPerToken * whole(Math.min(tokens, window)),
    0,
  );
  return (
    (cache.bytesPerToken + cache.bytesPerSourceToken) * whole(tokens) +
    windowed +
    cache.bytesPerSequence
  );
}

/** Of one more token while all windows are open: what libraries print. */
export function bytesOfNextToken(cache: CacheShape): Bytes {
  return cache.windows.reduce((sum, { bytesPerToken }) => sum + bytesPerToken, cache.bytesPerToken);
}
