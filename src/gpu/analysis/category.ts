/**
 * The purpose of an allocation, inferred from its stack and, if the stack shows only the phase, from its
 * lifetime. PyTorch's profiler tracks tensors to be certain; a snapshot has only this information.
 */
import { int32At, uint32At } from "../../model/base/columns.js";
import type { GpuCategory } from "../../model/documents/gpu/gpu_document.js";
import type { GpuReplay } from "../../model/gpu/gpu_replay.js";
import { type GpuFrame, type GpuSnapshot, gpuFramesOf } from "../../model/gpu/gpu_snapshot.js";

/** The phase of the program that a stack belongs to. */
type Phase =
  | "optimizer"
  | "gradient"
  | "backward"
  | "forward"
  | "setup"
  | "kv cache"
  | "workspace"
  | "communication"
  | "unknown";

/** In order of significance: the first pattern that matches any frame is the phase. */
const SIGNS: readonly (readonly [Phase, (frame: GpuFrame) => boolean])[] = [
  [
    "workspace",
    ({ function: name }) =>
      /(?:cublas|cudnn|miopen|hipblas)\w*workspace|getWorkspace|getCUDABlas\w*Workspace/i.test(
        name,
      ),
  ],
  ["communication", ({ function: name }) => /nccl|rccl|ProcessGroup|c10d::/i.test(name)],
  [
    "optimizer",
    ({ function: name, file }) =>
      /[/\\]torch[/\\]optim[/\\]|[/\\](?:bitsandbytes|apex)[/\\]optim/.test(file) ||
      /^(?:_init_group|_multi_tensor_\w+|_single_tensor_\w+)$/.test(name),
  ],
  ["gradient", ({ function: name }) => /AccumulateGrad/.test(name)],
  [
    "kv cache",
    ({ function: name, file }) =>
      /kv_?cache|past_key_values|key_cache|[/\\]cache_utils\.py$|cache_engine|paged_?attention/i.test(
        `${name} ${file}`,
      ),
  ],
  [
    "backward",
    ({ function: name, file }) =>
      /torch::autograd::(?:Engine|Node|PyNode)|run_backward|^_?backward(?:_impl)?$/.test(name) ||
      (/[/\\]torch[/\\]autograd[/\\]/.test(file) && name === "backward"),
  ],
  [
    "setup",
    ({ function: name, file }) =>
      /^(?:load_state_dict|from_pretrained|_apply|convert|reset_parameters|init_weights?\w*)$/.test(
        name,
      ) && !/backward|forward/.test(name + file),
  ],
  [
    "forward",
    ({ function: name }) => /^(?:forward|_call_impl|_wrapped_call_impl|__call__)$/.test(name),
  ],
  ["setup", ({ function: name, file }) => name === "__init__" && /\.py$/.test(file)],
];

/**
 * A temporary is freed after a few operations; this is the largest number of events between its allocation and
 * its end.
 */
const BRIEF = 16;

export interface Classified {
  readonly category: GpuCategory;
  readonly sure: boolean;
}

/** Returns the category of a row of `replay.allocations`. */
export function categories(
  snapshot: GpuSnapshot,
  replay: GpuReplay,
): (allocation: number) => Classified {
  const phases = new Map<number, Phase>();
  const { allocations, events, firstEvent } = replay;
  const phaseAt = (stack: number): Phase => {
    let phase = phases.get(stack);
    if (phase === undefined) {
      phase = phaseOf(gpuFramesOf(snapshot, stack));
      phases.set(stack, phase);
    }
    return phase;
  };
  return (row) => {
    const phase = phaseAt(uint32At(allocations.stack, row));
    const end = int32At(allocations.end, row);
    const lasting = end === events;
    const freed = int32At(allocations.freed, row);
    if (phase === "forward" && !lasting && freed >= 0) {
      const freer = phaseAt(uint32At(snapshot.events.stack, firstEvent + freed));
      // Memory freed by the backward pass was needed by it, so it is an activation.
      if (freer === "backward" || freer === "gradient") {
        return { category: "activations", sure: true };
      }
    }
    const brief = !lasting && end - Math.max(0, int32At(allocations.start, row)) < BRIEF;
    return classify(phase, brief, lasting);
  };
}

function phaseOf(frames: readonly GpuFrame[]): Phase {
  return SIGNS.find(([, fits]) => frames.some(fits))?.[0] ?? "unknown";
}

function classify(phase: Phase, brief: boolean, lasting: boolean): Classified {
  switch (phase) {
    case "workspace":
    case "communication":
    case "kv cache":
      return { category: phase, sure: true };
    case "gradient":
      return { category: "gradients", sure: true };
    case "optimizer":
      return lasting
        ? { category: "optimizer state", sure: true }
        : { category: "temporaries", sure: brief };
    case "backward":
      return lasting
        ? { category: "gradients", sure: false }
        : { category: "temporaries", sure: brief };
    case "forward":
      return brief
        ? { category: "temporaries", sure: false }
        : { category: "activations", sure: false };
    case "setup":
      return { category: brief ? "temporaries" : "parameters", sure: false };
    default:
      return { category: brief ? "temporaries" : "unknown", sure: false };
  }
}
