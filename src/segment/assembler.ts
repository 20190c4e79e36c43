/**
 * Converts snapshots of many processes' segments to one growing profile.
 *
 *     const process = assembler.begin(snapshot.header, pid);
 *     assembler.renew(process, snapshot);             // at every snapshot
 *     assembler.end(process);                     // its memory is freed: live figures become 0
 *     const { tables, snapshot } = assembler.take(Date.now());
 */

import { itemAt } from "../model/base/columns.js";
import type { Bytes, Millis, Pid, ProcessIndex, ThreadIndex, TimeMs } from "../model/base/units.js";
import { foldSites } from "../model/profile/fold_sites.js";
import type {
  ProfileProcess,
  ProfileSnapshot,
  ProfileTables,
  SiteTable,
} from "../model/profile/profile.js";
import type { TimelineEvent } from "../model/profile/series.js";
import { newSiteTable, pickSites } from "../model/profile/site_columns.js";
import { partTables } from "../model/profile/snapshot_tables.js";
import { ProfileTablesBuilder } from "../model/profile/tables_builder.js";
import { cohortBounds } from "./cohorts.js";
import { labelWords, type NameSources, ProcessDictionary } from "./dictionary.js";
import { EventRing } from "./events.js";
import type { SegmentHeader } from "./header.js";
import { gatherLimits, limitsOf } from "./limits.js";
import { type LiveSamples, liveSamplesOf } from "./live_samples.js";
import { type Opening, openingsOf } from "./openings.js";
import type { SegmentSnapshot } from "./reader.js";
import { sitesOf } from "./sites.js";

/** The agents' own counters, summed over all processes so far. */
interface AgentTotals {
  readonly samples: number;
  readonly lost: number;
  /** CPU time of the slow path. */
  readonly cpuMs: Millis;
  readonly allocatedBytes: Bytes;
  /** Sampling period of the process with the most live bytes. */
  readonly periodBytes: Bytes;
}

interface Watched {
  readonly index: ProcessIndex;
  readonly pid: Pid;
  readonly dictionary: ProcessDictionary;
  readonly events: EventRing;
  snapshot: SegmentSnapshot | null;
}

/** Ended processes with their own rows; the oldest of more are merged. */
const ENDED_APART = 256;
/** Sites store their process in 16 bits; the row after the last represents all others. */
const MAX_PROCESSES = 65_535;

export class ProfileAssembler {
  readonly #sources: NameSources;
  readonly #builder = new ProfileTablesBuilder();
  readonly #watched = new Map<ProcessIndex, Watched>();
  /** Rows of ended processes, oldest first, without cohorts, because they have no live memory. */
  readonly #ended: SiteTable[] = [];
  #endedAsOne: SiteTable = newSiteTable(0, 0);
  #crowd: { readonly process: ProcessIndex; readonly thread: ThreadIndex } | null = null;
  readonly #peakMs: TimeMs[] = [];
  /** Counters of ended processes. */
  readonly #endedTotals = { samples: 0, lost: 0, cpuMs: 0, allocatedBytes: 0 };
  /** Number of processes beyond the limit. */
  #uncounted = 0;
  readonly #limits: [Pid, readonly string[]][] = [];
  #events: TimelineEvent[] = [];
  #startMs: TimeMs = Number.POSITIVE_INFINITY;
  #processes = 0;

  constructor(sources: NameSources = {}) {
    this.#sources = sources;
  }

  /** Adds a process that has a segment. `pid`, `parentPid`: in the recorder's pid namespace. */
  begin(
    header: SegmentHeader,
    pid: Pid = header.pid,
    parentPid: Pid = header.parentPid,
  ): ProcessIndex {
    if (this.#processes >= MAX_PROCESSES - 1) {
      this.#uncounted += 1;
      return this.#crowdOfProcesses().process;
    }
    const index = this.#addProcess(processOf(header, pid, parentPid));
    this.#startMs = Math.min(this.#startMs, header.startRealtimeMs);
    this.#watched.set(index, {
      index,
      pid,
      dictionary: new ProcessDictionary(
        this.#builder,
        { index, pid, startedMs: header.startRealtimeMs },
        this.#sources,
      ),
      events: new EventRing(),
      snapshot: null,
    });
    return index;
  }

  /** Adds the data of a snapshot. The snapshot's copies must not change until the next one. */
  renew(process: ProcessIndex, snapshot: SegmentSnapshot): void {
    const watched = this.#watched.get(process);
    if (watched === undefined) {
      return; // one of the processes beyond the limit
    }
    const { header } = snapshot;
    watched.snapshot = snapshot;
    watched.dictionary.renew(snapshot);
    const tables = this.#builder.tables();
    const before = itemAt(tables.processes, process);
    this.#builder.setProcess(process, processOf(header, watched.pid, before.parentPid));
    this.#peakMs[process] = header.peakMs;
    this.#events.push(
      ...watched.events.take(snapshot, watched.pid, (label) =>
        labelWords(tables.labels, tables.strings, watched.dictionary.label(label)),
      ),
    );
    const limits = limitsOf(header, snapshot.torn, snapshot.missing);
    if (watched.dictionary.damaged > 0) {
      limits.push(`${watched.dictionary.damaged} records refer to missing records`);
    }
    if (watched.events.lost > 0) {
      limits.push(`${watched.events.lost} events arrived too fast and were lost`);
    }
    this.#limits[process] = [watched.pid, limits];
  }

  /** The process or its image has ended, and its memory is freed; its allocated bytes remain counted. */
  end(process: ProcessIndex): void {
    const watched = this.#watched.get(process);
    if (watched?.snapshot == null) {
      this.#watched.delete(process);
      return;
    }
    addTotals(this.#endedTotals, watched.snapshot.header);
    const sites = sitesOf(watched.snapshot, watched.dictionary, process, [1], 0);
    this.#watched.delete(process);
    this.#ended.push(withoutCohorts(withoutLive(sites)));
    if (this.#ended.length > ENDED_APART) {
      this.#gatherEnded(this.#ended.splice(0, ENDED_APART / 2));
    }
  }

  /**
   * The profile at the last renewals, with live bytes by allocation time up to `timeMs`. `gone`: processes that seem to
   * have ended, so that nothing of theirs is live.
   */
  take(
    timeMs: TimeMs,
    gone: ReadonlySet<ProcessIndex> = new Set(),
  ): { readonly tables: ProfileTables; readonly snapshot: ProfileSnapshot } {
    const startMs = Math.min(this.#startMs, timeMs);
    const cohorts = cohortBounds(startMs, timeMs);
    const parts = [this.#endedAsOne, ...this.#ended].map((sites) =>
      withCohorts(sites, cohorts.length),
    );
    for (const { index, snapshot, dictionary } of this.#watched.values()) {
      if (snapshot !== null) {
        const sites = sitesOf(snapshot, dictionary, index, cohorts, startMs);
        parts.push(gone.has(index) ? withoutLive(sites) : sites);
      }
    }
    const snapshot: ProfileSnapshot = {
      timeMs,
      durationMs: timeMs - startMs,
      ...partTables(foldSites(parts, cohorts.length), cohorts.length),
      cohorts,
      peakMs: Array.from({ length: this.#processes }, (_, index) => this.#peakMs[index] ?? 0),
    };
    return { tables: this.#builder.tables(), snapshot };
  }

  /**
   * For each process with any: its sampled live allocations at its last renewal. Stacks refer to {@link take}'s
   * tables.
   */
  liveSamples(): Map<Pid, LiveSamples> {
    const found = new Map<Pid, LiveSamples>();
    for (const { pid, snapshot, dictionary } of this.#watched.values()) {
      if (snapshot !== null) {
        found.set(pid, liveSamplesOf(snapshot, dictionary));
      }
    }
    return found;
  }

  /** For each process: the stacks that opened its descriptors, at its last renewal. Stacks as {@link liveSamples}'. */
  openings(): Map<Pid, readonly Opening[]> {
    const found = new Map<Pid, readonly Opening[]>();
    for (const { pid, snapshot, dictionary } of this.#watched.values()) {
      if (snapshot !== null) {
        found.set(pid, openingsOf(snapshot, dictionary));
      }
    }
    return found;
  }

  /** Events since the last call, ascending by time. */
  takeEvents(): TimelineEvent[] {
    const events = this.#events.sort((a, b) => a.timeMs - b.timeMs);
    this.#events = [];
    return events;
  }

  /** Sentences about what the profile cannot show; the latest of each process. */
  limits(): string[] {
    const limits = gatherLimits(this.#limits.filter((entry) => entry !== undefined));
    if (this.#uncounted > 0) {
      limits.push(
        `${this.#uncounted} processes after the first ${MAX_PROCESSES - 1} are not in the profile`,
      );
    }
    return limits;
  }

  totals(): AgentTotals {
    const totals = { ...this.#endedTotals };
    let periodBytes = 0;
    let mostLive = -1;
    for (const { snapshot } of this.#watched.values()) {
      if (snapshot !== null) {
        addTotals(totals, snapshot.header);
        if (snapshot.header.liveBytes > mostLive) {
          mostLive = snapshot.header.liveBytes;
          periodBytes = snapshot.header.periodBytes;
        }
      }
    }
    return { ...totals, periodBytes };
  }

  #addProcess(process: ProfileProcess): ProcessIndex {
    this.#processes += 1;
    return this.#builder.addProcess(process);
  }

  #gatherEnded(tables: readonly SiteTable[]): void {
    const crowd = this.#crowdOfProcesses();
    for (const table of tables) {
      table.process.fill(crowd.process);
      table.thread.fill(crowd.thread);
    }
    this.#endedAsOne = foldSites([this.#endedAsOne, ...tables], 0);
  }

  #crowdOfProcesses(): { readonly process: ProcessIndex; readonly thread: ThreadIndex } {
    if (this.#crowd === null) {
      const process = this.#addProcess({
        pid: 0,
        parentPid: 0,
        command: ["ended processes"],
        python: "",
        startedMs: Number.isFinite(this.#startMs) ? this.#startMs : 0,
        periodBytes: 0,
      });
      const thread = this.#builder.addThread({
        process,
        tid: 0,
        name: "all threads",
        isMain: false,
      });
      this.#crowd = { process, thread };
    }
    return this.#crowd;
  }
}

function addTotals(
  totals: { samples: number; lost: number; cpuMs: Millis; allocatedBytes: Bytes },
  header: SegmentHeader,
): void {
  totals.samples += header.samples;
  totals.lost += header.samplesLost;
  totals.cpuMs += header.slowPathMs;
  totals.allocatedBytes += header.allocatedBytes;
}

function processOf(header: SegmentHeader, pid: Pid, parentPid: Pid): ProfileProcess {
  return {
    pid,
    parentPid,
    command: header.command,
    python: header.python,
    startedMs: header.startRealtimeMs,
    periodBytes: header.periodBytes,
  };
}

function withoutLive(sites: SiteTable): SiteTable {
  for (const figure of [
    "liveBytes",
    "liveObjects",
    "liveVariance",
    "liveSamples",
    "cohortBytes",
  ] as const) {
    sites[figure].fill(0);
  }
  return sites;
}

function withoutCohorts(sites: SiteTable): SiteTable {
  return { ...pickSites(sites, Uint32Array.from(sites.stack.keys()), 0) };
}

function withCohorts(sites: SiteTable, cohortCount: number): SiteTable {
  return { ...sites, cohortBytes: new Float64Array(sites.length * cohortCount) };
}
