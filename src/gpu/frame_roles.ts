/** Which frames of a stack tell something, and which are the allocator's and the interpreter's own. */
import type { FrameJson } from "../model/documents.js";
import { type GpuFrame, type GpuSnapshot, gpuFramesOf } from "../model/gpu_snapshot.js";

/** How the stack itself was taken, and the way through the allocator: the same in every stack. */
const OF_ALLOCATOR =
  /^(?:torch::unwind|torch::CapturedTraceback|torch::(?:cuda|memory)::\(anonymous namespace\)::gather|c10::(?:cuda|hip)::(?:CUDA|HIP)CachingAllocator)/;
/** CPython's C code: beside a Python frame it says nothing. */
const OF_INTERPRETER = /^_?Py[A-Z]|^_?PyEval|^Py_|^_start$|^__libc_start/;

export function isPythonFrame({ file }: { readonly file: string }): boolean {
  return /\.pyx?$/.test(file) || (file.startsWith("<") && file.endsWith(">"));
}

/** Python code that is not installed, not the interpreter's, and not made by a compiler of torch's. */
export function isOwnFrame(frame: { readonly file: string }): boolean {
  return (
    isPythonFrame(frame) &&
    !/[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?t?[/\\]|torchinductor_/.test(
      frame.file,
    ) &&
    !/[/\\]torch[/\\](?:nn|optim|autograd|_\w+|utils|distributed|cuda|fx)[/\\]/.test(frame.file) &&
    !frame.file.startsWith("<frozen ")
  );
}

/** The frames that are worth showing, leaf first. */
export function tellingFrames(snapshot: GpuSnapshot, stack: number): FrameJson[] {
  const all = gpuFramesOf(snapshot, stack);
  const python = all.some(isPythonFrame);
  return all
    .filter(
      (frame) =>
        isPythonFrame(frame) ||
        !(OF_ALLOCATOR.test(frame.function) || (python && OF_INTERPRETER.test(frame.function))),
    )
    .map(frameJson);
}

function frameJson(frame: GpuFrame): FrameJson {
  return { ...frame, kind: isPythonFrame(frame) ? "python" : "native" };
}
