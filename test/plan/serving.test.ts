/** Serving compared with what engines print of their caches and buffers. Each figure names its log. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PlanJson, PlanPartName } from "../../src/model/documents/plan_document.js";
import { TidemarkError } from "../../src/model/errors/errors.js";
import { type PlanRequest, planOptions } from "../../src/plan/defaults.js";
import { type Gpu, gpuNamed } from "../../src/plan/device/gpus.js";
import { requireDivisible } from "../../src/plan/divisible.js";
import { ENGINES, type Engine, type ServeOptions } from "../../src/plan/job/options.js";
import { planMemory } from "../../src/plan/plan.js";
import { planServing } from "../../src/plan/serve/plan_serving.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { roomWords } from "../../src/plan/wording.js";
import { type PlanWords, requestOf } from "../../src/plan/words.js";
import { repository } from "../run.js";

const MIB = 2 ** 20;
const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: Record<string, unknown> }>;

function served(name: string, words: PlanWords, changes: object = {}): PlanJson {
  const values = { ...MODELS[name]?.config, ...changes };
  return planMemory(readShape(values, name, name), requestOf({ serve: true, ...words }));
}

const bytesOf = ({ parts }: Pick<PlanJson, "parts">, name: PlanPartName): number =>
  parts.find(({ part }) => part === name)?.bytes ?? 0;

describe("llama.cpp", () => {
  const llama = { engine: "llama.cpp" } as const;

  test("a log of Llama 3 8B: KV buffer 64.00 MiB, compute buffer 258.50 MiB, output buffer apart", () => {
    const plan = served("llama-3.1-8b", { ...llama, context: 512 });
    expect(bytesOf(plan, "kv cache")).toBe(64 * MIB);
    expect(Math.abs(bytesOf(plan, "temporaries") / (258.5 * MIB) - 1)).toBeLessThan(0.005);
  });

  test.each(["bf16", "fp16", "fp32"] as const)("a cache in f16 beside weights in %s", (dtype) => {
    const cacheOf = (words: PlanWords) => {
      const plan = served("llama-3.1-8b", { ...llama, context: 512, dtype, ...words });
      return [
        bytesOf(plan, "kv cache") / 512,
        plan.assumptions.join().match(/cache in (\w+)/)?.[1],
      ];
    };
    expect(cacheOf({})).toEqual([131_072, "f16"]);
    expect(cacheOf({ cacheTypeK: "f16", cacheTypeV: "f16" })).toEqual(cacheOf({}));
    expect(cacheOf({ kvDtype: "fp32" })).toEqual([262_144, "f32"]);
    const model = readShape(MODELS["llama-3.1-8b"]?.config ?? {}, "m", "m");
    const file = { ...model, stored: { ...model.stored, fileBytes: 5e9 } };
    const options = planOptions(file, requestOf({ serve: true, ...llama, dtype })) as ServeOptions;
    expect(planServing(file, options).kvBytesPerToken).toBe(131_072);
  });

  /** 2.8B of 32 layers, 32 heads, hidden 2560, flash_attn = 0: KV 640.00 MiB, compute buffer 162.00 MiB. */
  test("a log of Pythia 2.8B without flash attention, whose scores are in the compute buffer", () => {
    const sizes = {
      hidden_size: 2560,
      intermediate_size: 10240,
      num_hidden_layers: 32,
      num_attention_heads: 32,
    };
    const words = { ...llama, context: 2048, attention: "eager" } as const;
    const plan = served("pythia-1b", words, sizes);
    expect(bytesOf(plan, "kv cache")).toBe(640 * MIB);
    expect(Math.abs(bytesOf(plan, "temporaries") / (162 * MIB) - 1)).toBeLessThan(0.03);
    // CPU_Mapped model buffer size = 245.62 MiB: the table of tokens in f16.
    const [weights] = plan.host;
    expect(weights?.bytes).toBe(50304 * 2560 * 2);
  });

  /** MiniMax M2, 62 layers of 8 heads of 128: K (q8_0) 4216, V (q8_0) 4216, V (q4_0) 2232 MiB at 65536 cells. */
  test.each([
    [{ kvDtype: "q8_0" }, 8432],
    [{ cacheTypeK: "q8_0", cacheTypeV: "q4_0" }, 6448],
    [{ kvDtype: "q4_0" }, 4464],
    [{ cacheTypeK: "f16", cacheTypeV: "q5_1" }, 7936 + 2976],
    [{ kvDtype: "q5_0" }, 2 * 2728],
    [{ kvDtype: "q4_1" }, 2 * 2480],
    [{ cacheTypeV: "f32" }, 7936 + 15872],
  ] as const)("a cache in %j", (words, mib) => {
    const sizes = { num_hidden_layers: 62, hidden_size: 4096, num_key_value_heads: 8 };
    const plan = served("llama-3.1-8b", { ...llama, context: 65_536, ...words }, sizes);
    expect(bytesOf(plan, "kv cache")).toBe(mib * MIB);
    expect(plan.limits.filter((limit) => limit.includes("no cache in"))).toEqual([]);
  });

  /** gemma-4-12B, -c 4096: 8 layers of 1 head of 512, 40 layers with a window of 1024 in 1536 cells. */
  test("a window takes its tokens and those of a batch, in whole 256", () => {
    const plan = served("gpt-oss-20b", { ...llama, context: 16_384, kvDtype: "q8_0" });
    // gpt-oss: 12 layers of 16384 cells, K (q8_0) 102.00 MiB; 12 with a window of 128 + 512 in 768 cells.
    expect(bytesOf(plan, "kv cache")).toBe(204 * MIB + 12 * 768 * 2 * 8 * 64 * (34 / 32));
  });

  test("layers beyond --gpu-layers are in host memory with their cache", () => {
    const all = served("llama-3.1-8b", { ...llama, context: 4096 });
    const some = served("llama-3.1-8b", { ...llama, context: 4096, gpuLayers: 9 });
    const none = served("llama-3.1-8b", { ...llama, context: 4096, gpuLayers: 0 });
    expect(bytesOf(some, "kv cache")).toBe(bytesOf(all, "kv cache") / 4);
    expect([bytesOf(none, "kv cache"), bytesOf(none, "weights")]).toEqual([0, 0]);
    // Vectors are in fp32.
    const layer = 2 * (4096 * (4096 + 1024) * 2 + 3 * 4096 * 14_336) + 4 * 2 * 4096;
    const output = 2 * 128_256 * 4096 + 4 * 4096;
    expect(bytesOf(some, "weights")).toBe(8 * layer + output);
    const whole = bytesOf(all, "weights") + (all.host[0]?.bytes ?? 0);
    expect(bytesOf(some, "weights") + (some.host[0]?.bytes ?? 0)).toBe(whole);
    expect(whole).toBe(2 * all.model.parameters + 2 * 65 * 4096);
    // The output is the first on the device, and 31 of 32 layers follow.
    const most = served("llama-3.1-8b", { ...llama, context: 4096, gpuLayers: 32 });
    expect(bytesOf(most, "weights")).toBe(31 * layer + output);
  });

  test("recurrent states are in fp32, one column of the convolution less (llama_memory_recurrent)", () => {
    const plan = served("mamba-130m", { ...llama, context: 2048 });
    // 24 layers of inner 1536, state 16, convolution 4.
    expect(bytesOf(plan, "kv cache")).toBe(24 * 1536 * (16 + 3) * 4);
    expect(plan.serving).toMatchObject({ kvBytesPerToken: 0, bytesPerSequence: 24 * 1536 * 76 });
  });

  test.each<[PlanWords, RegExp]>([
    [{ engine: "vllm", kvDtype: "q8_0" }, /TM-E002 vllm has no cache in q8_0; use --kv-dtype fp8/],
    [{ engine: "vllm", kvDtype: "int8" }, /TM-E002 vllm has no cache in int8/],
    [{ engine: "transformers", kvDtype: "q4_0" }, /TM-E002 transformers has no cache in q4_0/],
    [{ ...llama, kvDtype: "fp8" }, /TM-E002 llama\.cpp has no cache in fp8; use --kv-dtype q8_0/],
    [{ engine: "vllm", cacheTypeK: "q8_0" }, /TM-E002 --cache-type-k .* llama\.cpp: vllm/],
    [{ engine: "vllm", cacheTypeK: "f16" }, /TM-E002 --cache-type-k .* llama\.cpp: vllm/],
    [{ engine: "sglang", cacheTypeV: "f16" }, /TM-E002 --cache-type-k .* llama\.cpp: sglang/],
  ])("a cache that an engine does not have is refused: %j", (words, line) => {
    expect(() => served("llama-3.1-8b", words)).toThrow(line);
  });

  test("layers of other engines are a caution, two types of one cache are refused", () => {
    const notes = (words: PlanWords) => served("llama-3.1-8b", words).limits.join();
    expect(notes({ engine: "vllm", gpuLayers: 4 })).toMatch(/--gpu-layers has no effect/);
    expect(() => served("gpt2", { ...llama, kvDtype: "q8_0", cacheTypeK: "f16" })).toThrow(
      /--kv-dtype and --cache-type-k/,
    );
  });
});

describe("a decoder that reads an encoder", () => {
  /** transformers' EncoderDecoderCache of a bf16 model: (batch, heads, positions, head size) of each layer. */
  test("T5 keeps keys and values of each token that its encoder read", () => {
    const plan = served("t5-small", { context: 512, concurrency: 3, dtype: "bf16" });
    const token = 6 * 2 * 8 * 64 * 2;
    expect(plan.serving).toMatchObject({ kvBytesPerToken: token });
    expect(bytesOf(plan, "kv cache")).toBe(3 * 512 * 2 * token);
  });

  test("Whisper keeps those of 1500 positions, at any length of its text", () => {
    const plan = served("whisper-small", { context: 100, dtype: "bf16" });
    const token = 12 * 2 * 12 * 64 * 2;
    expect(plan.serving).toMatchObject({ kvBytesPerToken: token, bytesPerSequence: 1500 * token });
    expect(bytesOf(plan, "kv cache")).toBe((1500 + 100) * token);
  });

  test("a longer text of Whisper costs its own tokens alone: the decoder runs token by token", () => {
    const [short, long] = [64, 448].map((context) =>
      served("whisper-small", { context, concurrency: 8, dtype: "bf16" }),
    ) as [PlanJson, PlanJson];
    const added = long.memory.allocated.bytes - short.memory.allocated.bytes;
    const cached = 8 * 384 * 12 * 2 * 12 * 64 * 2;
    expect(Math.abs(added / cached - 1)).toBeLessThan(0.1);
  });
});

describe("state spaces", () => {
  /** transformers 5 of a bf16 model: conv_states (batch, 1536, 4) bf16, recurrent_states (batch, 1536, 16) fp32. */
  test("Mamba keeps a convolution in its type and a state in fp32, whatever the length", () => {
    for (const context of [64, 65_536]) {
      const plan = served("mamba-130m", { context, concurrency: 2, dtype: "bf16" });
      expect(bytesOf(plan, "kv cache")).toBe(2 * 24 * 1536 * (4 * 2 + 16 * 4));
    }
  });

  test("Mamba 2 convolves its groups' inputs, too", () => {
    const plan = served("mamba2-130m", { context: 2048, dtype: "bf16" });
    const sizes = (MODELS["mamba2-130m"]?.config ?? {}) as Record<string, number>;
    const { hidden_size: hidden = 0, n_groups: groups = 8, state_size: state = 128 } = sizes;
    const inner = 2 * hidden;
    const layer = (inner + 2 * groups * state) * 4 * 2 + inner * state * 4;
    expect(bytesOf(plan, "kv cache")).toBe(plan.model.layers * layer);
  });
});

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

/** DynamicCache of transformers 5.24: keys of (1, 8, 10, 32) for 2 heads of keys. */
test("transformers repeats the keys of Falcon before they are cached", () => {
  const path = join(repository, "test/data/plan/library/falcon_new.json");
  const model = readShape(JSON.parse(readFileSync(path, "utf8")), "falcon", path);
  const cached = (engine: string): number =>
    bytesOf(
      planMemory(
        model,
        requestOf({ serve: true, engine, context: 10, dtype: "bf16" } as PlanWords),
      ),
      "kv cache",
    );
  expect(cached("transformers")).toBe(3 * 2 * 8 * 10 * 32 * 2);
});

describe("latent attention: bytes of one token in the cache of", () => {
  /** DeepSeek-V2-Lite: 27 layers of 16 heads, keys of 128 + 64, values of 128, rows of 512 + 64. */
  const lite = {
    model_type: "deepseek_v2",
    hidden_size: 2048,
    num_hidden_layers: 27,
    num_attention_heads: 16,
    num_key_value_heads: 16,
    n_routed_experts: 64,
    moe_intermediate_size: 1408,
    q_lora_rank: null,
    vocab_size: 102_400,
    max_position_embeddings: 163_840,
  };
  const rows = 27 * (512 + 64) * 2;
  const heads = 27 * 16 * (192 + 128) * 2;

  test.each([
    ["transformers", rows],
    ["vllm", rows],
    ["sglang", rows],
    ["llama.cpp", rows],
    ["tgi", 27 * 16 * 2 * 192 * 2],
  ] as const)("%s", (engine, bytes) => {
    const plan = served("deepseek-v3", { engine, context: 1024 }, lite);
    expect(plan.serving?.kvBytesPerToken).toBe(bytes);
    expect(bytesOf(plan, "kv cache")).toBe(1024 * bytes);
  });

  test("llama.cpp expands rows if its file was converted without attn_k_b", () => {
    const model = readShape({ ...MODELS["deepseek-v3"]?.config, ...lite }, "lite", "lite");
    const fileParts = { embeddingBytes: 0, layerBytes: [], hasLatentRows: false };
    const old = { ...model, stored: { ...model.stored, fileParts } };
    const options = planOptions(old, requestOf({ serve: true, engine: "llama.cpp" }));
    expect(planServing(old, options as ServeOptions).kvBytesPerToken).toBe(heads);
  });

  test("older versions that keep more are named with their figure", () => {
    const notes = (engine: PlanWords["engine"]): string =>
      served("deepseek-v3", { engine } as PlanWords, lite).assumptions.join();
    expect([rows, heads]).toEqual([31_104, 276_480]);
    expect(notes("transformers")).toMatch(
      /transformers before 5\.15 keeps .*: 276,480 B per token/,
    );
    expect(notes("llama.cpp")).toMatch(/llama\.cpp before January 2026 .*: 58,752 B per token/);
    expect(notes("vllm")).not.toMatch(/before/);
  });

  test("their figure is of the same layers and devices as the plan's", () => {
    const older = (words: PlanWords): number | undefined => {
      const text = served("deepseek-v3", words, lite).assumptions.join();
      const digits = text.match(/before .*: ([\d,]+) B per token/)?.[1];
      return digits === undefined ? undefined : Number(digits.replaceAll(",", ""));
    };
    expect(older({ pp: 2 })).toBe(heads / 2);
    expect(older({ pp: 3 })).toBe(heads / 3);
    expect(older({ tp: 4 })).toBe(heads / 4);
    const llama = { engine: "llama.cpp" } as const;
    expect(older({ ...llama, gpuLayers: 10 })).toBe(58_752 / 3);
    expect(older({ ...llama, gpuLayers: 0 })).toBeUndefined();
    // Rows of 512 and 64 values in the type of the keys, and 512 in that of the values.
    const types: PlanWords = { cacheTypeK: "f16", cacheTypeV: "q8_0" };
    expect(older({ ...llama, ...types })).toBe(27 * (576 * 2 + 512 * (34 / 32)));
    expect(older({ ...llama, dtype: "fp32" })).toBe(58_752);
  });
});

describe("the formula of the cache multiplies out to its row", () => {
  const mistral = { sliding_window: 4096, model_type: "mistral" };
  const cases: [name: string, changes: object][] = [
    ["llama-3.1-8b", {}],
    ["llama-3.1-8b", mistral],
    ["gemma-2-9b", {}],
    ["gemma3-1b", {}],
    ["gpt-oss-20b", {}],
    ["phi3-mini", { sliding_window: 2047 }],
    ["deepseek-v3", {}],
    ["t5-small", {}],
    ["whisper-small", {}],
    ["jamba", {}],
  ];

  test.each(cases)("%s %j", (name, changes) => {
    for (const engine of ENGINES) {
      for (const words of [{ context: 448 }, { context: 8000, concurrency: 3 }, { pp: 2 }]) {
        const plan = partsOrNull(name, { engine, ...words }, changes);
        const formula = plan?.parts.find(({ part }) => part === "kv cache")?.formula ?? "";
        if (plan !== null && formula !== "" && !formula.includes("cut to the room")) {
          const sum = [...formula.matchAll(/(\d+) tokens[^x]* x (\d+) B|(\d+) B at any length/g)];
          const one = sum.reduce(
            (all, [, tokens, bytes, state]) =>
              all + (state === undefined ? Number(tokens) * Number(bytes) : Number(state)),
            0,
          );
          const concurrency = Number(/^\d+/.exec(formula));
          expect([engine, formula, concurrency * one]).toEqual([
            engine,
            formula,
            bytesOf(plan, "kv cache"),
          ]);
        }
      }
    }
  });

  /** null: refused. */
  function partsOrNull(
    name: string,
    words: PlanWords,
    changes: object,
  ): Pick<PlanJson, "parts"> | null {
    const model = readShape({ ...MODELS[name]?.config, ...changes }, name, name);
    const options = planOptions(model, requestOf({ serve: true, ...words }));
    try {
      requireDivisible(model, options);
    } catch (error) {
      if (error instanceof TidemarkError) {
        return null;
      }
      throw error;
    }
    return planServing(model, options as ServeOptions);
  }
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

describe("the longest sequence of Command-R", () => {
  const own = {
    model_type: "cohere",
    max_position_embeddings: 8192,
    model_max_length: 131_072,
    rope_theta: 8e6,
  };
  test.each<[Engine, number]>([
    ["vllm", 131_072],
    ["sglang", 131_072],
    ["llama.cpp", 131_072],
    ["tgi", 8192],
    ["transformers", 8192],
  ])("of %s is %d", (engine, longest) => {
    const plan = served(
      "llama-3.1-8b",
      { engine, context: 16_384, gpu: gpuNamed("h200") as Gpu },
      own,
    );
    expect(plan.model.longestSequence).toBe(longest);
    expect(plan.serving?.longestContext).toBeLessThanOrEqual(longest);
    expect(/longer than the 8192 positions/.test(plan.limits.join())).toBe(longest === 8192);
  });
});

/** swa_type of llama.cpp's architectures: none for llama (Mistral), phi3, qwen2 and starcoder2. */
describe("sliding_window_pattern in letters", () => {
  const layersOf = (sliding_window_pattern: unknown): string =>
    readShape(
      {
        ...MODELS["llama-3.1-8b"]?.config,
        model_type: "exaone4",
        num_hidden_layers: 10,
        sliding_window: 4096,
        sliding_window_pattern,
      },
      "m",
      "config.json",
    )
      .towers.flatMap(({ layers }) => layers)
      .map(({ count, layer }) => {
        const window = layer.kind === "transformer" ? (layer.attention?.window ?? 0) : 0;
        return (window === 4096 ? "L" : "G").repeat(count);
      })
      .join("");

  test("is repeated, and the last layer sees all tokens", () => {
    expect(layersOf(4)).toBe("LLLGLLLGLL");
    expect(layersOf("LLLG")).toBe("LLLGLLLGLG");
    expect(layersOf("LG")).toBe("LGLGLGLGLG");
    expect(layersOf("GLL")).toBe("GLLGLLGLLG");
    expect(layersOf("G")).toBe("GGGGGGGGGG");
  });

  test("of other letters is refused", () => {
    for (const pattern of ["LLXG", "4", "lllg"]) {
      expect(() => layersOf(pattern)).toThrow(/TM-E085 .*sliding_window_pattern is "[^\n]+$/);
    }
  });
});

describe("windows in llama.cpp", () => {
  const sizes = { sliding_window: 512, max_window_layers: 0, use_sliding_window: true };
  const cells = (model_type: string, engine: PlanWords["engine"]): number | undefined =>
    served("llama-3.1-8b", { engine, context: 4096 } as PlanWords, { ...sizes, model_type }).serving
      ?.windows?.[0]?.tokens;

  test.each(["mistral", "qwen2", "starcoder2"])("%s has none", (family) => {
    expect(cells(family, "vllm")).toBe(512);
    expect(cells(family, "llama.cpp")).toBeUndefined();
    const plan = served("llama-3.1-8b", { engine: "llama.cpp" }, { ...sizes, model_type: family });
    expect(plan.assumptions.join()).toMatch(/no attention window for this family/);
  });

  test.each(["gemma2", "gemma3_text", "cohere2", "olmo3", "exaone4", "gpt_oss"])(
    "%s keeps its window and a batch",
    (family) => {
      expect(cells(family, "llama.cpp")).toBe(512 + 512);
    },
  );
});

/** mamba2-2.7b: 64 layers, 5,120 wide. vLLM and TGI keep states in the model's type, SGLang in fp32. */
test.each([
  ["vllm", { dtype: "fp16" }, 2, 2, 3],
  ["vllm", { dtype: "fp32" }, 4, 4, 3],
  ["tgi", { dtype: "fp16" }, 2, 2, 4],
  ["sglang", { dtype: "fp16" }, 4, 2, 3],
  ["sglang", { dtype: "fp32" }, 4, 2, 3],
  ["llama.cpp", { dtype: "fp16" }, 4, 4, 3],
] as const)("states of Mamba 2: %s %j", (engine, words, stateBytes, inputBytes, columns) => {
  const sizes = {
    num_hidden_layers: 64,
    n_layer: 64,
    hidden_size: 2560,
    num_heads: 80,
    n_groups: 1,
  };
  const plan = served("mamba2-130m", { engine, ...words }, sizes);
  const rows = (5120 + 2 * 128) * columns * inputBytes;
  expect(plan.serving?.bytesPerSequence).toBe(64 * (5120 * 128 * stateBytes + rows));
});

test("states of SGLang have the type of the configuration, and vLLM's that of the model", () => {
  const bytes = (engine: Engine, changes: object) =>
    served("mamba2-130m", { engine, dtype: "bf16" }, changes).serving?.bytesPerSequence ?? 0;
  const narrow = { mamba_ssm_dtype: "bfloat16" };
  expect(bytes("sglang", narrow)).toBe(bytes("vllm", {}));
  expect(bytes("sglang", { mamba_ssm_dtype: "float32" })).toBe(bytes("sglang", {}));
  expect(bytes("vllm", { mamba_ssm_dtype: "float32" })).toBe(bytes("vllm", {}));
});

/** Jamba 1.5: 32 layers, of which 28 have a state space before their MLP. */
test("an MLP after a state space is part of its layer", () => {
  const plan = served("jamba", { engine: "vllm" });
  expect(plan.model.layers).toBe(MODELS.jamba?.config.num_hidden_layers);
  expect(bytesOf(plan, "cuda graphs")).toBe((180 + 10 * plan.model.layers) * MIB);
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
