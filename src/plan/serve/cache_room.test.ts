/** What the line of the cache and the fit report about vLLM's cache, compared with its own check at start. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { PlanJson } from "../../model/documents/plan_document.js";
import { type Gpu, gpuNamed } from "../device/gpus.js";
import type { ServeOptions } from "../job/options.js";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";
import { roomWords } from "../wording.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);

type Served = PlanJson & { readonly serving: NonNullable<PlanJson["serving"]> };

const served = (
  name: string,
  serve: Partial<ServeOptions>,
  { gpu = "h100", tensor = 1 }: { gpu?: string; tensor?: number } = {},
): Served =>
  planMemory(readShape(MODELS[name].config, name, name), {
    mode: "serve",
    tensor,
    gpu: gpuNamed(gpu) as Gpu,
    serve: { engine: "vllm", ...serve },
  }) as Served;

test("a cache in which vLLM's log has less than one request does not fit", () => {
  const { fits, serving } = served("gemma-2-9b", { context: 8192 }, { gpu: "3090" });
  expect(serving.logConcurrency).toBeLessThan(1);
  expect(fits).toMatchObject({ fits: false, maxBatch: 0 });
  expect(fits.reason).toContain("1 sequence of 8,192 tokens takes");
  const longest = served("gemma-2-9b", { context: serving.longestContext }, { gpu: "3090" });
  expect(longest.fits.fits).toBe(true);
  expect(longest.serving.logConcurrency).toBeGreaterThanOrEqual(1);
});

test("no more sequences than vLLM runs at once; the others of a request wait", () => {
  const at = (maxSequences: number, concurrency: number) =>
    served("qwen3-0.6b", { context: 512, maxSequences, concurrency }).fits;
  expect(at(64, 1)).toMatchObject({ fits: true, maxBatch: 64 });
  expect(at(64, 100)).toMatchObject({ fits: true, maxBatch: 64 });
});

test("nor more texts of an encoder, which keeps no cache", () => {
  const at = (gpu: string) => served("bert-base", { context: 512 }, { gpu }).fits;
  expect(at("h100")).toMatchObject({ fits: true, maxBatch: 1024 });
  expect(at("4090")).toMatchObject({ fits: true, maxBatch: 256 });
});

test.each([
  ["jamba", 2, 4096],
  ["gemma3-1b", 1, 8192],
  ["whisper-small", 1, 448],
])("the line of %s has the bytes of the row, padding included", (name, tensor, context) => {
  const { parts, serving } = served(name, { context, concurrency: 1 }, { tensor });
  const { kvBytesPerToken, windows = [], bytesPerSequence = 0, blocks } = serving;
  const block = blocks?.tokens ?? 1;
  const whole = (tokens: number): number => Math.ceil(tokens / block) * block;
  const windowed = windows.reduce((sum, each) => sum + each.bytesPerToken, 0);
  const bytes =
    (kvBytesPerToken - windowed) * whole(context) +
    windows.reduce(
      (sum, each) => sum + each.bytesPerToken * whole(Math.min(context, each.tokens)),
      0,
    ) +
    bytesPerSequence;
  const row = parts.find(({ part }) => part === "kv cache")?.bytes ?? 0;
  expect(Math.abs(bytes - row)).toBeLessThan(1024);
});

test("the figures of vLLM's log are in the line also where no layer has a window", () => {
  const { serving, model } = served("qwen3-0.6b", { context: 4096 });
  expect(serving.windows).toBeUndefined();
  expect(roomWords(serving, model)).toMatch(/; vLLM's log: maximum concurrency [\d.]+x at this/);
});

test("the reason names what layers with a window keep in a prefill", () => {
  const at = (name: string, concurrency: number) =>
    served(name, { context: 8192, concurrency }, { gpu: "3090" }).fits.reason;
  expect(at("gemma-2-9b", 1)).toMatch(
    /takes [\d.]+ [GM]iB, of which [\d.]+ [GM]iB are for the prefill of one sequence, where layers with a window also keep the 2,048 tokens of a pass$/,
  );
  expect(at("llama-3.1-8b", 400)).toMatch(/400 sequences of 8,192 tokens take [\d.]+ GiB$/);
});
