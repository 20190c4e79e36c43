/** Python frames and stacks of a memray file, numbered as they appear. */
import type { StackId } from "../../../model/base/units.js";
import { type ForeignFrame, type ImportedSites, pythonFrame } from "../imported_sites.js";
import { DEEPEST_STACK, ForeignExcess, ForeignFault, MOST_ROWS, requireRoom } from "../importer.js";
import { lineAt } from "./line_table.js";

interface CodeObject {
  readonly name: string;
  readonly file: string;
  readonly firstLine: number;
  readonly lineTable: Buffer;
}

const MOST_NODES = 16_000_000;
/** A frame's line is found by reading its code object's table from the start. */
const MOST_TABLE_BYTES = 1e10;

/** Node 0 is the empty stack. */
export class MemrayFrames {
  readonly #pythonVersion: number;
  readonly #codes = new Map<number, CodeObject>();
  /** By id; frames of version 12 and newer have an id by code object and instruction. */
  readonly #frames = new Map<number, ForeignFrame>();
  readonly #ids = new Map<string, number>();
  readonly #parents: number[] = [0];
  readonly #nodeFrames: number[] = [-1];
  #tableBytes = 0;
  readonly #children = new Map<string, number>();
  readonly #stacks = new Map<string, StackId>();

  constructor(pythonVersion: number) {
    this.#pythonVersion = pythonVersion;
  }

  addCode(id: number, code: CodeObject): void {
    requireRoom(this.#codes.size, MOST_ROWS, "code objects");
    this.#codes.set(id, code);
  }

  /** Version 11: a frame with its line. */
  addFrame(id: number, frame: ForeignFrame): void {
    requireRoom(this.#frames.size, MOST_ROWS, "frames");
    this.#frames.set(id, frame);
  }

  /** Version 12: the id of a frame; `id`, if given, is the file's own. */
  codeFrame(code: number, instruction: number, id?: number): number {
    const key = `${code} ${instruction}`;
    const known = id ?? this.#ids.get(key);
    if (known !== undefined && this.#frames.has(known)) {
      return known;
    }
    const found = this.#codes.get(code);
    if (found === undefined) {
      throw new ForeignFault(`a frame names the code object ${code}, which it does not contain`);
    }
    this.#tableBytes += found.lineTable.length;
    if (this.#tableBytes > MOST_TABLE_BYTES) {
      throw new ForeignExcess("10 GB of line tables");
    }
    const line = lineAt(found.lineTable, instruction, found.firstLine, this.#pythonVersion);
    requireRoom(this.#frames.size, MOST_ROWS, "frames");
    const own = id ?? this.#ids.size;
    this.#ids.set(key, own);
    this.#frames.set(own, pythonFrame(found.name, found.file, line));
    return own;
  }

  /** The stack in which `parent` called `frame`. */
  push(parent: number, frame: number): number {
    const key = `${parent} ${frame}`;
    let node = this.#children.get(key);
    if (node === undefined) {
      node = this.append(parent, frame);
      this.#children.set(key, node);
    }
    return node;
  }

  /** A stack of its own number, as aggregated files list them. */
  append(parent: number, frame: number): number {
    if (parent >= this.#parents.length) {
      throw new ForeignFault(`a stack names the stack ${parent}, which it does not contain`);
    }
    requireRoom(this.#parents.length, MOST_NODES, "stacks");
    this.#nodeFrames.push(frame);
    return this.#parents.push(parent) - 1;
  }

  parentOf(node: number): number {
    return this.#parents[node] ?? 0;
  }

  /** In the tables of `sites`, without the first `skipped` frames; a very deep stack is cut at its root. */
  stackOf(node: number, skipped: number, sites: ImportedSites): StackId {
    const key = `${node} ${skipped}`;
    const known = this.#stacks.get(key);
    if (known !== undefined) {
      return known;
    }
    const frames: ForeignFrame[] = [];
    let at = node;
    for (; at > 0 && frames.length < DEEPEST_STACK; at = this.parentOf(at)) {
      const frame = this.#frames.get(this.#nodeFrames[at] ?? -1);
      if (frame === undefined) {
        throw new ForeignFault("a stack names a frame that it does not contain");
      }
      frames.push(frame);
    }
    const stack = sites.stack(frames.reverse().slice(at > 0 ? 0 : skipped));
    this.#stacks.set(key, stack);
    return stack;
  }
}
