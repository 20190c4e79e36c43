/** Compares what a plan keeps of a compiled layer with what torch.compile keeps of it on the CPU. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { modelTape } from "../../src/plan/blocks/model_tape.js";
import { planOptions } from "../../src/plan/defaults.js";
import type { TrainOptions } from "../../src/plan/job/options.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { storageIn, type Unit } from "../../src/plan/tape/tape.js";
import { trainingRules } from "../../src/plan/train/block_rules.js";
import { environment } from "../environment.js";
import { repository } from "../run.js";

const path = join(repository, "test/data/plan/small/llama.json");
const BATCH = 2;
const SEQUENCE = 256;

/** Of the second layer: the first reads the embeddings, which need no gradient with adapters. */
function plannedBytes(method: "full" | "lora"): number {
  const model = readShape(JSON.parse(readFileSync(path, "utf8")), "llama", path);
  const options = planOptions(model, {
    mode: "train",
    dtype: "bf16",
    weights: "16bit",
    method,
    train: {
      library: "torchtune",
      compiled: true,
      batch: BATCH,
      sequence: SEQUENCE,
      adapterRank: 8,
      adapterTargets: "all",
    },
  }) as TrainOptions;
  const { tape } = modelTape(model, trainingRules(model, options), { index: 0, count: 1 });
  const unit = tape.units.find(({ name }) => name === "decoder.1") as Unit;
  const saved = new Map(
    unit.operations
      .flatMap(({ saves }) => saves)
      .map((storage) => storageIn(unit, storage))
      .map(({ id, bytes }) => [id, bytes]),
  );
  return [...saved.values()].reduce((sum, bytes) => sum + bytes, 0);
}

describe.skipIf(environment.torchPython === null)("one compiled layer in bf16", () => {
  let measured: Record<"full" | "lora", number>;
  beforeAll(async () => {
    const { stdout } = await promisify(execFile)(
      environment.torchPython as string,
      [join(repository, "test/plan/compiled.py"), path, String(BATCH), String(SEQUENCE)],
      { env: { ...process.env, OMP_NUM_THREADS: "1" } },
    );
    measured = JSON.parse(stdout);
  }, 600_000);

  test.each(["full", "lora"] as const)("%s", (method) => {
    expect(Math.abs(plannedBytes(method) / measured[method] - 1)).toBeLessThan(0.01);
  });
});
