/** However a job is divided, its devices together hold the whole model. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it, test } from "vitest";
import { TidemarkError } from "../model/errors/errors.js";
import { modelTape } from "./blocks/model_tape.js";
import { type PlanRequest, planOptions } from "./defaults.js";
import { requireDivisible } from "./divisible.js";
import { deviceCount, ENGINES, type PlanOptions } from "./job/options.js";
import { planServing } from "./serve/plan_serving.js";
import type { ModelShape } from "./shape/model_shape.js";
import { readShape } from "./shape/read_shape.js";
import { trainingRules } from "./train/block_rules.js";
import { statesOf } from "./train/states.js";

const MODELS = JSON.parse(
  readFileSync(fileURLToPath(new URL("../../test/data/plan/models.json", import.meta.url)), "utf8"),
);

function shapeOf(name: string): ModelShape {
  const { config } = MODELS[name];
  return readShape({ ...config, num_hidden_layers: 4 }, name, "config.json");
}

/** Weights of all devices of the job, with every copy. null: the job is refused. */
function bytesOfAll(model: ModelShape, request: PlanRequest): number | null {
  const options = accepted(model, request);
  if (options === null) {
    return null;
  }
  const devices = deviceCount(options);
  if (options.mode === "serve") {
    const { parts, hostBytes } = planServing(model, options);
    const weights = parts.find(({ part }) => part === "weights")?.bytes ?? 0;
    return weights * devices + hostBytes;
  }
  const stages = options.parallelism.pipeline;
  let sum = 0;
  for (let index = 0; index < stages; index++) {
    const stage = { index, count: stages };
    const { tape } = modelTape(model, trainingRules(model, options), stage);
    // Without adapters, whose type depends on the division.
    sum += (statesOf(tape, options).weights * devices) / stages;
  }
  return sum;
}

/** Elements of the adapters, their gradients and their states, of all devices. null: the job is refused. */
function adaptersOfAll(model: ModelShape, request: PlanRequest): number[] | null {
  const options = accepted(model, request);
  if (options?.mode !== "train") {
    return null;
  }
  const stages = options.parallelism.pipeline;
  const sums = [0, 0, 0];
  for (let index = 0; index < stages; index++) {
    const stage = { index, count: stages };
    const { tape } = modelTape(model, trainingRules(model, options), stage);
    const { adapters, gradients, optimizer } = statesOf(tape, options);
    const one = tape.parameters.find(({ role }) => role === "adapter");
    const itemBytes = (one?.bytes ?? 0) / (one?.elements ?? 1);
    for (const [at, bytes] of [adapters, gradients, optimizer].entries()) {
      sums[at] = (sums[at] ?? 0) + ((bytes / itemBytes) * deviceCount(options)) / stages;
    }
  }
  return sums;
}

function accepted(model: ModelShape, request: PlanRequest): PlanOptions | null {
  try {
    const options = planOptions(model, request);
    requireDivisible(model, options);
    return options;
  } catch (error) {
    if (error instanceof TidemarkError) {
      return null;
    }
    throw error;
  }
}

const SIZES = [1, 2, 4, 8];
const RANKS = SIZES.flatMap((tensor) =>
  [1, 2].flatMap((pipeline) => SIZES.map((expert) => ({ tensor, pipeline, expert }))),
);
const SHARDINGS: readonly PlanRequest["sharding"][] = [
  undefined,
  { kind: "ddp", devices: 2 },
  { kind: "fsdp", devices: 4 },
  { kind: "zero-1", devices: 4 },
  { kind: "zero-3", devices: 8 },
];

describe.each(["mixtral", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b"])("%s", (name) => {
  const model = shapeOf(name);

  function missing(requests: readonly PlanRequest[]): { planned: number; short: object[] } {
    const [first] = requests as [PlanRequest];
    const whole = bytesOfAll(model, { mode: first.mode, ...of16Bit(first) }) ?? Number.NaN;
    const sums = requests.map((request) => ({ request, bytes: bytesOfAll(model, request) }));
    const planned = sums.filter(({ bytes }) => bytes !== null);
    return {
      planned: planned.length,
      short: planned
        // The rank of a pipeline that needs most may be one without the final norm: 14 KiB at most.
        .filter(({ request, bytes }) => {
          const missing = (request.pipeline ?? 1) > 1 ? 32_768 : 64;
          return !((bytes ?? 0) >= whole - missing);
        })
        .map(({ request, bytes }) => ({ ...request, share: (bytes ?? 0) / whole })),
    };
  }

  it("trains with all its weights, however it is divided", () => {
    const requests = SHARDINGS.flatMap((sharding) =>
      RANKS.flatMap((ranks) =>
        [1, 2].map(
          (contextParallel): PlanRequest => ({
            mode: "train",
            weights: "16bit",
            contextParallel,
            ...ranks,
            ...(sharding === undefined ? {} : { sharding }),
          }),
        ),
      ),
    );
    const { planned, short } = missing(requests);
    expect(short).toEqual([]);
    expect(planned).toBeGreaterThan(requests.length / 3);
  });

  it("trains whole adapters, however they are divided", () => {
    const lora = { mode: "train", method: "lora", weights: "16bit" } as const;
    const train = { adapterTargets: ["q_proj", "gate_up_proj", "down_proj"] };
    const whole = adaptersOfAll(model, { ...lora, train }) ?? [Number.NaN];
    const requests = SHARDINGS.flatMap((sharding) =>
      RANKS.map(
        (ranks): PlanRequest => ({ ...lora, train, ...ranks, ...(sharding && { sharding }) }),
      ),
    );
    const sums = requests.map((request) => ({ request, sum: adaptersOfAll(model, request) }));
    const planned = sums.filter(({ sum }) => sum !== null);
    const isShort = ({ sum }: (typeof sums)[number]) =>
      !whole.every((elements, index) => (sum?.[index] ?? 0) > elements - 1024);
    expect(planned.filter(isShort)).toEqual([]);
    expect(planned.length).toBeGreaterThan(requests.length / 3);
  });

  it.each(ENGINES)("is served whole by %s", (engine) => {
    const requests = RANKS.map(
      (ranks): PlanRequest => ({ mode: "serve", serve: { engine }, ...ranks }),
    );
    const { planned, short } = missing(requests);
    expect(short).toEqual([]);
    expect(planned).toBeGreaterThan(0);
  });
});

function of16Bit({ mode, serve }: PlanRequest): Partial<PlanRequest> {
  return mode === "train" ? { weights: "16bit" } : { ...(serve === undefined ? {} : { serve }) };
}

describe("devices of expert parallelism", () => {
  const model = shapeOf("mixtral");
  const count = (request: Omit<PlanRequest, "mode">): number | null => {
    const options = accepted(model, { mode: "train", ...request });
    return options === null ? null : deviceCount(options);
  };
  const served = (
    engine: (typeof ENGINES)[number],
    tensor: number,
    expert: number,
    pipeline = 1,
  ) => {
    const options = accepted(model, { mode: "serve", tensor, expert, pipeline, serve: { engine } });
    return options === null ? null : deviceCount(options);
  };

  test("training takes them from data and context parallelism, then from tensor parallelism", () => {
    expect(count({ expert: 8 })).toBe(8);
    expect(count({ expert: 8, tensor: 8 })).toBe(8);
    expect(count({ expert: 4, tensor: 8 })).toBe(32);
    expect(count({ expert: 4, pipeline: 2 })).toBe(8);
    expect(count({ expert: 8, contextParallel: 4 })).toBe(8);
    expect(count({ expert: 8, sharding: { kind: "fsdp", devices: 4 } })).toBeNull();
    expect(count({ expert: 8, tensor: 2, sharding: { kind: "fsdp", devices: 4 } })).toBe(8);
  });

  test("engines take them as their options do", () => {
    expect([served("vllm", 8, 8), served("vllm", 2, 8), served("vllm", 1, 4, 2)]).toEqual([
      8, 8, 8,
    ]);
    expect([served("sglang", 8, 4), served("sglang", 4, 8)]).toEqual([8, null]);
    expect([served("transformers", 8, 8), served("transformers", 1, 8)]).toEqual([8, null]);
    expect([served("vllm", 8, 4), served("tgi", 8, 8)]).toEqual([null, null]);
  });
});
