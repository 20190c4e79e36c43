/**
 * The same request for another engine: what that engine does not have, or refuses for the model, falls back to its default.
 * A model that the engine does not serve at all stays refused.
 */
import { TidemarkError } from "../model/errors/errors.js";
import { NO_CACHE_TYPE, type PlanRequest, planOptions } from "./defaults.js";
import { gpuNamed } from "./device/gpus.js";
import { requireDivisible } from "./divisible.js";
import { HAVE_NONE } from "./job/experts.js";
import type { Engine } from "./job/options.js";
import { hasPipeline } from "./serve/served_by.js";
import type { ModelShape } from "./shape/model_shape.js";

const BEGINS = "left out for ";

/** Options that an engine may refuse for a model, in the order in which they are left out. */
const REFUSED: readonly {
  readonly named: (request: PlanRequest) => string | null;
  readonly without: (request: PlanRequest) => PlanRequest;
}[] = [
  {
    named: ({ dtype }) => (dtype === undefined ? null : `--dtype ${dtype}`),
    without: ({ dtype: _, ...rest }) => rest,
  },
  {
    named: ({ quantize }) => (quantize === undefined ? null : `--quantize ${quantize}`),
    without: ({ quantize: _, ...rest }) => rest,
  },
  {
    named: ({ expert = 1 }) => (expert === 1 ? null : `--ep ${expert}`),
    without: ({ expert: _, ...rest }) => rest,
  },
  {
    named: ({ tensor = 1 }) => (tensor === 1 ? null : `--tp ${tensor}`),
    without: ({ tensor: _, ...rest }) => rest,
  },
  {
    named: ({ pipeline = 1 }) => (pipeline === 1 ? null : `--pp ${pipeline}`),
    without: ({ pipeline: _, ...rest }) => rest,
  },
  {
    named: ({ gpu }) => (gpu === undefined ? null : `--gpu ${gpu.name}, for H100`),
    without: (request) => withGpu(request, "h100"),
  },
];

function withGpu(request: PlanRequest, name: string): PlanRequest {
  const gpu = gpuNamed(name);
  return gpu === undefined ? request : { ...request, gpu };
}

function isRefused(model: ModelShape, request: PlanRequest): boolean {
  try {
    requireDivisible(model, planOptions(model, request));
    return false;
  } catch (error) {
    if (error instanceof TidemarkError) {
      return true;
    }
    throw error;
  }
}

/** One option if that is enough, otherwise one after another. */
function accepted(
  model: ModelShape,
  request: PlanRequest,
): { request: PlanRequest; lost: string[] } {
  if (!isRefused(model, request)) {
    return { request, lost: [] };
  }
  const given = REFUSED.filter(({ named }) => named(request) !== null);
  const namesOf = (options: typeof REFUSED): string[] =>
    options.map(({ named }) => named(request) ?? "");
  const sets = [
    ...given.map((each) => [each]),
    ...given.map((_, index) => given.slice(0, index + 1)),
  ];
  for (const set of sets) {
    const tried = set.reduce((left, { without }) => without(left), request);
    if (!isRefused(model, tried)) {
      return { request: tried, lost: namesOf(set) };
    }
  }
  return { request, lost: [] };
}

export function withEngine(model: ModelShape, request: PlanRequest, engine: Engine): PlanRequest {
  const { kvDType, valueDType, gpuLayers, ...serve } = request.serve ?? {};
  const { expert, pipeline, notes = [], ...rest } = request;
  const isLlamaCpp = engine === "llama.cpp";
  const has = (type: typeof kvDType): boolean =>
    type !== undefined && !NO_CACHE_TYPE[engine].includes(type);
  const keepsKeys = has(kvDType);
  const keepsValues = has(valueDType) && (isLlamaCpp || valueDType === kvDType);
  const keepsPipeline = pipeline !== undefined && hasPipeline(engine);
  const keepsExperts = expert !== undefined && !HAVE_NONE.has(engine);
  const isAuto = (type: typeof kvDType): boolean => type === undefined || type === "auto";
  const lost = [
    ...(isAuto(kvDType) || keepsKeys ? [] : [`a cache in ${kvDType}`]),
    ...(isAuto(valueDType) || valueDType === kvDType || keepsValues
      ? []
      : [`values of the cache in ${valueDType}`]),
    ...(gpuLayers === undefined || isLlamaCpp ? [] : [`--gpu-layers ${gpuLayers}`]),
    ...((expert ?? 1) === 1 || keepsExperts ? [] : [`--ep ${expert}`]),
    ...((pipeline ?? 1) === 1 || keepsPipeline ? [] : [`--pp ${pipeline}`]),
  ];
  const changed: PlanRequest = {
    ...rest,
    ...(keepsExperts ? { expert } : {}),
    ...(keepsPipeline ? { pipeline } : {}),
    serve: {
      ...serve,
      engine,
      ...(keepsKeys ? { kvDType } : {}),
      ...(keepsValues ? { valueDType } : {}),
      ...(gpuLayers !== undefined && isLlamaCpp ? { gpuLayers } : {}),
    },
  };
  const { request: served, lost: refused } = accepted(model, changed);
  return {
    ...served,
    notes: [
      ...notes.filter((note) => !note.startsWith(BEGINS)),
      ...(lost.length === 0
        ? []
        : [`${BEGINS}${engine}, which has no such option: ${lost.join(", ")}`]),
      ...(refused.length === 0
        ? []
        : [`${BEGINS}${engine}, which refuses it for this model: ${refused.join(", ")}`]),
    ],
  };
}
