/** What `--tp` divides under transformers, by the plans of its configurations. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { modelTape } from "../blocks/model_tape.js";
import { type PlanRequest, planOptions } from "../defaults.js";
import { requireDivisible } from "../divisible.js";
import type { Engine, ServeOptions } from "../job/options.js";
import { limitsOf } from "../limits.js";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";
import { bytesOfNextToken, cacheFormat, cacheShape } from "./attention_cache.js";
import { servingRules } from "./forward_pass.js";

const dataOf = (file: string) =>
  JSON.parse(
    readFileSync(
      fileURLToPath(new URL(`../../../test/data/plan/${file}`, import.meta.url)),
      "utf8",
    ),
  );
const MODELS = { ...dataOf("model_types.json"), ...dataOf("models.json") };

const shapeOf = (name: string, family: string) => {
  const { config } = MODELS[name];
  const own = { ...config, model_type: family, num_hidden_layers: 8, layer_types: null };
  return readShape(own, name, name);
};

const request = (tensor: number, engine: Engine = "transformers"): PlanRequest => ({
  mode: "serve",
  tensor,
  serve: { engine, context: 1024 },
});

/** Matrices of one layer, by name: the share of its elements that one of two devices has. */
function shares(name: string, family: string): Record<string, number> {
  const model = shapeOf(name, family);
  const elements = (tensor: number): Map<string, number> => {
    const options = planOptions(model, request(tensor)) as ServeOptions;
    requireDivisible(model, options);
    const { tape } = modelTape(model, servingRules(model, options), { index: 0, count: 1 });
    const last = tape.parameters.filter(({ role, rows }) => role === "matrix" && rows > 1);
    return new Map(last.map((each) => [each.name, each.elements]));
  };
  const whole = elements(1);
  return Object.fromEntries(
    [...elements(2)].map(([matrix, count]) => [matrix, count / (whole.get(matrix) ?? 0)]),
  );
}

const cached = (name: string, family: string, tensor: number): number => {
  const model = shapeOf(name, family);
  const options = planOptions(model, request(tensor)) as ServeOptions;
  return bytesOfNextToken(cacheShape(model, cacheFormat(model, options)));
};

test.each([
  ["llama-3.1-8b", "llama", { o_proj: 0.5, down_proj: 0.5, lm_head: 0.5 }, 0.5],
  ["mixtral", "mixtral", { o_proj: 0.5, down_proj: 0.5 }, 0.5],
  ["mixtral", "phimoe", { o_proj: 1, down_proj: 0.5, lm_head: 0.5 }, 1],
  ["mixtral", "granitemoe", { o_proj: 1, down_proj: 0.5 }, 1],
  ["jamba", "jamba", { in_proj: 1, o_proj: 1, out_proj: 1 }, 1],
  ["deepseek-v3", "deepseek_v3", { q_b_proj: 1, o_proj: 1, down_proj: 0.5 }, 1],
  ["phi3-mini", "phi3", { qkv_proj: 0.5, o_proj: 0.5, down_proj: 0.5 }, 1],
  ["llama-3.1-8b", "olmo2", { q_proj: 0.5, o_proj: 0.5 }, 1],
])("%s as %s", (name, family, expected, cache) => {
  expect(shares(name, family)).toMatchObject(expected);
  expect(cached(name, family, 2) / cached(name, family, 1)).toBeCloseTo(cache, 5);
});

test.each([
  ["qwen3_next", "qwen3_next", { in_proj_qkvz: 0.5, out_proj: 0.5 }, 1],
  ["jamba", "jamba", { in_proj: 1, out_proj: 1 }, 1],
])("rules with a state: %s as %s", (name, family, expected, state) => {
  expect(shares(name, family)).toMatchObject(expected);
  const model = shapeOf(name, family);
  const bytes = (tensor: number, engine: Engine): number => {
    const options = planOptions(model, request(tensor, engine)) as ServeOptions;
    return cacheShape(model, cacheFormat(model, options)).bytesPerSequence;
  };
  expect(bytes(2, "transformers") / bytes(1, "transformers")).toBe(state);
  expect(bytes(2, "vllm") / bytes(1, "vllm")).toBe(0.5);
});

test("the tensors that a gathered delta rule keeps are whole on each device", () => {
  const model = shapeOf("qwen3_next", "qwen3_next");
  const saved = (tensor: number): number => {
    const { savedActivations = [] } = planMemory(model, { mode: "train", tensor });
    return savedActivations.find(({ part }) => part === "state-space")?.bytes ?? 0;
  };
  expect(saved(2)).toBe(saved(1));
  expect(saved(1)).toBeGreaterThan(0);
});

test("a plan of the table of tokens alone is refused", () => {
  const model = shapeOf("gpt-oss-20b", "gpt_oss");
  const divide = (job: PlanRequest): void => requireDivisible(model, planOptions(model, job));
  expect(() => divide(request(2))).toThrow(/no tensor parallelism for gpt_oss/);
  expect(() => divide(request(2, "vllm"))).not.toThrow();
  expect(() => divide({ ...request(2), expert: 2 })).not.toThrow();
});

test("what each device has whole is a caution", () => {
  const limits = (name: string, family: string, engine: Engine): string =>
    limitsOf(shapeOf(name, family), request(2, engine), []).join();
  const words = /leaves attention, MLP, shared experts whole on each device/;
  expect(limits("mixtral", "phimoe", "transformers")).toMatch(words);
  expect(limits("mixtral", "phimoe", "vllm")).not.toContain("whole on each device");
  expect(limits("mixtral", "mixtral", "transformers")).not.toContain("whole on each device");
});
