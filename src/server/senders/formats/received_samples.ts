/** The samples of a received profile, in columns: an object for each of them takes longer than reading it. */
import {
  type GrowingColumn,
  growingFloat64,
  growingUint32,
} from "../../../model/base/growing_column.js";
import type { FrameKind } from "../../../model/profile/profile.js";

export interface ReceivedFrame {
  readonly function: string;
  readonly file: string;
  /** 0: unknown. */
  readonly line: number;
  readonly kind: FrameKind;
}

/** The figures of a sample; other sample types (CPU time, locks) are left out. */
export const FIGURES = ["liveBytes", "liveObjects", "allocatedBytes", "allocatedObjects"] as const;
export type Figure = (typeof FIGURES)[number];

export type Labels = readonly (readonly [string, string])[];

/**
 * The frames of a sample, leaf first:
 *
 *     stackFrames[start[sample]], ..., stackFrames[end[sample] - 1]    rows of `frames`
 */
export interface ReceivedSamples extends Readonly<Record<Figure, Float64Array>> {
  readonly length: number;
  /** By sample. Samples may share their frames. */
  readonly start: Uint32Array;
  readonly end: Uint32Array;
  readonly stackFrames: Uint32Array;
  readonly frames: readonly ReceivedFrame[];
  /** By sample: rows of `threads` and `labelSets`. */
  readonly thread: Uint32Array;
  readonly labels: Uint32Array;
  readonly threads: readonly string[];
  readonly labelSets: readonly Labels[];
}

/** The place of a stack in `stackFrames`. */
export interface StackPlace {
  readonly start: number;
  readonly end: number;
}

/** Collects the samples of a profile: the frames of a stack, then the samples that have it. */
export class SampleCollector {
  readonly #start = growingUint32();
  readonly #end = growingUint32();
  readonly #stackFrames = growingUint32(1024);
  readonly #frames: ReceivedFrame[] = [];
  readonly #thread = growingUint32();
  readonly #labels = growingUint32();
  readonly #threads = new Map<string, number>();
  readonly #labelSets: Labels[] = [];
  readonly #labelRows = new Map<string, number>();
  readonly #figures: Readonly<Record<Figure, GrowingColumn<Float64Array>>> = {
    liveBytes: growingFloat64(),
    liveObjects: growingFloat64(),
    allocatedBytes: growingFloat64(),
    allocatedObjects: growingFloat64(),
  };

  get length(): number {
    return this.#start.length;
  }

  /** Frames pushed so far: the place where the next stack begins. */
  get framesPushed(): number {
    return this.#stackFrames.length;
  }

  /** The row of a new frame; the caller knows which frames it has added. */
  addFrame(frame: ReceivedFrame): number {
    return this.#frames.push(frame) - 1;
  }

  /** Adds a frame to the current stack, leaf first. */
  pushFrame(row: number): void {
    this.#stackFrames.push(row);
  }

  threadRow(name: string): number {
    let row = this.#threads.get(name);
    if (row === undefined) {
      row = this.#threads.size;
      this.#threads.set(name, row);
    }
    return row;
  }

  labelsRow(labels: Labels): number {
    const content = labels.length === 0 ? "" : JSON.stringify(labels);
    let row = this.#labelRows.get(content);
    if (row === undefined) {
      row = this.#labelSets.push(labels) - 1;
      this.#labelRows.set(content, row);
    }
    return row;
  }

  addSample(
    { start, end }: StackPlace,
    thread: number,
    labels: number,
    figures: Readonly<Record<Figure, number>>,
  ): void {
    this.#start.push(start);
    this.#end.push(end);
    this.#thread.push(thread);
    this.#labels.push(labels);
    for (const figure of FIGURES) {
      this.#figures[figure].push(figures[figure]);
    }
  }

  samples(): ReceivedSamples {
    const figures = this.#figures;
    return {
      length: this.length,
      start: this.#start.view(),
      end: this.#end.view(),
      stackFrames: this.#stackFrames.view(),
      frames: this.#frames,
      thread: this.#thread.view(),
      labels: this.#labels.view(),
      threads: [...this.#threads.keys()],
      labelSets: this.#labelSets,
      liveBytes: figures.liveBytes.view(),
      liveObjects: figures.liveObjects.view(),
      allocatedBytes: figures.allocatedBytes.view(),
      allocatedObjects: figures.allocatedObjects.view(),
    };
  }
}

/** The frames of all samples, each counted as often as a sample has it. */
export function frameCount({ length, start, end }: ReceivedSamples): number {
  let count = 0;
  for (let sample = 0; sample < length; sample++) {
    count += (end[sample] ?? 0) - (start[sample] ?? 0);
  }
  return count;
}

/** The samples of two profiles of one process. */
export function joinedSamples(first: ReceivedSamples, second: ReceivedSamples): ReceivedSamples {
  const collector = new SampleCollector();
  for (const samples of [first, second]) {
    const rows = samples.frames.map((frame) => collector.addFrame(frame));
    const from = collector.framesPushed;
    for (const row of samples.stackFrames) {
      collector.pushFrame(rows[row] ?? 0);
    }
    const threads = samples.threads.map((name) => collector.threadRow(name));
    const labels = samples.labelSets.map((set) => collector.labelsRow(set));
    for (let at = 0; at < samples.length; at++) {
      const place = { start: from + (samples.start[at] ?? 0), end: from + (samples.end[at] ?? 0) };
      const thread = threads[samples.thread[at] ?? 0] ?? 0;
      const labelsRow = labels[samples.labels[at] ?? 0] ?? 0;
      collector.addSample(place, thread, labelsRow, {
        liveBytes: samples.liveBytes[at] ?? 0,
        liveObjects: samples.liveObjects[at] ?? 0,
        allocatedBytes: samples.allocatedBytes[at] ?? 0,
        allocatedObjects: samples.allocatedObjects[at] ?? 0,
      });
    }
  }
  return collector.samples();
}
