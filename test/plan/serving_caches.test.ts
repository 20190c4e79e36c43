/** Bytes of engines' caches, by kind of attention and state. Each figure names its source. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PlanJson } from "../../src/model/documents/plan_document.js";
import { TidemarkError } from "../../src/model/errors/errors.js";
import { planOptions } from "../../src/plan/defaults.js";
import { type Gpu, gpuNamed } from "../../src/plan/device/gpus.js";
import { requireDivisible } from "../../src/plan/divisible.js";
import { ENGINES, type Engine, type ServeOptions } from "../../src/plan/job/options.js";
import { planMemory } from "../../src/plan/plan.js";
import { planServing } from "../../src/plan/serve/plan_serving.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { type PlanWords, requestOf } from "../../src/plan/words.js";
import { repository } from "../run.js";
import { bytesOf, MIB, MODELS, served } from "./served_models.js";

/** Measured: keys and values in the DynamicCache of transformers 5.24 after 512 tokens, in bf16 on the CPU. */
test.each([
  ["gemma4_text", 310_528],
  ["gemma4_moe", 358_912],
  ["gemma3n_text", 179_456],
])("%s: layers that read the keys of others cache nothing", (name, bytes) => {
  const path = join(repository, "test/data/plan/library", `${name}.json`);
  const model = readShape(JSON.parse(readFileSync(path, "utf8")), name, path);
  const plan = planMemory(
    model,
    requestOf({ serve: true, engine: "transformers", context: 512, dtype: "bf16" }),
  );
  expect(bytesOf(plan, "kv cache")).toBe(bytes);
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

/** DynamicCache of transformers 5.24 after 96 tokens: keys of (1, 2, 96, 64); of three layers each a state and a convolution. */
test.each(["qwen3_next", "qwen3_5_text"])(
  "%s: the cache has the bytes of its library's",
  (name) => {
    const path = join(repository, `test/data/plan/library/${name}.json`);
    const model = readShape(JSON.parse(readFileSync(path, "utf8")), name, path);
    const request = requestOf({ serve: true, context: 96, dtype: "bf16" } as PlanWords);
    const states = 3 * (4 * 32 * 32 * 4 + 256 * 4 * 2);
    expect(bytesOf(planMemory(model, request), "kv cache")).toBe(2 * 2 * 96 * 64 * 2 + states);
  },
);

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
