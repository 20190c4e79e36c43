import { isNotebookCell } from "../profile/frame_text.js";
import type { FrameJson } from "./documents.js";

/** Frames at which the code of one task or thread ends and the code that drives all of them begins. */
const DRIVERS =
  /[/\\](?:asyncio[/\\](?:base_events|events|runners)|threading|uvloop[/\\]\w+)\.pyx?$/;
/** A forked worker has its parent's frames below its own; its own code begins here. */
const WORKER = { file: /[/\\]multiprocessing[/\\]process\.py$/, name: /(?:^|\.)_bootstrap$/ };

/** Code compiled at run time: a dataclass's __init__, a template. */
const COMPILED_TEXT = /^<.*>$/;

/** Code that is compiled repeatedly under a new file name each time: notebook cells, templates, exec. */
const COMPILED_AGAIN = /^<|[/\\](?:tmp|temp)[/\\].*\d/i;
/** Numbers and hashes in such a name. */
const COUNTER = /0x[0-9a-f]+|\b(?=[0-9a-f]*\d)[0-9a-f]{6,}\b|\d+/gi;

/** The file's name for grouping: the same for all versions of repeatedly compiled code. */
export function recurringFile(file: string): string {
  if (isNotebookCell(file)) {
    return "<notebook cell>";
  }
  return COMPILED_AGAIN.test(file) ? file.replace(COUNTER, "#") : file;
}

/** File name of code that Tidemark has the interpreter execute. */
const TIDEMARK_FILE = /^<tidemark>$|[/\\]\.tidemark-\d+-/;

/** Whether an allocation was made by Tidemark's own code in the process. `frames`: leaf first. */
export function isTidemark(frames: readonly FrameJson[]): boolean {
  return frames.some(({ file }) => TIDEMARK_FILE.test(file));
}

/**
 * The frame that a stack (leaf first) is attributed to: the program's own frame nearest to the leaf, without an
 * event loop in between, and preferably in a file, because run-time compiled code is attributed to its caller;
 * otherwise the nearest Python frame; otherwise the leaf.
 */
export function ownFrame(frames: readonly FrameJson[]): FrameJson | undefined {
  const driver = frames.findIndex(isDriver);
  const near = driver < 0 ? frames : frames.slice(0, driver);
  return (
    near.find((frame) => isOwn(frame) && isWritten(frame)) ??
    near.find(isOwn) ??
    near.find(({ kind }) => kind === "python") ??
    frames.find(isOwn) ??
    frames[0]
  );
}

/** Code of a file or of a notebook cell, which the user wrote although it is not in a file. */
function isWritten({ file }: FrameJson): boolean {
  return !COMPILED_TEXT.test(file) || isNotebookCell(file);
}

function isDriver({ file, function: name }: FrameJson): boolean {
  return DRIVERS.test(file) || (WORKER.file.test(file) && WORKER.name.test(name));
}

/** Python code of the program itself. */
export function isOwn({ kind, file, function: name }: FrameJson): boolean {
  return kind === "python" && isOwnPath(file, name);
}

/** Whether Python code is the program's own: neither installed from a package nor the interpreter's. */
export function isOwnPath(file: string, functionName: string): boolean {
  return !(
    /[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d(?:\.\d+)?t?[/\\]|\.zip[/\\]/.test(
      file,
    ) ||
    file.startsWith("<frozen ") ||
    TIDEMARK_FILE.test(file) ||
    /[/\\]python[/\\]tidemark[/\\]/.test(file) ||
    // Scripts that only start a package's main function.
    (/[/\\]bin[/\\][^/\\.]+$/.test(file) && functionName === "<module>")
  );
}

const IMPORT = /^<frozen importlib\._bootstrap(?:_external)?>$/;

/** Whether the stack is of a module that is being imported. */
export function isImport(frames: readonly FrameJson[]): boolean {
  return frames.some(({ file }) => IMPORT.test(file));
}
