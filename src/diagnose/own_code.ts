import type { FrameJson } from "../model/documents.js";

/** Where one task's or thread's code ends and the code that drives all of them begins. */
const DRIVERS =
  /[/\\](?:asyncio[/\\](?:base_events|events|runners)|threading|uvloop[/\\]\w+)\.pyx?$/;

/** The frame that a stack (leaf first) counts for: the nearest to the leaf that is the program's own, where
 * no event loop stands between; else the nearest of Python's; else the leaf. */
export function ownFrame(frames: readonly FrameJson[]): FrameJson | undefined {
  const driver = frames.findIndex(({ file }) => DRIVERS.test(file));
  const near = driver < 0 ? frames : frames.slice(0, driver);
  return (
    near.find(isOwn) ??
    near.find(({ kind }) => kind === "python") ??
    frames.find(isOwn) ??
    frames[0]
  );
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
