/**
 * A CUDA allocator snapshot (`torch.cuda.memory._dump_snapshot`) as columns. A file may hold millions of
 * trace entries: there is no object per entry here.
 *
 *   frames   function, file (string ids), line
 *   stacks   tree of frames: a stack is a node, its leaf frame there, its caller the parent; 0 is empty
 *   events   the trace, one range of rows per device, oldest first
 *   segments memory reserved from the driver at the end; blocks subdivide each of them
 */
import { itemAt, uint32At } from "../base/columns.js";

/** The device number of the host allocator, which pins memory for copies and is not a device (2.10 and later). */
export const HOST_MEMORY = -1;

/** The action of a trace entry; `other` is one that this Tidemark does not know. */
export const GpuAction = {
  alloc: 0,
  freeRequested: 1,
  freeCompleted: 2,
  segmentAlloc: 3,
  segmentFree: 4,
  segmentMap: 5,
  segmentUnmap: 6,
  snapshot: 7,
  outOfMemory: 8,
  other: 9,
  /** The program attached a note to a live allocation (2.13 and later). */
  annotate: 10,
} as const;
export type GpuAction = (typeof GpuAction)[keyof typeof GpuAction];

/** `pendingFree`: freed by the program, still used by work on another stream. */
export const BlockState = { inactive: 0, allocated: 1, pendingFree: 2 } as const;
export type BlockState = (typeof BlockState)[keyof typeof BlockState];

interface GpuEventColumns {
  readonly length: number;
  readonly action: Uint8Array;
  /** For `outOfMemory`: the free bytes of the device. */
  readonly address: Float64Array;
  /** Requested bytes; rounded for segments and `outOfMemory`; all reserved bytes for `snapshot`. */
  readonly size: Float64Array;
  /** Row of `streams`. */
  readonly stream: Uint16Array;
  /** Microseconds since 1970; 0 if the entry has none. */
  readonly timeUs: Float64Array;
  readonly stack: Uint32Array;
  /** String id of `user_metadata`; 0 none. */
  readonly metadata: Uint32Array;
  /** String id of the entry's own `category` (newer versions); 0 none. */
  readonly category: Uint32Array;
  /** String id of `pool_id`, as "[0,1]" (newer versions); 0 unknown. */
  readonly pool: Uint32Array;
}

interface GpuSegmentColumns {
  readonly length: number;
  /** {@link HOST_MEMORY} for pinned memory. */
  readonly device: Int32Array;
  readonly address: Float64Array;
  readonly size: Float64Array;
  readonly allocated: Float64Array;
  readonly active: Float64Array;
  /** Requested bytes of active blocks; NaN if the version does not record it. */
  readonly requested: Float64Array;
  readonly stream: Uint16Array;
  /** String id of `segment_pool_id`, as "[0,0]"; 0 unknown. */
  readonly pool: Uint32Array;
  /** String id: "large", "small". */
  readonly type: Uint32Array;
  readonly expandable: Uint8Array;
  readonly firstBlock: Uint32Array;
  readonly blockCount: Uint32Array;
}

interface GpuBlockColumns {
  readonly length: number;
  readonly address: Float64Array;
  readonly size: Float64Array;
  /** Requested bytes; 0 for a free block. */
  readonly requested: Float64Array;
  readonly state: Uint8Array;
  readonly stack: Uint32Array;
}

/** Times that the program marked: profiler steps, `Optimizer.step`, user annotations. */
interface GpuAnnotationColumns {
  readonly length: number;
  /** String ids: "START", "END", and the name. */
  readonly stage: Uint32Array;
  readonly name: Uint32Array;
  readonly device: Uint16Array;
  readonly timeUs: Float64Array;
}

/** Rows of `events`. */
interface TraceRange {
  readonly first: number;
  readonly count: number;
}

export interface GpuSnapshot {
  /** 0 is "". */
  readonly strings: readonly string[];
  readonly frames: {
    readonly length: number;
    readonly function: Uint32Array;
    readonly file: Uint32Array;
    readonly line: Uint32Array;
  };
  readonly stacks: {
    readonly length: number;
    readonly parent: Uint32Array;
    readonly frame: Uint32Array;
  };
  /** The streams' own numbers (addresses); 0 is the default stream. */
  readonly streams: Float64Array;
  readonly events: GpuEventColumns;
  /** Row range of `events` by device number; a device without trace has count 0. */
  readonly traces: readonly TraceRange[];
  /** The same for the host allocator. */
  readonly hostTrace: TraceRange;
  readonly segments: GpuSegmentColumns;
  readonly blocks: GpuBlockColumns;
  readonly annotations: GpuAnnotationColumns;
  /** `allocator_settings`, as in the file; empty if it has none. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Names of actions that this Tidemark does not know. */
  readonly unknownActions: readonly string[];
}

export interface GpuFrame {
  readonly function: string;
  readonly file: string;
  readonly line: number;
}

/** The trace of a device, or of {@link HOST_MEMORY}; empty if it has none. */
export function traceOf({ traces, hostTrace }: GpuSnapshot, device: number): TraceRange {
  return device === HOST_MEMORY ? hostTrace : (traces[device] ?? { first: 0, count: 0 });
}

/** The frames of a stack, leaf first. */
export function gpuFramesOf(snapshot: GpuSnapshot, stack: number): GpuFrame[] {
  const { frames, stacks, strings } = snapshot;
  const list: GpuFrame[] = [];
  for (let node = stack; node !== 0; node = uint32At(stacks.parent, node)) {
    const frame = uint32At(stacks.frame, node);
    list.push({
      function: itemAt(strings, uint32At(frames.function, frame)),
      file: itemAt(strings, uint32At(frames.file, frame)),
      line: uint32At(frames.line, frame),
    });
  }
  return list;
}
