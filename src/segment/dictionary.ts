/**
 * Copies one process's strings, frames, stacks, labels and threads into the shared tables. Records refer to
 * each other by numbers that may be garbage; an invalid reference becomes a mark.
 */

import { itemAt, uint32At } from "../model/base/columns.js";
import type {
  Address,
  FrameId,
  LabelId,
  Pid,
  ProcessIndex,
  StackId,
  StringId,
  ThreadIndex,
  TimeMs,
} from "../model/base/units.js";
import { shownFunction } from "../model/profile/frame_stacks.js";
import { FrameKind } from "../model/profile/profile.js";
import type { ProfileTablesBuilder } from "../model/profile/tables_builder.js";
import { readField, readText, readUint64 } from "./bytes.js";
import { CONSTANTS, FRAME, LABEL, STACK_NODE, THREAD } from "./layout.js";
import type { SegmentSnapshot } from "./reader.js";

const STRING_UNIT = 8;
const STRING_HEADER = 4;
const THREAD_NAME_BYTES = 24;
/** Above this, doubles are not exact, and no object file has such addresses. */
const MAX_ADDRESS = 2 ** 53;
const KINDS = [FrameKind.python, FrameKind.native, FrameKind.mark] as const;

/** Provider of function names of object files: `Symboliser` of src/native, passed in by the caller. */
interface SymbolSource {
  /** Names of the functions at `addresses` of the object that a process knows as `path`; "" for none. */
  names(pid: Pid, startedMs: TimeMs, path: string, addresses: readonly Address[]): string[];
}

/** Provider of a program's thread names: `ThreadNames` of src/record, passed in by the caller. */
interface ThreadNameSource {
  /** By thread id; null: not available now, retry later. */
  names(pid: Pid, startedMs: TimeMs): ReadonlyMap<number, string> | null;
}

/** Additional information for a profile; if absent, the segment's own data is used. */
export interface NameSources {
  readonly symbols?: SymbolSource;
  readonly threads?: ThreadNameSource;
}

/** What threading calls the main thread, which the kernel names after the program. */
const MAIN_THREAD = "MainThread";
/** Number of snapshots in which a thread's name is requested; a thread that runs no Python has none. */
const MOST_ASKED = 3;

/** The process that the dictionary belongs to. */
interface DictionaryOwner {
  readonly index: ProcessIndex;
  readonly pid: Pid;
  readonly startedMs: TimeMs;
}

export class ProcessDictionary {
  readonly #builder: ProfileTablesBuilder;
  readonly #owner: DictionaryOwner;
  readonly #sources: NameSources;
  readonly #strings = new Map<number, StringId>([[0, 0]]);
  readonly #frames: FrameId[] = [];
  readonly #stacks: StackId[] = [];
  readonly #labels: LabelId[] = [];
  readonly #threads: ThreadIndex[] = [];
  /** Each thread at the last renewal, so that only changed rows are updated. */
  readonly #threadKeys: string[] = [];
  /** Their names in the program, and the number of requests, by row. */
  readonly #givenNames: (string | undefined)[] = [];
  readonly #asked: number[] = [];
  #otherThreads: ThreadIndex | null = null;
  #damagedStack: StackId | null = null;
  /** Invalid references so far. */
  damaged = 0;

  constructor(builder: ProfileTablesBuilder, owner: DictionaryOwner, sources: NameSources) {
    this.#builder = builder;
    this.#owner = owner;
    this.#sources = sources;
  }

  /** Adds the rows since the last snapshot. */
  renew(snapshot: SegmentSnapshot): void {
    this.#renewFrames(snapshot);
    this.#renewStacks(snapshot);
    this.#renewLabels(snapshot);
    this.#renewThreads(snapshot);
  }

  stack(id: number): StackId {
    return this.#stacks[id] ?? this.#damaged();
  }

  label(id: number): LabelId {
    const label = this.#labels[id];
    if (label === undefined) {
      this.damaged += 1;
    }
    return label ?? 0;
  }

  thread(id: number): ThreadIndex {
    return this.#threads[id] ?? this.otherThreads();
  }

  otherThreads(): ThreadIndex {
    this.#otherThreads ??= this.#builder.addThread({
      process: this.#owner.index,
      tid: 0,
      name: "other threads",
      isMain: false,
    });
    return this.#otherThreads;
  }

  #renewFrames({ frames, strings }: SegmentSnapshot): void {
    const view = viewOf(frames.bytes);
    const first = this.#frames.length;
    const names = this.#symbolNames(view, first, frames.count, strings.bytes);
    for (let row = first; row < frames.count; row++) {
      const at = row * FRAME.size;
      const kind = KINDS[view.getUint32(at + FRAME.kind, true)];
      if (kind === undefined) {
        this.damaged += 1;
      }
      const name = names.get(row);
      this.#frames.push(
        this.#builder.frame(
          name === undefined
            ? this.#string(strings.bytes, view.getUint32(at + FRAME.function, true))
            : this.#builder.string(name),
          this.#string(strings.bytes, view.getUint32(at + FRAME.file, true)),
          view.getUint32(at + FRAME.line, true),
          view.getUint32(at + FRAME.first_line, true),
          kind ?? FrameKind.mark,
          kind === FrameKind.native ? addressOf(view, at) : 0,
        ),
      );
    }
  }

  /** Names of the native frames in rows `from` to `to`, asked for object by object. */
  #symbolNames(view: DataView, from: number, to: number, strings: Uint8Array): Map<number, string> {
    const names = new Map<number, string>();
    const { symbols } = this.#sources;
    if (symbols === undefined) {
      return names;
    }
    const rowsByFile = new Map<number, number[]>();
    for (let row = from; row < to; row++) {
      const at = row * FRAME.size;
      if (view.getUint32(at + FRAME.kind, true) === CONSTANTS.TM_FRAME_NATIVE) {
        const file = view.getUint32(at + FRAME.file, true);
        const rows = rowsByFile.get(file);
        rows === undefined ? rowsByFile.set(file, [row]) : rows.push(row);
      }
    }
    const { pid, startedMs } = this.#owner;
    for (const [file, rows] of rowsByFile) {
      const path = this.#builder.text(this.#string(strings, file));
      const addresses = rows.map((row) => addressOf(view, row * FRAME.size));
      const found = symbols.names(pid, startedMs, path, addresses);
      rows.forEach((row, index) => {
        names.set(row, shownFunction(found[index] ?? ""));
      });
    }
    return names;
  }

  #renewStacks({ stacks }: SegmentSnapshot): void {
    const view = viewOf(stacks.bytes);
    if (this.#stacks.length === 0) {
      this.#stacks.push(0);
    }
    for (let row = this.#stacks.length; row < stacks.count; row++) {
      const at = row * STACK_NODE.size;
      const parent = view.getUint32(at + STACK_NODE.parent, true);
      const frame = this.#frames[view.getUint32(at + STACK_NODE.frame, true)];
      // Parents come first, so a cycle shows as a parent that is not here yet.
      this.#stacks.push(
        parent < row && frame !== undefined
          ? this.#builder.stack(itemAt(this.#stacks, parent), frame)
          : this.#damaged(),
      );
    }
  }

  #renewLabels({ labels, strings }: SegmentSnapshot): void {
    const view = viewOf(labels.bytes);
    if (this.#labels.length === 0) {
      this.#labels.push(0);
    }
    for (let row = this.#labels.length; row < labels.count; row++) {
      const at = row * LABEL.size;
      const parent = view.getUint32(at + LABEL.parent, true);
      if (parent >= row) {
        this.damaged += 1;
      }
      this.#labels.push(
        this.#builder.label(
          parent < row ? itemAt(this.#labels, parent) : 0,
          this.#string(strings.bytes, view.getUint32(at + LABEL.key, true)),
          this.#string(strings.bytes, view.getUint32(at + LABEL.value, true)),
        ),
      );
    }
  }

  #renewThreads({ header, threads }: SegmentSnapshot): void {
    const rows = threadRows(threads);
    const isPython = header.python !== "";
    if (isPython) {
      this.#askNames(rows);
    }
    rows.forEach(({ tid, isMain, kernelName }, row) => {
      const name = this.#givenNames[row] ?? (isPython && isMain ? MAIN_THREAD : kernelName);
      const key = `${tid} ${isMain} ${name}`;
      if (this.#threadKeys[row] === key) {
        return;
      }
      this.#threadKeys[row] = key;
      const index = this.#threads[row];
      const thread = { process: this.#owner.index, tid, name, isMain };
      if (tid === 0) {
        this.#threads[row] = this.otherThreads();
      } else if (index === undefined || index === this.#otherThreads) {
        this.#threads[row] = this.#builder.addThread(thread);
      } else {
        this.#builder.setThread(index, thread);
      }
    });
  }

  /** A single main thread has its usual name. Among rows with the same id, the last one is the running thread. */
  #askNames(rows: readonly ThreadRow[]): void {
    const { threads: source } = this.#sources;
    const unnamed = rows.flatMap(({ tid }, row) =>
      tid !== 0 && this.#givenNames[row] === undefined && (this.#asked[row] ?? 0) < MOST_ASKED
        ? [row]
        : [],
    );
    if (source === undefined || unnamed.every((row) => itemAt(rows, row).isMain)) {
      return;
    }
    const names = source.names(this.#owner.pid, this.#owner.startedMs);
    if (names === null) {
      return;
    }
    const newest = new Map(rows.map(({ tid }, row) => [tid, row]));
    for (const row of unnamed) {
      const { tid } = itemAt(rows, row);
      this.#asked[row] = (this.#asked[row] ?? 0) + 1;
      this.#givenNames[row] = newest.get(tid) === row ? names.get(tid) : undefined;
    }
  }

  #string(bytes: Uint8Array, id: number): StringId {
    const known = this.#strings.get(id);
    if (known !== undefined) {
      return known;
    }
    const at = id * STRING_UNIT;
    const start = at + STRING_HEADER;
    const length =
      start <= bytes.length ? viewOf(bytes).getUint32(at, true) : Number.POSITIVE_INFINITY;
    if (start + length > bytes.length) {
      this.damaged += 1;
      return this.#builder.string("?");
    }
    const string = this.#builder.string(readText(bytes.subarray(start, start + length)));
    this.#strings.set(id, string);
    return string;
  }

  #damaged(): StackId {
    this.damaged += 1;
    this.#damagedStack ??= this.#builder.stack(
      0,
      this.#builder.frame(this.#builder.string("damaged record"), 0, 0, 0, FrameKind.mark, 0),
    );
    return this.#damagedStack;
  }
}

/** Labels a step or event names, as words: the value of its own key, or "key=value" for any other key. */
export function labelWords(
  labels: { readonly key: Uint32Array; readonly value: Uint32Array },
  strings: readonly string[],
  label: LabelId,
): string {
  if (label === 0) {
    return "";
  }
  const key = itemAt(strings, uint32At(labels.key, label));
  const value = itemAt(strings, uint32At(labels.value, label));
  return key === "step" ? value : `${key}=${value}`;
}

function addressOf(view: DataView, at: number): Address {
  const address = readUint64(view, at + FRAME.address);
  return address < MAX_ADDRESS ? address : 0;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

interface ThreadRow {
  /** 0: not set up yet. */
  readonly tid: number;
  readonly isMain: boolean;
  readonly kernelName: string;
}

function threadRows({ bytes, count }: SegmentSnapshot["threads"]): ThreadRow[] {
  const view = viewOf(bytes);
  return Array.from({ length: count }, (_, row) => {
    const at = row * THREAD.size;
    return {
      tid: view.getUint32(at + THREAD.tid, true),
      isMain: view.getUint32(at + THREAD.is_main, true) !== 0,
      kernelName: readField(bytes.subarray(at + THREAD.name, at + THREAD.name + THREAD_NAME_BYTES)),
    };
  });
}
