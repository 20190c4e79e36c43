import { describe, expect, test } from "vitest";
import type { PlanJson } from "../../src/model/documents/plan_document.js";
import { planOptions } from "../../src/plan/defaults.js";
import type { ServeOptions } from "../../src/plan/job/options.js";
import { planServing } from "../../src/plan/serve/plan_serving.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { type PlanWords, requestOf } from "../../src/plan/words.js";
import { bytesOf, MIB, MODELS, served } from "./served_models.js";

describe("llama.cpp", () => {
  const llama = { engine: "llama.cpp" } as const;

  test("a log of Llama 3 8B: KV buffer 64.00 MiB, compute buffer 258.50 MiB, output buffer apart", () => {
    const plan = served("llama-3.1-8b", { ...llama, context: 512 });
    expect(bytesOf(plan, "kv cache")).toBe(64 * MIB);
    expect(Math.abs(bytesOf(plan, "temporaries") / (258.5 * MIB) - 1)).toBeLessThan(0.005);
  });

  test("--tp is its split mode that divides the cache, too", () => {
    const [one, two] = [1, 2].map((tp) => served("llama-3.1-8b", { ...llama, tp }));
    const change = one?.savings.find((each) => each.change === "--tp 2");
    expect(change?.program).toBe("--split-mode tensor");
    expect(2 * bytesOf(two as PlanJson, "kv cache")).toBe(bytesOf(one as PlanJson, "kv cache"));
    expect(two?.assumptions.join()).toContain("--split-mode tensor; row divides the weights");
    expect(one?.assumptions.join()).not.toContain("--split-mode");
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
