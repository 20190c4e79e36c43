import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parameterCount } from "../model_facts.js";
import { planMemory } from "../plan.js";
import { readShape } from "./read_shape.js";

/** Sizes from the published config.json of each model, and the parameters that its library counts. */
const MODELS: Readonly<Record<string, { parameters: number; config: Record<string, unknown> }>> =
  JSON.parse(readFileSync(new URL("../../../test/data/plan/models.json", import.meta.url), "utf8"));
const shape = (config: Record<string, unknown>) => readShape(config, "m", "config.json");
const llama = MODELS["llama-3.1-8b"]?.config as Record<string, unknown>;

describe("published configurations", () => {
  it.each(Object.keys(MODELS))("%s has the parameters that its library counts", (name) => {
    const { parameters, config } = MODELS[name] as (typeof MODELS)[string];
    const model = shape(config);
    expect(model.known).toBe(true);
    expect(Math.abs(parameterCount(model) / parameters - 1)).toBeLessThan(2e-4);
  });

  it.each(Object.keys(MODELS))("%s is planned, and its parts add up", (name) => {
    const model = shape((MODELS[name] as (typeof MODELS)[string]).config);
    for (const mode of ["train", "serve"] as const) {
      const plan = planMemory(model, { mode });
      const sum = plan.parts.reduce((total, { bytes }) => total + bytes, 0);
      expect(sum).toBe(plan.perDeviceBytes);
      expect(plan.low).toBeLessThan(plan.perDeviceBytes);
      expect(plan.high).toBeGreaterThan(plan.perDeviceBytes);
      expect(plan.memory.allocated.bytes).toBeLessThanOrEqual(plan.memory.reserved.bytes);
      expect(JSON.stringify(plan)).not.toMatch(/null|NaN/);
    }
  });
});

/** Default configurations of transformers 5.17 and 5.24, and the parameters that its classes have (on the meta device). */
const TYPES: Readonly<
  Record<string, { class: string; parameters: number; config: Record<string, unknown> }>
> = JSON.parse(
  readFileSync(new URL("../../../test/data/plan/model_types.json", import.meta.url), "utf8"),
);

describe("default configurations of transformers", () => {
  it.each(Object.keys(TYPES))("%s: the parameters of its class, or no reader", (type) => {
    const { parameters, config } = TYPES[type] as (typeof TYPES)[string];
    let model: ReturnType<typeof shape>;
    try {
      model = shape(config);
    } catch (error) {
      expect(String(error)).toMatch(/TM-E085 [^\n]+ has no reader[^\n]*$/);
      return;
    }
    if (model.known) {
      expect(parameterCount(model)).toBe(parameters);
    }
  });

  it("families that are read", () => {
    const known = Object.values(TYPES).filter(({ config }) => {
      try {
        return shape(config).known;
      } catch {
        return false;
      }
    });
    expect(known.length).toBeGreaterThan(146);
  });

  it("a nested configuration without its defaults (Gemma 3 4B as published)", () => {
    const model = shape({
      model_type: "gemma3",
      text_config: {
        hidden_size: 2560,
        intermediate_size: 10240,
        model_type: "gemma3_text",
        num_hidden_layers: 34,
        sliding_window: 1024,
      },
      vision_config: {
        hidden_size: 1152,
        image_size: 896,
        intermediate_size: 4304,
        model_type: "siglip_vision_model",
        num_attention_heads: 16,
        num_hidden_layers: 27,
        patch_size: 14,
        vision_use_head: false,
      },
    });
    expect(parameterCount(model)).toBe(4_300_079_472);
  });

  it.each([
    ["LlamaForSequenceClassification", 7_504_924_672 + 2 * 4096],
    ["LlamaModel", 7_504_924_672],
  ])("the architecture names the head: %s", (architecture, parameters) => {
    const model = shape({ ...llama, architectures: [architecture] });
    expect(parameterCount(model)).toBe(parameters);
  });
});

describe("bytes of one token in the cache", () => {
  it.each([
    ["llama-3.1-8b", 131_072],
    ["llama-2-7b", 524_288],
    ["qwen2.5-7b", 57_344],
    ["deepseek-v3", 61 * 576 * 2],
    ["mamba-130m", 0],
    ["bert-base", 0],
  ])("%s: %d", (name, bytes) => {
    const model = shape((MODELS[name] as (typeof MODELS)[string]).config);
    const plan = planMemory(model, { mode: "serve", dtype: "bf16" });
    expect(plan.model.kvBytesPerToken).toBe(bytes);
  });
});

describe("hostile configurations end in one line", () => {
  it.each([
    ["no sizes", { model_type: "llama" }, /no hidden_size/],
    ["text", { ...llama, hidden_size: "4096" }, /hidden_size is "4096"/],
    ["negative", { ...llama, num_hidden_layers: -1 }, /num_hidden_layers is -1/],
    ["fractions", { ...llama, vocab_size: 1.5 }, /vocab_size is 1.5/],
    ["huge", { ...llama, intermediate_size: 1e30 }, /intermediate_size is 1e\+30/],
    ["endless layers", { ...llama, num_hidden_layers: 1e9 }, /1000000000 layers/],
    ["no whole head", { ...llama, num_attention_heads: 33 }, /do not divide/],
    ["groups", { ...llama, num_key_value_heads: 5 }, /5 key-value heads/],
    ["experts", { ...llama, num_local_experts: 2, num_experts_per_tok: 8 }, /8 experts/],
    ["text for a flag", { ...llama, tie_word_embeddings: "yes" }, /tie_word_embeddings is "yes"/],
    ["text for a share", { ...llama, partial_rotary_factor: "half" }, /factor is "half"/],
    ["heads of BERT", { ...MODELS["bert-base"]?.config, num_attention_heads: 7 }, /7 heads do not/],
    [
      "a family without a reader",
      { model_type: "segformer" },
      /model_type "segformer" has no reader/,
    ],
    [
      "another task",
      {
        ...MODELS["t5-small"]?.config,
        model_type: "t5",
        d_kv: 64,
        architectures: ["T5EncoderModel"],
      },
      /T5EncoderModel has no reader/,
    ],
    [
      "a quantization that is text",
      { ...llama, quantization_config: "awq" },
      /quantization_config is not an object/,
    ],
    ["a quantization that is a list", { ...llama, quantization_config: [] }, /is not an object/],
    ["deep objects", { text_config: { text_config: {} } }, /no hidden_size/],
  ])("%s", (_, config, message) => {
    expect(() => shape(config)).toThrow(message);
    expect(() => shape(config)).toThrow(/^TM-E085 [^\n]+$/);
  });

  it.each<[object, RegExp | null]>([
    [{ quant_method: "gptq", bits: 4 }, null],
    [{ load_in_4bit: true }, null],
    [{ quant_method: "nonesuch", bits: 4 }, /\(nonesuch\) is of a method .* counts 0\.52 B/],
    [{ bits: 4, group_size: 64 }, /\(without a quant_method\) is of a method .* 0\.539 B/],
    [{ quant_method: 5 }, /\(without a quant_method\) has no size .* count in 16 bits/],
    [{ quant_method: "sinq", nbits: 100 }, /\(sinq\) has no size .* count in 16 bits/],
    [{ quant_method: "quanto", weights: "int3" }, /\(quanto\) has no size .* count in 16 bits/],
  ])("a quantization that the plan does not know is a caution: %j", (quantization, caution) => {
    const remarks = (shape({ ...llama, quantization_config: quantization }).remarks ?? []).join();
    expect(remarks).toMatch(caution ?? /^$/);
  });

  it("an unknown type is planned by its sizes, with a wider interval", () => {
    const known = shape(llama);
    const unknown = shape({ ...llama, model_type: "llama99" });
    const width = (model: typeof known) => {
      const plan = planMemory(model, { mode: "train" });
      return (plan.high - plan.low) / plan.perDeviceBytes;
    };
    expect(unknown.known).toBe(false);
    expect(width(unknown)).toBeGreaterThan(1.1 * width(known));
  });
});

describe("division", () => {
  const model = shape(llama);
  it.each([
    [{ pipeline: 4, train: { accumulation: 3 } }, /--accumulation 3 is less than --pp 4; use/],
    [{ pipeline: 4, schedule: "interleaved", train: { accumulation: 9 } }, /accumulation 8 or 12$/],
    [{ pipeline: 4, schedule: "gpipe", train: { accumulation: 3 } }, null],
    [{ pipeline: 4, schedule: "interleaved", train: { accumulation: 8 } }, null],
    [{ pipeline: 4, train: { accumulation: 3 }, sharding: { kind: "zero-1", devices: 2 } }, null],
  ] as const)("microbatches of a pipeline: %j", (request, message) => {
    const planned = () => planMemory(model, { mode: "train", ...request });
    if (message === null) {
      expect(planned).not.toThrow();
    } else {
      expect(planned).toThrow(message);
    }
  });

  it("a UNet has no pipeline stages, and is a model of diffusers", () => {
    const unet = shape((MODELS["sd15-unet"] as (typeof MODELS)[string]).config);
    expect(() => planMemory(unet, { mode: "train", pipeline: 2 })).toThrow(/leave --pp out/);
    expect(planMemory(unet, { mode: "train" }).assumptions.join()).toMatch(/diffusers with sdpa/);
  });

  it.each([
    ["--tp 5", { tensor: 5 }, /32 heads cannot be divided over --tp 5/],
    ["--pp 64", { pipeline: 64 }, /32 layers do not fill 64/],
  ])("%s is refused", (_, request, message) => {
    expect(() => planMemory(model, { mode: "train", ...request })).toThrow(message);
  });

  it("a refusal names all numbers of devices that the heads and those of keys allow", () => {
    const sizes = { num_attention_heads: 40, num_key_value_heads: 10, hidden_size: 5120 };
    const phi = shape({ ...llama, ...sizes });
    const trained = (tensor: number) => () => planMemory(phi, { mode: "train", tensor });
    const served = (tensor: number) => () =>
      planMemory(phi, { mode: "serve", tensor, serve: { engine: "vllm" } });
    expect(trained(3)).toThrow(/40 heads .*; use --tp 2, 5 or 10$/);
    expect(trained(4)).toThrow(/10 heads of keys .*; use --tp 2, 5 or 10$/);
    expect(trained(20)).toThrow(/use --tp 2, 5 or 10; vllm and sglang keep copies of heads$/);
    for (const tensor of [3, 4, 8]) {
      expect(served(tensor)).toThrow(/; use --tp 2, 5, 10, 20 or 40$/);
    }
    for (const tensor of [2, 5, 10, 20, 40]) {
      expect(served(tensor)).not.toThrow();
    }
  });

  it("more devices never need more on each", () => {
    const bytes = (devices: number) =>
      planMemory(model, { mode: "train", sharding: { kind: "fsdp", devices } }).perDeviceBytes;
    expect(bytes(8)).toBeLessThan(bytes(4));
    expect(bytes(64)).toBeLessThan(bytes(8));
  });

  it("the first pipeline stage holds a microbatch for each stage", () => {
    const plan = planMemory(model, { mode: "train", pipeline: 4, train: { accumulation: 8 } });
    expect(plan.devices.worstRank).toMatch(/^pipeline stage [03] of 4$/);
  });
});
