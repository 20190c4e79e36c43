/** Names of a snapshot's frames, and which stacks a search finds. */
import type { GpuPageDocument } from "../../../src/model/gpu_page.js";

type Tables = GpuPageDocument["tables"];

const HIDDEN =
  /^(?:torch::unwind|torch::CapturedTraceback|torch::(?:cuda|memory)::\(anonymous namespace\)::gather|c10::(?:cuda|hip)::(?:CUDA|HIP)CachingAllocator|_?Py[A-Z]|_start$|__libc_start)/;

/** The allocator's own frames and the interpreter's: the same in every stack. */
export function isHidden({ strings, frames }: Tables, frame: number): boolean {
  return HIDDEN.test(strings[frames.function[frame]!]!);
}

export function nameOf({ strings, frames }: Tables, frame: number): string {
  return strings[frames.function[frame]!]! || "?";
}

export function placeOf({ strings, frames }: Tables, frame: number): string {
  const file = strings[frames.file[frame]!]!;
  const line = frames.line[frame]!;
  return line > 0 ? `${file}:${line}` : file;
}

/** By stack: 1 where any frame's name or place holds the text; null for an empty text. */
export function searchStacks(tables: Tables, text: string): Uint8Array | null {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return null;
  const { frames, stacks } = tables;
  const frameFound = Uint8Array.from({ length: frames.length }, (_, frame) =>
    `${nameOf(tables, frame)} ${placeOf(tables, frame)}`.toLowerCase().includes(wanted) ? 1 : 0,
  );
  const found = new Uint8Array(stacks.length);
  // A parent stands before its children.
  for (let node = 1; node < stacks.length; node++) {
    found[node] = frameFound[stacks.frame[node]!] || found[stacks.parent[node]!] ? 1 : 0;
  }
  return found;
}
