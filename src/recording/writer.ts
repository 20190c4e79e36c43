import type { TimeMs } from "../model/base/units.js";
import { TidemarkError } from "../model/errors/errors.js";
import type { MemoryEnd } from "../model/profile/memory_end.js";
import type { ProfileSnapshot, ProfileTables } from "../model/profile/profile.js";
import type { Metric, TimelineEvent } from "../model/profile/series.js";
import { joinTables } from "../model/profile/snapshot_tables.js";
import type {
  EndBatch,
  MetaBatch,
  MetricBatch,
  ProfileBatch,
  SampleBatch,
  SeriesRow,
} from "./batches.js";
import { DictionaryWriter } from "./dictionary_batches.js";
import { FileSink } from "./frames/file_sink.js";
import type { FrameSink } from "./frames/frame_sink.js";
import { encodeFileHead, encodeFrame, FrameKind } from "./frames/frames.js";
import type { CensusBatch, HolderBatch } from "./types.js";

/** A figure of one process: a row of the `metrics` table. */
export interface MetricRow {
  readonly timeMs: TimeMs;
  readonly series: number;
  readonly metric: Metric;
  readonly value: number;
}

/** Encodes a recorder's data as frames and appends them to a sink. */
export class RecordingWriter {
  readonly #dictionary = new DictionaryWriter();
  readonly #sentences = new Set<string>();
  #lastAgentLimits = "";
  #profiles = 0;

  readonly #sink: FrameSink;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Continues a recording whose recorder died; its first `keepBytes` bytes are complete frames. */
  static resume(
    path: string,
    keepBytes: number,
    tables: ProfileTables,
    profiles: number,
  ): RecordingWriter {
    return RecordingWriter.after(FileSink.resume(path, keepBytes), tables, profiles);
  }

  /** Continues a recording that this or another process wrote up to `tables` and a number of profiles. */
  static after(sink: FrameSink, tables: ProfileTables, profiles: number): RecordingWriter {
    const writer = new RecordingWriter(sink);
    writer.#dictionary.next(tables);
    writer.#profiles = profiles;
    return writer;
  }

  get path(): string {
    return this.#sink.path;
  }

  /** As in {@link FrameSink}. */
  get failure(): TidemarkError | null {
    return this.#sink.failure;
  }

  /** As in {@link FrameSink}. */
  get memory(): Buffer | null {
    return this.#sink.memory;
  }

  /** Starts the recording; the sink loses what it held before. */
  begin(meta: MetaBatch): void {
    this.#sink.clear();
    this.#sink.append(encodeFileHead());
    this.#frame(FrameKind.meta, meta.startedMs, meta);
  }

  /** Nothing was recorded: an earlier file is not changed. */
  discard(): void {
    this.#sink.discard();
  }

  processes(timeMs: TimeMs, rows: readonly SeriesRow[]): void {
    this.#frame(FrameKind.processes, timeMs, {
      series: Uint32Array.from(rows, (row) => row.series),
      pid: Uint32Array.from(rows, (row) => row.pid),
      parentPid: Uint32Array.from(rows, (row) => row.parentPid),
      command: rows.map((row) => row.command),
      python: rows.map((row) => row.python),
      profiled: Uint8Array.from(rows, (row) => (row.profiled ? 1 : 0)),
      startedMs: Float64Array.from(rows, (row) => row.startedMs),
      endedMs: Float64Array.from(rows, (row) => row.endedMs ?? Number.NaN),
      rank: Float64Array.from(rows, (row) => row.rank ?? Number.NaN),
    });
  }

  metrics(timeMs: TimeMs, rows: readonly MetricRow[]): void {
    if (rows.length === 0) {
      return;
    }
    this.#frame(FrameKind.metrics, timeMs, metricBatch(rows));
  }

  /** Writes the dictionaries' new rows, then the profile itself. */
  snapshot(
    tables: ProfileTables,
    snapshot: ProfileSnapshot,
    about: Pick<ProfileBatch, "kind" | "agent" | "receivedId">,
  ): void {
    const added = this.#dictionary.next(tables);
    if (added) {
      this.#frame(FrameKind.dictionary, snapshot.timeMs, added);
    }
    const profile = this.#profiles++;
    const batch: ProfileBatch = {
      profile,
      kind: about.kind,
      timeMs: snapshot.timeMs,
      durationMs: snapshot.durationMs,
      liveBytes: snapshot.sites.liveBytes.reduce((sum, bytes) => sum + bytes, 0),
      agent: about.agent,
      ...(about.receivedId === undefined ? {} : { receivedId: about.receivedId }),
    };
    this.#frame(FrameKind.profile, snapshot.timeMs, batch);
    const { length: _, ...columns } = joinTables(snapshot);
    const samples: SampleBatch = {
      profile,
      periodBytes: Float64Array.from(tables.processes, (process) => process.periodBytes),
      peakMs: Float64Array.from(tables.processes, (_process, index) => snapshot.peakMs[index] ?? 0),
      cohorts: Float64Array.from(snapshot.cohorts),
      ...columns,
    };
    this.#frame(FrameKind.samples, snapshot.timeMs, samples);
  }

  events(timeMs: TimeMs, events: readonly TimelineEvent[]): void {
    if (events.length === 0) {
      return;
    }
    this.#frame(FrameKind.events, timeMs, {
      timeMs: Float64Array.from(events, (event) => event.timeMs),
      pid: Uint32Array.from(events, (event) => event.pid),
      kind: events.map((event) => event.kind),
      detail: events.map((event) => event.detail),
      value: Float64Array.from(events, (event) => event.value ?? Number.NaN),
    });
  }

  /** Sentences that were already written are left out. */
  limits(timeMs: TimeMs, sentences: readonly string[]): void {
    const fresh = sentences.filter((sentence) => !this.#sentences.has(sentence));
    if (fresh.length > 0) {
      for (const sentence of fresh) {
        this.#sentences.add(sentence);
      }
      this.#frame(FrameKind.limits, timeMs, { from: "recorder", sentences: fresh });
    }
  }

  /** Everything that the agents cannot currently see; replaces their earlier sentences. */
  agentLimits(timeMs: TimeMs, sentences: readonly string[]): void {
    const content = sentences.join("\n");
    if (content !== this.#lastAgentLimits) {
      this.#lastAgentLimits = content;
      this.#frame(FrameKind.limits, timeMs, { from: "agent", sentences });
    }
  }

  holders(timeMs: TimeMs, batch: HolderBatch): void {
    this.#frame(FrameKind.holders, timeMs, batch);
  }

  /** `timeMs`: when the objects were counted. */
  census(timeMs: TimeMs, batch: CensusBatch): void {
    this.#frame(FrameKind.census, timeMs, batch);
  }

  /** Processes that ran out of memory. */
  memoryEnds(timeMs: TimeMs, ends: readonly MemoryEnd[]): void {
    if (ends.length > 0) {
      this.#frame(FrameKind.memoryEnds, timeMs, { ends });
    }
  }

  end(batch: EndBatch): void {
    const { failure } = this;
    this.#frame(FrameKind.end, batch.timeMs, batch);
    if (failure !== null) {
      const sentences = [`The recording is incomplete: ${failure.what}.`];
      this.#sink.appendAfterFailure(
        Buffer.concat([
          encodeFrame(FrameKind.limits, batch.timeMs, { from: "recorder", sentences }),
          encodeFrame(FrameKind.end, batch.timeMs, batch),
        ]),
      );
    }
  }

  close(): void {
    this.#sink.close();
  }

  #frame(kind: FrameKind, timeMs: TimeMs, batch: unknown): void {
    try {
      this.#sink.append(encodeFrame(kind, timeMs, batch));
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      this.limits(timeMs, [`${error.what} (${error.why}): it was omitted.`]);
    }
  }
}

/** In columns. A collector makes a few of them a second: without an iterator for each column. */
function metricBatch(rows: readonly MetricRow[]): MetricBatch {
  const { length } = rows;
  const names: Metric[] = [];
  const batch = {
    names,
    timeMs: new Float64Array(length),
    series: new Uint32Array(length),
    name: new Uint8Array(length),
    value: new Float64Array(length),
  };
  rows.forEach((row, at) => {
    let name = names.indexOf(row.metric);
    if (name < 0) {
      name = names.push(row.metric) - 1;
    }
    batch.timeMs[at] = row.timeMs;
    batch.series[at] = row.series;
    batch.name[at] = name;
    batch.value[at] = row.value;
  });
  return batch;
}
