import { expect, it } from "vitest";
import type { PlanRequest } from "./defaults.js";
import { type Gpu, gpuNamed } from "./device/gpus.js";
import { withEngine } from "./engine_change.js";
import { CACHE_TYPES } from "./job/cache_types.js";
import { ENGINES, type Engine, QUANTIZATIONS } from "./job/options.js";
import { planMemory } from "./plan.js";
import { readShape } from "./shape/read_shape.js";

const modelOf = (changes: object = {}) =>
  readShape(
    {
      model_type: "llama",
      hidden_size: 256,
      intermediate_size: 512,
      num_hidden_layers: 4,
      num_attention_heads: 16,
      num_key_value_heads: 8,
      vocab_size: 1000,
      ...changes,
    },
    "m",
    "m",
  );
const MODEL = modelOf();

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
      const changed = withEngine(MODEL, request, engine);
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
  const { notes = [] } = withEngine(MODEL, request, "tgi");
  expect(notes).toEqual([
    "of a file",
    "left out for tgi, which has no such option: a cache in q8_0, --gpu-layers 4, --ep 2",
  ]);
  expect(withEngine(MODEL, withEngine(MODEL, request, "tgi"), "vllm").notes).toEqual(["of a file"]);
});

const gemma = modelOf({ model_type: "gemma2" });
const fbgemm = modelOf({ quantization_config: { quant_method: "fbgemm_fp8" } });

it.each<[string, ReturnType<typeof modelOf>, Engine, Engine, Partial<PlanRequest>, string]>([
  ["Gemma 2 in fp16", gemma, "sglang", "vllm", { dtype: "fp16" }, "--dtype fp16"],
  ["fbgemm", fbgemm, "vllm", "transformers", { gpu: gpuNamed("4090") as Gpu }, "for H100"],
  ["parts of heads", MODEL, "vllm", "transformers", { tensor: 16 }, "--tp 16"],
  ["a pipeline", MODEL, "vllm", "tgi", { pipeline: 2 }, "--pp 2"],
  ["nf4", MODEL, "vllm", "llama.cpp", { quantize: "nf4" }, "--quantize nf4"],
])("%s: a plan is made, and a note names what is left out", (_, model, from, to, changes, lost) => {
  const request: PlanRequest = { mode: "serve", ...changes, serve: { engine: from } };
  expect(planMemory(model, request).serving?.engine).toBe(from);
  const changed = withEngine(model, request, to);
  expect(planMemory(model, changed).serving?.engine).toBe(to);
  expect(changed.notes).toEqual([expect.stringContaining(lost)]);
  expect(withEngine(model, changed, from).notes).toEqual([]);
});

it("makes a plan from every engine's options to every other engine's", () => {
  for (const quantize of [undefined, ...QUANTIZATIONS]) {
    for (const tensor of [1, 2, 16]) {
      for (const engine of ENGINES) {
        const request: PlanRequest = {
          mode: "serve",
          tensor,
          pipeline: 2,
          ...(quantize === undefined ? {} : { quantize }),
          serve: { engine: "vllm" },
        };
        const changed = withEngine(MODEL, request, engine);
        expect(planMemory(MODEL, changed).serving?.engine).toBe(engine);
      }
    }
  }
});
