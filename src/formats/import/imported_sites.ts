/** Collects the stacks and figures of a foreign profile. */
import type { LabelId, Millis, StackId, ThreadIndex, TimeMs } from "../../model/base/units.js";
import {
  Domain,
  FrameKind,
  type ProfileSnapshot,
  type ProfileTables,
} from "../../model/profile/profile.js";
import { newSiteTable } from "../../model/profile/site_columns.js";
import { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import { DEEPEST_STACK, ForeignFault, MOST_ROWS, requireRoom } from "./importer.js";

export interface ForeignFrame {
  readonly function: string;
  readonly file: string;
  /** 1-based, 0 unknown. */
  readonly line: number;
  readonly kind: FrameKind;
}

/** Bytes and numbers of blocks; absent: none. */
export interface ForeignFigures {
  readonly live?: number;
  readonly liveObjects?: number;
  readonly peak?: number;
  readonly peakObjects?: number;
  readonly allocated?: number;
  readonly allocatedObjects?: number;
}

export interface ForeignProgram {
  readonly pid: number;
  readonly command: readonly string[];
  /** "3.12.1"; "" unknown. */
  readonly python: string;
  readonly startedMs: TimeMs;
}

interface Row {
  readonly stack: StackId;
  readonly domain: Domain;
  readonly thread: ThreadIndex;
  readonly label: LabelId;
  readonly figures: Float64Array;
}

/** Stands for the domain of all sites if "python" is unknown: commands and page then show it as unknown. */
export const UNKNOWN_DOMAIN = Domain.native;

const FIGURES = [
  ["live", "liveBytes"],
  ["liveObjects", "liveObjects"],
  ["peak", "peakBytes"],
  ["peakObjects", "peakObjects"],
  ["allocated", "allocatedBytes"],
  ["allocatedObjects", "allocatedObjects"],
] as const;

const MOST_SITES = 2_000_000;
const MOST_THREADS = 100_000;
/** Of all stacks together: a minute of work. */
const MOST_PUSHES = 200_000_000;

export class ImportedSites {
  readonly #builder = new ProfileTablesBuilder();
  readonly #threads = new Map<string, ThreadIndex>();
  readonly #pid: number;
  #rows = new Map<string, Row>();
  #pushes = 0;

  constructor(program: ForeignProgram) {
    this.#pid = program.pid;
    this.#builder.addProcess({ ...program, parentPid: 0, periodBytes: 0 });
  }

  thread(tid: number, name: string, isMain = false): ThreadIndex {
    const key = `${tid} ${name}`;
    let index = this.#threads.get(key);
    if (index === undefined) {
      requireRoom(this.#threads.size, MOST_THREADS, "threads");
      index = this.#builder.addThread({ process: 0, tid, name, isMain });
      this.#threads.set(key, index);
    }
    return index;
  }

  /** `parent`: the label that this one extends. */
  label(key: string, value: string, parent: LabelId = 0): LabelId {
    return this.#builder.label(parent, this.#builder.string(key), this.#builder.string(value));
  }

  /** The stack with `frame` called by `parent`; 0 is the empty stack. */
  push(parent: StackId, frame: ForeignFrame): StackId {
    this.#pushes += 1;
    requireRoom(this.#pushes, MOST_PUSHES, "frames of stacks");
    const builder = this.#builder;
    const id = builder.frame(
      builder.string(frame.function),
      builder.string(frame.file),
      frame.line > 0 && frame.line < 2 ** 31 ? Math.floor(frame.line) : 0,
      0,
      frame.kind,
      0,
    );
    const stack = builder.stack(parent, id);
    requireRoom(stack, MOST_ROWS, "stacks");
    return stack;
  }

  /** Root first. */
  stack(frames: readonly ForeignFrame[]): StackId {
    return frames.slice(-DEEPEST_STACK).reduce((parent, frame) => this.push(parent, frame), 0);
  }

  /** Adds to the figures of one site. Throws ForeignFault for a figure below 0 or beyond 2^53. */
  add(
    site: { stack: StackId; domain: Domain; thread?: ThreadIndex; label?: LabelId },
    figures: ForeignFigures,
  ): void {
    const { stack, domain, label = 0 } = site;
    const thread = site.thread ?? this.#onlyThread();
    const key = `${stack} ${domain} ${thread} ${label}`;
    let row = this.#rows.get(key);
    if (row === undefined) {
      requireRoom(this.#rows.size, MOST_SITES, "sites");
      row = { stack, domain, thread, label, figures: new Float64Array(FIGURES.length) };
      this.#rows.set(key, row);
    }
    for (const [index, [name, column]] of FIGURES.entries()) {
      const value = figures[name] ?? 0;
      const sum = (row.figures[index] ?? 0) + value;
      if (!(value >= 0 && sum <= Number.MAX_SAFE_INTEGER)) {
        throw new ForeignFault(`a figure is impossible: ${value} as ${column}`);
      }
      row.figures[index] = sum;
    }
  }

  /** The figures added since the last call. `peakMs`: 0 if the peak is unknown. */
  snapshot(timeMs: TimeMs, durationMs: Millis, peakMs: TimeMs): ProfileSnapshot {
    const rows = [...this.#rows.values()];
    this.#rows = new Map();
    const sites = newSiteTable(rows.length, 1);
    rows.forEach((row, index) => {
      sites.stack[index] = row.stack;
      sites.domain[index] = row.domain;
      sites.thread[index] = row.thread;
      sites.label[index] = row.label;
      for (const [figure, [, column]] of FIGURES.entries()) {
        sites[column][index] = row.figures[figure] ?? 0;
      }
      sites.liveSamples[index] = Math.min(2 ** 31, sites.liveObjects[index] ?? 0);
      sites.cohortBytes[index] = sites.liveBytes[index] ?? 0;
    });
    const cohorts = [timeMs + 1];
    return {
      timeMs,
      durationMs,
      sites,
      files: newSiteTable(0, 1),
      copies: newSiteTable(0, 1),
      cohorts,
      peakMs: [peakMs],
    };
  }

  /** The one of formats without threads; not the main thread, which `thread=main` would select. */
  #onlyThread(): ThreadIndex {
    return this.thread(this.#pid, "unknown");
  }

  tables(): ProfileTables {
    return this.#builder.tables();
  }
}

export function pythonFrame(name: string, file: string, line: number): ForeignFrame {
  return { function: name, file, line, kind: FrameKind.python };
}

export function nativeFrame(name: string, file: string, line = 0): ForeignFrame {
  return { function: name, file, line, kind: FrameKind.native };
}
