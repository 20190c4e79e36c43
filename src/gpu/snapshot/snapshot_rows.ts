/** The rows into which a snapshot's dictionaries are converted while its pickle is read. */
import { BlockState, GpuAction } from "../../model/gpu/gpu_snapshot.js";
import { PieceTable } from "./piece_table.js";

export class SnapshotRows {
  readonly events = new PieceTable((rows) => ({
    action: new Uint8Array(rows),
    address: new Float64Array(rows),
    size: new Float64Array(rows),
    stream: new Uint16Array(rows),
    timeUs: new Float64Array(rows),
    stack: new Uint32Array(rows),
    metadata: new Uint32Array(rows),
    category: new Uint32Array(rows),
    pool: new Uint32Array(rows),
  }));
  readonly segments = new PieceTable((rows) => ({
    device: new Int32Array(rows),
    address: new Float64Array(rows),
    size: new Float64Array(rows),
    allocated: new Float64Array(rows),
    active: new Float64Array(rows),
    requested: new Float64Array(rows),
    stream: new Uint16Array(rows),
    pool: new Uint32Array(rows),
    type: new Uint32Array(rows),
    expandable: new Uint8Array(rows),
    firstBlock: new Uint32Array(rows),
    blockCount: new Uint32Array(rows),
  }));
  /** `address` is NaN if the version omits it; blocks then follow one another. */
  readonly blocks = new PieceTable((rows) => ({
    address: new Float64Array(rows),
    size: new Float64Array(rows),
    requested: new Float64Array(rows),
    state: new Uint8Array(rows),
    stack: new Uint32Array(rows),
  }));
  /** The allocation history of a block in torch up to 2.0, newest first. */
  readonly histories = new PieceTable((rows) => ({
    size: new Float64Array(rows),
    stack: new Uint32Array(rows),
  }));
  readonly annotations = new PieceTable((rows) => ({
    stage: new Uint32Array(rows),
    name: new Uint32Array(rows),
    device: new Uint16Array(rows),
    timeUs: new Float64Array(rows),
  }));
}

const ACTIONS: Readonly<Record<string, GpuAction>> = {
  alloc: GpuAction.alloc,
  free_requested: GpuAction.freeRequested,
  free_completed: GpuAction.freeCompleted,
  segment_alloc: GpuAction.segmentAlloc,
  segment_free: GpuAction.segmentFree,
  segment_map: GpuAction.segmentMap,
  segment_unmap: GpuAction.segmentUnmap,
  snapshot: GpuAction.snapshot,
  oom: GpuAction.outOfMemory,
  annotate: GpuAction.annotate,
};

export function actionOf(name: string): GpuAction {
  return (Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined) ?? GpuAction.other;
}

/** undefined for an unknown state. Versions use two names for a pending free. */
export function stateOf(name: string): BlockState | undefined {
  switch (name) {
    case "inactive":
      return BlockState.inactive;
    case "active_allocated":
      return BlockState.allocated;
    case "active_pending_free":
    case "active_awaiting_free":
      return BlockState.pendingFree;
    default:
      return undefined;
  }
}
