/** Compares plans of small models with torch's tensors on the CPU: weights, gradients, states, what autograd saves. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { planOptions } from "../../src/plan/defaults.js";
import type { TrainOptions } from "../../src/plan/job/options.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { planTraining } from "../../src/plan/train/plan_training.js";
import { environment } from "../environment.js";
import { repository } from "../run.js";

const folder = join(repository, "test/data/plan/small");
const BATCH = 2;
const SEQUENCE = 192;
/** T5 adds a bias to its scores, and DeepSeek's values are narrower than its keys: torch has no fused kernel for either. */
const EAGER_ALONE = ["deepseek", "t5"];

const families = readdirSync(folder).map((file) => file.replace(".json", ""));
const cases = families.flatMap((family) =>
  (EAGER_ALONE.includes(family) ? ["eager"] : ["sdpa", "eager"]).map(
    (attention) => [family, attention] as const,
  ),
);

describe.skipIf(environment.torchPython === null)("one training step in fp32", () => {
  test.each(cases)("%s, attention %s", async (family, attention) => {
    const path = join(folder, `${family}.json`);
    const { stdout } = await promisify(execFile)(
      environment.torchPython as string,
      [join(repository, "test/plan/families.py"), path, attention, String(BATCH), String(SEQUENCE)],
      { env: { ...process.env, OMP_NUM_THREADS: "1" } },
    );
    const measured = JSON.parse(stdout) as Record<
      "weights" | "gradients" | "optimizer" | "saved",
      number
    >;
    const model = readShape(JSON.parse(readFileSync(path, "utf8")), family, path);
    const options = planOptions(model, {
      mode: "train",
      dtype: "fp32",
      attention: attention as TrainOptions["attention"],
      train: { batch: BATCH, sequence: SEQUENCE },
    }) as TrainOptions;
    const { peak } = planTraining(model, options);
    const planned = {
      weights: peak.states.weights,
      gradients: peak.states.gradients,
      optimizer: peak.states.optimizer,
      saved: peak.simulation.savedBytes,
    };
    for (const part of ["weights", "gradients", "optimizer", "saved"] as const) {
      const error = Math.abs(planned[part] / measured[part] - 1);
      expect(error, `${part}: planned ${planned[part]}, measured ${measured[part]}`).toBeLessThan(
        0.02,
      );
    }
  });
});
