import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";

const MODELS = JSON.parse(
  readFileSync(new URL("../../../test/data/plan/models.json", import.meta.url), "utf8"),
) as Record<string, { config: Record<string, number> }>;

/** By hand, of bf16: what `mamba_inner_fn` and `mamba_chunk_scan_combined` keep, and a state in fp32 for each chunk. */
const BATCH = 3;
const SEQUENCE = 4096;
const TOKENS = BATCH * SEQUENCE;

function savedBytes(name: string): number {
  const values = MODELS[name]?.config ?? {};
  const { savedActivations } = planMemory(readShape(values, name, name), {
    mode: "train",
    dtype: "bf16",
    weights: "16bit",
    train: { batch: BATCH, sequence: SEQUENCE },
  });
  return savedActivations.find(({ part }) => part === "state-space")?.bytes ?? 0;
}

test("Mamba keeps the projection, the scan's output, the step's inputs, and a state for each 2048 positions", () => {
  const [layers, inner, state, rank] = [24, 1536, 16, 48];
  const perToken = 2 * (2 * inner + inner + rank + 2 * state);
  const states = BATCH * (SEQUENCE / 2048) * inner * state * 4;
  expect(savedBytes("mamba-130m")).toBe(layers * (TOKENS * perToken + states));
});

test("Mamba 2 has a state for each 256 positions, and projects its groups with the rest", () => {
  const { hidden_size = 0, num_hidden_layers = 0, ...own } = MODELS["mamba2-130m"]?.config ?? {};
  const { state_size: state = 128, n_groups: groups = 8, head_dim: size = 64 } = own;
  const inner = 2 * hidden_size;
  const heads = own.num_heads ?? inner / size;
  const perToken = 2 * (2 * inner + 2 * groups * state + heads + inner + heads);
  const states = BATCH * (SEQUENCE / 256) * inner * state * 4;
  expect(savedBytes("mamba2-130m")).toBe(num_hidden_layers * (TOKENS * perToken + states));
});

test("a state space without a width is refused", () => {
  for (const name of ["mamba-130m", "mamba2-130m"]) {
    const values = { ...MODELS[name]?.config, expand: 0, intermediate_size: undefined };
    expect(() => readShape(values, name, name)).toThrow(/state spaces are 0 wide/);
  }
});
