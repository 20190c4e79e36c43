/**
 * The blocks of vLLM's cache. Layers of one kind (all tokens, a window, a state) are divided into groups with equal numbers of
 * layers, as many as the rarest kind has; where no kind has 1.5 times as many as another, as many as the most frequent one.
 * A group with fewer layers than the others is padded. All groups take blocks from one pool, so each block is as large as a
 * whole group, and a request takes blocks for each of them (vllm/v1/core/kv_cache_utils.py, `_get_kv_cache_groups_uniform_page_size`; of each
 * kind, `max_memory_usage_bytes` of vllm/v1/kv_cache_interface.py):
 *
 * | kind | blocks of a request |
 * |---|---|
 * | all tokens | tokens / block |
 * | window | min(window - 1 + tokens of a pass, tokens) / block, and one more: a window may begin within a block |
 * | read from an encoder | positions / block |
 * | state | one; blocks of attention are enlarged until they are not smaller |
 *
 * vLLM's log has `blocks / blocks of a request` as maximum concurrency. Its "GPU KV cache size" is `blocks / groups x block`,
 * and in 2026's versions the concurrency times the tokens of a request.
 */
import type { Bytes } from "../../model/base/units.js";
import type { PlanBlocksJson } from "../../model/documents/plan_document.js";
import { layersOf, mixerOf } from "../shape/layers.js";
import type { ModelShape } from "../shape/model_shape.js";
import {
  bytesOfToken,
  type CacheFormat,
  type CacheShape,
  cachedTower,
  stateOf,
} from "./attention_cache.js";

const BLOCK = 16;

interface Kind {
  readonly window: number;
  readonly source: number;
  readonly state: boolean;
  /** Of one token, or of the state, in one layer. */
  readonly bytes: Bytes;
  /** The layers of the whole model that are of this kind. */
  readonly layers: number[];
}

/** null: no cache, or layers of sizes that vLLM does not put into one pool. */
export function blockGroups(
  model: ModelShape,
  format: CacheFormat,
  batchedTokens: number,
): PlanBlocksJson | null {
  const kinds = kindsOf(model, format);
  const [first] = kinds;
  if (first === undefined || isMixed(kinds)) {
    return null;
  }
  const counts = kinds.map(({ layers }) => layers.length);
  const [fewest, most] = [Math.min(...counts), Math.max(...counts)];
  const size = most < fewest * 1.5 ? most : fewest;
  const [from, to] = format.layers;
  const divided = kinds.map((kind) => ({ kind, count: Math.ceil(kind.layers.length / size) }));
  // Layers of each group on this rank of a pipeline.
  const layers = Math.max(
    0,
    ...divided.flatMap(({ kind, count }) =>
      Array.from(
        { length: count },
        (_, group) =>
          kind.layers.filter(
            (layer, index) => index % count === group && layer >= from && layer < to,
          ).length,
      ),
    ),
  );
  const perToken = Math.max(0, ...kinds.map(({ state, bytes }) => (state ? 0 : bytes)));
  const states = Math.max(0, ...kinds.map(({ state, bytes }) => (state ? bytes : 0)));
  const tokens = perToken > 0 ? BLOCK * Math.max(1, Math.ceil(states / (BLOCK * perToken))) : 0;
  return {
    tokens,
    bytes: Math.round(layers * (perToken > 0 ? tokens * perToken : states)),
    batchedTokens,
    groups: divided.map(({ kind: { window, source, state }, count }) => ({
      count,
      ...(window > 0 ? { window } : {}),
      ...(source > 0 ? { source } : {}),
      ...(state ? { state } : {}),
    })),
  };
}

function kindsOf(model: ModelShape, format: CacheFormat): Kind[] {
  const kinds = new Map<string, Kind>();
  const add = (layer: number, kind: Omit<Kind, "layers">): void => {
    const key = `${kind.window} ${kind.source} ${kind.state} ${kind.bytes}`;
    const known = kinds.get(key) ?? { ...kind, layers: [] };
    known.layers.push(layer);
    kinds.set(key, known);
  };
  const none = { window: 0, source: 0, state: false };
  const tower = cachedTower(model);
  const source = Number((model.towers.length > 1 ? model.towers.at(-2) : undefined)?.positions);
  for (const [index, parts] of (tower === undefined ? [] : layersOf(tower)).entries()) {
    for (const layer of parts) {
      if (mixerOf(layer) !== null) {
        add(index, { ...none, state: true, bytes: stateOf(layer, format) });
      }
      if (layer.kind === "transformer") {
        const { attention, cross } = layer;
        if (attention !== null && attention.keys !== "shared") {
          const { window } = attention;
          add(index, { ...none, window, bytes: bytesOfToken(attention, format) });
        }
        if (cross !== null && source > 0) {
          add(index, { ...none, source, bytes: bytesOfToken(cross, format) });
        }
      }
    }
  }
  return [...kinds.values()];
}

/** Sizes of one token that differ: other groupings, which are not planned. */
function isMixed(kinds: readonly Kind[]): boolean {
  return [true, false].some(
    (state) =>
      new Set(kinds.filter((each) => each.state === state).map(({ bytes }) => bytes)).size > 1,
  );
}

/** Blocks of a request of so many tokens. */
export function blocksOfRequest(
  { tokens: block, groups, batchedTokens }: PlanBlocksJson,
  tokens: number,
): number {
  return groups.reduce((sum, { count, window = 0, source = 0, state = false }) => {
    const within = Math.min(window - 1 + batchedTokens, tokens);
    const one = state
      ? 1
      : window > 0
        ? Math.ceil(within / block) + 1
        : Math.ceil((source > 0 ? source : tokens) / block);
    return sum + count * one;
  }, 0);
}

/**
 * Blocks of several requests of so many tokens, of which one is in its prefill: its windows have the tokens of a pass. vLLM
 * does not start with fewer blocks than one request takes.
 */
export function blocksOfRequests(blocks: PlanBlocksJson, tokens: number, requests: number): number {
  const decoding = blocksOfRequest({ ...blocks, batchedTokens: 1 }, tokens);
  return blocksOfRequest(blocks, tokens) + (requests - 1) * decoding;
}

/** "GPU KV cache size" as versions up to 0.20 count it. */
export function tokensOfBlocks({ tokens, groups }: PlanBlocksJson, blocks: number): number {
  const all = groups.reduce((sum, { count }) => sum + count, 0);
  return Math.floor(blocks / all) * tokens;
}

/** The same cache with what its groups pad. */
export function inGroups(cache: CacheShape, { tokens, bytes, groups }: PlanBlocksJson): CacheShape {
  const countOf = (wanted: (group: PlanBlocksJson["groups"][number]) => boolean): number =>
    groups.reduce((sum, group) => sum + (wanted(group) ? group.count : 0), 0);
  const perToken = tokens > 0 ? bytes / tokens : 0;
  const state = countOf((group) => group.state === true) * bytes;
  const read = groups.reduce(
    (sum, { count, source = 0 }) => sum + count * Math.ceil(source / Math.max(1, tokens)) * bytes,
    0,
  );
  return {
    ...cache,
    bytesPerToken:
      perToken *
      countOf(
        (group) => group.window === undefined && group.source === undefined && group.state !== true,
      ),
    windows: cache.windows.map(({ window }) => ({
      window,
      bytesPerToken: perToken * countOf((group) => group.window === window),
    })),
    bytesPerSequence: state + read,
  };
}
