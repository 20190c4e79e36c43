/** Names of a snapshot's frames, and the stacks that a search finds. */

import { itemAt, uint8At, uint32At } from "../../../../src/model/base/columns.js";
import type { GpuPageDocument } from "../../../../src/model/documents/gpu/gpu_page.js";
import {
  isAllocatorFrame,
  isInterpreterFrame,
  isOwnFrame,
  isPythonFrame,
} from "../../../../src/model/gpu/gpu_frame_roles.js";

type Tables = GpuPageDocument["tables"];

/** The allocator's own frames and the interpreter's: the same in every stack. */
function isHidden({ strings, frames }: Tables, frame: number): boolean {
  const named = { function: itemAt(strings, uint32At(frames.function, frame)) };
  return isAllocatorFrame(named) || isInterpreterFrame(named);
}

export function nameOf({ strings, frames }: Tables, frame: number): string {
  return itemAt(strings, uint32At(frames.function, frame)) || "?";
}

export function placeOf({ strings, frames }: Tables, frame: number): string {
  const file = itemAt(strings, uint32At(frames.file, frame));
  const line = uint32At(frames.line, frame);
  return line > 0 ? `${file}:${line}` : file;
}

/** A frame as text, since two files number their frames differently. */
export interface NamedFrame {
  readonly name: string;
  /** "file:line"; "" if unknown. */
  readonly place: string;
  readonly python: boolean;
}

export const NO_STACK: NamedFrame = { name: "(no stack recorded)", place: "", python: false };

export function namedFrame(tables: Tables, frame: number): NamedFrame {
  const file = itemAt(tables.strings, uint32At(tables.frames.file, frame));
  return {
    name: nameOf(tables, frame),
    place: placeOf(tables, frame),
    python: isPythonFrame({ file }),
  };
}

/** The frames of a stack to show, leaf first. */
export function* shownFrames(tables: Tables, stack: number): Generator<number> {
  for (let node = stack; node !== 0; node = uint32At(tables.stacks.parent, node)) {
    const frame = uint32At(tables.stacks.frame, node);
    if (!isHidden(tables, frame)) {
      yield frame;
    }
  }
}

/** The first frame of the program's own Python code, otherwise the first Python frame, otherwise the leaf. */
export function informativeFrame(tables: Tables, stack: number): NamedFrame {
  let leaf = -1;
  let python = -1;
  for (const frame of shownFrames(tables, stack)) {
    const file = itemAt(tables.strings, uint32At(tables.frames.file, frame));
    if (isOwnFrame({ file })) {
      return namedFrame(tables, frame);
    }
    if (leaf < 0) {
      leaf = frame;
    }
    if (python < 0 && isPythonFrame({ file })) {
      python = frame;
    }
  }
  const frame = python >= 0 ? python : leaf;
  return frame < 0 ? NO_STACK : namedFrame(tables, frame);
}

/** For each stack: 1 if any frame's name or location contains the text; null for an empty text. */
export function searchStacks(tables: Tables, text: string): Uint8Array | null {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") {
    return null;
  }
  const { frames, stacks } = tables;
  const frameFound = Uint8Array.from({ length: frames.length }, (_, frame) =>
    `${nameOf(tables, frame)} ${placeOf(tables, frame)}`.toLowerCase().includes(wanted) ? 1 : 0,
  );
  const found = new Uint8Array(stacks.length);
  // Parents come before their children.
  for (let node = 1; node < stacks.length; node++) {
    found[node] =
      frameFound[uint32At(stacks.frame, node)] || uint8At(found, uint32At(stacks.parent, node))
        ? 1
        : 0;
  }
  return found;
}
