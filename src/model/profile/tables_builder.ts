import { float64At, uint8At, uint32At } from "../base/columns.js";
import {
  type GrowingColumn,
  growingFloat64,
  growingUint8,
  growingUint32,
} from "../base/growing_column.js";
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

/** Where the rows of some tables went in a builder: old id -> new id. */
export interface TablesMap {
  readonly frames: Uint32Array;
  readonly stacks: Uint32Array;
  readonly labels: Uint32Array;
  readonly processes: Uint32Array;
  readonly threads: Uint32Array;
}

/** Fills {@link ProfileTables}: equal strings, frames, stacks and labels get one row, whatever process or
 * profile they came from. Rows are only ever added, so that ids handed out stay good. */
export class ProfileTablesBuilder {
  readonly #strings: string[] = [""];
  #stringsGiven: readonly string[] = [];
  readonly #stringIds = new Map<string, StringId>([["", 0]]);
  readonly #frames = new InternedRows(6, [1, 1, 1, 1, 0, 2]);
  readonly #stacks = new InternedRows(2, [1, 1]);
  readonly #labels = new InternedRows(3, [1, 1, 1]);
  readonly #processes: ProfileProcess[] = [];
  readonly #threads: ProfileThread[] = [];

  constructor() {
    this.#stacks.intern([0, 0]);
    this.#labels.intern([0, 0, 0]);
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
    return this.#strings[id]!;
  }

  /** `address`: of native frames, else 0. */
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

  /** The stack that `frame` on top of `parent` makes. */
  stack(parent: StackId, frame: FrameId): StackId {
    return this.#stacks.intern([parent, frame], 1);
  }

  /** The label that extends `parent` by one key and value. */
  label(parent: LabelId, key: StringId, value: StringId): LabelId {
    return this.#labels.intern([parent, key, value], 1);
  }

  addProcess(process: ProfileProcess): ProcessIndex {
    return this.#processes.push(process) - 1;
  }

  /** What is known of a process changes: its command after exec, its period. */
  setProcess(index: ProcessIndex, process: ProfileProcess): void {
    this.#processes[index] = process;
  }

  addThread(thread: ProfileThread): ThreadIndex {
    return this.#threads.push(thread) - 1;
  }

  setThread(index: ThreadIndex, thread: ProfileThread): void {
    this.#threads[index] = thread;
  }

  /** Takes over all rows of `tables`; a process already here (same pid and start) is the same one. */
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

  /** The tables so far; later additions do not show in them. */
  tables(): ProfileTables {
    const [name, file, line, firstLine, kind, address] = this.#frames.columns();
    const frames: FrameTable = {
      length: this.#frames.length,
      function: name as Uint32Array,
      file: file as Uint32Array,
      line: line as Uint32Array,
      firstLine: firstLine as Uint32Array,
      kind: kind as Uint8Array,
      address: address as Float64Array,
    };
    const [parent, frame] = this.#stacks.columns() as Uint32Array[];
    const stacks: StackTable = { length: this.#stacks.length, parent: parent!, frame: frame! };
    const [labelParent, key, value] = this.#labels.columns() as Uint32Array[];
    const labels: LabelTable = {
      length: this.#labels.length,
      parent: labelParent!,
      key: key!,
      value: value!,
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

type Width = 0 | 1 | 2;
const COLUMN_OF_WIDTH = [growingUint8, growingUint32, growingFloat64] as const;

/** Columns whose rows are found again by content. */
class InternedRows {
  readonly #columns: GrowingColumn<Uint8Array | Uint32Array | Float64Array>[];
  readonly #index = new RowIndex();
  length = 0;

  constructor(
    readonly width: number,
    widths: readonly Width[],
  ) {
    this.#columns = widths.map(
      (columnWidth) =>
        COLUMN_OF_WIDTH[columnWidth]() as GrowingColumn<Uint8Array | Uint32Array | Float64Array>,
    );
  }

  /** `from`: rows below it are never given back (row 0 stands for "empty" in some tables). */
  intern(values: readonly number[], from = 0): number {
    let hash = 0;
    for (let column = 0; column < this.width; column++) {
      const value = values[column]!;
      hash = mixHash(mixHash(hash, value | 0), (value / 0x1_0000_0000) | 0);
    }
    const found = this.#index.find(hash, (row) => row >= from && this.#equals(row, values));
    if (found >= 0) {
      return found;
    }
    for (let column = 0; column < this.width; column++) {
      this.#columns[column]!.push(values[column]!);
    }
    this.#index.add(hash, this.length);
    return this.length++;
  }

  columns(): (Uint8Array | Uint32Array | Float64Array)[] {
    return this.#columns.map((column) => column.view());
  }

  #equals(row: number, values: readonly number[]): boolean {
    for (let column = 0; column < this.width; column++) {
      if (this.#columns[column]!.at(row) !== values[column]) {
        return false;
      }
    }
    return true;
  }
}
