import { describe, expect, test } from "vitest";
import type { PlanJson } from "../../src/model/documents/plan_document.js";
import type { PlanRequest } from "../../src/plan/defaults.js";
import { type Gpu, gpuNamed } from "../../src/plan/device/gpus.js";
import { ENGINES, type Engine } from "../../src/plan/job/options.js";
import { planMemory } from "../../src/plan/plan.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { roomWords } from "../../src/plan/wording.js";
import type { PlanWords } from "../../src/plan/words.js";
import { bytesOf, MODELS, served } from "./served_models.js";

describe("experts", () => {
  test("are divided evenly, but for vLLM, whose plan is of a rank with most", () => {
    expect(() => served("mixtral", { ep: 3 })).toThrow(
      /8 experts cannot be divided evenly over --ep 3/,
    );
    expect(() => served("mixtral", { engine: "sglang", ep: 3 })).toThrow(/evenly/);
    expect(() => served("mixtral", { engine: "llama.cpp", ep: 2 })).toThrow(
      /no expert parallelism/,
    );
    const uneven = served("mixtral", { engine: "vllm", ep: 3, gpu: undefined as never });
    expect(uneven.limits.join()).toMatch(/8 experts are not a multiple of --ep 3.*rank with 3/);
    expect(() => served("mixtral", { engine: "vllm", tp: 8, ep: 4 })).toThrow(/use --ep 8 or a/);
    expect(() => served("mixtral", { engine: "sglang", ep: 4 })).toThrow(/use --tp 4, or an --ep/);
    expect(() => served("mixtral", { ep: 4 })).toThrow(/use --tp 4 --ep 4/);
    const even = served("mixtral", { engine: "vllm", ep: 4 });
    expect(even.limits).toEqual([]);
    const expert = 32 * 3 * 4096 * 14_336 * 2;
    expect(bytesOf(uneven, "weights") - bytesOf(even, "weights")).toBe(expert);
  });
});

describe("an engine that has no paged cache for a model", () => {
  test.each(["t5-small", "mamba-130m"])("tgi gives %s the cache of its batch", (name) => {
    const [one, two] = [1, 2].map((concurrency) => served(name, { engine: "tgi", concurrency }));
    expect(bytesOf(two as PlanJson, "kv cache")).toBe(2 * bytesOf(one as PlanJson, "kv cache"));
    expect(bytesOf(one as PlanJson, "unused kv cache")).toBe(0);
    expect(one?.assumptions.join()).not.toMatch(/% of the device/);
  });

  test("tgi captures graphs of decoders alone", () => {
    const graphs = (name: string): number =>
      bytesOf(served(name, { engine: "tgi" }), "cuda graphs");
    expect(graphs("t5-small")).toBe(0);
    expect(graphs("mamba-130m")).toBeGreaterThan(0);
    expect(served("t5-small", { engine: "tgi", cudaGraphs: false }).limits.join()).toMatch(
      /--no-cuda-graphs has no effect/,
    );
  });

  test.each(["vllm", "sglang"] as const)("%s fills its share with states, too", (engine) => {
    for (const name of ["mamba-130m", "jamba", "llama-3.1-8b"]) {
      const plan = served(name, { engine, gpu: gpuNamed("h200") as Gpu });
      expect(bytesOf(plan, "unused kv cache"), name).toBeGreaterThan(2 ** 30);
    }
  });
});

describe("tensor parallelism that an engine does not have", () => {
  test.each<[string, Engine, RegExp]>([
    [
      "sdxl-unet",
      "transformers",
      /TM-E086 diffusers has no tensor parallelism .*; leave --tp out$/,
    ],
    ["flux.1-dev", "transformers", /TM-E086 diffusers has no tensor parallelism/],
    ["mamba-130m", "transformers", /mamba, a decoder; leave --tp out, or use --engine vllm/],
    ["mamba2-130m", "transformers", /no tensor parallelism for mamba2/],
    ["opt-1.3b", "transformers", /no tensor parallelism for opt/],
    ["t5-small", "transformers", /no tensor parallelism for t5/],
    ["vit-b", "transformers", /no tensor parallelism for vit, a model of images; leave --tp out$/],
    ["bart-base", "tgi", /tgi has no tensor parallelism for bart/],
  ])("of %s with %s is refused, and not offered", (name, engine, message) => {
    const words: PlanWords = { engine };
    expect(() => served(name, { ...words, tp: 2 })).toThrow(message);
    expect(served(name, words).savings.map(({ change }) => change)).not.toContain("--tp 2");
  });

  test.each<[string, Engine]>([
    ["llama-3.1-8b", "transformers"],
    ["llava", "transformers"],
    ["jamba", "transformers"],
    ["mamba-130m", "vllm"],
    ["t5-small", "tgi"],
  ])("is there for %s with %s", (name, engine) => {
    expect(served(name, { engine, tp: 2 }).devices.count).toBe(2);
  });
});

describe("a division that an engine does not have", () => {
  const accepts = (engine: Engine, words: PlanWords, name = "llama-3.1-8b"): boolean => {
    try {
      served(name, { engine, ...words });
      return true;
    } catch (error) {
      expect((error as Error).message).toMatch(/^TM-E0(?:86|02) [^\n]+; [^\n]+$/);
      return false;
    }
  };
  const of = (words: PlanWords, name?: string): Engine[] =>
    ENGINES.filter((engine) => accepts(engine, words, name));

  test("is refused in one line, whatever the engine", () => {
    expect(of({ tp: 2 })).toEqual(ENGINES);
    expect(of({ pp: 2 })).toEqual(["transformers", "vllm", "sglang", "llama.cpp"]);
    expect(of({ tp: 2, pp: 2 })).toEqual(["vllm", "sglang"]);
    expect(of({ ep: 2 })).toEqual([]);
    expect(of({ tp: 2, ep: 2 }, "mixtral")).toEqual(["transformers", "vllm", "sglang"]);
    expect(of({ tp: 2, ep: 2, pp: 2 }, "mixtral")).toEqual(["vllm", "sglang"]);
    expect(of({ cp: 2 })).toEqual([]);
  });

  test("names what to use instead", () => {
    expect(() => served("llama-3.1-8b", { engine: "tgi", tp: 2, pp: 2 })).toThrow(
      /TM-E086 tgi has no pipeline parallelism; use --tp 4 instead of --pp 2, or --engine vllm or sglang$/,
    );
  });
});

describe("a saving is a technique that exists for the model", () => {
  const h100 = gpuNamed("h100") as Gpu;
  const changes = (name: string, engine: Engine): string[] =>
    served(name, { engine, gpu: h100, context: 448 })
      .savings.map(({ change }) => change)
      .filter((change) => /quantize|kv-dtype/.test(change))
      .sort();

  const DECODER = ["--kv-dtype fp8", "--quantize fp8", "--quantize int4"];
  test.each<[string, Engine, string[]]>([
    ["llama-3.1-8b", "vllm", DECODER],
    ["llama-3.1-8b", "tgi", DECODER],
    ["llava", "sglang", DECODER],
    ["llama-3.1-8b", "transformers", ["--kv-dtype int8", "--quantize fp8", "--quantize int4"]],
    ["llama-3.1-8b", "llama.cpp", ["--kv-dtype q8_0", "--quantize int4"]],
    // Diffusion, images, CLIP: bitsandbytes alone.
    ["sdxl-unet", "transformers", ["--quantize nf4"]],
    ["flux.1-dev", "transformers", ["--quantize nf4"]],
    ["vit-b", "transformers", ["--quantize nf4"]],
    ["clip", "transformers", ["--quantize nf4"]],
    ["resnet50", "transformers", []],
    // Encoders, T5 and Whisper have linear layers, but neither AWQ nor GPTQ, nor quantized caches outside vLLM.
    ["bert-base", "transformers", ["--quantize fp8", "--quantize nf4"]],
    ["t5-small", "transformers", ["--quantize fp8", "--quantize nf4"]],
    ["t5-small", "tgi", ["--quantize fp8"]],
    ["whisper-small", "transformers", ["--quantize fp8", "--quantize nf4"]],
    ["whisper-small", "vllm", ["--kv-dtype fp8", "--quantize fp8"]],
    ["bert-base", "llama.cpp", ["--quantize int4"]],
    // State spaces have no keys and values, and engines do not quantize their mixers.
    ["mamba-130m", "transformers", ["--quantize nf4"]],
    ["mamba-130m", "tgi", []],
  ])("of %s with %s", (name, engine, expected) => {
    expect(changes(name, engine)).toEqual(expected);
  });
});

describe("sentences about serving", () => {
  test("name a type of the cache only where there is one", () => {
    const words = (name: string): string => served(name, {}).assumptions.join();
    expect(words("sdxl-unet")).toContain("1 image at once");
    expect(words("sdxl-unet")).not.toMatch(/tokens|cache/);
    expect(words("bert-base")).not.toContain("cache");
    expect(words("mamba-130m")).toContain("cache in");
  });

  test("quote an error of the engine that has it", () => {
    const limits = (engine: Engine): string =>
      served("llama-3.1-8b", {
        engine,
        kvDtype: "fp8",
        gpu: gpuNamed("a100") as Gpu,
      }).limits.join();
    expect(limits("vllm")).toMatch(/fp8e4nv/);
    for (const engine of ["sglang", "tgi"] as const) {
      expect(limits(engine)).toMatch(/kernels of \w+ for a cache in fp8/);
      expect(limits(engine)).not.toMatch(/vllm|fp8e4nv/i);
    }
  });

  test("name a soft cap that a kernel leaves out or refuses", () => {
    const limits = (words: PlanWords, name = "gemma-2-9b"): string =>
      served(name, words).limits.join();
    expect(limits({ attention: "sdpa" })).toMatch(/sdpa of transformers leaves out the soft cap/);
    expect(limits({})).not.toContain("soft cap");
    expect(limits({ attention: "eager" })).not.toContain("soft cap");
    expect(limits({ attention: "flash" })).not.toContain("soft cap");
    expect(limits({ engine: "vllm" })).not.toContain("soft cap");
    const old = { engine: "vllm", gpu: gpuNamed("v100-32gb") as Gpu } as const;
    expect(limits(old)).toMatch(/needs Ampere or later; on V100-32GB/);
    expect(limits(old, "gemma3-1b")).not.toContain("soft cap");
    const bytes = (attention: "eager" | "sdpa"): number =>
      bytesOf(served("gemma-2-9b", { attention, context: 4096 }), "temporaries");
    expect(bytes("eager")).toBeGreaterThan(bytes("sdpa") + 16 * 4096 * 4096 * 2);
  });

  test("name mxfp4 as such", () => {
    const [weights] = served("gpt-oss-20b", { engine: "vllm" }).parts;
    expect(weights?.formula).toMatch(/in mxfp4, 0\.531 B a weight of the experts/);
  });

  test("give no number of tokens where each sequence takes memory of its own, too", () => {
    const room = (name: string): string => {
      const { serving, model } = served(name, { engine: "vllm", context: 448 });
      return serving === undefined ? "" : roomWords(serving, model);
    };
    expect(room("whisper-small")).toMatch(/^room for [\d,]+ sequences of this context/);
    expect(room("jamba")).not.toMatch(/^room for [\d,]+ tokens/);
    expect(room("gpt2")).toMatch(/^room for [\d,]+ tokens/);
  });
});

describe("what an engine does not start with", () => {
  const gpu = (name: string) => gpuNamed(name) as Gpu;
  const shapeOf = (name: string) => readShape(MODELS[name]?.config ?? {}, name, name);
  const serve = (name: string, request: Partial<PlanRequest>, engine: Engine, kvDType?: "fp8") =>
    planMemory(shapeOf(name), {
      mode: "serve",
      ...request,
      serve: { engine, ...(kvDType === undefined ? {} : { kvDType }) },
    });

  test.each(["gemma-2-9b", "gemma3-1b"])("float16 for %s on vLLM", (name) => {
    expect(() => serve(name, { dtype: "fp16" }, "vllm")).toThrow(/vllm refuses float16 for gemma/);
    expect(serve(name, { dtype: "fp16" }, "sglang").parts.length).toBeGreaterThan(2);
    const chosen = (device: string) =>
      serve(name, { gpu: gpu(device) }, "vllm")
        .assumptions.join()
        .match(/cache in (\w+)/)?.[1];
    expect([chosen("h100"), chosen("v100")]).toEqual(["bf16", "fp32"]);
  });

  test("a cache in fp8 below compute capability 8.9 is a caution", () => {
    const limits = (device: string) =>
      serve("llama-3.1-8b", { gpu: gpu(device) }, "vllm", "fp8").limits.join();
    expect(limits("v100-32gb")).toMatch(/V100-32GB has compute capability 7\.0/);
    expect(limits("a100")).toMatch(/compute capability 8\.0/);
    expect(limits("l4")).toBe("");
  });

  test("half a head of keys, unless the engine keeps copies", () => {
    const tensor = { tensor: 16 };
    expect(() => serve("llama-3.1-8b", tensor, "transformers")).toThrow(/8 heads of keys/);
    expect(serve("llama-3.1-8b", tensor, "vllm").serving?.kvBytesPerToken).toBe(32 * 2 * 128 * 2);
    const training: PlanRequest = { mode: "train", ...tensor };
    expect(() => planMemory(shapeOf("llama-3.1-8b"), training)).toThrow(/8 heads of keys/);
    expect(serve("deepseek-v3", tensor, "transformers").parts.length).toBeGreaterThan(2);
  });
});
