import type { FrameJson } from "./documents.js";

/** Where one task's or thread's code ends and the code that drives all of them begins. */
const DRIVERS =
  /[/\\](?:asyncio[/\\](?:base_events|events|runners)|threading|uvloop[/\\]\w+)\.pyx?$/;
/** A forked worker has its parent's frames below its own: what it runs begins here. */
const WORKER = { file: /[/\\]multiprocessing[/\\]process\.py$/, name: /(?:^|\.)_bootstrap$/ };

/** Text that was compiled as the program ran: a dataclass' __init__, a template. */
const COMPILED_TEXT = /^<.*>$/;

/** The frame that a stack (leaf first) counts for: the nearest to the leaf that is the program's own, where
 * no event loop stands between, and rather of a file than of compiled text, which counts for who calls it; else the
 * nearest of Python's; else the leaf. */
export function ownFrame(frames: readonly FrameJson[]): FrameJson | undefined {
  const driver = frames.findIndex(isDriver);
  const near = driver < 0 ? frames : frames.slice(0, driver);
  return (
    near.find((frame) => isOwn(frame) && !COMPILED_TEXT.test(frame.file)) ??
    near.find(isOwn) ??
    near.find(({ kind }) => kind === "python") ??
    frames.find(isOwn) ??
    frames[0]
  );
}

function isDriver({ file, function: name }: FrameJson): boolean {
  return DRIVERS.test(file) || (WORKER.file.test(file) && WORKER.name.test(name));
}

/** Python code of the program itself. */
export function isOwn({ kind, file, function: name }: FrameJson): boolean {
  return kind === "python" && isOwnPath(file, name);
}

/** Whether Python code is the program's own: neither installed from a package nor the interpreter's. */
function isOwnPath(file: string, functionName: string): boolean {
  return !(
    /[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?t?[/\\]|\.zip[/\\]/.test(
      file,
    ) ||
    file.startsWith("<frozen ") ||
    // Scripts that only start a package's main function.
    (/[/\\]bin[/\\][^/\\.]+$/.test(file) && functionName === "<module>")
  );
}

const IMPORT = /^<frozen importlib\._bootstrap(?:_external)?>$/;

/** Whether the stack is of a module that is being imported. */
export function isImport(frames: readonly FrameJson[]): boolean {
  return frames.some(({ file }) => IMPORT.test(file));
}
