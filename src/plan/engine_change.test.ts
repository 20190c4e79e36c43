import { expect, it } from "vitest";
import type { PlanRequest } from "./defaults.js";
import { withEngine } from "./engine_change.js";
import { CACHE_TYPES } from "./job/cache_types.js";
import { ENGINES } from "./job/options.js";
import { planMemory } from "./plan.js";
import { readShape } from "./shape/read_shape.js";

const MODEL = readShape(
  {
    model_type: "llama",
    hidden_size: 256,
    intermediate_size: 512,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    vocab_size: 1000,
  },
  "m",
  "m",
);

it.each(ENGINES)("to %s: whatever the cache of another engine is, a plan is made", (engine) => {
  for (const kvDType of CACHE_TYPES) {
    for (const valueDType of [undefined, "auto", "q4_0"] as const) {
      const request: PlanRequest = {
        mode: "serve",
        serve: {
          engine: "llama.cpp",
          kvDType,
          gpuLayers: 1,
          ...(valueDType === undefined ? {} : { valueDType }),
        },
      };
      const changed = withEngine(request, engine);
      expect(planMemory(MODEL, changed).serving?.engine).toBe(engine);
    }
  }
});

it("names what is left out in one line, and no longer after the next change", () => {
  const request: PlanRequest = {
    mode: "serve",
    notes: ["of a file"],
    expert: 2,
    serve: { engine: "llama.cpp", kvDType: "q8_0", valueDType: "q8_0", gpuLayers: 4 },
  };
  const { notes = [] } = withEngine(request, "tgi");
  expect(notes).toEqual([
    "of a file",
    "left out for tgi, which has no such option: a cache in q8_0, --gpu-layers 4, --ep 2",
  ]);
  expect(withEngine(withEngine(request, "tgi"), "vllm").notes).toEqual(["of a file"]);
});
