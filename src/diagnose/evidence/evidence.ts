/**
 * All that a verdict may rest on, whatever it came from: a recording, polls of a live process, a census.
 * Every part but the series is optional, and a rule that misses its part stays silent.
 *
 *     recording or live process --> Evidence --> observe() --> Observations --> rules/ --> verdict
 *     (src/record, src/cli)         this file    observations.ts              ordered list  verdict.ts
 *
 * How it fails: too short a window gives "insufficient-evidence" with what would settle it; a part that is
 * missing becomes a sentence of `limits`; figures that contradict each other lower the confidence. Nothing
 * here reads a process or a file, so nothing here can hurt one.
 */

import type { Bytes, Objects, Pid, TimeMs } from "../../model/base/units.js";
import type { HolderJson } from "../../model/documents/diagnosis_document.js";
import type { FrameJson, TargetJson } from "../../model/documents/documents.js";
import type { GpuJson } from "../../model/documents/gpu_document.js";
import type { MemoryEnd } from "../../model/profile/memory_end.js";
import type { MemorySeries, TimelineEvent } from "../../model/profile/series.js";
import type { SiteHistories } from "../sites/site_history.js";

export interface ProcessEvidence {
  readonly pid: Pid;
  readonly parentPid: Pid;
  readonly command: readonly string[];
  readonly python: string;
  /** An agent ran in it. */
  readonly profiled: boolean;
  readonly startedMs: TimeMs;
  /** null while it lives. */
  readonly endedMs: TimeMs | null;
  /** Polled figures, and parts of the ledger (`ledger.malloc.free`) where ledgers were read. */
  readonly series: MemorySeries;
}

/** How the collector of an interpreter stands. */
interface CollectorEvidence {
  readonly pid: Pid;
  readonly enabled: boolean;
  /** Container allocations since the youngest collection, and how many start one (0: never). */
  readonly youngCount: number;
  readonly youngThreshold: number;
}

/** What the sampled addresses of a suspect site were found to hang on. */
export interface HolderEvidence {
  readonly pid: Pid;
  /** The site group it was looked up for: {@link SiteHistory.key}; of a type: {@link typeKey}, or where a library
   * keeps memory behind its objects, {@link librarySite}. */
  readonly site: string;
  /** When it was looked up. */
  readonly foundMs: TimeMs;
  /** Of handles: the stack whose samples lie in them, leaf first; empty where none does. */
  readonly madeAt: readonly FrameJson[];
  /** Addresses that were looked up; how many a Python object holds; how many only garbage holds. */
  readonly looked: number;
  readonly held: number;
  readonly garbage: number;
  /** How many hang on a tensor's graph. */
  readonly graph: number;
  /** null: nothing common was found. */
  readonly holder: HolderJson | null;
  /** Functions that have things put into it by the only one that puts them there. */
  readonly callers: readonly string[];
  /** The bound it carries (maxsize, maxlen) where it carries one. */
  readonly bound: number | null;
}

/** Objects by type at several moments: what tells of growth where no agent sees allocations. */
export interface CensusEvidence {
  readonly pid: Pid;
  /** Ascending. */
  readonly timesMs: readonly TimeMs[];
  readonly types: readonly TypeCourse[];
}

export interface TypeCourse {
  /** "app.Session" */
  readonly type: string;
  /** By census, with the buffers that the objects own; 0 where there was none of it. */
  readonly bytes: readonly Bytes[];
  readonly objects: readonly Objects[];
}

/** What the program answered to `gc.collect()` and `malloc_trim(0)`, at the end of the window. */
export interface ProbeEvidence {
  readonly pid: Pid;
  readonly collectedObjects: Objects;
  /** Live memory that the collector freed. */
  readonly freedBytes: Bytes;
  /** Resident memory that the allocator gave back afterwards; null where it could not be asked. */
  readonly returnedBytes: Bytes | null;
  /** Why it could not; "" where it could. */
  readonly refusal: string;
}

/** A process that ran out of memory, with the sentence that says so. */
export interface MemoryEndEvidence extends MemoryEnd {
  readonly sentence: string;
}

/** What chosen rows of the profiles were chosen from. */
interface Selection {
  /** "thread=worker and label=ingest". */
  readonly where: string;
  /** The target with the figures of the whole process, and how many processes its tree has. */
  readonly whole: ProcessEvidence;
  readonly members: number;
}

export interface Evidence {
  readonly target: TargetJson;
  readonly window: { readonly startMs: TimeMs; readonly endMs: TimeMs };
  /** The target first, then its descendants. */
  readonly processes: readonly ProcessEvidence[];
  readonly events: readonly TimelineEvent[];
  /** Where an agent ran. */
  readonly sites?: SiteHistories;
  /** Where an agent ran: mappings of files, of shared memory and of devices, at the looks of {@link sites}; those
   * that nobody keeps, too. */
  readonly mappings?: SiteHistories;
  /** Where no agent ran: all through the window. Where one did: each time that holders were looked up. */
  readonly census?: CensusEvidence;
  /** Where somebody allowed it. */
  readonly probe?: ProbeEvidence;
  readonly collectors?: readonly CollectorEvidence[];
  readonly holders?: readonly HolderEvidence[];
  /** What `tidemark gpu` says of the allocator's snapshots that belong to it. */
  readonly snapshots?: readonly GpuJson[];
  /** Processes that ran out of memory. */
  readonly memoryEnds?: readonly MemoryEndEvidence[];
  /** Where only some rows of the profiles count. */
  readonly selection?: Selection;
  /** What could not be seen, and why: sentences. */
  readonly limits: readonly string[];
}
