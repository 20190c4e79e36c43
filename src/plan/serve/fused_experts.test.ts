/** The workspaces of the kernel that runs all experts of a layer, by hand from the configurations. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { modelTape } from "../blocks/model_tape.js";
import { planOptions } from "../defaults.js";
import { type Gpu, gpuNamed } from "../device/gpus.js";
import type { ServeOptions } from "../job/options.js";
import { readShape } from "../shape/read_shape.js";
import { servingRules } from "./forward_pass.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);
const TOKENS = 2048;

function tapeOf(name: string, tensor: number, expert: number, engine: ServeOptions["engine"]) {
  const model = readShape(MODELS[name].config, name, name);
  const options = planOptions(model, {
    mode: "serve",
    tensor,
    expert,
    gpu: gpuNamed("h200") as Gpu,
    serve: { engine, batchedTokens: TOKENS },
  }) as ServeOptions;
  return modelTape(model, servingRules(model, options), { index: 0, count: 1 }).tape;
}

test.each([
  ["mixtral", 2, 1, 2, 4096, 14336 / 2],
  ["deepseek-v3", 8, 1, 8, 7168, 2048 / 8],
  ["deepseek-v3", 8, 8, 8, 7168, 2048],
])("%s over %i devices, --ep %i", (name, tensor, expert, perToken, hidden, inner) => {
  const workspaces = tapeOf(name, tensor, expert, "vllm")
    .operations.filter((operation) => operation.name === "fused_experts")
    .map(({ forwardTemporary }) => forwardTemporary);
  const rows = TOKENS * perToken;
  expect(new Set(workspaces)).toEqual(new Set([rows * (Math.max(2 * inner, hidden) + inner) * 2]));
});

test("no weights are lost, and llama.cpp and transformers have no such kernel", () => {
  const elements = (engine: ServeOptions["engine"]) =>
    tapeOf("mixtral", 1, 1, engine).parameters.reduce((sum, each) => sum + each.elements, 0);
  expect(elements("vllm")).toBe(elements("llama.cpp"));
  for (const engine of ["llama.cpp", "transformers"] as const) {
    const names = tapeOf("mixtral", 1, 1, engine).operations.map(({ name }) => name);
    expect(names).not.toContain("fused_experts");
  }
});
