/** The frames of a stack to show. */
import type { FrameJson } from "../../model/documents/documents.js";
import {
  isAllocatorFrame,
  isInterpreterFrame,
  isPythonFrame,
} from "../../model/gpu/gpu_frame_roles.js";
import { type GpuFrame, type GpuSnapshot, gpuFramesOf } from "../../model/gpu/gpu_snapshot.js";

/** Leaf first, without the allocator's own frames, and without the interpreter's if there are Python frames. */
export function informativeFrames(snapshot: GpuSnapshot, stack: number): FrameJson[] {
  const all = gpuFramesOf(snapshot, stack);
  const python = all.some(isPythonFrame);
  return all
    .filter(
      (frame) =>
        isPythonFrame(frame) || !(isAllocatorFrame(frame) || (python && isInterpreterFrame(frame))),
    )
    .map(frameJson);
}

function frameJson(frame: GpuFrame): FrameJson {
  return { ...frame, kind: isPythonFrame(frame) ? "python" : "native" };
}
