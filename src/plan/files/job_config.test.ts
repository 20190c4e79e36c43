import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { withJobConfigs } from "./job_config.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-"));
afterAll(() => rmSync(folder, { recursive: true }));

it.each<[number, number | undefined, number | undefined, RegExp]>([
  [64, undefined, 8, /^$/],
  [64, 8, 8, /^$/],
  [64, 4, 4, /has a train_batch_size of 8 devices, not 4: DeepSpeed stops/],
  [100, undefined, undefined, /has a train_batch_size of 12\.5 devices: DeepSpeed stops/],
  [100, 8, 8, /of 12\.5 devices, not 8/],
])("DeepSpeed's batch of %i, with --devices %s, is of %s devices", (total, given, found, notes) => {
  const path = join(folder, "ds.json");
  const sizes = {
    train_batch_size: total,
    train_micro_batch_size_per_gpu: 2,
    gradient_accumulation_steps: 4,
    zero_optimization: { stage: 2 },
  };
  writeFileSync(path, JSON.stringify(sizes));
  const sharding = given === undefined ? {} : { sharding: { devices: given } };
  const request = withJobConfigs({ mode: "train", ...sharding }, [path]);
  expect(request.sharding).toMatchObject({ kind: "zero-2" });
  expect(request.sharding?.devices).toBe(found);
  expect((request.notes ?? []).join()).toMatch(notes);
});

it("DeepSpeed's buffers may be larger than any number of a model, and gradients need no bucket", () => {
  const path = join(folder, "buffers.json");
  const buffers = { stage: 2, reduce_bucket_size: 2e9, contiguous_gradients: false };
  writeFileSync(path, JSON.stringify({ zero_optimization: buffers }));
  const { sharding } = withJobConfigs({ mode: "train" }, [path]);
  expect(sharding?.deepSpeed).toMatchObject({ reduceBucket: 2e9, contiguous: false });
  writeFileSync(
    path,
    JSON.stringify({ zero_optimization: { ...buffers, reduce_bucket_size: 2e12 } }),
  );
  expect(() => withJobConfigs({ mode: "train" }, [path])).toThrow(
    /reduce_bucket_size is 2000000000000/,
  );
});
