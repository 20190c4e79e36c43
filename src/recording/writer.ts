import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import type { TimeMs } from "../model/base/units.js";
import { fileUnusable, TidemarkError } from "../model/errors/errors.js";
import { joinFiles } from "../model/profile/file_mappings.js";
import type { ProfileLook, ProfileTables } from "../model/profile/profile.js";
import type { Metric, TimelineEvent } from "../model/profile/series.js";
import type {
  EndBatch,
  MetaBatch,
  MetricBatch,
  ProfileBatch,
  SampleBatch,
  SeriesRow,
} from "./batches.js";
import { DictionaryWriter } from "./dictionary_batches.js";
import { encodeFileHead, encodeFrame, FrameKind } from "./frames.js";
import type { CensusBatch, HolderBatch } from "./types.js";

/** What was written through a descriptor that is open for writing alone: the path may name another file by now. */
function readWhole(descriptor: number, length: number): Buffer {
  try {
    return readFileSync(`/proc/self/fd/${descriptor}`).subarray(0, length);
  } catch {
    return Buffer.alloc(0); // not ours to read: the summary will say that it is no recording
  }
}

/** A figure read of one process: a row of the `metrics` table. */
export interface MetricRow {
  readonly timeMs: TimeMs;
  readonly series: number;
  readonly metric: Metric;
  readonly value: number;
}

/** What is kept of a recording that its file could not take: enough for a summary of a very long run. */
const MOST_IN_MEMORY = 128 << 20;

/**
 * Appends frames to a recording; never goes back. A failed write (full disk, file-size limit) ends the
 * file, not the run: `failure` then says why, the file ends with its last whole frame, and the recording
 * goes on in memory for the summary at its end.
 */
export class RecordingWriter {
  private readonly dictionary = new DictionaryWriter();
  private readonly sentences = new Set<string>();
  private lastAgentLimits = "";
  private profiles = 0;
  private broken: TidemarkError | null = null;
  /** Bytes of whole frames in the file. */
  private wholeBytes = 0;
  /** All frames, from the moment that the file took no more. */
  private kept: Buffer[] = [];
  private keptBytes = 0;

  /** `descriptor` null: there is no file. */
  private constructor(
    private readonly descriptor: number | null,
    readonly path: string,
    private readonly made: boolean,
  ) {}

  /** A recording without a file; `failure` is why. */
  static inMemory(path: string, failure: TidemarkError): RecordingWriter {
    const writer = new RecordingWriter(null, path, false);
    writer.broken = failure;
    return writer;
  }

  /** Opens the file; what it holds stays until {@link begin}. Throws TidemarkError where that cannot be. */
  static open(path: string): RecordingWriter {
    return RecordingWriter.openFile(path, constants.O_CREAT);
  }

  /** Goes on with a recording whose recorder died: `keepBytes` of it are whole. */
  static resume(
    path: string,
    keepBytes: number,
    tables: ProfileTables,
    profiles: number,
  ): RecordingWriter {
    const writer = RecordingWriter.openFile(path, constants.O_APPEND);
    ftruncateSync(writer.descriptor as number, keepBytes);
    writer.wholeBytes = keepBytes;
    writer.dictionary.next(tables);
    writer.profiles = profiles;
    return writer;
  }

  private static openFile(path: string, flags: number): RecordingWriter {
    try {
      const made = !existsSync(path);
      // Without O_NONBLOCK, a FIFO of that name would wait for a reader.
      const descriptor = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | flags, 0o600);
      if (!fstatSync(descriptor).isFile()) {
        closeSync(descriptor);
        throw new Error("it is not a regular file");
      }
      return new RecordingWriter(descriptor, path, made);
    } catch (error) {
      throw fileUnusable(path, "write", (error as Error).message);
    }
  }

  /** Starts the recording; whatever the file held is gone now. */
  begin(meta: MetaBatch): void {
    if (this.descriptor !== null) {
      ftruncateSync(this.descriptor, 0);
    }
    this.write(encodeFileHead());
    this.frame(FrameKind.meta, meta.startedMs, meta);
  }

  /** Nothing was recorded: a file that was there before stays as it was. */
  discard(): void {
    this.close();
    if (this.made) {
      rmSync(this.path, { force: true });
    }
  }

  get failure(): TidemarkError | null {
    return this.broken;
  }

  /** The whole recording where the file does not hold it, else null. */
  get memory(): Buffer | null {
    return this.broken ? Buffer.concat(this.kept) : null;
  }

  processes(timeMs: TimeMs, rows: readonly SeriesRow[]): void {
    this.frame(FrameKind.processes, timeMs, {
      series: Uint32Array.from(rows, (row) => row.series),
      pid: Uint32Array.from(rows, (row) => row.pid),
      parentPid: Uint32Array.from(rows, (row) => row.parentPid),
      command: rows.map((row) => row.command),
      python: rows.map((row) => row.python),
      profiled: Uint8Array.from(rows, (row) => (row.profiled ? 1 : 0)),
      startedMs: Float64Array.from(rows, (row) => row.startedMs),
      endedMs: Float64Array.from(rows, (row) => row.endedMs ?? Number.NaN),
    });
  }

  metrics(timeMs: TimeMs, rows: readonly MetricRow[]): void {
    if (rows.length === 0) {
      return;
    }
    const names = [...new Set(rows.map((row) => row.metric))];
    const batch: MetricBatch = {
      names,
      timeMs: Float64Array.from(rows, (row) => row.timeMs),
      series: Uint32Array.from(rows, (row) => row.series),
      name: Uint8Array.from(rows, (row) => names.indexOf(row.metric)),
      value: Float64Array.from(rows, (row) => row.value),
    };
    this.frame(FrameKind.metrics, timeMs, batch);
  }

  /** The dictionaries' new rows, then the look itself. */
  look(
    tables: ProfileTables,
    look: ProfileLook,
    about: Pick<ProfileBatch, "kind" | "agent">,
  ): void {
    const added = this.dictionary.next(tables);
    if (added) {
      this.frame(FrameKind.dictionary, look.timeMs, added);
    }
    const profile = this.profiles++;
    const batch: ProfileBatch = {
      profile,
      kind: about.kind,
      timeMs: look.timeMs,
      durationMs: look.durationMs,
      liveBytes: look.sites.liveBytes.reduce((sum, bytes) => sum + bytes, 0),
      agent: about.agent,
    };
    this.frame(FrameKind.profile, look.timeMs, batch);
    const { length: _, ...columns } = joinFiles(look);
    const samples: SampleBatch = {
      profile,
      periodBytes: Float64Array.from(tables.processes, (process) => process.periodBytes),
      peakMs: Float64Array.from(tables.processes, (_process, index) => look.peakMs[index] ?? 0),
      cohorts: Float64Array.from(look.cohorts),
      ...columns,
    };
    this.frame(FrameKind.samples, look.timeMs, samples);
  }

  events(timeMs: TimeMs, events: readonly TimelineEvent[]): void {
    if (events.length === 0) {
      return;
    }
    this.frame(FrameKind.events, timeMs, {
      timeMs: Float64Array.from(events, (event) => event.timeMs),
      pid: Uint32Array.from(events, (event) => event.pid),
      kind: events.map((event) => event.kind),
      detail: events.map((event) => event.detail),
      value: Float64Array.from(events, (event) => event.value ?? Number.NaN),
    });
  }

  /** Sentences that were written already are left out. */
  limits(timeMs: TimeMs, sentences: readonly string[]): void {
    const fresh = sentences.filter((sentence) => !this.sentences.has(sentence));
    if (fresh.length > 0) {
      for (const sentence of fresh) {
        this.sentences.add(sentence);
      }
      this.frame(FrameKind.limits, timeMs, { from: "recorder", sentences: fresh });
    }
  }

  /** All that the agents cannot see as of now: takes the place of what was written before. */
  agentLimits(timeMs: TimeMs, sentences: readonly string[]): void {
    const content = sentences.join("\n");
    if (content !== this.lastAgentLimits) {
      this.lastAgentLimits = content;
      this.frame(FrameKind.limits, timeMs, { from: "agent", sentences });
    }
  }

  holders(timeMs: TimeMs, batch: HolderBatch): void {
    this.frame(FrameKind.holders, timeMs, batch);
  }

  /** `timeMs`: when the objects were counted. */
  census(timeMs: TimeMs, batch: CensusBatch): void {
    this.frame(FrameKind.census, timeMs, batch);
  }

  end(batch: EndBatch): void {
    const { failure } = this;
    this.frame(FrameKind.end, batch.timeMs, batch);
    if (failure && this.descriptor !== null && this.wholeBytes > 0) {
      this.endShortFile(this.descriptor, batch, failure);
    }
  }

  /** Where its last frame did not fit, there may be room for a few words that say why the file ends there. */
  private endShortFile(descriptor: number, batch: EndBatch, failure: TidemarkError): void {
    const sentences = [`The recording is cut short: ${failure.what}.`];
    const last = Buffer.concat([
      encodeFrame(FrameKind.limits, batch.timeMs, { from: "recorder", sentences }),
      encodeFrame(FrameKind.end, batch.timeMs, batch),
    ]);
    let sent = 0;
    try {
      sent = writeSync(descriptor, last, 0, last.length, this.wholeBytes);
    } catch {
      // No room for these either: readers say that the end was not seen.
    }
    if (sent < last.length) {
      ftruncateSync(descriptor, this.wholeBytes);
    }
  }

  close(): void {
    if (this.descriptor !== null) {
      closeSync(this.descriptor);
    }
  }

  private frame(kind: FrameKind, timeMs: TimeMs, batch: unknown): void {
    try {
      this.write(encodeFrame(kind, timeMs, batch));
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      this.limits(timeMs, [`${error.what} (${error.why}): it is left out.`]);
    }
  }

  private write(bytes: Buffer): void {
    if (this.descriptor === null || this.broken) {
      this.keep(bytes);
      return;
    }
    try {
      for (let sent = 0; sent < bytes.length; ) {
        sent += writeSync(this.descriptor, bytes, sent);
      }
      this.wholeBytes += bytes.length;
    } catch (error) {
      this.broken = fileUnusable(this.path, "write", (error as Error).message);
      ftruncateSync(this.descriptor, this.wholeBytes);
      this.keep(readWhole(this.descriptor, this.wholeBytes));
      this.keep(bytes);
    }
  }

  /** Beyond the bound a recording in memory is cut, as one on a full disk is. */
  private keep(bytes: Buffer): void {
    this.keptBytes += bytes.length;
    if (this.keptBytes <= MOST_IN_MEMORY) {
      this.kept.push(bytes);
    }
  }
}
