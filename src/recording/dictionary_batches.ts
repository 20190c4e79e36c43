/** The dictionaries that all profiles of a recording share: written incrementally, assembled on reading. */
import { float64At, itemAt, uint32At } from "../model/base/columns.js";
import {
  type GrowingColumn,
  growingFloat64,
  growingUint8,
  growingUint32,
} from "../model/base/growing_column.js";
import type { Bytes } from "../model/base/units.js";
import type { ProfileProcess, ProfileTables, ProfileThread } from "../model/profile/profile.js";
import { checkIds, checkParents, checkTable, demand, record } from "./batch_check.js";
import type { DictionaryBatch } from "./batches.js";

/** A name of usual length in memory. */
const STRING_BYTES: Bytes = 64;

/** Remembers the written rows, and makes a batch of new ones. */
export class DictionaryWriter {
  #strings = 0;
  #frames = 0;
  #stacks = 0;
  #labels = 0;
  readonly #threads: string[] = [];
  readonly #processes: string[] = [];

  /** null if nothing is new. */
  next(tables: ProfileTables): DictionaryBatch | null {
    const { frames, stacks, labels } = tables;
    const threadRows = changedRows(tables.threads, this.#threads);
    const processRows = changedRows(tables.processes, this.#processes);
    const grown =
      tables.strings.length > this.#strings ||
      frames.length > this.#frames ||
      stacks.length > this.#stacks ||
      labels.length > this.#labels;
    if (!grown && threadRows.length === 0 && processRows.length === 0) {
      return null;
    }
    const threads = Array.from(threadRows, (row) => itemAt(tables.threads, row));
    const processes = Array.from(processRows, (row) => itemAt(tables.processes, row));
    const batch: DictionaryBatch = {
      strings: { from: this.#strings, values: tables.strings.slice(this.#strings) },
      frames: {
        from: this.#frames,
        function: frames.function.slice(this.#frames, frames.length),
        file: frames.file.slice(this.#frames, frames.length),
        line: frames.line.slice(this.#frames, frames.length),
        firstLine: frames.firstLine.slice(this.#frames, frames.length),
        kind: frames.kind.slice(this.#frames, frames.length),
        address: frames.address.slice(this.#frames, frames.length),
      },
      stacks: {
        from: this.#stacks,
        parent: stacks.parent.slice(this.#stacks, stacks.length),
        frame: stacks.frame.slice(this.#stacks, stacks.length),
      },
      labels: {
        from: this.#labels,
        parent: labels.parent.slice(this.#labels, labels.length),
        key: labels.key.slice(this.#labels, labels.length),
        value: labels.value.slice(this.#labels, labels.length),
      },
      threads: {
        row: threadRows,
        process: Uint32Array.from(threads, (thread) => thread.process),
        tid: Uint32Array.from(threads, (thread) => thread.tid),
        name: threads.map((thread) => thread.name),
        isMain: Uint8Array.from(threads, (thread) => (thread.isMain ? 1 : 0)),
      },
      processes: {
        row: processRows,
        pid: Uint32Array.from(processes, (process) => process.pid),
        parentPid: Uint32Array.from(processes, (process) => process.parentPid),
        command: processes.map((process) => process.command),
        python: processes.map((process) => process.python),
        startedMs: Float64Array.from(processes, (process) => process.startedMs),
      },
    };
    this.#strings = tables.strings.length;
    this.#frames = frames.length;
    this.#stacks = stacks.length;
    this.#labels = labels.length;
    return batch;
  }
}

/** Rows whose content is new; updates `known`. The period is stored with each profile instead. */
function changedRows(
  rows: readonly (ProfileThread | ProfileProcess)[],
  known: string[],
): Uint32Array {
  const changed: number[] = [];
  rows.forEach((row, index) => {
    const content = JSON.stringify(row, (key, value) =>
      key === "periodBytes" ? undefined : value,
    );
    if (known[index] !== content) {
      known[index] = content;
      changed.push(index);
    }
  });
  return Uint32Array.from(changed);
}

/** Takes batches in order; {@link tables} is complete at any time. */
export class DictionaryReader {
  readonly #strings: string[] = [];
  readonly #frames = {
    function: growingUint32(),
    file: growingUint32(),
    line: growingUint32(),
    firstLine: growingUint32(),
    kind: growingUint8(),
    address: growingFloat64(),
  };
  readonly #stacks = { parent: growingUint32(), frame: growingUint32() };
  readonly #labels = {
    parent: growingUint32(),
    key: growingUint32(),
    value: growingUint32(),
  };
  readonly #threads: ProfileThread[] = [];
  readonly #processes: ProfileProcess[] = [];

  /** Throws BatchError, before anything is added, if the batch does not fit the earlier ones. */
  add(batch: unknown): void {
    const checked = this.#check(batch);
    for (const value of checked.strings.values) {
      this.#strings.push(value);
    }
    appendAll(this.#frames, checked.frames);
    appendAll(this.#stacks, checked.stacks);
    appendAll(this.#labels, checked.labels);
    checked.threads.row.forEach((row, i) => {
      this.#threads[row] = {
        process: uint32At(checked.threads.process, i),
        tid: uint32At(checked.threads.tid, i),
        name: itemAt(checked.threads.name, i),
        isMain: checked.threads.isMain[i] === 1,
      };
    });
    checked.processes.row.forEach((row, i) => {
      this.#processes[row] = {
        pid: uint32At(checked.processes.pid, i),
        parentPid: uint32At(checked.processes.parentPid, i),
        command: itemAt(checked.processes.command, i),
        python: itemAt(checked.processes.python, i),
        startedMs: float64At(checked.processes.startedMs, i),
        periodBytes: 0,
      };
    });
  }

  /** About how much memory the tables take. */
  get bytes(): Bytes {
    const columns = [this.#frames, this.#stacks, this.#labels].flatMap((table): Growing[] =>
      Object.values(table),
    );
    return columns.reduce((sum, { bytes }) => sum + bytes, STRING_BYTES * this.#strings.length);
  }

  tables(): ProfileTables {
    const frames = this.#frames;
    const stacks = this.#stacks;
    const labels = this.#labels;
    return {
      strings: this.#strings,
      frames: {
        length: frames.function.length,
        function: frames.function.view(),
        file: frames.file.view(),
        line: frames.line.view(),
        firstLine: frames.firstLine.view(),
        kind: frames.kind.view(),
        address: frames.address.view(),
      },
      stacks: {
        length: stacks.parent.length,
        parent: stacks.parent.view(),
        frame: stacks.frame.view(),
      },
      processes: this.#processes,
      threads: this.#threads,
      labels: {
        length: labels.parent.length,
        parent: labels.parent.view(),
        key: labels.key.view(),
        value: labels.value.view(),
      },
    };
  }

  #check(value: unknown): DictionaryBatch {
    const batch = record(value, "dictionary") as unknown as DictionaryBatch;
    checkTable(batch.strings, { from: "number", values: "strings" }, "strings");
    checkTable(
      batch.frames,
      {
        from: "number",
        function: "u32",
        file: "u32",
        line: "u32",
        firstLine: "u32",
        kind: "u8",
        address: "f64",
      },
      "frames",
    );
    checkTable(batch.stacks, { from: "number", parent: "u32", frame: "u32" }, "stacks");
    checkTable(batch.labels, { from: "number", parent: "u32", key: "u32", value: "u32" }, "labels");
    checkTable(
      batch.threads,
      { row: "u32", process: "u32", tid: "u32", name: "strings", isMain: "u8" },
      "threads",
    );
    checkTable(
      batch.processes,
      {
        row: "u32",
        pid: "u32",
        parentPid: "u32",
        command: "lists",
        python: "strings",
        startedMs: "f64",
      },
      "processes",
    );
    this.#checkReferences(batch);
    return batch;
  }

  #checkReferences({ strings, frames, stacks, labels, threads, processes }: DictionaryBatch): void {
    demand(strings.from === this.#strings.length, "strings do not continue without a gap");
    demand(frames.from === this.#frames.function.length, "frames do not continue without a gap");
    demand(stacks.from === this.#stacks.parent.length, "stacks do not continue without a gap");
    demand(labels.from === this.#labels.parent.length, "labels do not continue without a gap");
    const stringCount = strings.from + strings.values.length;
    checkIds(frames.function, stringCount, "a frame's function");
    checkIds(frames.file, stringCount, "a frame's file");
    checkIds(frames.kind, 3, "a frame's kind");
    checkIds(labels.key, stringCount, "a label's key");
    checkIds(labels.value, stringCount, "a label's value");
    const frameCount = frames.from + frames.function.length;
    // The empty stack, row 0, has no frame.
    checkIds(
      stacks.from === 0 ? stacks.frame.subarray(1) : stacks.frame,
      frameCount,
      "a stack's frame",
    );
    checkParents(stacks.parent, stacks.from, "stack");
    checkParents(labels.parent, labels.from, "label");
    checkRows(processes.row, this.#processes.length, "processes");
    checkRows(threads.row, this.#threads.length, "threads");
    const processCount = Math.max(
      this.#processes.length,
      ...Array.from(processes.row, (row) => row + 1),
      0,
    );
    checkIds(threads.process, processCount, "a thread's process");
  }
}

/** Rows replace known ones or follow them without a gap, ascending. */
function checkRows(rows: Uint32Array, length: number, name: string): void {
  let next = length;
  for (const row of rows) {
    demand(row <= next, `${name} leave out row ${next}`);
    next = Math.max(next, row + 1);
  }
}

function appendAll<Columns extends Record<string, Growing>>(
  columns: Columns,
  batch: Readonly<Record<keyof Columns & string, Column>>,
): void {
  for (const [name, column] of Object.entries(columns)) {
    // Columns of the batch have the types of ours: they are checked.
    (column as GrowingColumn<Column>).pushAll(batch[name] as Column);
  }
}

type Column = Uint8Array | Uint32Array | Float64Array;
type Growing = GrowingColumn<Uint8Array> | GrowingColumn<Uint32Array> | GrowingColumn<Float64Array>;
