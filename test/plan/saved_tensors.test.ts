/** Compares plans of small models with torch's tensors on the CPU: weights, gradients, states, what autograd saves. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { planOptions } from "../../src/plan/defaults.js";
import { USUAL_GPU } from "../../src/plan/device/gpus.js";
import type { TrainOptions } from "../../src/plan/job/options.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { planTraining } from "../../src/plan/train/plan_training.js";
import { environment } from "../environment.js";
import { repository } from "../run.js";

const folder = join(repository, "test/data/plan/small");
const BATCH = 2;
const SEQUENCE = 192;
/** T5's bias is written for `eager` in families.py. */
const EAGER_ALONE = ["t5"];

type Part = "weights" | "gradients" | "optimizer" | "saved";
const families = readdirSync(folder).map((file) => file.replace(".json", ""));
const cases = families.flatMap((family) =>
  (EAGER_ALONE.includes(family) ? ["eager"] : ["sdpa", "eager"]).map(
    (attention) => [family, attention] as const,
  ),
);
const pathOf = (family: string) => join(folder, `${family}.json`);

describe.skipIf(environment.torchPython === null)("one training step in fp32", () => {
  let measured: Record<string, Record<Part, number>>;
  beforeAll(async () => {
    const program = join(repository, "test/plan/families.py");
    const words = cases.map(([family, attention]) => `${pathOf(family)}:${attention}`);
    const { stdout } = await promisify(execFile)(
      environment.torchPython as string,
      [program, String(BATCH), String(SEQUENCE), ...words],
      { env: { ...process.env, OMP_NUM_THREADS: "1" } },
    );
    measured = JSON.parse(stdout);
  }, 600_000);

  test.each(cases)("%s, attention %s", (family, attention) => {
    const path = pathOf(family);
    const model = readShape(JSON.parse(readFileSync(path, "utf8")), family, path);
    const options = planOptions(model, {
      mode: "train",
      dtype: "fp32",
      attention: attention as TrainOptions["attention"],
      gpu: { ...USUAL_GPU, isCpu: true },
      train: { batch: BATCH, sequence: SEQUENCE },
    }) as TrainOptions;
    const { peak } = planTraining(model, options);
    const planned = {
      weights: peak.states.weights,
      gradients: peak.states.gradients,
      optimizer: peak.states.optimizer,
      saved: peak.simulation.savedBytes,
    };
    const found = present(measured[`${path}:${attention}`]);
    for (const part of ["weights", "gradients", "optimizer", "saved"] as const) {
      const error = Math.abs(planned[part] / found[part] - 1);
      expect(error, `${part}: planned ${planned[part]}, measured ${found[part]}`).toBeLessThan(
        0.02,
      );
    }
  });
});
