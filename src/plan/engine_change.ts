/** The same request for another engine: what that engine does not have falls back to its default. */
import { NO_CACHE_TYPE, type PlanRequest } from "./defaults.js";
import { HAVE_NONE } from "./job/experts.js";
import type { Engine } from "./job/options.js";

const BEGINS = "left out for ";

export function withEngine(request: PlanRequest, engine: Engine): PlanRequest {
  const { kvDType, valueDType, gpuLayers, ...serve } = request.serve ?? {};
  const { expert, notes = [], ...rest } = request;
  const isLlamaCpp = engine === "llama.cpp";
  const has = (type: typeof kvDType): boolean =>
    type !== undefined && !NO_CACHE_TYPE[engine].includes(type);
  const keepsKeys = has(kvDType);
  const keepsValues = has(valueDType) && (isLlamaCpp || valueDType === kvDType);
  const keepsExperts = expert !== undefined && !HAVE_NONE.has(engine);
  const isAuto = (type: typeof kvDType): boolean => type === undefined || type === "auto";
  const lost = [
    ...(isAuto(kvDType) || keepsKeys ? [] : [`a cache in ${kvDType}`]),
    ...(isAuto(valueDType) || valueDType === kvDType || keepsValues
      ? []
      : [`values of the cache in ${valueDType}`]),
    ...(gpuLayers === undefined || isLlamaCpp ? [] : [`--gpu-layers ${gpuLayers}`]),
    ...((expert ?? 1) === 1 || keepsExperts ? [] : [`--ep ${expert}`]),
  ];
  return {
    ...rest,
    ...(keepsExperts ? { expert } : {}),
    serve: {
      ...serve,
      engine,
      ...(keepsKeys ? { kvDType } : {}),
      ...(keepsValues ? { valueDType } : {}),
      ...(gpuLayers !== undefined && isLlamaCpp ? { gpuLayers } : {}),
    },
    notes: [
      ...notes.filter((note) => !note.startsWith(BEGINS)),
      ...(lost.length === 0
        ? []
        : [`${BEGINS}${engine}, which has no such option: ${lost.join(", ")}`]),
    ],
  };
}
