/**
 * Buffers of communication that lie in the caching allocator.
 *
 * DDP: buckets of 25 MB hold the gradients themselves (`gradient_as_bucket_view`) or a copy of them.
 * FSDP: the gathered weights of the layer that runs and of the next one, their gradients before they are reduced, and the
 * embedding and head, which the root unit keeps (torch.distributed.fsdp, "reshard_after_forward").
 * ZeRO: two buckets of 5e8 elements (`reduce_bucket_size`, `overlap_comm`); stage 3 gathers at most
 * `stage3_max_live_parameters` = 1e9 parameters (DeepSpeed's configuration reference). Gradients of experts pass through
 * the same buckets, also of experts that one rank alone has (stage_1_and_2.py, `has_moe_params`).
 */
import type { Bytes } from "../../model/base/units.js";
import { expertDivision } from "../job/experts.js";
import { bytesOfCompute, type TrainOptions } from "../job/options.js";
import type { Tape, Unit } from "../tape/tape.js";

const BUCKET_ELEMENTS = 5e8;
const LIVE_ELEMENTS = 1e9;
const FP32 = 4;

export interface Communication {
  /** While a unit of the tape runs. */
  readonly bytesOf: (unit: Unit, backward: boolean) => Bytes;
  readonly formula: string;
  readonly source: string;
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
  const all = units.layers.reduce((sum, each) => sum + each, units.root);
  switch (sharding.kind) {
    case "fsdp":
      return sharding.devices === 1 ? null : fsdp(units, options, reduceBytes);
    case "zero-1":
    case "zero-2": {
      const bucket = 2 * Math.min(BUCKET_ELEMENTS, trainable) * computeBytes;
      return {
        bytesOf: () => bucket,
        formula: `2 buckets x min(5e8, ${count(trainable)}) x ${computeBytes} B`,
        source: "DeepSpeed: reduce_bucket_size, overlap_comm",
      };
    }
    case "zero-3": {
      const live = Math.min(LIVE_ELEMENTS, all);
      const bucket = 2 * Math.min(BUCKET_ELEMENTS, trainable) * computeBytes;
      return {
        bytesOf: () => live * computeBytes + bucket,
        formula: `min(1e9, ${count(all)}) x ${computeBytes} B gathered + 2 buckets x min(5e8, ${count(trainable)}) x ${computeBytes} B`,
        source: "DeepSpeed: stage3_max_live_parameters, reduce_bucket_size",
      };
    }
    default: {
      if (sharding.devices * tensor === 1) {
        return null;
      }
      const reduced = tape.parameters.filter(
        ({ trainable, ofExperts }) => trainable && !(expertsStay && ofExperts === true),
      );
      const elements = reduced.reduce((sum, each) => sum + each.elements, 0);
      const buckets = reduced.reduce((sum, each) => sum + each.bytes, 0);
      const gradients = sharding.devices > 1 ? buckets : 0;
      return {
        bytesOf: () => gradients,
        formula:
          gradients > 0
            ? `buckets of all gradients${expertsStay ? " but those of experts" : ""}: ${count(elements)} x ${buckets / elements} B`
            : "none",
        source: "torch DistributedDataParallel: a bucket's copy of each gradient",
      };
    }
  }
}

/**
 * The root unit's weights stay gathered from its forward pass on; of the layers, the one that runs and the next one are
 * gathered. The gradients of a layer are there in the compute type, and in the type of the reduction: fp32 in torchtitan,
 * the compute type in accelerate. In version 1 a layer is one flat parameter, so that adapters make a gradient of the
 * whole layer.
 */
function fsdp(
  units: UnitElements,
  { method, dtype, parallelism, library }: TrainOptions,
  reduceBytes: Bytes,
): Communication {
  const computeBytes = bytesOfCompute(dtype);
  const flat = parallelism.sharding.version === 1;
  const layer = Math.max(0, ...units.layers);
  // A flat gradient is reduced as it is, unless the types differ; version 2 copies the gradients into one buffer.
  const reduced = flat && reduceBytes === computeBytes ? 0 : reduceBytes;
  const perElement = method === "full" ? computeBytes + reduced : flat ? computeBytes : 0;
  const gathered = layer * computeBytes;
  // The root unit's gradients are reduced at the end, when that of the embedding is there, too.
  const head = method === "full" ? units.head * computeBytes : 0;
  // torchtune's recipes shard embedding and head as units of their own (`custom_sharded_layers`).
  const rootOf = ({ name, checkpointable }: Unit): number =>
    library !== "torchtune"
      ? units.root
      : name === "head"
        ? units.head
        : checkpointable
          ? 0
          : units.root - units.head;
  return {
    bytesOf: (unit, backward) =>
      rootOf(unit) * computeBytes +
      (unit.checkpointable ? 2 : 1) * gathered +
      (backward && unit.checkpointable ? perElement * layer + head : 0),
    formula: `embedding and head ${count(units.root)} x ${computeBytes} B + 2 layers x ${count(layer)} x ${computeBytes} B${perElement > 0 ? ` + gradients of one layer x ${perElement} B` : ""}${head > 0 ? ` + gradient of the head ${count(units.head)} x ${computeBytes} B` : ""}`,
    source: flat
      ? "torch.distributed.fsdp, FlatParameter: root unit, prefetch, reduce-scatter"
      : "torch.distributed.fsdp.fully_shard: root unit, prefetch, reduce-scatter",
  };
}

/** Elements of each layer, of what is outside of layers, and of the head's matrix, which may be the embedding's. */
interface UnitElements {
  readonly layers: number[];
  readonly root: number;
  readonly head: number;
}

function unitElements(tape: Tape, expertsStay: boolean): UnitElements {
  const layers = new Map<number, number>();
  let root = 0;
  let head = 0;
  for (const { unit, elements, ofExperts } of tape.parameters) {
    if (expertsStay && ofExperts === true) {
      continue;
    }
    const isHead = tape.units[unit]?.name === "head";
    head += isHead ? elements : 0;
    if (tape.units[unit]?.checkpointable === true) {
      layers.set(unit, (layers.get(unit) ?? 0) + elements);
    } else {
      root += elements;
    }
  }
  return { layers: [...layers.values()], root, head };
}

function count(elements: number): string {
  return elements >= 1e9 ? `${(elements / 1e9).toFixed(2)}e9` : `${(elements / 1e6).toFixed(1)}e6`;
}

/** Outside the allocator: NCCL's channels and proxies, for each communicator (NCCL_BUFFSIZE 4 MiB a channel and peer). */
export function ncclBytes(options: TrainOptions): Bytes {
  const { sharding, tensor, pipeline, expert, context } = options.parallelism;
  const groups = [sharding.devices, tensor, pipeline, expert, context].filter((size) => size > 1);
  return groups.reduce((sum, size) => sum + (size > 2 ? 420 : 250) * 2 ** 20, 0);
}
