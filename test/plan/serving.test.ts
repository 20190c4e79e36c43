/** Serving compared with what engines print of their caches and buffers. Each figure names its log. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { PlanJson, PlanPartName } from "../../src/model/documents/plan_document.js";
import { planMemory } from "../../src/plan/plan.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
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

const bytesOf = ({ parts }: PlanJson, name: PlanPartName): number =>
  parts.find(({ part }) => part === name)?.bytes ?? 0;

describe("llama.cpp", () => {
  const llama = { engine: "llama.cpp" } as const;

  test("a log of Llama 3 8B: KV buffer 64.00 MiB, compute buffer 258.50 MiB, output buffer apart", () => {
    const plan = served("llama-3.1-8b", { ...llama, context: 512 });
    expect(bytesOf(plan, "kv cache")).toBe(64 * MIB);
    expect(Math.abs(bytesOf(plan, "temporaries") / (258.5 * MIB) - 1)).toBeLessThan(0.005);
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
    const some = served("llama-3.1-8b", { ...llama, context: 4096, gpuLayers: 8 });
    const none = served("llama-3.1-8b", { ...llama, context: 4096, gpuLayers: 0 });
    expect(bytesOf(some, "kv cache")).toBe(bytesOf(all, "kv cache") / 4);
    expect([bytesOf(none, "kv cache"), bytesOf(none, "weights")]).toEqual([0, 0]);
    const layer = 2 * (4096 * (4096 + 1024) * 2 + 3 * 4096 * 14_336 + 2 * 4096);
    expect(bytesOf(some, "weights")).toBe(8 * layer);
    const whole = bytesOf(all, "weights") + (all.host[0]?.bytes ?? 0);
    expect(bytesOf(some, "weights") + (some.host[0]?.bytes ?? 0)).toBe(whole);
    expect(whole).toBe(2 * all.model.parameters);
    // The last layer, and not the output: 32 of 33.
    const noOutput = served("llama-3.1-8b", { ...llama, context: 4096, gpuLayers: 32 });
    expect(bytesOf(noOutput, "weights")).toBe(32 * layer);
  });

  test("recurrent states are in fp32, one column of the convolution less (llama_memory_recurrent)", () => {
    const plan = served("mamba-130m", { ...llama, context: 2048 });
    // 24 layers of inner 1536, state 16, convolution 4.
    expect(bytesOf(plan, "kv cache")).toBe(24 * 1536 * (16 + 3) * 4);
    expect(plan.serving).toMatchObject({ kvBytesPerToken: 0, bytesPerSequence: 24 * 1536 * 76 });
  });

  test("types that an engine does not have are cautions", () => {
    const notes = (words: PlanWords) => served("llama-3.1-8b", words).limits.join();
    expect(notes({ engine: "vllm", kvDtype: "q8_0" })).toMatch(/vllm has no cache in q8_0/);
    expect(notes({ ...llama, kvDtype: "fp8" })).toMatch(/llama\.cpp has no cache in fp8/);
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
