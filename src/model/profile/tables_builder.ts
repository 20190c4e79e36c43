import { float64At, itemAt, uint8At, uint32At } from "../base/columns.js";
import { GrowingColumn } from "../base/growing_column.js";
import { mixHash, RowIndex } from "../base/row_index.js";
import type {
  FrameId,
  LabelId,
  ProcessIndex,
  StackId,
  StringId,
  ThreadIndex,
} from "../base/units.js";
import type {
  FrameKind,
  FrameTable,
  LabelTable,
  ProfileProcess,
  ProfileTables,
  ProfileThread,
  StackTable,
} from "./profile.js";

/** Maps old ids of added tables to new ids in a builder. */
export interface TablesMap {
  readonly frames: Uint32Array;
  readonly stacks: Uint32Array;
  readonly labels: Uint32Array;
  readonly processes: Uint32Array;
  readonly threads: Uint32Array;
}

/**
 * Fills {@link ProfileTables}: equal strings, frames, stacks and labels get one row, whichever process or
 * profile they came from. Rows are only added, so ids remain valid.
 */
export class ProfileTablesBuilder {
  readonly #strings: string[];
  #stringsGiven: readonly string[] = [];
  readonly #stringIds: Map<string, StringId>;
  readonly #frames;
  readonly #stacks;
  readonly #labels;
  readonly #processes: ProfileProcess[];
  readonly #threads: ProfileThread[];

  /** `before`: the tables that it continues; each of their rows has other content, and keeps its id. */
  constructor(before: ProfileTables = EMPTY) {
    const { strings, frames, stacks, labels, processes, threads } = before;
    this.#strings = strings.slice();
    this.#stringIds = new Map(strings.map((text, id) => [text, id]));
    this.#frames = new InternedRows({
      function: GrowingColumn.after(frames.function),
      file: GrowingColumn.after(frames.file),
      line: GrowingColumn.after(frames.line),
      firstLine: GrowingColumn.after(frames.firstLine),
      kind: GrowingColumn.after(frames.kind),
      address: GrowingColumn.after(frames.address),
    });
    this.#stacks = new InternedRows({
      parent: GrowingColumn.after(stacks.parent),
      frame: GrowingColumn.after(stacks.frame),
    });
    this.#labels = new InternedRows({
      parent: GrowingColumn.after(labels.parent),
      key: GrowingColumn.after(labels.key),
      value: GrowingColumn.after(labels.value),
    });
    this.#processes = processes.slice();
    this.#threads = threads.slice();
  }

  string(text: string): StringId {
    let id = this.#stringIds.get(text);
    if (id === undefined) {
      id = this.#strings.length;
      this.#strings.push(text);
      this.#stringIds.set(text, id);
    }
    return id;
  }

  text(id: StringId): string {
    return itemAt(this.#strings, id);
  }

  /** `address`: for native frames, otherwise 0. */
  frame(
    name: StringId,
    file: StringId,
    line: number,
    firstLine: number,
    kind: FrameKind,
    address: number,
  ): FrameId {
    return this.#frames.intern([name, file, line, firstLine, kind, address]);
  }

  /** The stack with `frame` on top of `parent`. */
  stack(parent: StackId, frame: FrameId): StackId {
    return this.#stacks.intern([parent, frame], 1);
  }

  /** Whether `stack` consists of the first `depth` of `frames`, leaf first. */
  hasFrames(stack: StackId, frames: Uint32Array, depth: number): boolean {
    const { parent, frame } = this.#stacks.columns;
    let row = stack;
    for (let at = 0; at < depth; at++) {
      if (row === 0 || frame.at(row) !== frames[at]) {
        return false;
      }
      row = parent.at(row);
    }
    return row === 0;
  }

  /** The label that extends `parent` by one key and value. */
  label(parent: LabelId, key: StringId, value: StringId): LabelId {
    return this.#labels.intern([parent, key, value], 1);
  }

  addProcess(process: ProfileProcess): ProcessIndex {
    return this.#processes.push(process) - 1;
  }

  /** Updates a process: its command after exec, its period. */
  setProcess(index: ProcessIndex, process: ProfileProcess): void {
    this.#processes[index] = process;
  }

  addThread(thread: ProfileThread): ThreadIndex {
    return this.#threads.push(thread) - 1;
  }

  setThread(index: ThreadIndex, thread: ProfileThread): void {
    this.#threads[index] = thread;
  }

  /** Adds all rows of `tables`; a process that already exists (same pid and start) is merged. */
  absorb(tables: ProfileTables): TablesMap {
    const strings = Uint32Array.from(tables.strings, (text) => this.string(text));
    const { frames, stacks, labels } = tables;
    const frameIds = new Uint32Array(frames.length);
    for (let row = 0; row < frames.length; row++) {
      frameIds[row] = this.frame(
        uint32At(strings, uint32At(frames.function, row)),
        uint32At(strings, uint32At(frames.file, row)),
        uint32At(frames.line, row),
        uint32At(frames.firstLine, row),
        uint8At(frames.kind, row) as FrameKind,
        float64At(frames.address, row),
      );
    }
    const stackIds = new Uint32Array(stacks.length);
    for (let row = 1; row < stacks.length; row++) {
      stackIds[row] = this.stack(
        uint32At(stackIds, uint32At(stacks.parent, row)),
        uint32At(frameIds, uint32At(stacks.frame, row)),
      );
    }
    const labelIds = new Uint32Array(labels.length);
    for (let row = 1; row < labels.length; row++) {
      labelIds[row] = this.label(
        uint32At(labelIds, uint32At(labels.parent, row)),
        uint32At(strings, uint32At(labels.key, row)),
        uint32At(strings, uint32At(labels.value, row)),
      );
    }
    const processes = Uint32Array.from(tables.processes, (process) => this.#sameProcess(process));
    const threads = Uint32Array.from(tables.threads, (thread) =>
      this.#sameThread({ ...thread, process: uint32At(processes, thread.process) }),
    );
    return { frames: frameIds, stacks: stackIds, labels: labelIds, processes, threads };
  }

  /** The tables so far; later additions are not included. */
  tables(): ProfileTables {
    const { columns: frame, length: frameCount } = this.#frames;
    const frames: FrameTable = {
      length: frameCount,
      function: frame.function.view(),
      file: frame.file.view(),
      line: frame.line.view(),
      firstLine: frame.firstLine.view(),
      kind: frame.kind.view(),
      address: frame.address.view(),
    };
    const { columns: stack, length: stackCount } = this.#stacks;
    const stacks: StackTable = {
      length: stackCount,
      parent: stack.parent.view(),
      frame: stack.frame.view(),
    };
    const { columns: label, length: labelCount } = this.#labels;
    const labels: LabelTable = {
      length: labelCount,
      parent: label.parent.view(),
      key: label.key.view(),
      value: label.value.view(),
    };
    if (this.#stringsGiven.length !== this.#strings.length) {
      this.#stringsGiven = this.#strings.slice();
    }
    return {
      strings: this.#stringsGiven,
      frames,
      stacks,
      labels,
      processes: this.#processes.slice(),
      threads: this.#threads.slice(),
    };
  }

  #sameProcess(process: ProfileProcess): ProcessIndex {
    const index = this.#processes.findIndex(
      (known) => known.pid === process.pid && known.startedMs === process.startedMs,
    );
    return index >= 0 ? index : this.addProcess(process);
  }

  #sameThread(thread: ProfileThread): ThreadIndex {
    const index = this.#threads.findIndex(
      (known) => known.process === thread.process && known.tid === thread.tid,
    );
    return index >= 0 ? index : this.addThread(thread);
  }
}

type Column = GrowingColumn<Uint8Array> | GrowingColumn<Uint32Array> | GrowingColumn<Float64Array>;

/** Columns whose rows can be looked up by content. */
class InternedRows<Columns extends Readonly<Record<string, Column>>> {
  readonly columns: Columns;
  readonly #all: readonly Column[];
  /** Built when the first row is looked up: who continues tables may only need a few of them. */
  #index: RowIndex | null = null;
  length: number;

  /** `columns`: of equal length. */
  constructor(columns: Columns) {
    this.columns = columns;
    this.#all = Object.values(columns);
    this.length = this.#all[0]?.length ?? 0;
  }

  #indexed(): RowIndex {
    const index = new RowIndex(this.length);
    for (let row = 0; row < this.length; row++) {
      let hash = 0;
      for (const column of this.#all) {
        hash = mixValue(hash, column.at(row));
      }
      index.add(hash, row);
    }
    return index;
  }

  /**
   * `values`: in the order of the columns. `from`: rows below it are never returned (row 0 means "empty" in
   * some tables).
   */
  intern(values: readonly number[], from = 0): number {
    this.#index ??= this.#indexed();
    let hash = 0;
    for (const value of values) {
      hash = mixValue(hash, value);
    }
    const found = this.#index.find(hash, (row) => row >= from && this.#equals(row, values));
    if (found >= 0) {
      return found;
    }
    for (let column = 0; column < this.#all.length; column++) {
      this.#all[column]?.push(values[column] ?? 0);
    }
    this.#index.add(hash, this.length);
    return this.length++;
  }

  #equals(row: number, values: readonly number[]): boolean {
    for (let column = 0; column < this.#all.length; column++) {
      if (this.#all[column]?.at(row) !== values[column]) {
        return false;
      }
    }
    return true;
  }
}

function mixValue(hash: number, value: number): number {
  return mixHash(mixHash(hash, value | 0), (value / 0x1_0000_0000) | 0);
}

const NONE = new Uint32Array(0);
const ROW_0 = new Uint32Array(1);

/** With the rows that mean "empty". */
const EMPTY: ProfileTables = {
  strings: [""],
  frames: {
    ...{ length: 0, function: NONE, file: NONE, line: NONE, firstLine: NONE },
    ...{ kind: new Uint8Array(0), address: new Float64Array(0) },
  },
  stacks: { length: 1, parent: ROW_0, frame: ROW_0 },
  labels: { length: 1, parent: ROW_0, key: ROW_0, value: ROW_0 },
  processes: [],
  threads: [],
};
