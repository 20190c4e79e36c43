/** The call tree of live allocations at one or two moments, roots first. */
import { float64At, itemAt, uint32At } from "../../../../src/model/base/columns.js";
import type { GpuPageDocument } from "../../../../src/model/documents/gpu/gpu_page.js";
import type { GpuReplay } from "../../../../src/model/gpu/gpu_replay.js";
import { type FlameLayout, layOut } from "../../flame/layout.js";
import { DIFF_BASE, DIFF_STEPS, KINDS, SHADES } from "../../flame/palette.js";
import { type NamedFrame, NO_STACK, namedFrame, shownFrames } from "./stackNames.js";

/** A moment of a device, in this file or another. */
export interface Side {
  readonly tables: GpuPageDocument["tables"];
  readonly replay: GpuReplay;
  /** Rows of its allocations. */
  readonly held: Uint32Array;
}

const ALL: NamedFrame = { name: "all", place: "", python: false };
const DEEPEST = 200;

/** Columns by node; node 0 is the root, parents come before their children. */
export interface GpuFlame {
  readonly frames: readonly NamedFrame[];
  readonly layout: FlameLayout;
  readonly bytes: Float64Array;
  /** The same for the compared moment; null without a comparison. */
  readonly before: Float64Array | null;
}

/** @param base the moment that `side` is compared with; freed allocations keep their former width */
export function flameOf(side: Side, base: Side | null): GpuFlame {
  const tree = new FrameTree();
  const own = [base, side].map((one) => (one === null ? null : tree.add(one)));
  const whole = (bytes: Map<number, number> | null | undefined) =>
    tree.withDescendants((node) => bytes?.get(node) ?? 0);
  const [before, after] = own;
  const widths = tree.withDescendants((node) =>
    Math.max(before?.get(node) ?? 0, after?.get(node) ?? 0),
  );
  const parent = Uint32Array.from(tree.parent);
  return {
    frames: tree.frames,
    layout: layOut({ length: parent.length, parent }, widths),
    bytes: whole(after),
    before: base === null ? null : whole(before),
  };
}

class FrameTree {
  readonly frames: NamedFrame[] = [ALL];
  readonly parent: number[] = [0];
  readonly #children: Map<string, number>[] = [new Map()];

  /** @returns bytes by the node that a stack ends in */
  add({ tables, replay, held }: Side): Map<number, number> {
    const { size, stack } = replay.allocations;
    const byStack = new Map<number, number>();
    for (const row of held) {
      byStack.set(
        uint32At(stack, row),
        (byStack.get(uint32At(stack, row)) ?? 0) + float64At(size, row),
      );
    }
    const own = new Map<number, number>();
    for (const [leaf, bytes] of byStack) {
      let node = 0;
      for (const frame of framesOf(tables, leaf)) {
        node = this.#child(node, frame);
      }
      own.set(node, (own.get(node) ?? 0) + bytes);
    }
    return own;
  }

  withDescendants(ownOf: (node: number) => number): Float64Array {
    const total = Float64Array.from(this.parent, (_, node) => ownOf(node));
    for (let node = total.length - 1; node > 0; node--) {
      total[itemAt(this.parent, node)] =
        float64At(total, itemAt(this.parent, node)) + float64At(total, node);
    }
    return total;
  }

  #child(parent: number, frame: NamedFrame): number {
    const key = `${frame.name}\0${frame.place}`;
    const known = itemAt(this.#children, parent).get(key);
    if (known !== undefined) {
      return known;
    }
    const node = this.frames.push(frame) - 1;
    this.parent.push(parent);
    this.#children.push(new Map());
    itemAt(this.#children, parent).set(key, node);
    return node;
  }
}

/** Root first; a placeholder frame if there are none. */
function framesOf(tables: Side["tables"], leaf: number): NamedFrame[] {
  const frames = [...shownFrames(tables, leaf)].map((frame) => namedFrame(tables, frame));
  return frames.length === 0 ? [NO_STACK] : frames.reverse().slice(0, DEEPEST);
}

/** Number of the flame palette's fill, by position. */
export function flameColours({ frames, layout, bytes, before }: GpuFlame): Uint8Array {
  return Uint8Array.from(layout.node, (node) => {
    if (before !== null) {
      const larger = Math.max(float64At(bytes, node), float64At(before, node));
      const change = larger === 0 ? 0 : (float64At(bytes, node) - float64At(before, node)) / larger;
      return DIFF_BASE + DIFF_STEPS + Math.round(change * DIFF_STEPS);
    }
    const { place, python } = itemAt(frames, node);
    if (place === "") {
      return KINDS.mark * SHADES;
    }
    const kind = python ? KINDS.python : KINDS.native;
    return kind * SHADES + shadeOf(place.replace(/:\d+$/, ""));
  });
}

function shadeOf(file: string): number {
  let hash = 0;
  for (let at = 0; at < file.length; at++) {
    hash = (Math.imul(hash, 31) + file.charCodeAt(at)) | 0;
  }
  return Math.abs(hash ^ (hash >>> 15)) % SHADES;
}
