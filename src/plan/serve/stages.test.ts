import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { modelTape } from "../blocks/model_tape.js";
import { type PlanRequest, planOptions } from "../defaults.js";
import { type Gpu, gpuNamed } from "../device/gpus.js";
import type { Engine, ServeOptions, TrainOptions } from "../job/options.js";
import { readShape } from "../shape/read_shape.js";
import { trainingRules } from "../train/block_rules.js";
import { blocksOfRequest } from "./block_groups.js";
import { planServing } from "./plan_serving.js";
import { stagesOf } from "./stages.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);

const shapeOf = (name: string, changes: object = {}) =>
  readShape({ ...MODELS[name].config, ...changes }, name, "config.json");

const job = (engine: Engine, pipeline: number, name = "llama-3.1-8b", changes: object = {}) => {
  const model = shapeOf(name, changes);
  const request: PlanRequest = {
    mode: "serve",
    pipeline,
    gpu: gpuNamed("h100") as Gpu,
    serve: { engine },
  };
  return { model, options: planOptions(model, request) as ServeOptions };
};

describe("vLLM starts only if one whole sequence fits beside the tokens of a pass", () => {
  it.each(["gemma-2-9b", "gpt-oss-20b", "llama-3.1-8b"])("%s", (name) => {
    const model = shapeOf(name);
    const seen = new Set<boolean>();
    for (let utilization = 0.6; utilization < 1; utilization += 0.02) {
      const serve = { engine: "vllm", context: 8192, utilization } as const;
      const request: PlanRequest = { mode: "serve", gpu: gpuNamed("3090") as Gpu, serve };
      const { room } = planServing(model, planOptions(model, request) as ServeOptions);
      const { bytes = 0, blocks } = room ?? {};
      const requests =
        blocks === undefined
          ? 0
          : Math.floor(bytes / blocks.bytes) / blocksOfRequest(blocks, serve.context);
      expect([utilization, (room?.sequencesOf(serve.context) ?? 0) >= 1]).toEqual([
        utilization,
        requests >= 1,
      ]);
      seen.add(requests >= 1);
    }
    expect([...seen]).toEqual([false, true]);
  });
});

describe("layers of each rank", () => {
  it.each([
    ["vllm", 32, 3, [11, 11, 10]],
    ["vllm", 30, 4, [7, 8, 8, 7]],
    ["vllm", 61, 4, [15, 15, 16, 15]],
    ["sglang", 32, 3, [10, 11, 11]],
    ["transformers", 32, 3, [10, 11, 11]],
    ["llama.cpp", 32, 1, [32]],
    // The output is one more on the last one.
    ["llama.cpp", 32, 2, [17, 15]],
    ["llama.cpp", 32, 3, [11, 11, 10]],
    ["llama.cpp", 32, 4, [9, 8, 8, 7]],
    ["llama.cpp", 2, 4, [0, 1, 1, 0]],
  ] as const)("%s: %d over %d are %j", (engine, layers, ranks, expected) => {
    const { model, options } = job(engine, ranks, "llama-3.1-8b", { num_hidden_layers: layers });
    const stages = stagesOf(model, options);
    expect(stages.map(({ layers: [from, to] }) => to - from)).toEqual(expected);
    expect(stages.at(-1)?.layers[1]).toBe(layers);
  });
});

describe("the rank that is planned", () => {
  const LAYER = 218_112_000;
  const TABLE = 128_256 * 4096;
  it("has the table or the output, and as many layers as its engine gives it", () => {
    const planned = (engine: Engine) => {
      const { model, options } = job(engine, 3);
      const { rank, parts, kvBytesPerToken } = planServing(model, options);
      return [rank, parts[0]?.bytes, kvBytesPerToken];
    };
    expect(planned("vllm")).toEqual(["pipeline stage 0 of 3", 2 * (11 * LAYER + TABLE), 11 * 4096]);
    const output = 2 * (11 * LAYER + TABLE + 4096);
    expect(planned("sglang")).toEqual(["pipeline stage 2 of 3", output, 11 * 4096]);
  });

  it("has a copy of a table that is the head's matrix, too", () => {
    const { model, options } = job("vllm", 2, "qwen3-0.6b");
    const { parts } = planServing(model, options);
    const whole = planServing(model, { ...options, pipeline: 1 }).parts[0]?.bytes ?? 0;
    // Whichever of the two is planned.
    const table = 151_936 * 1024 * 2;
    expect(Math.abs((parts[0]?.bytes ?? 0) - (whole - table) / 2 - table)).toBeLessThan(4096);
  });
});

describe("a state space and the MLP after it", () => {
  it("are one layer of llama.cpp", () => {
    const { model, options } = job("llama.cpp", 1, "jamba");
    const bytes = (gpuLayers: number) =>
      planServing(model, { ...options, gpuLayers }).parts[0]?.bytes ?? 0;
    const all = planServing(model, options).parts[0]?.bytes ?? 0;
    // Of 32 layers: the output is one more, and the first.
    expect(bytes(33)).toBe(all);
    expect(bytes(32)).toBeLessThan(all);
    expect((bytes(17) - bytes(1)) / (all - bytes(1))).toBeCloseTo(0.5, 2);
  });

  it("are on one stage of a pipeline", () => {
    const model = shapeOf("jamba");
    const options = planOptions(model, { mode: "train", pipeline: 4 }) as TrainOptions;
    const names = [0, 1, 2, 3].map((index) => {
      const { tape } = modelTape(model, trainingRules(model, options), { index, count: 4 });
      return new Set(tape.units.map(({ name }) => name).filter((name) => /\.\d+$/.test(name))).size;
    });
    expect(names).toEqual([8, 8, 8, 8]);
  });
});

describe("a pipeline of vLLM", () => {
  const SAMPLER = 1024 * 128_256 * 16;
  /** Formula of the temporaries, and weights, of the rank that is planned. */
  const planned = (pipeline: number, stored: object = {}) => {
    const { model, options } = job("vllm", pipeline);
    const { parts, rank } = planServing(
      { ...model, stored: { ...model.stored, ...stored } },
      options,
    );
    const temporaries = parts.find(({ part }) => part === "temporaries");
    return { rank, weights: parts[0]?.bytes, ...temporaries };
  };

  it("samples on its last rank alone", () => {
    const [first, last] = [planned(3), planned(4)];
    // 11, 11, 10 layers: the first rank has least room for each sequence. 8 each: the last one also samples.
    expect([first.rank, last.rank]).toEqual(["pipeline stage 0 of 3", "pipeline stage 3 of 4"]);
    expect(first.formula).not.toMatch(/sampler/);
    expect(last.formula).toMatch(/sampler of 1024 sequences/);
    expect(last.bytes).toBeGreaterThan(SAMPLER);
  });

  it("has the parts of a file that belong to its layers", () => {
    const table = 300e6;
    const output = 500e6;
    const layerBytes = Array.from({ length: 32 }, (_, index) => 100e6 + index * 1e6);
    const inLayers = (from: number, to: number): number =>
      layerBytes.slice(from, to).reduce((sum, each) => sum + each, 0);
    const stored = {
      fileBytes: table + output + inLayers(0, 32),
      fileParts: { embeddingBytes: table, layerBytes },
    };
    expect(planned(1, stored).weights).toBe(stored.fileBytes);
    expect(planned(3, stored)).toMatchObject({
      rank: "pipeline stage 0 of 3",
      weights: table + inLayers(0, 11),
    });
    expect(planned(4, stored)).toMatchObject({
      rank: "pipeline stage 3 of 4",
      weights: output + inLayers(24, 32),
    });
  });
});

describe("a pipeline of llama.cpp", () => {
  const LAYER = 2 * 218_103_808 + 4 * 8192;
  const OUTPUT = 2 * 128_256 * 4096 + 4 * 4096;
  it.each([
    [2, 33, "pipeline stage 1 of 2", 15 * LAYER + OUTPUT],
    [4, 33, "pipeline stage 3 of 4", 7 * LAYER + OUTPUT],
    // The output is the first on a device, and 8 layers follow: 5 and 3.
    [2, 9, "pipeline stage 1 of 2", 3 * LAYER + OUTPUT],
    [2, 1, "pipeline stage 1 of 2", OUTPUT],
  ])("of %d devices with -ngl %d: %s", (pipeline, gpuLayers, rank, weights) => {
    const { model, options } = job("llama.cpp", pipeline);
    const plan = planServing(model, { ...options, gpuLayers });
    expect([plan.rank, plan.parts[0]?.bytes]).toEqual([rank, weights]);
  });
});

describe("types of a GGUF file", () => {
  it.each([
    ["llama-2-7b", "int4", 3577],
    ["llama-3.1-8b", "int4", 4155],
    ["llama-3.1-8b", "int8", 7605],
  ] as const)("%s in %s: the model buffer of llama.cpp's log", (name, quantize, mib) => {
    const { model, options } = job("llama.cpp", 1, name);
    const { parts } = planServing(model, { ...options, quantize });
    expect((parts[0]?.bytes ?? 0) / 2 ** 20).toBeCloseTo(mib, -0.4);
  });

  it("include neither nf4 nor fp8", () => {
    for (const quantize of ["nf4", "nf4-dq", "fp8"] as const) {
      expect(() =>
        planOptions(shapeOf("llama-3.1-8b"), {
          mode: "serve",
          quantize,
          serve: { engine: "llama.cpp" },
        }),
      ).toThrow(/a GGUF file has no such type/);
    }
  });
});

describe("CUDA graphs", () => {
  it.each([
    ["llava", 32],
    ["whisper-small", 12],
    ["llama-3.1-8b", 32],
  ])("of %s are of the %d layers of its decoder", (name, layers) => {
    const { model, options } = job("vllm", 1, name);
    const graphs = planServing(model, options).parts.find(({ part }) => part === "cuda graphs");
    expect(graphs?.formula).toContain(`${layers} layers x 10 MiB`);
  });
});
