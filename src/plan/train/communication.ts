/**
 * Buffers of communication that lie in the caching allocator.
 *
 * DDP: buckets of 25 MB hold the gradients themselves (`gradient_as_bucket_view`) or a copy of them.
 * FSDP: the gathered weights of the layer that runs and of the next one, their gradients before they are reduced, and the
 * embedding and head, which the root unit keeps (torch.distributed.fsdp, "reshard_after_forward"). Where it is off, the
 * layers that were gathered stay until the backward pass is through with them.
 * ZeRO: a bucket of 5e8 elements (`reduce_bucket_size`) in the type of the weights, whole also if fewer are trained, and
 * a flat copy of its gradients while they are reduced. Stages 1 and 2 make it for each backward pass, and a second one with
 * `overlap_comm`, which is off by default (stage_1_and_2.py, `setup_buckets`, `allreduce_bucket`); stage 3 has one from
 * start on (stage3.py; coalesced_collectives.py, `reduce_scatter_coalesced`), and gathers at most
 * `stage3_max_live_parameters` = 1e9 parameters. Gradients of experts pass through the same buckets, also of experts that
 * one rank alone has (stage_1_and_2.py, `has_moe_params`).
 */
import type { Bytes } from "../../model/base/units.js";
import { expertDivision } from "../job/experts.js";
import { bytesOfCompute, type TrainOptions } from "../job/options.js";
import { countedParameters } from "../tape/products.js";
import type { Tape, Unit } from "../tape/tape.js";
import { gatheredBytes, keepsWholeGradients, sharesFlatParameters } from "./states.js";

const BUCKET_ELEMENTS = 5e8;
const LIVE_ELEMENTS = 1e9;
const FP32 = 4;

export interface Communication {
  /** While a unit of the tape runs. */
  readonly bytesOf: (unit: Unit, backward: boolean) => Bytes;
  /** The same as a sum of products. */
  readonly formulaOf: (unit: Unit, backward: boolean) => string;
  readonly source: string;
}

/** "2 layers x 218.1e6 x 2 B" */
interface Term {
  readonly words: string;
  readonly count?: number;
  readonly elements: number;
  readonly bytes: Bytes;
}

function ofTerms(
  termsOf: (unit: Unit, backward: boolean) => readonly Term[],
  source: string,
  remark = "",
): Communication {
  const words = ({ words, count, elements, bytes }: Term): string => {
    const each = Number(bytes.toPrecision(5));
    const before = count === undefined ? `${words} ` : `${count} ${words} x `;
    return `${before}${countedParameters(elements)} x ${each} B`;
  };
  const existing = (unit: Unit, backward: boolean): Term[] =>
    termsOf(unit, backward).filter(({ elements, bytes }) => elements * bytes > 0);
  return {
    bytesOf: (unit, backward) =>
      existing(unit, backward).reduce(
        (sum, { count = 1, elements, bytes }) => sum + count * elements * bytes,
        0,
      ),
    formulaOf: (unit, backward) => {
      const terms = existing(unit, backward);
      return terms.length === 0 ? "" : `${terms.map(words).join(" + ")}${remark}`;
    },
    source,
  };
}

export function communicationOf(tape: Tape, options: TrainOptions): Communication | null {
  const { sharding, tensor } = options.parallelism;
  const computeBytes = bytesOfCompute(options.dtype);
  const { devices: groups, copies } = expertDivision(options);
  // Each expert is on the ranks of one group alone: nothing is gathered or added up.
  const expertsStay = groups > 1 && copies >= sharding.devices;
  const units = unitElements(tape, expertsStay);
  const trainable = tape.parameters.reduce(
    (sum, each) => sum + (each.trainable ? each.elements : 0),
    0,
  );
  const reduceBytes = options.library === "torchtitan" ? FP32 : computeBytes;
  const {
    reduceBucket = BUCKET_ELEMENTS,
    overlaps = false,
    contiguous = true,
    liveParameters = LIVE_ELEMENTS,
  } = sharding.deepSpeed ?? {};
  const bucket = { words: "bucket", elements: reduceBucket, bytes: computeBytes };
  const buckets = overlaps ? { ...bucket, words: "buckets", count: 2 } : bucket;
  const copy = {
    words: "flat copy",
    elements: sharding.devices === 1 ? 0 : Math.min(reduceBucket, trainable),
    bytes: computeBytes,
  };
  switch (sharding.kind) {
    case "fsdp":
      return sharding.devices === 1 ? null : fsdp(units, options, reduceBytes);
    case "zero-1":
    case "zero-2":
      // The first gradient makes them: that of the head, whose logits are gone by then.
      return ofTerms(
        ({ name }, backward) =>
          backward && name !== "head" ? [...(contiguous ? [buckets] : []), copy] : [],
        "DeepSpeed: reduce_bucket_size, overlap_comm, contiguous_gradients",
      );
    case "zero-3": {
      const live = {
        words: "gathered",
        elements: Math.min(liveParameters, units.all),
        bytes: computeBytes,
      };
      return ofTerms(
        (_, backward) => [live, bucket, ...(backward ? [copy] : [])],
        "DeepSpeed: stage3_max_live_parameters, reduce_bucket_size",
      );
    }
    default: {
      if (sharding.devices * tensor === 1) {
        return null;
      }
      const reduced = tape.parameters.filter(
        ({ trainable, ofExperts }) => trainable && !(expertsStay && ofExperts === true),
      );
      const elements = reduced.reduce((sum, each) => sum + each.elements, 0);
      const bytes = reduced.reduce((sum, each) => sum + each.bytes, 0);
      const gradients = { words: "buckets of gradients", elements, bytes: bytes / elements };
      return ofTerms(
        () => (sharding.devices > 1 && elements > 0 ? [gradients] : []),
        "torch DistributedDataParallel: a bucket's copy of each gradient",
        expertsStay ? "; without those of experts" : "",
      );
    }
  }
}

/**
 * The root unit's weights stay gathered from its forward pass on; of the layers, the one that runs and the next one are
 * gathered. The gradients of a layer are there in the compute type, and in the type of the reduction: fp32 in torchtitan,
 * the compute type in accelerate. In version 1 a layer is one flat parameter. Adapters that share it make a gradient of the
 * whole layer, and of all layers where gradients are reduced in the last microbatch alone.
 */
function fsdp(units: UnitElements, options: TrainOptions, reduceBytes: Bytes): Communication {
  const { method, parallelism, library } = options;
  const keepsWhole = keepsWholeGradients(options);
  const bytes = gatheredBytes(options);
  const flat = parallelism.sharding.version === 1;
  const shares = sharesFlatParameters(options);
  const { keepsGathered = false } = parallelism.sharding;
  const layer = Math.max(0, ...units.layers);
  // A flat gradient is reduced as it is, unless the types differ; version 2 copies the gradients into one buffer.
  const reduced = flat && reduceBytes === bytes ? 0 : reduceBytes;
  const made = keepsWhole ? 0 : bytes;
  const perElement = method === "full" ? made + reduced : shares ? made : 0;
  const kept = keepsWhole && shares ? units.trained : 0;
  // The root unit's gradients are reduced at the end, when that of the embedding is there, too.
  const head = method === "full" && !keepsWhole ? units.head : 0;
  // torchtune's recipes shard embedding and head as units of their own (`custom_sharded_layers`).
  const rootOf = ({ name, checkpointable }: Unit): number =>
    library !== "torchtune"
      ? units.root
      : name === "head"
        ? units.head
        : checkpointable
          ? 0
          : units.root - units.head;
  return ofTerms(
    (unit, backward) => [
      { words: "embedding and head", elements: rootOf(unit), bytes },
      keepsGathered
        ? { words: "gathered layers", elements: units.upTo(unit), bytes }
        : unit.checkpointable
          ? { words: "layers", count: 2, elements: layer, bytes }
          : { words: "one layer", elements: layer, bytes },
      { words: "gradients of all layers", elements: kept, bytes },
      ...(backward && unit.checkpointable
        ? [
            { words: "gradients of one layer", elements: layer, bytes: perElement },
            { words: "gradient of the head", elements: head, bytes },
          ]
        : []),
    ],
    flat
      ? "torch.distributed.fsdp, FlatParameter: root unit, prefetch, reduce-scatter"
      : "torch.distributed.fsdp.fully_shard: root unit, prefetch, reduce-scatter",
  );
}

/** Elements of each layer, of what is outside of layers, and of the head's matrix, which may be the embedding's. */
interface UnitElements {
  readonly layers: number[];
  readonly root: number;
  readonly all: number;
  /** The same without what is outside of layers, if all of that is frozen. */
  readonly trained: number;
  readonly head: number;
  /** Of all layers up to a unit, and of the next one, which is fetched early. */
  readonly upTo: (unit: Unit) => number;
}

function unitElements(tape: Tape, expertsStay: boolean): UnitElements {
  const layers = new Map<number, number>();
  let root = 0;
  let trainsRoot = false;
  let head = 0;
  for (const { unit, elements, ofExperts, trainable } of tape.parameters) {
    if (expertsStay && ofExperts === true) {
      continue;
    }
    const isHead = tape.units[unit]?.name === "head";
    head += isHead ? elements : 0;
    if (tape.units[unit]?.checkpointable === true) {
      layers.set(unit, (layers.get(unit) ?? 0) + elements);
    } else {
      root += elements;
      trainsRoot ||= trainable;
    }
  }
  const indices = new Map(tape.units.map((unit, index) => [unit, index]));
  const order = [...layers].sort(([a], [b]) => a - b);
  const upTo = (unit: Unit): number => {
    const at = indices.get(unit) ?? tape.units.length;
    const next = order.find(([index]) => index > at)?.[0] ?? at;
    return order.reduce((sum, [index, elements]) => sum + (index <= next ? elements : 0), 0);
  };
  const frozen = trainsRoot ? 0 : root;
  const all = [...layers.values()].reduce((sum, each) => sum + each, root);
  return { layers: [...layers.values()], root, all, trained: all - frozen, head, upTo };
}

/** Outside the allocator: NCCL's channels and proxies, for each communicator (NCCL_BUFFSIZE 4 MiB a channel and peer). */
export function ncclBytes(options: TrainOptions): Bytes {
  const { sharding, tensor, pipeline, expert, context } = options.parallelism;
  const groups = [sharding.devices, tensor, pipeline, expert, context].filter((size) => size > 1);
  return groups.reduce((sum, size) => sum + (size > 2 ? 420 : 250) * 2 ** 20, 0);
}
