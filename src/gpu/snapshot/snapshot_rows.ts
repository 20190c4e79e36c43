/** The rows into which a snapshot's dictionaries are converted while its pickle is read. */
import { BlockState, GpuAction } from "../../model/gpu/gpu_snapshot.js";
import {
  piecesOfFloat64,
  piecesOfInt32,
  piecesOfUint8,
  piecesOfUint16,
  piecesOfUint32,
} from "./piece_column.js";

export class SnapshotRows {
  readonly events = {
    action: piecesOfUint8(),
    address: piecesOfFloat64(),
    size: piecesOfFloat64(),
    stream: piecesOfUint16(),
    timeUs: piecesOfFloat64(),
    stack: piecesOfUint32(),
    metadata: piecesOfUint32(),
    category: piecesOfUint32(),
    pool: piecesOfUint32(),
  };
  readonly segments = {
    device: piecesOfInt32(),
    address: piecesOfFloat64(),
    size: piecesOfFloat64(),
    allocated: piecesOfFloat64(),
    active: piecesOfFloat64(),
    requested: piecesOfFloat64(),
    stream: piecesOfUint16(),
    pool: piecesOfUint32(),
    type: piecesOfUint32(),
    expandable: piecesOfUint8(),
    firstBlock: piecesOfUint32(),
    blockCount: piecesOfUint32(),
  };
  /** `address` is NaN if the version omits it; blocks then follow one another. */
  readonly blocks = {
    address: piecesOfFloat64(),
    size: piecesOfFloat64(),
    requested: piecesOfFloat64(),
    state: piecesOfUint8(),
    stack: piecesOfUint32(),
  };
  /** The allocation history of a block in torch up to 2.0, newest first. */
  readonly histories = { size: piecesOfFloat64(), stack: piecesOfUint32() };
  readonly annotations = {
    stage: piecesOfUint32(),
    name: piecesOfUint32(),
    device: piecesOfUint16(),
    timeUs: piecesOfFloat64(),
  };
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
