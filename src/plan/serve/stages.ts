/**
 * Which layers each rank of an engine's pipeline has. The first has the table of tokens, and the last the output.
 *
 * | engine | layers that remain after an even division |
 * |---|---|
 * | vllm | one more for each of the ranks before the last one, from behind (`get_pp_indices`) |
 * | sglang | one more for each of the last ranks (`get_pp_indices`) |
 * | transformers, tgi, llama.cpp | spread evenly |
 */
import { evenStage, type StageChoice } from "../blocks/model_tape.js";
import type { ServeOptions } from "../job/options.js";
import { layerCount, type ModelShape } from "../shape/model_shape.js";

/** Of the last tower. llama.cpp divides the layers that are on a device. */
export function stagesOf(
  model: ModelShape,
  { engine, pipeline, gpuLayers }: ServeOptions,
): Required<StageChoice>[] {
  const tower = model.towers.at(-1);
  const all = tower === undefined ? 0 : layerCount(tower);
  const skipped =
    engine === "llama.cpp" && gpuLayers !== undefined ? Math.max(0, all - gpuLayers) : 0;
  const counts = countsOf(engine, all - skipped, pipeline);
  let from = skipped;
  return counts.map((count, index) => {
    const layers = [from, from + count] as const;
    from += count;
    return { index, count: pipeline, layers };
  });
}

function countsOf(engine: ServeOptions["engine"], layers: number, ranks: number): number[] {
  const each = Math.floor(layers / ranks);
  const rest = layers % ranks;
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
