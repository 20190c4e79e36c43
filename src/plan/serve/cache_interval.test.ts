/** The intervals of engines that give their cache all that is left of their share of a device. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { PlanJson, PlanPartJson } from "../../model/documents/plan_document.js";
import { type Gpu, gpuNamed } from "../device/gpus.js";
import type { Engine } from "../job/options.js";
import { planMemory } from "../plan.js";
import { readShape } from "../shape/read_shape.js";
import { fitText, measuredAs, partWords, roomWords } from "../wording.js";

const MODELS = JSON.parse(
  readFileSync(
    fileURLToPath(new URL("../../../test/data/plan/models.json", import.meta.url)),
    "utf8",
  ),
);

function served(name: string, gpu: string, serve: object): PlanJson {
  return planMemory(readShape(MODELS[name].config, name, name), {
    mode: "serve",
    gpu: gpuNamed(gpu) as Gpu,
    serve: { context: 4096, concurrency: 2, ...serve },
  });
}

const sumOf = (parts: readonly PlanPartJson[], figure: (part: PlanPartJson) => number): number =>
  parts.reduce((sum, part) => sum + figure(part), 0);
const isCache = ({ part }: PlanPartJson): boolean => part.endsWith("kv cache");

const FILLING = ["vllm", "sglang", "tgi"] as const satisfies readonly Engine[];

test.each(FILLING)("%s takes no more than the device has", (engine) => {
  for (const [name, gpu] of [
    ["llama-3.1-8b", "h100"],
    ["llama-3.1-8b", "4090"],
    ["gemma-2-9b", "l40s"],
    ["qwen3-0.6b", "3060"],
    ["gpt2", "b200"],
  ] as const) {
    const { fits, memory, devices } = served(name, gpu, { engine });
    expect([name, gpu, fits.fits]).toEqual([name, gpu, true]);
    for (const { low, bytes, high } of Object.values(memory)) {
      expect(low).toBeLessThan(bytes);
      expect(bytes).toBeLessThanOrEqual(high);
      expect(high).toBeLessThanOrEqual(devices.memoryBytes);
    }
  }
});

test.each(FILLING)(
  "the unused cache of %s has the errors of the parts that it leaves room for",
  (engine) => {
    const { parts } = served("llama-3.1-8b", "h100", { engine });
    const unused = parts.find(({ part }) => part === "unused kv cache") as PlanPartJson;
    const taken = parts.filter((part) =>
      engine === "sglang" ? part.part === "weights" : !isCache(part),
    );
    const [below, above] = [unused.bytes - unused.low, unused.high - unused.bytes];
    // Versions of libraries differ by 12 % of what they allocate beside the cache.
    expect(Math.min(below, above)).toBeGreaterThan(0.1 * sumOf(taken, ({ bytes }) => bytes));
    expect(above).toBeLessThan(0.4 * sumOf(taken, ({ bytes }) => bytes));
  },
);

test("a cache that is cut to the room has an interval, too", () => {
  const { parts } = served("llama-3.1-8b", "4090", { engine: "vllm", concurrency: 100 });
  const cache = parts.find(({ part }) => part === "kv cache") as PlanPartJson;
  expect(cache.formula).toContain("cut to the room");
  expect(cache.high - cache.low).toBeGreaterThan(0.2 * cache.bytes);
});

test.each(FILLING)(
  "%s on a device without room for weights has an interval to both sides",
  (engine) => {
    const { fits, memory, devices } = served("llama-3.1-70b", "h100", { engine });
    const { low, bytes, high } = memory.device;
    expect(fits.fits).toBe(false);
    expect(bytes).toBeGreaterThan(devices.memoryBytes);
    expect(high - bytes).toBeGreaterThan(0.5 * (bytes - low));
  },
);

test("an engine that allocates what it needs may need more than the device has", () => {
  const plan = served("llama-3.1-8b", "4090", { engine: "llama.cpp", context: 32_768 });
  expect(plan.memory.device.high).toBeGreaterThan(plan.devices.memoryBytes);
  expect(fitText(plan)).toMatch(/^probably /);
});

test("SGLang's fraction is of the memory that is free before it loads weights", () => {
  const { parts, serving } = served("llama-3.1-8b", "h100", { engine: "sglang", utilization: 0.8 });
  const bytesOf = (name: string): number => parts.find(({ part }) => part === name)?.bytes ?? 0;
  const free = (gpuNamed("h100") as Gpu).memoryBytes - bytesOf("cuda context");
  const room = 0.8 * free - bytesOf("weights");
  expect(sumOf(parts.filter(isCache), ({ bytes }) => bytes)).toBeCloseTo(room, -2);
  expect(serving?.kvTokens).toBe(Math.floor(room / 131_072));
});

test("a server without room for its cache has no sequence, instead of 0", () => {
  const plan = served("llama-3.1-8b", "v100", { engine: "vllm" });
  expect(plan.fits.fits).toBe(false);
  expect(roomWords(plan.serving as NonNullable<PlanJson["serving"]>, plan.model)).toBe(
    "no room for a sequence",
  );
});

test("a V100 has the context of CUDA 12, and in its interval that of versions before 11.7", () => {
  const context = (gpu: string): PlanPartJson =>
    served("gpt2", gpu, { engine: "transformers" }).parts.find(
      ({ part }) => part === "cuda context",
    ) as PlanPartJson;
  const { bytes, high, formula } = context("v100");
  expect(bytes).toBeGreaterThan(context("t4").bytes);
  expect(bytes).toBeLessThan(context("a100").bytes);
  expect(high).toBeGreaterThan(1343 * 2 ** 20);
  expect(formula).toContain("CUDA 12");
});

test("parts of an AMD device have the names of HIP and its libraries", () => {
  const plan = planMemory(readShape(MODELS["llama-3.1-8b"].config, "llama-3.1-8b", "config.json"), {
    mode: "serve",
    gpu: gpuNamed("mi300x") as Gpu,
    tensor: 2,
    serve: { engine: "vllm", context: 4096 },
  });
  const names = plan.parts.map(({ part }) => partWords(part, plan.devices));
  expect(names).toEqual(expect.arrayContaining(["hip context", "hip graphs", "rccl"]));
  const text = plan.parts.map(({ formula }) => formula).join("; ");
  expect(`${names.join()} ${text} ${measuredAs(plan).device}`).not.toMatch(
    /\bcuda\b|cublas|nccl|nvidia/i,
  );
});
