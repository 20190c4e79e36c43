/**
 * Stacks and their frames, stored once. A stack is a node of a tree: its leaf frame, and the node of its
 * caller; node 0 is the empty stack. A trace contains the same stack thousands of times, with a hundred frames
 * each. Whole stacks are therefore looked up by a hash of their frames and compared on a hit; only a new stack
 * walks the tree.
 */
import { growingUint32 } from "../../model/base/growing_column.js";
import { TripleTable } from "../pickle/triple_table.js";

export class StackTable {
  readonly #frames = new TripleTable();
  readonly #nodes = new TripleTable();
  #slots = new Uint32Array(4096);
  #known = 0;
  /** Cache by both stacks of {@link joined}, because a trace repeats the same pairs thousands of times. */
  readonly #joined = new Map<number, number>();
  #hashes = growingUint32();
  #roots = growingUint32();

  constructor() {
    // Node 0 is the empty stack. No other node equals it, because frame numbers begin with 1.
    this.#nodes.intern(0, 0, 0);
  }

  /** The id of a frame; function and file are string ids. */
  frame(functionName: number, file: number, line: number): number {
    return this.#frames.intern(functionName, file, line);
  }

  /** The stack whose frames, leaf first, are `values[from, to)`. */
  stack(values: ArrayLike<number>, from: number, to: number): number {
    if (from === to) {
      return 0;
    }
    let hash = to - from;
    for (let at = from; at < to; at++) {
      hash = Math.imul(hash ^ (values[at] ?? 0), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    hash >>>= 0;
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (let entry = this.#slots[slot] ?? 0; entry !== 0; entry = this.#slots[slot] ?? 0) {
      if (this.#hashes.at(entry - 1) === hash) {
        const node = this.#roots.at(entry - 1);
        if (this.#same(node, values, from, to)) {
          return node;
        }
      }
      slot = (slot + 1) & mask;
    }
    let node = 0;
    for (let at = to - 1; at >= from; at--) {
      node = this.#nodes.intern(node, (values[at] ?? 0) + 1, 0);
    }
    this.#hashes.push(hash);
    this.#roots.push(node);
    this.#slots[slot] = ++this.#known;
    if (this.#known * 2 > this.#slots.length) {
      this.#widen();
    }
    return node;
  }

  /** A stack on top of a frame on top of another stack. */
  joined(above: number, frame: number, below: number): number {
    const key = above * 2 ** 26 + below;
    let stack = this.#joined.get(key);
    if (stack === undefined) {
      const frames = [...this.framesOf(above), frame, ...this.framesOf(below)];
      stack = this.stack(frames, 0, frames.length);
      this.#joined.set(key, stack);
    }
    return stack;
  }

  /** Frame ids of a stack, leaf first. */
  framesOf(stack: number): number[] {
    const [parent, frame] = this.#nodes.columns;
    const list: number[] = [];
    for (let node = stack; node !== 0; node = parent.at(node)) {
      list.push(frame.at(node) - 1);
    }
    return list;
  }

  frames() {
    const [names, files, lines] = this.#frames.columns;
    return {
      length: this.#frames.length,
      function: names.view(),
      file: files.view(),
      line: lines.view(),
    };
  }

  stacks() {
    const [parent, frame] = this.#nodes.columns;
    return {
      length: this.#nodes.length,
      parent: parent.view(),
      frame: frame.view().map((id) => (id === 0 ? 0 : id - 1)),
    };
  }

  #same(stack: number, values: ArrayLike<number>, from: number, to: number): boolean {
    const [parent, frame] = this.#nodes.columns;
    let node = stack;
    for (let at = from; at < to; at++) {
      if (node === 0 || frame.at(node) !== (values[at] ?? 0) + 1) {
        return false;
      }
      node = parent.at(node);
    }
    return node === 0;
  }

  #widen(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let entry = 1; entry <= this.#known; entry++) {
      let slot = this.#hashes.at(entry - 1) & mask;
      while (slots[slot] !== 0) {
        slot = (slot + 1) & mask;
      }
      slots[slot] = entry;
    }
    this.#slots = slots;
  }
}
