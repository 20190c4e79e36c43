/**
 * The data that a server stores about its fleet, whatever the database. Every implementation passes
 * store_conformance.system.test.ts.
 *
 * Rules that hold in each of them (docs/storage.md): writing is idempotent by stream and offset; live bytes are a gauge,
 * the mean over a window weighted by time and then summed over processes; allocated bytes are a sum; anything left out
 * of an answer is counted exactly.
 */
import type {
  LineHolder,
  ServiceEvidence,
  SiteReadings,
  SizeEvidence,
} from "../../diagnose/index.js";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type {
  FleetVerdictsJson,
  InstanceRowJson,
  ServiceJson,
  ServicesJson,
} from "../../model/documents/fleet_document.js";
import type { ProfileSnapshot, ProfileTables } from "../../model/profile/profile.js";
import type { InstanceAnswer } from "../../model/wire/api_answers.js";
import type { SeriesAnswer, SeriesGroup, SeriesName } from "../../model/wire/services.js";
import type { StreamItem } from "../../recording/stream_reader.js";
import type { FigureSeries, FigureSeriesQuery, LabelMatcher, LabelQuery } from "./labels.js";
import type { Window } from "./window.js";

/** New frames of one stream, in its order. */
export interface StreamPart {
  readonly stream: string;
  readonly items: readonly StreamItem[];
  /** The offset of the stream after these frames. */
  readonly endOffset: number;
}

/** Selects processes: all of a service, of one version or of one stream. */
export interface Selection {
  readonly service: string;
  readonly version?: string;
  readonly stream?: string;
}

export interface SeriesQuery extends Selection, Window {
  readonly name: SeriesName;
  readonly by: SeriesGroup;
  readonly stepMs: Millis;
  /** Only these instances, by the names of their streams. */
  readonly streams?: readonly string[];
}

/** A label that the program itself set where it allocates. */
export interface SampleLabel {
  readonly name: string;
  readonly value: string;
}

export interface ProfileQuery extends Window {
  /** A service's processes, or those that labels select. */
  readonly of: Selection | readonly LabelMatcher[];
  /** The number of stacks to return; the others become one site, "other". */
  readonly mostStacks: number;
  /** Rows of a stack are separate for each value of this label of `tidemark.label`. */
  readonly byLabel?: string;
  /** Counts only what was allocated under this value of such a label; "": under none. */
  readonly where?: SampleLabel;
  /** Counts only live bytes of these ages, from the age classes that are completely within the range. */
  readonly ages?: { readonly leastMs: Millis; readonly mostMs: Millis };
  /** What the means are over: {@link WindowProfile.reported}. Left out: the whole window. */
  readonly over?: "reported";
}

/** A profile merged over a window: one site per stack and allocator. */
export interface WindowProfile {
  readonly tables: ProfileTables;
  readonly snapshot: ProfileSnapshot;
  /** Stacks in "other"; 0: there is no such site. */
  readonly otherStacks: number;
  /** The number of profiles that were merged. */
  readonly profiles: number;
  /** From the first to the last moment of the window at which a selected process had a profile. Null: none had one. */
  readonly reported: Window | null;
  /** Mean of the number of instances with a profile, over the same time as live figures. */
  readonly instances: number;
}

/** The verdict of one stream. */
export interface VerdictRow {
  readonly stream: string;
  readonly timeMs: TimeMs;
  readonly kind: string;
  readonly confidence: number;
  readonly summary: string;
  readonly growthBytesPerHour: number;
  readonly limitBytes: Bytes;
  readonly msToLimit: Millis;
  /** The objects that hold the memory of its suspects' lines. */
  readonly holders: readonly LineHolder[];
}

/** A service that reported RSS in a window. */
export interface ServiceSpan {
  readonly service: string;
  readonly processes: number;
  /** Its last reading. */
  readonly lastMs: TimeMs;
}

/** One recorded program that reported in a window. */
export interface ProcessLife {
  /** The name of its stream. */
  readonly process: string;
  readonly service: string;
  readonly version: string;
  readonly host: string;
  readonly pod: string;
  readonly startedMs: TimeMs;
  /** null: it runs, or its end was not seen. */
  readonly endedMs: TimeMs | null;
  /** null: it runs, a signal ended it, or its end was not seen. */
  readonly exitCode: number | null;
  /** Its last reading. */
  readonly lastMs: TimeMs;
  /** When the kernel killed one of its processes for memory, within the window. */
  readonly killsMs: readonly TimeMs[];
  /** The highest of its devices and processes at their last readings; null: it uses none, or they are unknown. */
  readonly fragmentation: number | null;
}

/** The newest figures of the instances that run, of one service and version. null: none is known. */
export interface VersionGauges {
  readonly service: string;
  readonly version: string;
  readonly instances: number;
  readonly rssBytes: Bytes | null;
  readonly pssBytes: Bytes | null;
  /** Of the instances that have a profile, and how many these are. */
  readonly liveBytes: Bytes | null;
  readonly profiledInstances: number;
  /** On GPUs, as their driver counts it. */
  readonly deviceBytes: Bytes | null;
  /** Of the instances that count their requests. */
  readonly requestsPerSecond: number | null;
  readonly limitBytes: Bytes | null;
  readonly growthBytesPerHour: number | null;
  /** Of the instance that reaches its limit first. */
  readonly msToLimit: Millis | null;
  /** By part of the ledger. */
  readonly parts: Readonly<Record<string, Bytes>>;
  /** By kind of verdict: how many instances. */
  readonly verdicts: Readonly<Record<string, number>>;
}

export interface Retention {
  /** Days with older rows are removed. */
  readonly keepMs: Millis;
  /** Limit on all files of the store. Beyond it, days move to coarser tiers early, the finest first; once all are in the
   * coarsest, the oldest are removed. */
  readonly mostBytes: Bytes;
  /** How old a day may be in each tier but the last one, before it moves to the next: means of 10 minutes, an hour, a day. */
  readonly tiers: Readonly<Record<"raw" | "10m" | "1h", Millis>>;
}

/** What retention did. Days are named as "2026-11-25". */
export interface Retained {
  readonly removed: readonly string[];
  /** Days that moved to this tier. */
  readonly rolled: readonly { readonly day: string; readonly tier: string }[];
  /** Days that could not be rolled up, in one line each. */
  readonly failed: readonly { readonly day: string; readonly reason: string }[];
  /** Why names that no row refers to any more could not be removed, in one line; null: they were, or there are none. */
  readonly notSwept: string | null;
}

export interface StoreSettings {
  /** Values of each label of a service; further ones are stored as `__overflow__`. */
  readonly labelValues: number;
}

/** What the files hold. */
export interface StorageUse {
  readonly tiers: readonly {
    readonly tier: string;
    readonly days: number;
    readonly bytes: Bytes;
    readonly fromMs: TimeMs;
    readonly toMs: TimeMs;
  }[];
  readonly dictionariesBytes: Bytes;
  /** `bytes`: the share of the days' files, by rows. */
  readonly services: readonly {
    readonly service: string;
    readonly processes: number;
    readonly rows: number;
    readonly bytes: Bytes;
  }[];
}

/** Whose a stream is. `source`: "" for a recording. */
export interface StreamAbout {
  readonly service: string;
  readonly version: string;
  readonly host: string;
  readonly source: string;
}

/** One label of a service. */
export interface LabelUse {
  readonly service: string;
  readonly label: string;
  /** Values that are stored. */
  readonly values: number;
  /** Different values that were replaced by `__overflow__` since the start, at most 10,000. */
  readonly overflowed: number;
}

export interface StoreUse {
  readonly bytes: Bytes;
  readonly oldestMs: TimeMs | null;
}

export interface Store {
  /** Writes frames; frames that are already stored, by stream and offset, change nothing. A stream that the store does not
{@link knows know} must be written from its start. After an error the store no longer knows these streams. Rows
   * older than `oldestMs` are left out. Throws TidemarkError. */
  write(parts: readonly StreamPart[], oldestMs: TimeMs): Promise<void>;
  /** Whether a stream may continue after its last frames. */
  knows(stream: string): boolean;
  /** Frees the memory used for a stream. */
  forget(stream: string): void;
  /** For every stream, the offset up to which all its frames are in the database. */
  writtenOffsets(): Promise<ReadonlyMap<string, number>>;
  /** The versions of each service of which a process is stored, ascending; "": a process that names none. */
  serviceVersions(): Promise<ReadonlyMap<string, readonly string[]>>;
  services(window: Window, steps: number): Promise<ServicesJson>;
  /** null: no such service. */
  service(name: string, window: Window, steps: number): Promise<ServiceJson | null>;
  /** Its instances that reported within the window, in no order. null: no such service. */
  instances(service: string, window: Window): Promise<InstanceRowJson[] | null>;
  /** null: no such stream. */
  instance(stream: string): Promise<InstanceAnswer | null>;
  /** Of the instances that ran in the window. `kind`: only of this kind. */
  verdicts(window: Window, kind: string | undefined): Promise<FleetVerdictsJson>;
  fleetServices(window: Window): Promise<ServiceSpan[]>;
  /** For the fleet's diagnosis: the processes of services that reported RSS in the window, without their sites. */
  fleetEvidence(services: readonly string[], window: Window): Promise<ServiceEvidence[]>;
  /** For right-sizing: the hourly peaks of their processes. */
  fleetPeaks(services: readonly string[], window: Window): Promise<SizeEvidence[]>;
  /** By stream: live bytes by line. */
  fleetSites(
    streams: readonly string[],
    window: Window,
  ): Promise<ReadonlyMap<string, readonly SiteReadings[]>>;
  /** Programs recorded by Tidemark that reported RSS in the window, by service and start. */
  lives(window: Window): Promise<ProcessLife[]>;
  /** A step's mean is over the part of it in which a process of the group reported; null where none did. */
  series(query: SeriesQuery): Promise<SeriesAnswer>;
  profile(query: ProfileQuery): Promise<WindowProfile>;
  /** Mean over the window of the number of instances that reported RSS, with a profile or without. */
  running(query: Pick<ProfileQuery, "of" | "startMs" | "endMs">): Promise<number>;
  /** Names of labels that the series have, ascending. */
  labelNames(query: LabelQuery): Promise<string[]>;
  /** Values of one of them, ascending. */
  labelValues(name: string, query: LabelQuery): Promise<string[]>;
  /** Combinations of their values. */
  labelSets(names: readonly string[], query: LabelQuery): Promise<string[][]>;
  figureSeries(query: FigureSeriesQuery): Promise<FigureSeries[]>;
  versionGauges(nowMs: TimeMs): Promise<VersionGauges[]>;
  putVerdict(verdict: VerdictRow): Promise<void>;
  /** Moves days to coarser tiers, and removes them, with what only they referred to. After an error, each day is in one
   * tier, whole. `recordings`: streams whose recordings are stored; what is known about their processes stays. */
  retain(retention: Retention, nowMs: TimeMs, recordings?: readonly string[]): Promise<Retained>;
  use(): Promise<StoreUse>;
  storage(): Promise<StorageUse>;
  /** By stream, of those that are known. */
  about(streams: readonly string[]): Promise<ReadonlyMap<string, StreamAbout>>;
  /** Labels with values of their own, by service. */
  labelUse(): Promise<LabelUse[]>;
  /** Copies the database's files to a folder, in a state between two writes. Throws TidemarkError. */
  copyTo(folder: string): Promise<void>;
  close(): Promise<void>;
}
