/**
 * Which layers each rank of an engine's pipeline has. The first has the table of tokens, and the last the output.
 *
 * | engine | layers that remain after an even division |
 * |---|---|
 * | vllm | one more for each of the ranks before the last one, from behind (`get_pp_indices`) |
 * | sglang | one more for each of the last ranks (`get_pp_indices`) |
 * | transformers | spread evenly |
 * | llama.cpp | the output is one more layer, after the others; slot i of n is on device i x devices / n, rounded down (`load_tensors`) |
 */
import { evenStage, type StageChoice } from "../blocks/model_tape.js";
import type { ServeOptions } from "../job/options.js";
import { layerCount } from "../shape/layers.js";
import type { ModelShape } from "../shape/model_shape.js";

/** Of the last tower. llama.cpp divides what is on a device, the output included. */
export function stagesOf(
  model: ModelShape,
  { engine, pipeline, gpuLayers }: ServeOptions,
): Required<StageChoice>[] {
  const tower = model.towers.at(-1);
  const all = tower === undefined ? 0 : layerCount(tower);
  const onDevice = engine === "llama.cpp" ? placedLayers(all, gpuLayers).layers : all;
  const counts = countsOf(engine, onDevice, pipeline);
  let from = all - onDevice;
  return counts.map((count, index) => {
    const layers = [from, from + count] as const;
    from += count;
    return { index, count: pipeline, layers };
  });
}

/**
 * What `-ngl N` puts on the device: the output, and the last N - 1 layers (`i_gpu_start` of llama-model.cpp; pull request 18148, December
 * 2025; before, the last N layers, and the output if N is more than there are).
 */
export function placedLayers(
  all: number,
  gpuLayers = Number.POSITIVE_INFINITY,
): { readonly layers: number; readonly hasOutput: boolean } {
  return { layers: Math.min(all, Math.max(0, gpuLayers - 1)), hasOutput: gpuLayers > 0 };
}

function countsOf(engine: ServeOptions["engine"], layers: number, ranks: number): number[] {
  const each = Math.floor(layers / ranks);
  const rest = layers % ranks;
  if (engine === "llama.cpp") {
    return slotsOf(layers + 1, ranks);
  }
  return Array.from({ length: ranks }, (_, index) => {
    const behind = ranks - 1 - index;
    switch (engine) {
      case "vllm":
        return each + (behind >= 1 && behind <= rest ? 1 : 0);
      case "sglang":
        return each + (behind < rest ? 1 : 0);
      default: {
        const [from, to] = evenStage(layers, { index, count: ranks });
        return to - from;
      }
    }
  });
}

/** Layers of each device of llama.cpp: its slots, of which the last one is the output. Devices without a slot come first. */
function slotsOf(slots: number, devices: number): number[] {
  const counts = Array.from({ length: devices }, () => 0);
  for (let slot = 0; slot < slots - 1; slot++) {
    const device = slots < devices ? devices - slots + slot : Math.floor((slot * devices) / slots);
    counts[device] = (counts[device] ?? 0) + 1;
  }
  return counts;
}
