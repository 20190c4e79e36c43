/** What a plan reports about other plans holds for them: savings, what fits, and how many sequences a server holds. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { describe, expect, inject, test } from "vitest";
import { withPlanOptions } from "../../src/cli/options/plan_options.js";
import { planWithFitTable } from "../../src/inspect/recorded/plan.js";
import { formatBytes } from "../../src/model/base/numbers.js";
import type { PlanJson } from "../../src/model/documents/plan_document.js";
import { planOptions } from "../../src/plan/defaults.js";
import { figureOf } from "../../src/plan/device/allocator.js";
import { GPUS } from "../../src/plan/device/gpus.js";
import { fitTable } from "../../src/plan/fit.js";
import { planMemory } from "../../src/plan/plan.js";
import { planServing } from "../../src/plan/serve/plan_serving.js";
import type { ModelShape } from "../../src/plan/shape/model_shape.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { planTraining } from "../../src/plan/train/plan_training.js";
import { requestOf } from "../../src/plan/words.js";
import { repository } from "../run.js";

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: Record<string, unknown> }>;

const shapeOf = (name: string): ModelShape =>
  readShape(MODELS[name]?.config ?? {}, name, "config.json");

/** The request of a command line, parsed as the command parses it. */
function requestFor(words: string) {
  const command = new Command().exitOverride();
  withPlanOptions(command);
  command.parse(words.split(" ").filter(Boolean), { from: "user" });
  return requestOf(command.opts());
}

interface Replayed {
  readonly bytes: number;
  readonly tokens?: number;
  readonly fits: boolean;
}

/** A plan of its own, without what it reports about others. */
function replayed(model: ModelShape, words: string): Replayed {
  const options = planOptions(model, requestFor(words));
  const { memoryBytes } = options.gpu;
  if (options.mode === "train") {
    const { bytes } = figureOf(planTraining(model, options).parts, "device");
    return { bytes, fits: bytes <= memoryBytes };
  }
  const { parts, room } = planServing(model, options);
  const { bytes } = figureOf(parts, "device");
  const holds = room === null || room.sequencesOf(options.context) >= options.concurrency;
  return {
    bytes,
    fits: bytes <= memoryBytes && holds,
    ...(room === null ? {} : { tokens: room.tokens }),
  };
}

/** The command line with the options of a saving. */
function changed(words: string, change: string): string {
  const [added, replaced] = change.split(" instead of ");
  return `${replaced === undefined ? words : words.replace(replaced, "")} ${added}`;
}

const CASES: readonly [model: string, words: string][] = [
  ["llama-3.1-8b", "--batch 2 --seq 4096"],
  ["llama-3.1-8b", "--zero 2 --devices 4 --gpu h100"],
  ["gpt2", "--batch 8 --seq 1024 --gpu 4090"],
  ["gpt2", "--batch 4 --optimizer-in-backward"],
  ["gpt2", "--ddp 4 --dtype bf16 --weights fp32 --attention eager"],
  ["qwen3-0.6b", "--batch 3 --gpu t4"],
  ["mamba-130m", "--batch 4"],
  ["bert-base", "--batch 64 --seq 512"],
  ["llama-3.1-8b", "--serve --engine vllm --context 8k --concurrency 16"],
  ["llama-3.1-8b", "--serve --context 4096 --concurrency 4"],
  ["gemma-2-9b", "--serve --engine sglang --gpu h100 --tp 2 --context 8k --concurrency 8"],
  ["qwen2.5-7b", "--serve --engine tgi --gpu l4 --context 4k --concurrency 2"],
  ["llama-3.1-8b", "--method qlora --batch 4 --gpu 24GiB"],
  ["qwen2.5-7b", "--method lora --weights 16bit --library torchtune --gpu l40s"],
  ["gemma3-1b", "--fsdp 2 --optimizer adafactor --seq 8192 --no-padding"],
  ["qwen3-30b-a3b", "--fsdp 8 --weights 16bit"],
  ["mixtral", "--serve --engine llama.cpp --quantize int4 --context 8k"],
  ["whisper-small", "--batch 16"],
  ["deepseek-v3", "--serve --engine vllm --gpu h200 --tp 8 --quantize fp8 --context 16k"],
];

const PLANS = new Map<string, PlanJson>();

function planFor(name: string, words: string): PlanJson {
  const key = `${name} ${words}`;
  const plan = PLANS.get(key) ?? planMemory(shapeOf(name), requestFor(words));
  PLANS.set(key, plan);
  return plan;
}

describe.each(CASES.slice(0, inject("counts").planCases))("%s %s", (name, words) => {
  const model = shapeOf(name);

  test("each option of a saving, added to the command, gives its figure", () => {
    const plan = planFor(name, words);
    const before = replayed(model, words);
    expect(before.bytes).toBe(plan.perDeviceBytes);
    expect(plan.savings.length).toBeGreaterThan(0);
    for (const { change, bytes, addedTokens } of plan.savings) {
      const after = replayed(model, changed(words, change));
      // A technique that gives an engine's cache more room may take a little itself, such as for a larger group of devices.
      const saved = before.bytes - after.bytes;
      expect([change, addedTokens === undefined ? saved : Math.max(0, saved)]).toEqual([
        change,
        bytes,
      ]);
      if (addedTokens === undefined) {
        expect([change, bytes > 0]).toEqual([change, true]);
      } else {
        expect([change, (after.tokens ?? 0) - (before.tokens ?? 0)]).toEqual([change, addedTokens]);
      }
    }
  });

  test("what fits is planned to fit, and one more is not", () => {
    const plan = planFor(name, words);
    const { fits, maxBatch, maxSequence } = plan.fits;
    expect(fits).toBe(replayed(model, words).fits);
    const [batch, length] = plan.mode === "train" ? ["batch", "seq"] : ["concurrency", "context"];
    const holds = (flag: string | undefined, value: number): [number, boolean] => [
      value,
      replayed(model, `${words} --${flag} ${value}`).fits,
    ];
    if (maxBatch > 0) {
      expect(holds(batch, maxBatch)).toEqual([maxBatch, true]);
    }
    if (maxBatch < 2 ** 20) {
      expect(holds(batch, maxBatch + 1)).toEqual([maxBatch + 1, false]);
    }
    const longest = model.longestSequence === 0 ? 2 ** 20 : model.longestSequence;
    if (maxSequence > 0) {
      expect(holds(length, maxSequence)).toEqual([maxSequence, true]);
    }
    if (maxSequence < longest) {
      expect(holds(length, maxSequence + 64)).toEqual([maxSequence + 64, false]);
    }
  });

  test("figures of a server agree", () => {
    const { serving, fits, parts } = planFor(name, words);
    if (serving === undefined) {
      return;
    }
    expect(serving.maxConcurrency).toBe(fits.maxBatch);
    if (!words.includes("--concurrency")) {
      expect(serving.longestContext).toBe(fits.maxSequence);
    }
    // "95 % of (90 % of 79.2 GiB, less 17.4 GiB of all other parts), less the cache above"
    const unused = parts.find(({ part }) => part === "unused kv cache");
    if (unused !== undefined) {
      const numbers = [...unused.formula.matchAll(/([\d.]+) (%|[MG]iB)/g)].map(
        ([, figure, unit]) =>
          Number(figure) * (unit === "%" ? 0.01 : unit === "MiB" ? 1 / 1024 : 1),
      );
      const [share = 0, device = 0, taken = 0] = numbers.slice(-3);
      const factor = numbers.length > 3 ? (numbers[0] ?? 0) : 1;
      const cache = parts.find(({ part }) => part === "kv cache")?.bytes ?? 0;
      const formula = factor * (share * device - taken) - cache / 2 ** 30;
      expect(Math.abs(formula - unused.bytes / 2 ** 30), formatBytes(unused.bytes)).toBeLessThan(
        0.4,
      );
    }
  });
});

test("a length that fits beyond one that does not is named", () => {
  const words = "--seq 2048 --gpu RTX_3060";
  const plan = planMemory(shapeOf("qwen3-0.6b"), requestFor(words));
  expect(plan.fits.fits).toBe(true);
  expect(plan.fits.maxSequence).toBeLessThan(2048);
  expect(plan.fits.beyond).toMatch(
    /tokens also fit, but not every length between 1,\d{3} and [\d,]+:/,
  );
});

test("--fit counts rows, also with one device", async () => {
  const model = shapeOf("bert-base");
  const request = requestFor("--batch 2 --gpu 4090");
  const counted: number[][] = [];
  const { fitTable: rows = [] } = await planWithFitTable(
    { model, request, plan: planMemory(model, request) },
    async (...progress) => void counted.push(progress),
  );
  expect(rows.length).toBeGreaterThan(2);
  expect(counted).toEqual(rows.map((_, index) => [index, rows.length]));
});

test("a row of --fit is what its method plans", () => {
  const model = shapeOf("llama-3.1-8b");
  const gpu = GPUS.find(({ name }) => name === "RTX 4090");
  const rows = fitTable(model, requestFor("--batch 4 --seq 1024"), gpu === undefined ? [] : [gpu]);
  expect(rows.map(({ method }) => method)).toContain("qlora, checkpointing");
  for (const { method, fits, maxBatch } of rows) {
    const words = `--seq 1024 --gpu 4090 --checkpointing ${method.endsWith("checkpointing") ? "full" : "none"} --method ${method.split(",")[0]}${method.includes("8-bit") ? " --optimizer adamw8bit" : ""}`;
    expect([method, replayed(model, `${words} --batch 4`).fits]).toEqual([method, fits]);
    expect([method, replayed(model, `${words} --batch ${maxBatch + 1}`).fits]).toEqual([
      method,
      false,
    ]);
    if (maxBatch > 0) {
      expect([method, replayed(model, `${words} --batch ${maxBatch}`).fits]).toEqual([
        method,
        true,
      ]);
    }
  }
});

/** Twenty combinations, the same in each run. */
test("rows of --fit --serve, also of the page's table, are what each device plans", () => {
  let seed = 20_261_127;
  const pick = <Value>(values: readonly Value[]): Value => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return values[Math.floor((seed / 2 ** 31) * values.length)] as Value;
  };
  const names = [
    "llama-3.1-8b",
    "gemma3-1b",
    "gpt-oss-20b",
    "qwen3-30b-a3b",
    "jamba",
    "mamba-130m",
  ];
  for (let round = 0; round < 20; round++) {
    const name = pick(names);
    const gpu = pick(GPUS);
    const engine = pick(["vllm", "sglang", "tgi", "llama.cpp", "transformers"]);
    const words = `--serve --engine ${engine} --context ${pick([512, 2048, 16_384])} --concurrency ${pick([1, 5, 64])}`;
    const device = `--gpu ${gpu.name.replaceAll(" ", "_")}`;
    const model = shapeOf(name);
    const [row] = fitTable(model, requestFor(words), [gpu]);
    const label = `${name} ${words} ${device}`;
    expect([label, row?.device, row?.method]).toEqual([label, gpu.name, engine]);
    const { fits, maxBatch = 0, maxSequence = 0 } = row ?? {};
    const holds = (changes: string): boolean =>
      replayed(model, `${words} ${device} ${changes}`).fits;
    expect([label, fits]).toEqual([label, holds("")]);
    for (const [flag, most] of [
      ["--concurrency", maxBatch],
      ["--context", maxSequence],
    ] as const) {
      if (most > 0) {
        expect([label, flag, most, holds(`${flag} ${most}`)]).toEqual([label, flag, most, true]);
      }
    }
  }
});

/** The allocator's gaps change with the length: of the first job, 3,712 tokens fit, but 3,136 do not. */
test.each([
  ["llama-3.1-70b", "--fsdp 8 --method qlora --gpu v100-32gb"],
  ["llama-3.1-70b", "--fsdp 8 --method lora"],
  ["llama-3.1-70b", "--fsdp 32"],
])("all lengths up to the longest of %s %s fit", (name, words) => {
  const model = shapeOf(name);
  const { maxSequence } = planFor(name, words).fits;
  const lengths = Array.from({ length: maxSequence / 64 }, (_, index) => (index + 1) * 64);
  expect(lengths.length).toBeGreaterThan(0);
  expect(lengths.length).toBeLessThanOrEqual(64);
  const fit = lengths.filter((length) => replayed(model, `${words} --seq ${length}`).fits);
  expect(fit).toEqual(lengths);
});

test("a model without text has a largest batch and no length", () => {
  const { fits, model } = planFor("vit-b", "--gpu 4090");
  expect(model.readsText).toBe(false);
  expect(fits.maxBatch).toBeGreaterThan(1);
  expect(fits.maxSequence).toBe(0);
});

test("a device's size in GB is decimal, in GiB and G binary", () => {
  const sizeOf = (size: string) => planFor("gpt2", `--gpu ${size}`).devices.memoryBytes;
  expect([sizeOf("24GB"), sizeOf("24GiB"), sizeOf("24G")]).toEqual([
    24e9,
    24 * 2 ** 30,
    24 * 2 ** 30,
  ]);
});
