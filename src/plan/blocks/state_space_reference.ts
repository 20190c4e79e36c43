/**
 * What the reference code of transformers keeps of a state space where the kernels of `mamba_ssm` are missing: every
 * state of every position (modeling_mamba.py, `mamba_selective_scan`; modeling_mamba2.py, `mamba2_chunk_scan`).
 */
import type { Bytes } from "../../model/base/units.js";
import type { StateSpaceShape } from "../shape/model_shape.js";

const FP32 = 4;

/** Of one layer on one device. */
export interface ReferencePlace {
  readonly batch: number;
  readonly sequence: number;
  /** On this device. */
  readonly inner: number;
  readonly heads: number;
  readonly itemBytes: number;
}

/** Bytes of each kind of tensor, beside the projection and the input of the output matrix. */
export function savedByReference(mixer: StateSpaceShape, place: ReferencePlace): Bytes[] {
  return mixer.version === 1 ? savedByScan(mixer, place) : savedByChunks(mixer, place);
}

/** Live at once while the largest factors are made. */
export function referenceTemporary(mixer: StateSpaceShape, place: ReferencePlace): Bytes {
  const { batch, sequence, inner, heads } = place;
  return mixer.version === 1
    ? batch * sequence * inner * mixer.state * FP32
    : 2 * paddedLength(mixer, sequence) * batch * heads * mixer.chunk * FP32;
}

function convolved({ convolution }: StateSpaceShape, place: ReferencePlace, channels: number) {
  return place.batch * (place.sequence + convolution - 1) * channels * place.itemBytes;
}

/** A loop over the positions: factors and the state of each, in fp32. */
function savedByScan(mixer: StateSpaceShape, place: ReferencePlace): Bytes[] {
  const { batch, sequence, inner, itemBytes } = place;
  const { state, timeRank } = mixer;
  const tokens = batch * sequence;
  const wide = tokens * inner * FP32;
  const narrow = tokens * inner * itemBytes;
  const isNarrow = itemBytes < FP32;
  return [
    convolved(mixer, place, inner),
    // The activated rows and their copy for x_proj; the steps before and after softplus; the activated gate.
    5 * narrow,
    tokens * (timeRank + 2 * state) * itemBytes,
    // Factors of the state, factors of the input, and the states themselves.
    3 * wide * state,
    // The scan's output, which D widens.
    wide,
    ...(isNarrow ? [narrow * state, wide, tokens * state * FP32] : []),
    2 * inner * state * FP32,
  ];
}

/** Products within chunks, which keep a score for each pair of positions, and between them; all of it in fp32. */
function savedByChunks(mixer: StateSpaceShape, place: ReferencePlace): Bytes[] {
  const { batch, sequence, inner, heads, itemBytes } = place;
  const { state, groups, chunk } = mixer;
  const padded = batch * paddedLength(mixer, sequence);
  const chunks = padded / chunk;
  const channels = inner + (2 * groups * state * inner) / mixer.inner;
  const rows = batch * sequence * FP32;
  return [
    convolved(mixer, place, channels),
    // Decay, scores, and their product.
    3 * padded * heads * chunk * FP32,
    // Rows of B and C, repeated for each head, in the layouts of three products.
    5 * padded * heads * state * FP32,
    // The rows in these layouts, and the output.
    5 * padded * inner * FP32,
    // The activated gate, and the norm's product before and after it is scaled; without a norm, the gate and its factor.
    mixer.plainGate === true
      ? batch * sequence * inner * (itemBytes < FP32 ? itemBytes : 2 * FP32)
      : 3 * rows * inner,
    // Copies in fp32 of the rows and the norm's gate; without them, the rows are a slice of all activated channels.
    itemBytes < FP32 ? (mixer.plainGate === true ? 1 : 2) * rows * inner : rows * channels,
    // The states of all chunks, of which the first has one more.
    (2 * chunks + 3 * batch) * inner * state * FP32,
  ];
}

/** Sequences are padded to whole chunks. */
function paddedLength({ chunk }: StateSpaceShape, sequence: number): number {
  return Math.ceil(sequence / chunk) * chunk;
}
