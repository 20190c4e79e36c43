/**
 * Figures of a configuration that are whole numbers each and contradict each other or what they count. Those with which no
 * library builds the model are refused; those that libraries take, but not as they read, become remarks of the plan.
 */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { isMoe, layersOf } from "./layers.js";
import type { TowerShape } from "./model_shape.js";

/** Counts and widths of which a model has at least one, and shares of which there is no more than all. */
const NOT_ZERO = [
  "conv_kernel",
  "cross_attention_dim",
  "in_channels",
  "layers_per_block",
  "mamba_d_conv",
  "mamba_d_state",
  "mamba_n_groups",
  "max_source_positions",
  "max_target_positions",
  "n_groups",
  "norm_num_groups",
  "num_decoder_layers",
  "out_channels",
  "patch_size",
  "relative_attention_num_buckets",
  "ssm_state_size",
  "state_size",
];
const SHARES = [
  "attention_dropout",
  "attn_pdrop",
  "dropout",
  "embd_pdrop",
  "hidden_dropout",
  "hidden_dropout_prob",
  "partial_rotary_factor",
  "resid_pdrop",
  "rotary_pct",
];

/** Published models have parts within parts at most three deep. */
const DEEPEST = 8;

/** @throws TidemarkError TM-E085 for figures with which no library builds the model, in parts of it, too */
export function requireConsistent(config: ModelConfig, depth = 0): void {
  const { values, source } = config;
  if (depth > DEEPEST) {
    const file = source.replace(/( \([^)]*\))+$/, "");
    throw invalidModel(file, `its parts are nested more than ${DEEPEST} deep`);
  }
  for (const name of NOT_ZERO) {
    if (values[name] === 0) {
      throw invalidModel(source, `${name} is 0, not a whole number from 1 to 1e9`);
    }
  }
  for (const name of SHARES) {
    const value = values[name];
    if (typeof value === "number" && value > 1) {
      throw invalidModel(source, `${name} is ${value}, not a share from 0 to 1`);
    }
  }
  if (config.has("rope_scaling") && config.part("rope_scaling") === null) {
    throw invalidModel(source, "rope_scaling is not an object");
  }
  requireOffsets(config);
  requireExpertGroups(config);
  requireStateHeads(config);
  for (const name of Object.keys(values).filter((each) => each.endsWith("_config"))) {
    const part = name === "quantization_config" ? null : config.part(name);
    if (part !== null && part.values !== values) {
      requireConsistent(part, depth + 1);
    }
  }
}

/** Jamba: `_check_supported_offset` of its configuration. */
function requireOffsets(config: ModelConfig): void {
  for (const kind of ["attn", "expert"]) {
    const [period, offset] = ["period", "offset"].map((each) => `${kind}_layer_${each}`) as [
      string,
      string,
    ];
    if (config.has(period, offset) && config.family === "jamba") {
      const every = config.optionalSize(period);
      const first = config.count(0, offset);
      if (every !== undefined && first >= every) {
        throw invalidModel(config.source, `${offset} ${first} is not below ${period} ${every}`);
      }
    }
  }
}

/** DeepSeek chooses groups of experts first. */
function requireExpertGroups(config: ModelConfig): void {
  const experts = config.optionalSize("n_routed_experts");
  const groups = experts === undefined ? undefined : config.optionalSize("n_group");
  if (experts === undefined || groups === undefined) {
    return;
  }
  if (experts % groups !== 0) {
    throw invalidModel(
      config.source,
      `${groups} groups (n_group) do not divide ${experts} experts`,
    );
  }
  const chosen = config.optionalSize("topk_group") ?? 1;
  if (chosen > groups) {
    throw invalidModel(config.source, `topk_group is ${chosen} of ${groups} groups (n_group)`);
  }
}

/** Mamba 2: its configuration refuses heads that are not as wide as the layer together, and its kernel uneven groups. */
function requireStateHeads(config: ModelConfig): void {
  if (config.family !== "mamba2" || !config.has("num_heads") || !config.has("head_dim")) {
    return;
  }
  const [heads, size] = [config.size("num_heads"), config.size("head_dim")];
  const inner = config.fraction(2, "expand") * config.size("hidden_size");
  // A width of 0 is refused where the model is read (state_space_models.ts).
  if (inner > 0 && heads * size !== inner) {
    throw invalidModel(
      config.source,
      `num_heads ${heads} of head_dim ${size} are not ${inner} wide (expand x hidden_size)`,
    );
  }
  const groups = config.optionalSize("n_groups") ?? 1;
  if (heads % groups !== 0) {
    throw invalidModel(config.source, `n_groups ${groups} does not divide num_heads ${heads}`);
  }
}

/** Sentences about figures that the plan takes otherwise than they read. @param towers as they were read */
export function oddFigures(config: ModelConfig, towers: readonly TowerShape[]): string[] {
  const text = config.part("text_config") ?? config;
  const layers = towers.at(-1) === undefined ? [] : layersOf(towers.at(-1) as TowerShape);
  return [
    ...(text.values.max_position_embeddings === 0
      ? ["max_position_embeddings is 0: the plan assumes that the model has no longest sequence"]
      : []),
    ...(text.values.sliding_window === 0
      ? ["sliding_window is 0: the plan assumes that all layers see the whole sequence"]
      : []),
    ...ropeRemarks(text),
    ...layerRemarks(text, layers.length),
    ...expertRemarks(text, towers),
  ];
}

const LARGEST_FACTOR = 1000;

function ropeRemarks(config: ModelConfig): string[] {
  const scaling = config.part("rope_scaling") ?? config.part("rope_parameters");
  if (scaling === null) {
    return [];
  }
  const factor = scaling.fraction(1, "factor");
  const original = scaling.values.original_max_position_embeddings;
  const longest = config.count(0, "max_position_embeddings");
  return [
    ...(factor < 1
      ? [`rope_scaling has the factor ${factor}, below 1: the plan leaves RoPE scaling out`]
      : factor > LARGEST_FACTOR
        ? [`rope_scaling has the factor ${factor}: the plan assumes that sequences may be as long`]
        : []),
    ...(typeof original === "number" && (original <= 0 || (longest > 0 && original > longest))
      ? [
          `rope_scaling has original_max_position_embeddings ${original}, but max_position_embeddings is ${longest}: the longest sequence of the plan may be wrong`,
        ]
      : []),
  ];
}

function layerRemarks(config: ModelConfig, layers: number): string[] {
  const types = config.words("layer_types");
  const listed = config.sizes("mlp_only_layers").filter((index) => index >= layers);
  const pattern = config.values.sliding_window_pattern;
  return [
    ...(types.length > 0 && layers > 0 && types.length !== layers
      ? [`layer_types names ${types.length} of ${layers} layers: the plan leaves it out`]
      : []),
    ...(listed.length > 0 && layers > 0
      ? [
          `mlp_only_layers names layers that the model does not have: ${listed.slice(0, 3).join(", ")}`,
        ]
      : []),
    ...(typeof pattern === "number" && layers > 0 && pattern > layers
      ? [`sliding_window_pattern is ${pattern}, and there are ${layers} layers: all have a window`]
      : []),
  ];
}

/** A mixture of experts none of whose layers has experts: a first layer, a step or an offset beyond the last one. */
function expertRemarks(config: ModelConfig, towers: readonly TowerShape[]): string[] {
  const names = ["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"];
  const experts = config.has(...names) ? (config.optionalSize(...names) ?? 0) : 0;
  const used = towers.some(({ layers }) =>
    layers.some(
      ({ layer }) => layer.kind === "transformer" && layer.mlp !== null && isMoe(layer.mlp),
    ),
  );
  if (experts <= 1 || used) {
    return [];
  }
  const causes = ["first_k_dense_replace", "decoder_sparse_step", "moe_layer_freq"].filter((name) =>
    config.has(name),
  );
  const named = causes.map((name) => `${name} ${config.values[name]}`).join(", ");
  return [
    `no layer has any of the ${experts} experts${named === "" ? "" : ` (${named})`}: the plan is of a model without a mixture`,
  ];
}
