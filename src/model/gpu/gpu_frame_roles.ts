/** Which frames of an allocator's stack tell something, by their names alone. */

interface NamedPlace {
  readonly function: string;
  readonly file: string;
}

/** How the stack itself was taken, and the way through the allocator: the same in every stack. */
const OF_ALLOCATOR =
  /^(?:torch::unwind|torch::CapturedTraceback|torch::(?:cuda|memory)::\(anonymous namespace\)::gather|c10::(?:cuda|hip)::(?:CUDA|HIP)CachingAllocator)/;
/** CPython's C code: beside a Python frame it says nothing. */
const OF_INTERPRETER = /^_?Py[A-Z]|^_?PyEval|^Py_|^_start$|^__libc_start/;

export function isAllocatorFrame({ function: name }: Pick<NamedPlace, "function">): boolean {
  return OF_ALLOCATOR.test(name);
}

export function isInterpreterFrame({ function: name }: Pick<NamedPlace, "function">): boolean {
  return OF_INTERPRETER.test(name);
}

export function isPythonFrame({ file }: Pick<NamedPlace, "file">): boolean {
  return /\.pyx?$/.test(file) || (file.startsWith("<") && file.endsWith(">"));
}

/** Python code that is not installed, not the interpreter's, and not made by a compiler of torch's. */
export function isOwnFrame(frame: Pick<NamedPlace, "file">): boolean {
  return (
    isPythonFrame(frame) &&
    !/[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?t?[/\\]|torchinductor_/.test(
      frame.file,
    ) &&
    !/[/\\]torch[/\\](?:nn|optim|autograd|_\w+|utils|distributed|cuda|fx)[/\\]/.test(frame.file) &&
    !frame.file.startsWith("<frozen ")
  );
}
