/** What comes before the first layer: rows of tables, patches times a matrix, the norm and the dropout of both. */
import type {
  EmbeddingShape,
  LayerShape,
  ModelShape,
  TowerShape,
  TransformerLayer,
} from "../shape/model_shape.js";
import type { Parameter, Tensor } from "../tape/tape.js";
import { isTokenTable } from "./adapter_names.js";
import type { LayerBuilder } from "./layer_builder.js";
import { normalized } from "./norms.js";

const INDEX_BYTES = 8;

export interface EmbeddingPlace {
  readonly model: ModelShape;
  readonly positions: number;
  /** The tower before it, which a decoder reads. */
  readonly other: { readonly output: Tensor; readonly positions: number } | null;
}

/** Rows of the tables, added up, or patches times a matrix; then norm and dropout. */
export function embed(
  build: LayerBuilder,
  tower: TowerShape,
  { model, positions, other }: EmbeddingPlace,
  rows: number,
): Tensor {
  const { tape, rules } = build;
  tape.part = "embedding";
  const itemBytes = rules.autocast ? rules.weightBytes : rules.computeBytes;
  const isText = tower.positions === "sequence" || tower.stems.length === 0;
  let x: Tensor | null = null;
  for (const [index, table] of tower.embeddings.entries()) {
    const tied = index === 0 && model.head.tied && tower === model.towers.at(-1);
    // OPT adds positions to rows that are as wide as the layers already; ELECTRA projects the sum of all tables.
    const added =
      x !== null && table.width !== x.elements / rows ? projected(build, x, tower, rows) : x;
    x = addRows(build, added, table, { rows, itemBytes, tied });
  }
  for (const stem of tower.stems) {
    const read = stem.rows === undefined ? rows : rules.batch * stem.rows;
    const source: Tensor = tape.input(read * stem.input, itemBytes);
    const made = build.linear(source, {
      name: stem.name,
      inputs: stem.input,
      outputs: stem.output,
      bias: stem.bias,
      group: "other",
    });
    x = x === null || stem.output !== tower.hidden ? made : build.add(made, x);
  }
  if (tower.otherParameters > 0) {
    const { otherBiases: biases = 0 } = tower;
    const name = `${tower.name}.other`;
    const others = [
      build.parameter(name, tower.otherParameters - biases, "matrix", 1),
      ...(biases > 0 ? [build.parameter(`${name}.bias`, biases, "vector")] : []),
    ];
    const extraSaved = [
      ...biasOfPositions(build, tower, positions, other),
      rules.batch * (tower.otherSaved ?? 0) * rules.computeBytes,
    ];
    tape.op({ name, inputs: [], makes: [], extraSaved, parameters: others });
  }
  if (tower.idleParameters !== undefined) {
    const idle = build.parameter(`${tower.name}.idle`, tower.idleParameters, "matrix", 1);
    tape.parameters.push({ ...idle, trainable: false });
  }
  if (tower.buffer !== undefined) {
    tape.parameters.push({
      ...build.parameter(`${tower.name}.buffer`, tower.buffer, "buffer"),
      trainable: false,
    });
  }
  if (x === null) {
    const channels = firstChannels(tower, positions);
    return tape.input(rules.batch * channels.elements, itemBytes);
  }
  const width = x.elements / rows;
  if (tower.embeddingNorm !== null) {
    x = normalized(build, x, width, tower.embeddingNorm);
  }
  if (tower.embeddingDropout && rules.dropout && isText && positions > 0) {
    x = build.dropout(x);
  }
  return projected(build, x, tower, rows);
}

/** From the width of the tables to that of the layers, where they differ. */
function projected(
  build: LayerBuilder,
  x: Tensor,
  { hidden, embeddingProjection }: TowerShape,
  rows: number,
): Tensor {
  const width = x.elements / rows;
  return embeddingProjection === undefined || width === hidden
    ? x
    : build.linear(x, {
        name: "embeddings_project",
        inputs: width,
        outputs: hidden,
        bias: embeddingProjection.bias,
        group: "other",
      });
}

/**
 * T5 looks up a bias of each pair of positions once for all layers, and keeps the indices. `sdpa` gets a mask of zeros for
 * each head where the decoder reads the encoder. WavLM repeats its bias for each sequence. Pixtral has one mask between the
 * images of a batch for all layers.
 */
function biasOfPositions(
  { rules }: LayerBuilder,
  { layers }: TowerShape,
  positions: number,
  other: EmbeddingPlace["other"],
): number[] {
  const [first] = layers;
  const shape = first?.layer.kind === "transformer" ? first.layer : null;
  const own = shape?.attention;
  const gated = layers.map(({ layer }) => layer).find(isGated)?.attention;
  if (gated != null) {
    const scores = gated.heads * rules.batch * positions ** 2;
    return [positions ** 2 * INDEX_BYTES, scores * rules.computeBytes];
  }
  if (own?.joinsBatch === true && rules.attention === "sdpa") {
    return [(rules.batch * positions) ** 2 * rules.computeBytes];
  }
  if (own?.scoreBias !== "relative" || own.relativeRows !== undefined) {
    return [];
  }
  const reads = shape?.cross !== null && other !== null && rules.attention === "sdpa";
  const zeros = own.heads * positions * (reads ? other.positions : 0) * rules.computeBytes;
  return [positions ** 2 * INDEX_BYTES, zeros];
}

const isGated = (layer: LayerShape): layer is TransformerLayer =>
  layer.kind === "transformer" && layer.attention?.scoreBias === "gated";

function firstChannels({ layers }: TowerShape, positions: number): { elements: number } {
  const [first] = layers;
  const layer = first?.layer;
  switch (layer?.kind) {
    case "convolution":
      return { elements: layer.inputChannels * layer.inputSide ** 2 };
    case "stage":
      return { elements: layer.inputHidden * layer.inputSide ** 2 };
    case "frames": {
      const { step, first } = layer.samples ?? { step: 1, first: 1 };
      return { elements: (positions - 1) * step + first };
    }
    default:
      return { elements: 1 };
  }
}

/** trainable_token_indices: the forward pass copies the table to put the trained rows in. */
function trainsRows({ rules }: LayerBuilder, { name, shared }: EmbeddingShape): boolean {
  return isTokenTable(name) && shared !== true && (rules.adapter?.details.tokens ?? 0) > 0;
}

/** Of a table of tokens that is a target itself, or of which some rows are trained. */
function tableAdapters(build: LayerBuilder, table: EmbeddingShape): Parameter[] {
  const { adapter } = build.rules;
  if (adapter === null || !isTokenTable(table.name) || table.shared === true) {
    return [];
  }
  const { targets, rank, details } = adapter;
  const isTarget = typeof targets !== "string" && targets.some(isTokenTable);
  const named = (part: string, elements: number, rows: number): Parameter =>
    build.adapterParameter(`${table.name}.${part}`, elements, rows);
  return [
    ...(isTarget
      ? [named("lora_A", table.rows * rank, rank), named("lora_B", table.width * rank, rank)]
      : []),
    ...(trainsRows(build, table)
      ? [named("trainable_tokens_delta", details.tokens * table.width, details.tokens)]
      : []),
  ];
}

function addRows(
  build: LayerBuilder,
  x: Tensor | null,
  table: EmbeddingShape,
  { rows, itemBytes, tied }: { rows: number; itemBytes: number; tied: boolean },
): Tensor {
  const { tape, rules } = build;
  const tableRows = Math.ceil(table.rows / (rules.wholeTables ? 1 : rules.tensorParallel));
  const own = build.parameter(table.name, tableRows * table.width, "embedding", tableRows);
  const parameter: Parameter = {
    ...own,
    ...((tied && own.originalBytes === undefined) || table.shared === true ? { tied: true } : {}),
  };
  const [made] = tape.op({
    name: table.name,
    inputs: [],
    makes: [{ elements: rows * table.width, itemBytes }],
    extraSaved: [rows * INDEX_BYTES],
    parameters: [parameter, ...tableAdapters(build, table)],
    ...(trainsRows(build, table)
      ? { forwardTemporary: parameter.bytes, backwardTemporary: parameter.bytes }
      : {}),
  });
  if (table.shared === true) {
    tape.parameters.pop();
  }
  return x === null ? (made as Tensor) : build.add(x, made as Tensor);
}
