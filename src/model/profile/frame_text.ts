import { float64At, itemAt, uint32At } from "../base/columns.js";
import type { FrameId, LabelId, StackId } from "../base/units.js";
import { FrameKind, type ProfileTables } from "./profile.js";

/** The last component of a path; the path itself if it has none. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

/** Names under which IPython compiles cells: in a terminal with the cell's number, in a kernel with a hash. */
const TERMINAL_CELL = /^<ipython-input-(\d+)-[0-9a-f]+>$/;
/** Our names for code of several cells. */
const SEVERAL_NUMBERED = /^<ipython-input-(\d+\.\.\d*)>$/;
const SEVERAL_CELLS = "notebook cells";
const KERNEL_CELL = /[/\\]ipykernel_\d+[/\\]\d+\.py$/;

export function isKernelCell(file: string): boolean {
  return KERNEL_CELL.test(file);
}

export function isNotebookCell(file: string): boolean {
  return (
    TERMINAL_CELL.test(file) ||
    KERNEL_CELL.test(file) ||
    SEVERAL_NUMBERED.test(file) ||
    file === SEVERAL_CELLS
  );
}

/** The name that IPython in a terminal would have given to a kernel's cell. */
export function numberedCell(file: string, number: number): string {
  const [hash = "0"] = /\d+(?=\.py$)/.exec(file) ?? [];
  return `<ipython-input-${number}-${hash}>`;
}

/**
 * One name for the same code in several cells, with the first and the last number. The last is left out if a cell's number
 * is unknown: the kernel's numbers are read from time to time, and the newest cells came after that.
 */
export function joinedCells(files: readonly string[]): string {
  const numbers = files.flatMap((file) => TERMINAL_CELL.exec(file)?.[1] ?? []).map(Number);
  if (numbers.length === 0) {
    return SEVERAL_CELLS;
  }
  const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
  const end = numbers.length < files.length ? "" : `${last}`;
  return `${first}` === end ? (files[0] ?? "") : `<ipython-input-${first}..${end}>`;
}

/**
 * A file's readable name: "In [5]" for a notebook cell, "In [5..9]" for code of several, or "notebook cell" if its name
 * has no number.
 */
export function readableFile(file: string): string {
  const [, number] = TERMINAL_CELL.exec(file) ?? SEVERAL_NUMBERED.exec(file) ?? [];
  if (number !== undefined) {
    return `In [${number}]`;
  }
  return KERNEL_CELL.test(file) ? "notebook cell" : file;
}

/** A frame's name: its function, or object and address if there is no symbol. */
export function frameName({ frames, strings }: ProfileTables, frame: FrameId): string {
  const name = itemAt(strings, uint32At(frames.function, frame));
  if (name !== "") {
    return name;
  }
  const file = baseName(itemAt(strings, uint32At(frames.file, frame))) || "?";
  return frames.kind[frame] === FrameKind.native
    ? `${file}+0x${float64At(frames.address, frame).toString(16)}`
    : file;
}

/** A frame's location: "app.py:41", or the object's name for native code; "" if it has no file. */
export function framePlace({ frames, strings }: ProfileTables, frame: FrameId): string {
  const file = readableFile(strings[uint32At(frames.file, frame)] ?? "");
  const line = uint32At(frames.line, frame);
  if (frames.kind[frame] === FrameKind.native && line === 0) {
    return baseName(file);
  }
  return line > 0 ? `${file}:${line}` : file;
}

/** The frames of a stack, leaf first. */
export function framesOf({ stacks }: ProfileTables, stack: StackId): FrameId[] {
  const frames: FrameId[] = [];
  for (let node = stack; node !== 0; node = uint32At(stacks.parent, node)) {
    frames.push(uint32At(stacks.frame, node));
  }
  return frames;
}

/** The keys and values of a label and those it extends; an inner value of the same key wins. */
export function labelPairs(
  { labels, strings }: ProfileTables,
  label: LabelId,
): Map<string, string> {
  const pairs = new Map<string, string>();
  for (let row = label; row !== 0; row = uint32At(labels.parent, row)) {
    const key = itemAt(strings, uint32At(labels.key, row));
    if (!pairs.has(key)) {
      pairs.set(key, itemAt(strings, uint32At(labels.value, row)));
    }
  }
  return pairs;
}
