/** The flame graph of a moment: stacks from their roots, as wide as the bytes above them. */
import type { GpuPageDocument } from "../../../src/model/gpu_page.js";
import { type GpuReplay, heldAt } from "../../../src/model/gpu_replay.js";
import { isHidden } from "./stackNames.js";

export interface FlameBox {
  readonly depth: number;
  /** 0 to 1 of the whole. */
  readonly from: number;
  readonly to: number;
  /** Frame; -1 for memory without a stack. */
  readonly frame: number;
  readonly bytes: number;
}

interface Node {
  readonly frame: number;
  bytes: number;
  readonly children: Map<number, Node>;
}

/** Narrower boxes are left out: nobody could see them. */
const NARROWEST = 1 / 2000;
const DEEPEST = 48;

export function flameOf(
  tables: GpuPageDocument["tables"],
  replay: GpuReplay,
  moment: number,
): FlameBox[] {
  const root: Node = { frame: -1, bytes: 0, children: new Map() };
  const byStack = new Map<number, number>();
  const { size, stack } = replay.allocations;
  for (const row of heldAt(replay, moment)) {
    byStack.set(stack[row]!, (byStack.get(stack[row]!) ?? 0) + size[row]!);
  }
  for (const [leaf, bytes] of byStack) add(tables, root, leaf, bytes);
  const boxes: FlameBox[] = [];
  if (root.bytes > 0) place(root, 0, 0, root.bytes, boxes);
  return boxes;
}

function add(tables: GpuPageDocument["tables"], root: Node, leaf: number, bytes: number): void {
  const frames: number[] = [];
  for (let node = leaf; node !== 0; node = tables.stacks.parent[node]!) {
    const frame = tables.stacks.frame[node]!;
    if (!isHidden(tables, frame)) frames.push(frame);
  }
  root.bytes += bytes;
  let at = root;
  for (const frame of (frames.length === 0 ? [-1] : frames.reverse()).slice(0, DEEPEST)) {
    const next = at.children.get(frame) ?? { frame, bytes: 0, children: new Map() };
    at.children.set(frame, next);
    next.bytes += bytes;
    at = next;
  }
}

function place(node: Node, depth: number, from: number, whole: number, boxes: FlameBox[]): void {
  let at = from;
  for (const child of [...node.children.values()].sort((a, b) => b.bytes - a.bytes)) {
    const width = child.bytes / whole;
    if (width < NARROWEST) break;
    boxes.push({ depth, from: at, to: at + width, frame: child.frame, bytes: child.bytes });
    place(child, depth + 1, at, whole, boxes);
    at += width;
  }
}
