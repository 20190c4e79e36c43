/** Memory of the host: loading, pinned buffers, states that were moved there, the DataLoader's workers. */
import type { PlanJson } from "../../model/documents/plan_document.js";
import { bytesOfCompute, type TrainOptions } from "../job/options.js";
import type { ModelShape } from "../shape/model_shape.js";
import type { DevicePeak } from "./device_peak.js";

const MIB = 2 ** 20;
/** Python with torch and transformers imported, and CUDA's own host memory. */
const PROCESS_BYTES = 2600 * MIB;
/** Memory that a worker adds by writing to pages shared with its parent (reference counts), and its own buffers. */
const WORKER_BYTES = 280 * MIB;

export function hostParts(
  model: ModelShape,
  options: TrainOptions,
  peak: DevicePeak,
): PlanJson["host"] {
  const { states } = peak;
  const { parameters } = states.counts;
  const stored = model.weightFiles?.bytes ?? parameters * bytesOfCompute(options.dtype);
  const parts: PlanJson["host"] = [
    {
      part: "process",
      bytes: PROCESS_BYTES,
      formula: "Python, torch and CUDA's host side, one process for each device",
    },
    {
      part: "loading",
      bytes: stored,
      formula:
        "the checkpoint's tensors while they are copied to the device; with low_cpu_mem_usage=False twice",
    },
  ];
  if (states.host > 0) {
    parts.push({
      part: "optimizer and offloaded weights",
      bytes: Math.round(states.host),
      formula: `${OFFLOADED[options.parallelism.sharding.offload]}, pinned`,
    });
  }
  if (options.activationOffload && options.checkpointing !== "none") {
    const layers = peak.tape.units.filter(({ checkpointable }) => checkpointable);
    parts.push({
      part: "offloaded activations",
      bytes: layers.reduce(
        (sum, { inputs }) => sum + inputs.reduce((all, { bytes }) => all + bytes, 0),
        0,
      ),
      formula: "input of each layer, pinned",
    });
  }
  if (options.workers > 0) {
    parts.push({
      part: "DataLoader workers",
      bytes: options.workers * WORKER_BYTES,
      formula: `${options.workers} workers x 280 MiB of pages that copy-on-write duplicates; more where the data set is a Python list`,
    });
  }
  return parts;
}

const OFFLOADED = {
  none: "paged states",
  optimizer: "states, master weights and gradients",
  all: "states, master weights, gradients and weights",
} as const;
