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
  /** In place of one by `width`. */
  readonly interval?: { readonly low: Bytes; readonly high: Bytes };
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
    low: Math.round(Math.max(0, sketch.interval?.low ?? bytes * (1 - width))),
    high: Math.round(Math.max(bytes, sketch.interval?.high ?? bytes * (1 + width))),
    formula: sketch.formula,
    source: sketch.source,
    where: sketch.where ?? "allocated",
  };
}

/** Share of short-lived memory that gaps between blocks add in an engine's forward passes. */
const GAPS = 0.05;
/** Share that rounding to whole segments adds to tensors that stay. */
const SEGMENT_ROUNDING = 0.004;
/** Tensors that live from step to step. */
const LASTING: readonly PlanPartName[] = [
  "weights",
  "adapters",
  "optimizer",
  "kv cache",
  "unused kv cache",
];

/** Where the figures come from. */
const TORCH = {
  workspace: "torch.cuda: CUBLAS_WORKSPACE_CONFIG, 8.125 MiB, 32 MiB from Hopper on; 1 MiB for Lt",
  hipWorkspace: "torch, CublasHandlePool.cpp: HIPBLAS_WORKSPACE_CONFIG, 128 MiB on gfx94",
  fragmentation: "CUDACachingAllocator.cpp: 512 B blocks, segments of 2 MiB, 20 MiB or one tensor",
};
const LLAMA_CPP = {
  workspace: "assumed: cuBLAS, for products that llama.cpp's own kernels do not compute",
  hipWorkspace: "assumed: hipBLAS, for products that llama.cpp's own kernels do not compute",
  fragmentation: "assumed: few buffers, each allocated once",
};

interface AllocatorFacts {
  readonly gpu: Gpu;
  /** Threads that compute products: autograd's backward pass has its own. */
  readonly threads: 1 | 2;
  /** Memory of libraries that allocate by themselves (NCCL). */
  readonly outsideBytes: Bytes;
  /** llama.cpp has no caching allocator; absent: torch. */
  readonly isLlamaCpp?: boolean;
  /** Share of the tensors by which a replay of the step reserved more than it allocated; absent for serving. */
  readonly replayedGaps?: number;
}

export function allocatorParts(
  parts: readonly PlanPartJson[],
  { gpu, threads, outsideBytes, isLlamaCpp = false, replayedGaps }: AllocatorFacts,
): PlanPartJson[] {
  const sources = isLlamaCpp ? LLAMA_CPP : TORCH;
  const made = [
    part("workspace", threads * gpu.workspaceBytes, 0.6, {
      formula: `${gpu.isAmd ? "hipBLAS and hipBLASLt" : "cuBLAS and cuBLASLt"} workspaces${threads === 2 ? ", of the forward and of the backward thread" : ""}`,
      source: gpu.isAmd ? sources.hipWorkspace : sources.workspace,
    }),
    fragmentationPart(parts, sources.fragmentation, replayedGaps),
    contextPart(gpu),
  ];
  if (outsideBytes > 0) {
    made.push(
      part("nccl", outsideBytes, 0.6, {
        formula: `${gpu.isAmd ? "RCCL" : "NCCL"} buffers of each process group`,
        source: "NCCL_BUFFSIZE, NCCL_MAX_NCHANNELS",
        where: "device",
      }),
    );
  }
  return made;
}

function fragmentationPart(
  parts: readonly PlanPartJson[],
  source: string,
  replayed?: number,
): PlanPartJson {
  const sum = (wanted: (name: PlanPartName) => boolean): Bytes =>
    parts.reduce((total, each) => total + (wanted(each.part) ? each.bytes : 0), 0);
  if (replayed === undefined) {
    const gaps =
      sum((name) => !LASTING.includes(name)) * GAPS +
      sum((name) => LASTING.includes(name)) * SEGMENT_ROUNDING;
    return {
      ...part("fragmentation", gaps, 1, {
        formula: `${GAPS * 100} % of short-lived tensors, ${SEGMENT_ROUNDING * 100} % of weights and cache`,
        source,
        where: "reserved",
      }),
      high: Math.round(gaps * 2.6),
    };
  }
  const all = sum(() => true);
  const gaps = all * replayed;
  return {
    ...part("fragmentation", gaps, 0.75, {
      formula: `the caching allocator, replayed, reserves ${(replayed * 100).toFixed(1)} % more than it allocates`,
      source,
      where: "reserved",
    }),
    high: Math.round(gaps * 2 + all * UNREPLAYED),
  };
}

/** Gaps that a replay cannot know: kernels' own scratch memory, several streams. */
const UNREPLAYED = 0.02;

/** CUDA before 11.7 loads all kernels at once: about 1 GiB more. */
const EAGER_LOADING = 2 ** 30;
/** Builds of torch for CUDA 13 have no kernels for devices before Turing. */
const TURING = 7.5;

function contextPart(gpu: Gpu): PlanPartJson {
  const { contextBytes, capability, old } = gpu;
  if (gpu.contextMeasured === true) {
    return part("cuda context", contextBytes, 0.1, {
      formula: "as given with --cuda-context",
      source: "your measurement",
      where: "device",
    });
  }
  const kind = gpu.isAmd ? "HIP" : "CUDA";
  const version = old
    ? `, with ${capability < TURING ? "CUDA 12, the last whose torch builds have kernels for this device" : "CUDA 12 or later"}; 1 GiB more before CUDA 11.7`
    : "";
  const made = part("cuda context", contextBytes, 0.35, {
    formula: `${kind} context and loaded kernels on ${gpu.name === "" ? "a GPU of this size" : gpu.name}${version}`,
    source: gpu.isAmd
      ? "assumed: that of a CUDA device of this size, because no measurement is published"
      : "nvidia-smi before the first tensor; kernels load lazily from CUDA 11.7 on",
    where: "device",
  });
  return { ...made, high: made.high + (old ? EAGER_LOADING : 0) };
}

interface FigureFacts {
  /** The family has a reader; absent: it has one. */
  readonly known?: boolean;
  /** Of an engine whose cache is what the other parts leave of this device. */
  readonly filled?: Bytes;
}

/**
 * Totals of the parts up to a level. Errors of parts are not independent: half of them adds up. The cache of an engine that
 * fills its share of a device makes up for the errors of the other parts, so that it has none of its own in the total; and
 * what such an engine takes ends where the device does.
 */
export function figureOf(
  parts: readonly PlanPartJson[],
  level: PlanPartJson["where"],
  { known = true, filled }: FigureFacts = {},
): PlanFigureJson {
  const least = known ? LEAST_WIDTH : LEAST_WIDTH_UNKNOWN;
  const levels = ["allocated", "reserved", "device"] as const;
  const isCounted = ({ where }: PlanPartJson): boolean =>
    levels.indexOf(where) <= levels.indexOf(level);
  const counted = parts.filter(isCounted);
  const bytes = sumOf(counted);
  const unsure =
    filled === undefined ? counted : counted.filter(({ part }) => !CACHE.includes(part));
  const narrowest = least * sumOf(unsure);
  const width = (of: (each: PlanPartJson) => Bytes): Bytes => {
    const linear = unsure.reduce((sum, each) => sum + of(each), 0);
    const squares = unsure.reduce((sum, each) => sum + of(each) ** 2, 0);
    return Math.max(narrowest, (linear + Math.sqrt(squares)) / 2);
  };
  const below = width((each) => each.bytes - each.low);
  const above = width((each) => each.high - each.bytes);
  const beside = parts.reduce((sum, each) => sum + (isCounted(each) ? 0 : each.low), 0);
  // A job that does not fit needs what it needs.
  const ends = filled !== undefined && bytes <= filled - beside + ROUNDING;
  const end = ends ? filled - beside : Number.POSITIVE_INFINITY;
  return {
    bytes,
    low: Math.max(0, Math.round(bytes - below)),
    high: Math.round(Math.max(bytes, Math.min(bytes + above, end))),
  };
}

/** Parts are whole bytes: their sum may differ by so much. */
const ROUNDING = 1024;
const CACHE: readonly PlanPartName[] = ["kv cache", "unused kv cache"];

function sumOf(parts: readonly PlanPartJson[]): Bytes {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

/**
 * The narrowest interval, as a part of the figure. Versions of libraries differ by more than a formula can predict: the
 * mean error over the rows of bench/plan_rows.json is 8 % (docs/plan.md).
 */
const LEAST_WIDTH = 0.12;
/** The interval for a family without a reader. */
const LEAST_WIDTH_UNKNOWN = 0.25;
