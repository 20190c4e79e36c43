/**
 * From tensors to what the device shows: the library's workspace, what the caching allocator reserves beside tensors, the
 * CUDA context.
 *
 * The allocator rounds tensors to 512 B, and takes segments of 2 MiB, 20 MiB or multiples of 2 MiB from the driver
 * (c10/cuda/CUDACachingAllocator.cpp). Tensors that live for the whole job fill their segments; those that come and go
 * within a step leave gaps, which is where the reserve comes from.
 */
import type { Bytes } from "../../model/base/units.js";
import type {
  PlanFigureJson,
  PlanPartJson,
  PlanPartName,
} from "../../model/documents/plan_document.js";
import type { Gpu } from "./gpus.js";

export interface PartSketch {
  readonly formula: string;
  readonly source: string;
  readonly where?: PlanPartJson["where"];
}

/** @param width half width of the interval, as a share */
export function part(
  name: PlanPartName,
  bytes: Bytes,
  width: number,
  sketch: PartSketch,
): PlanPartJson {
  return {
    part: name,
    bytes: Math.round(bytes),
    low: Math.round(bytes * Math.max(0, 1 - width)),
    high: Math.round(bytes * (1 + width)),
    formula: sketch.formula,
    source: sketch.source,
    where: sketch.where ?? "allocated",
  };
}

/** Share of short-lived memory that gaps between blocks add, of tensors that live on. */
const GAPS = 0.05;
const SEGMENT_ROUNDING = 0.004;
/** Tensors that live from step to step. */
const LASTING: readonly PlanPartName[] = [
  "weights",
  "adapters",
  "optimizer",
  "kv cache",
  "unused kv cache",
];

export function allocatorParts(
  parts: readonly PlanPartJson[],
  { gpu, outsideBytes }: { gpu: Gpu; outsideBytes: Bytes },
): PlanPartJson[] {
  const sum = (wanted: boolean): Bytes =>
    parts.reduce(
      (total, each) => total + (LASTING.includes(each.part) === wanted ? each.bytes : 0),
      0,
    );
  const gaps = sum(false) * GAPS + sum(true) * SEGMENT_ROUNDING;
  const made = [
    part("workspace", gpu.workspaceBytes, 0.6, {
      formula: "cuBLAS workspace of one stream",
      source: "torch.cuda: CUBLAS_WORKSPACE_CONFIG, 8.125 MiB, 32 MiB from Hopper on",
    }),
    {
      ...part("fragmentation", gaps, 1, {
        formula: `${GAPS * 100} % of what comes and goes in a step, ${SEGMENT_ROUNDING * 100} % of what stays`,
        source: "CUDACachingAllocator.cpp: 512 B blocks, 2 and 20 MiB segments",
        where: "reserved",
      }),
      high: Math.round(gaps * 2.6),
    },
    contextPart(gpu),
  ];
  if (outsideBytes > 0) {
    made.push(
      part("communication", outsideBytes, 0.6, {
        formula: "NCCL's channels for each group of ranks",
        source: "NCCL_BUFFSIZE, NCCL_MAX_NCHANNELS",
        where: "device",
      }),
    );
  }
  return made;
}

/** CUDA before 11.7 loads all kernels at once: about 1 GiB more. */
const EAGER_LOADING = 2 ** 30;

function contextPart(gpu: Gpu): PlanPartJson {
  const made = part("cuda context", gpu.contextBytes, 0.35, {
    formula: `context and kernels of ${gpu.name === "" ? "a device of this size" : gpu.name}`,
    source: "CUDA 12 with lazy loading, by multiprocessors",
    where: "device",
  });
  return gpu.old ? { ...made, high: made.high + EAGER_LOADING } : made;
}

/** Totals of the parts up to a level. Errors of parts are not independent: half of them adds up. */
export function figureOf(
  parts: readonly PlanPartJson[],
  level: PlanPartJson["where"],
  known = true,
): PlanFigureJson {
  const least = known ? LEAST_WIDTH : LEAST_WIDTH_UNKNOWN;
  const levels = ["allocated", "reserved", "device"] as const;
  const counted = parts.filter(({ where }) => levels.indexOf(where) <= levels.indexOf(level));
  const bytes = counted.reduce((sum, each) => sum + each.bytes, 0);
  const width = (of: (each: PlanPartJson) => Bytes): Bytes => {
    const linear = counted.reduce((sum, each) => sum + of(each), 0);
    const squares = counted.reduce((sum, each) => sum + of(each) ** 2, 0);
    return (linear + Math.sqrt(squares)) / 2;
  };
  const below = width((each) => each.bytes - each.low);
  const above = width((each) => each.high - each.bytes);
  return {
    bytes,
    low: Math.max(0, Math.round(bytes - Math.max(below, least * bytes))),
    high: Math.round(bytes + Math.max(above, least * bytes)),
  };
}

/**
 * The narrowest interval, as a part of the figure. Versions of libraries differ by more than a formula can predict: the
 * mean error over the rows of bench/plan_rows.json is 8 % (docs/plan.md).
 */
const LEAST_WIDTH = 0.12;
/** Of a family without a reader. */
const LEAST_WIDTH_UNKNOWN = 0.25;
