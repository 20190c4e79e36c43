/**
 * Buffers of communication that lie in the caching allocator.
 *
 * DDP: buckets of 25 MB hold the gradients themselves (`gradient_as_bucket_view`) or a copy of them.
 * FSDP: the gathered weights of the layer that runs and of the next one, their gradients before they are reduced, and the
 * embedding and head, which the root unit keeps (torch.distributed.fsdp, "reshard_after_forward").
 * ZeRO: two buckets of 5e8 elements (`reduce_bucket_size`, `overlap_comm`); stage 3 gathers at most
 * `stage3_max_live_parameters` = 1e9 parameters (DeepSpeed's configuration reference).
 */
import type { Bytes } from "../../model/base/units.js";
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
  const { expert } = options.parallelism;
  const units = unitElements(tape, expert > 1 && expert >= sharding.devices);
  const trainable = tape.parameters.reduce(
    (sum, each) => sum + (each.trainable ? each.elements : 0),
    0,
  );
  const all = units.layers.reduce((sum, each) => sum + each, units.root);
  switch (sharding.kind) {
    case "fsdp":
      return sharding.devices === 1 ? null : fsdp(units, options);
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
      const gradients = sharding.devices > 1 ? trainable * computeBytes : 0;
      return {
        bytesOf: () => gradients,
        formula:
          sharding.devices > 1
            ? `buckets of all gradients: ${count(trainable)} x ${computeBytes} B`
            : "none",
        source: "torch DistributedDataParallel: a bucket's copy of each gradient",
      };
    }
  }
}

/**
 * The root unit's weights stay gathered from its forward pass on; of the layers, the one that runs and the next one are
 * gathered. The gradients of a layer are there in the compute type, and in fp32 for the reduction. In version 1 a layer
 * is one flat parameter, so that adapters make a gradient of the whole layer.
 */
function fsdp(
  units: { layers: number[]; root: number },
  { method, dtype, parallelism }: TrainOptions,
): Communication {
  const computeBytes = bytesOfCompute(dtype);
  const flat = parallelism.sharding.version === 1;
  const layer = Math.max(0, ...units.layers);
  const perElement = method === "full" ? computeBytes + FP32 : flat ? computeBytes : 0;
  const gathered = layer * computeBytes;
  return {
    bytesOf: ({ checkpointable }, backward) =>
      units.root * computeBytes +
      (checkpointable ? 2 : 1) * gathered +
      (backward && checkpointable ? perElement * layer : 0),
    formula: `embedding and head ${count(units.root)} x ${computeBytes} B + 2 layers x ${count(layer)} x ${computeBytes} B${perElement > 0 ? ` + gradients of one layer x ${perElement} B` : ""}`,
    source: flat
      ? "torch.distributed.fsdp, FlatParameter: root unit, prefetch, reduce-scatter"
      : "torch.distributed.fsdp.fully_shard: root unit, prefetch, reduce-scatter",
  };
}

/** Elements of each layer, and of what is outside of layers. */
function unitElements(tape: Tape, expertsStay: boolean): { layers: number[]; root: number } {
  const layers = new Map<number, number>();
  let root = 0;
  for (const { unit, elements, role } of tape.parameters) {
    if (expertsStay && role === "expert") {
      // Each expert is on one rank alone: nothing is gathered.
      continue;
    }
    if (tape.units[unit]?.checkpointable === true) {
      layers.set(unit, (layers.get(unit) ?? 0) + elements);
    } else {
      root += elements;
    }
  }
  return { layers: [...layers.values()], root };
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
