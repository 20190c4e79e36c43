import { basename } from "node:path";
import { formatDuration } from "../model/base/numbers.js";
import { shellWord } from "../model/base/shell_word.js";
import type { TimeMs } from "../model/base/units.js";
import { damagedInput, nothingThere, TidemarkError } from "../model/errors/errors.js";
import {
  IMPORTED_FIGURES,
  type ImportedFigure,
  type ImportedSource,
} from "../model/profile/imported.js";
import type { MemoryEnd } from "../model/profile/memory_end.js";
import type { Profile, ProfileTables, SiteTable } from "../model/profile/profile.js";
import type { MemorySeries, TimelineEvent } from "../model/profile/series.js";
import { BatchError, demand } from "./batch_check.js";
import type { MetaBatch, SeriesRow } from "./batches.js";
import { readCensus } from "./census_batch.js";
import {
  checkedEnd,
  checkedEvents,
  checkedLimits,
  checkedMeta,
  checkedProcesses,
  checkedProfile,
} from "./checked_frames.js";
import { DictionaryReader } from "./dictionary_batches.js";
import { type FramePlace, readFrame, scanFrames } from "./frames/frame_file.js";
import { decodePayload, FrameKind } from "./frames/frames.js";
import { HolderReader } from "./holder_reader.js";
import { readMemoryEnds } from "./memory_end_batch.js";
import { peakProfile } from "./peak_profile.js";
import { type JoinedStacks, joinRecurringStacks, withJoinedStacks } from "./recurring_stacks.js";
import { SeriesReader } from "./series_reader.js";
import { readSamples } from "./snapshot_reader.js";
import type {
  HolderLookup,
  Moment,
  RecordedCensus,
  RecordedProcess,
  Recording,
  RecordingEnd,
  RecordingMeta,
  SnapshotMoment,
} from "./types.js";
import { upgrade } from "./upgrade.js";

/**
 * Opens a recording, finished, still growing, or left by a recorder that was killed: all complete frames up to
 * the end of the file or the first damage. Snapshots stay in the file until they are requested. Throws
 * TidemarkError if it cannot be read, is not a recording, was written by a newer Tidemark, or is damaged before
 * its description.
 */
export function openRecording(path: string, recorderLives?: RecorderLives): Recording {
  return new OpenRecording(path, null, recorderLives);
}

/** Whether the process that writes the recording is still running. */
type RecorderLives = (recorder: RecordingMeta["recorder"]) => boolean;

const HAS_ENDED: RecorderLives = () => false;

/** What snapshots contain. */
const BY_STACK: readonly ImportedFigure[] = ["live", "peak", "allocated", "objects", "python"];

/** The recording, and the data that completing it needs. */
export class OpenRecording implements Recording {
  readonly meta: RecordingMeta;
  readonly series: readonly MemorySeries[];
  readonly processes: readonly RecordedProcess[];
  readonly events: TimelineEvent[] = [];
  readonly snapshots: SnapshotMoment[] = [];
  readonly limits: string[] = [];
  readonly damage: string | null;
  readonly missing: string | null;
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
  end: RecordingEnd | null = null;

  /** Length of the file up to the end of its last whole frame. */
  readonly wholeBytes: number;
  /** Reading stopped before the end of the file because of damage, not because the file is truncated. */
  readonly damaged: boolean;

  #metaBatch: MetaBatch | null = null;
  readonly #rows: SeriesRow[] = [];
  readonly #metrics = new SeriesReader();
  readonly #dictionary = new DictionaryReader();
  readonly #samples: FramePlace[] = [];
  readonly #holders = new HolderReader();
  readonly censuses: RecordedCensus[] = [];
  readonly memoryEnds: MemoryEnd[] = [];
  #announced: SnapshotMoment | null = null;
  #agentLimits: readonly string[] = [];
  #lastMs = 0;
  readonly #version: number;
  #joined: JoinedStacks | null = null;
  #cached: { index: number; profile: Profile } | null = null;

  /** `memory`: the whole recording, of which the file at `path` contains at most the start. */
  constructor(
    readonly path: string,
    readonly memory: Buffer | null = null,
    recorderLives: RecorderLives = HAS_ENDED,
  ) {
    const scan = scanFrames(
      { path, memory },
      (place, payload, version) => {
        const kind = place.head.kind as FrameKind;
        // The expensive part of a recording: decoded when a snapshot is requested.
        const batch = kind === FrameKind.samples ? null : decodePayload(place.head, payload, path);
        const current = upgrade(version, kind, batch);
        if (current !== undefined) {
          this.#take(place, kind, current);
        }
      },
      (error) => {
        if (error instanceof BatchError) {
          return error.message;
        }
        if (error instanceof TidemarkError) {
          return error.what;
        }
        throw error;
      },
    );
    this.#version = scan.version;
    this.wholeBytes = scan.endOffset;
    this.damaged = scan.stopped?.kind === "damaged";
    if (this.#metaBatch === null) {
      throw damagedInput(path, scan.stopped?.detail ?? "it ends before its first frame");
    }
    const { imported, startedMs } = this.#metaBatch;
    this.startMs = startedMs;
    this.endMs = Math.max(this.end?.timeMs ?? this.#lastMs, startedMs);
    this.processes = this.#rows.map(({ series: _, ...process }) => process);
    this.series = this.#metrics.series(this.#rows);
    this.meta = {
      ...this.#metaBatch,
      formatVersion: scan.version,
      ...(imported === undefined || this.end !== null ? {} : { imported: this.#partOf(imported) }),
    };
    const growing =
      this.end === null && scan.stopped?.kind !== "damaged" && recorderLives(this.meta.recorder);
    this.damage =
      scan.stopped && !growing ? `${scan.stopped.detail}: only the part before it is shown` : null;
    this.missing = growing ? null : this.#describeMissing();
    this.limits.push(...(this.missing === null ? [] : [this.missing]), ...this.#agentLimits);
    this.events.sort((a, b) => a.timeMs - b.timeMs);
    this.censuses.sort((a, b) => a.timeMs - b.timeMs);
  }

  /** An imported recording that is cut off: what is missing from it is unknown, not 0. */
  #partOf(imported: ImportedSource): ImportedSource {
    const hasReadings = this.series.some(({ values }) => values.has("rssBytes"));
    const lost: readonly ImportedFigure[] = [
      ...imported.unknown,
      ...(this.snapshots.length > 0 ? [] : BY_STACK),
      ...(hasReadings ? [] : (["rss"] as const)),
      ...(this.endMs > this.startMs ? [] : (["time"] as const)),
    ];
    return { ...imported, unknown: IMPORTED_FIGURES.filter((figure) => lost.includes(figure)) };
  }

  #describeMissing(): string | null {
    const name = basename(this.path);
    if (this.meta.imported !== undefined) {
      const why = this.damage ?? (this.end === null ? "tidemark import was stopped" : null);
      return why === null ? null : `${name} is incomplete: ${why}.`;
    }
    const shown = formatDuration(this.endMs - this.startMs);
    if (this.damage !== null) {
      const part = this.end === null ? `the first ${shown} of the run` : "the whole run";
      return `${name} is damaged: ${this.damage}, ${part}.`;
    }
    return this.end === null
      ? `The recorder was killed before ${name} was complete: the time after ${shown} is missing.`
      : null;
  }

  get complete(): boolean {
    return this.end !== null;
  }

  get holderLookups(): readonly HolderLookup[] {
    return this.#holders.newest();
  }

  get snapshotTimes(): readonly TimeMs[] {
    return this.snapshots.map((snapshot) => snapshot.timeMs);
  }

  profileAt(moment: Moment): Profile {
    if (this.snapshots.length === 0) {
      throw noProfile(this);
    }
    if (moment === "peak") {
      return peakProfile(this);
    }
    return this.profileOf(
      moment === "end" ? this.snapshots.length - 1 : this.#snapshotBefore(moment),
    );
  }

  profileOf(index: number): Profile {
    const place = this.#samples[index];
    if (place === undefined) {
      throw nothingThere(
        `${this.path} has no snapshot ${index}`,
        `it has ${this.snapshots.length}`,
      );
    }
    if (this.#cached?.index !== index) {
      const batch = upgrade(this.#version, FrameKind.samples, readFrame(this, place));
      const snapshot = this.snapshots[index] as SnapshotMoment & { durationMs: number };
      try {
        const profile = readSamples(batch, this.#ownTables(), snapshot);
        const joined = this.#joinedStacks();
        const { strings, frames, stacks } = joined.tables;
        const part = (sites: SiteTable) => withJoinedStacks(sites, profile.cohorts.length, joined);
        this.#cached = {
          index,
          profile: {
            ...profile,
            ...{ strings, frames, stacks },
            sites: part(profile.sites),
            files: part(profile.files),
            copies: part(profile.copies),
          },
        };
      } catch (error) {
        if (error instanceof BatchError) {
          throw damagedInput(
            this.path,
            `the snapshot at byte ${place.offset} is invalid: ${error.message}`,
          );
        }
        throw error;
      }
    }
    return (this.#cached as { profile: Profile }).profile;
  }

  /** The dictionaries that all profiles share. */
  tables(): ProfileTables {
    return this.#joinedStacks().tables;
  }

  #joinedStacks(): JoinedStacks {
    this.#joined ??= joinRecurringStacks(this.#ownTables());
    return this.#joined;
  }

  #ownTables(): ProfileTables {
    const tables = this.#dictionary.tables();
    const ranks = new Map(this.#rows.map(({ pid, rank }) => [pid, rank]));
    return {
      ...tables,
      strings: this.#holders.withCells(tables.strings),
      processes: tables.processes.map((process) => {
        const rank = ranks.get(process.pid) ?? null;
        return rank === null ? process : { ...process, rank };
      }),
    };
  }

  /** The last profile at or before the time, otherwise the first. */
  #snapshotBefore(timeMs: TimeMs): number {
    const after = this.snapshots.findIndex((snapshot) => snapshot.timeMs > timeMs);
    return after < 0 ? this.snapshots.length - 1 : Math.max(0, after - 1);
  }

  #take(place: FramePlace, kind: FrameKind, batch: unknown): void {
    demand(
      kind === FrameKind.meta || this.#metaBatch !== null,
      "it precedes the recording's description",
    );
    demand(Number.isFinite(place.head.timeMs), "it has no time");
    switch (kind) {
      case FrameKind.meta:
        this.#takeMeta(batch);
        break;
      case FrameKind.processes:
        this.#takeProcesses(batch);
        break;
      case FrameKind.metrics:
        this.#metrics.add(batch, this.#rows.length);
        break;
      case FrameKind.dictionary:
        this.#dictionary.add(batch);
        break;
      case FrameKind.profile:
        this.#announced = checkedProfile(batch);
        break;
      case FrameKind.samples:
        // Ignored without the preceding frame of kind profile.
        if (this.#announced) {
          this.snapshots.push(this.#announced);
          this.#samples.push(place);
          this.#announced = null;
        }
        break;
      case FrameKind.events:
        for (const event of checkedEvents(batch)) {
          this.events.push(event);
        }
        break;
      case FrameKind.limits:
        this.#takeLimits(batch);
        break;
      case FrameKind.holders:
        this.#holders.add(batch, place.head.timeMs);
        break;
      case FrameKind.census:
        this.censuses.push(readCensus(batch, place.head.timeMs));
        break;
      case FrameKind.memoryEnds:
        this.memoryEnds.push(...readMemoryEnds(batch));
        break;
      case FrameKind.end:
        this.end = checkedEnd(batch);
        break;
      default:
        throw new BatchError(`its kind ${kind} is unknown`);
    }
    this.#lastMs = Math.max(this.#lastMs, place.head.timeMs);
  }

  #takeMeta(batch: unknown): void {
    demand(this.#metaBatch === null, "the recording is described twice");
    this.#metaBatch = checkedMeta(batch);
  }

  #takeProcesses(value: unknown): void {
    for (const row of checkedProcesses(value, this.#rows.length)) {
      this.#rows[row.series] = row;
    }
  }

  #takeLimits(value: unknown): void {
    const { from, sentences } = checkedLimits(value);
    if (from === "agent") {
      this.#agentLimits = sentences;
    } else {
      this.limits.push(...sentences);
    }
  }
}

function noProfile(recording: Recording): TidemarkError {
  const {
    path,
    missing,
    meta: { imported },
  } = recording;
  if (imported !== undefined) {
    return nothingThere(
      `${path}, imported from ${imported.tool}, contains no memory by stack`,
      missing ?? `see what it contains: tidemark summary ${shellWord(path)}`,
    );
  }
  return nothingThere(
    `${path} contains no profile`,
    missing ??
      (!recording.complete && recording.processes.some(({ profiled }) => profiled)
        ? "it is still being written: try again in a few seconds"
        : "its summary and timeline still show the memory of the processes; the limits give the reason why no agent ran"),
  );
}
