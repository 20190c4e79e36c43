import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { planOptions } from "../defaults.js";
import { USUAL_GPU } from "../device/gpus.js";
import type { TrainOptions } from "../job/options.js";
import { parameterCount } from "../model_facts.js";
import { readShape } from "../shape/read_shape.js";
import { planTraining } from "../train/plan_training.js";

/**
 * Bytes that autograd saves of a batch of 2 with transformers 5.24, diffusers 0.42.1 and torch 2.15 on the CPU
 * (`npm run bench -- plan --library PYTHON`): `eager` in fp32, `sdpa` in bf16 without a padded batch.
 */
const MEASURED = [
  ["bert", "sdpa", 192, 11_702_786],
  ["clip", "sdpa", 192, 3_783_702],
  ["cohere_normed", "eager", 192, 38_946_820],
  ["cohere_normed", "sdpa", 192, 21_666_308],
  ["deberta-v2", "eager", 192, 22_201_896],
  ["deepseek_v2", "sdpa", 192, 28_823_108],
  ["falcon", "sdpa", 192, 10_592_308],
  ["falcon_new", "sdpa", 192, 12_218_932],
  ["flux", "sdpa", 192, 579_554_560],
  ["gpt_neox_serial", "sdpa", 192, 14_135_812],
  ["mamba", "eager", 192, 73_892_356],
  ["mamba2", "sdpa", 192, 66_034_644],
  ["minicpm3", "sdpa", 192, 14_501_382],
  ["opt_projected", "eager", 192, 24_705_028],
  ["phi_normed", "sdpa", 192, 15_501_316],
  ["qwen2_vl", "sdpa", 320, 32_462_980],
  ["qwen3_vl", "eager", 320, 101_772_228],
  ["stablelm_parallel", "eager", 192, 32_286_724],
  ["stablelm_parallel", "sdpa", 192, 13_873_156],
  ["t5", "sdpa", 192, 33_005_570],
  ["t5", "eager", 192, 45_146_116],
  ["whisper", "sdpa", 192, 17_111_554],
] as const;

/** Parameters of transformers' classes: norms of each head of queries and keys, one norm of a parallel layer, two widths. */
test.each([
  ["cohere_normed", 2_623_616],
  ["gpt_neox_serial", 3_185_920],
  ["opt_projected", 2_636_544],
  ["phi_normed", 2_499_584],
  ["stablelm_parallel", 3_034_240],
])("%s has %i parameters", (name, parameters) => {
  const path = `../../../test/data/plan/library/${name}.json`;
  const values = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
  expect(parameterCount(readShape(values, name, path))).toBe(parameters);
});

test("ViT without qkv_bias has no bias of queries, keys and values", () => {
  const path = "../../../test/data/plan/library/vit.json";
  const values = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
  const count = (changes: object): number =>
    parameterCount(readShape({ ...values, ...changes }, "vit", path));
  const biases = 3 * values.hidden_size * values.num_hidden_layers;
  expect(count({}) - count({ qkv_bias: false })).toBe(biases);
});

function savedBytes(
  name: string,
  attention: "eager" | "sdpa",
  { sequence, isCpu }: { sequence: number; isCpu: boolean },
): number {
  const path = `../../../test/data/plan/library/${name}.json`;
  const values = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
  const model = readShape(values, name, path);
  const options = planOptions(model, {
    mode: "train",
    attention,
    padded: false,
    gpu: { ...USUAL_GPU, isCpu },
    ...(attention === "eager" ? { dtype: "fp32" } : { dtype: "bf16", weights: "16bit" }),
    train: { batch: 2, sequence },
  }) as TrainOptions;
  return planTraining(model, options).peak.simulation.savedBytes;
}

test.each(MEASURED)(
  "%s with %s: within 2 %% of the library",
  (name, attention, sequence, bytes) => {
    const planned = savedBytes(name, attention, { sequence, isCpu: true });
    expect(Math.abs(planned / bytes - 1), `planned ${planned}`).toBeLessThan(0.02);
  },
);

test("on a GPU, latent attention is fused, and a state space has the kernels of mamba_ssm", () => {
  for (const name of ["deepseek_v2", "mamba2"]) {
    const [onGpu, onCpu] = [false, true].map((isCpu) =>
      savedBytes(name, "sdpa", { sequence: 192, isCpu }),
    ) as [number, number];
    expect(onGpu).toBeLessThan(0.75 * onCpu);
  }
});
