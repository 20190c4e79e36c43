/**
 * All evidence for a verdict, whatever its source: a recording, polls of a live process, a census. Every part
 * except the series is optional; a rule without its part stays silent.
 *
 *     recording or live process --> Evidence --> observe() --> Observations --> rules/ --> verdict
 *     (src/record, src/cli)         this file    observations.ts              ordered list  verdict.ts
 *
 * Failure modes: too short a window gives "insufficient-evidence" with the window length that is needed; a
 * missing part becomes a sentence in `limits`; contradictory figures lower the confidence. Nothing here reads a
 * process or a file.
 */

import type { Bytes, Objects, Pid, TimeMs } from "../../model/base/units.js";
import type { HolderJson } from "../../model/documents/diagnosis_document.js";
import type { FrameJson, TargetJson } from "../../model/documents/documents.js";
import type { GpuJson } from "../../model/documents/gpu/gpu_document.js";
import type { MemoryEnd } from "../../model/profile/memory_end.js";
import type { MemorySeries, TimelineEvent } from "../../model/profile/series.js";
import type { SiteHistories } from "../sites/site_history.js";

export interface ProcessEvidence {
  readonly pid: Pid;
  readonly parentPid: Pid;
  readonly command: readonly string[];
  readonly python: string;
  /** Whether an agent ran in it. */
  readonly profiled: boolean;
  readonly startedMs: TimeMs;
  /** null while it runs. */
  readonly endedMs: TimeMs | null;
  /** Polled metrics, and parts of the ledger (`ledger.malloc.free`) if ledgers were read. */
  readonly series: MemorySeries;
}

/** The state of an interpreter's garbage collector. */
interface CollectorEvidence {
  readonly pid: Pid;
  readonly enabled: boolean;
  /** Container allocations since the youngest collection, and how many start one (0: never). */
  readonly youngCount: number;
  readonly youngThreshold: number;
}

/** The holders found for the sampled addresses of a suspect site. */
export interface HolderEvidence {
  readonly pid: Pid;
  /**
   * The site group it was looked up for: {@link SiteHistory.key}; for a type {@link typeKey}, or {@link
   * librarySite} if a library keeps memory behind its objects.
   */
  readonly site: string;
  /** When it was looked up. */
  readonly foundMs: TimeMs;
  /** For handles: the stack whose samples are in them, leaf first; empty if there is none. */
  readonly madeAt: readonly FrameJson[];
  /** Number of addresses looked up; number held by a Python object; number held only by garbage. */
  readonly looked: number;
  readonly held: number;
  readonly garbage: number;
  /** Number kept by an autograd graph. */
  readonly graph: number;
  /** Of those that nothing holds: the number that certainly no Python object refers to; null if unknown. */
  readonly unreferenced: number | null;
  /** null if no common holder was found. */
  readonly holder: HolderJson | null;
  /** Whether the entries of the holder gain objects as long as they exist; null if it is unknown. */
  readonly entriesGrow: boolean | null;
  /** Callers of the only function that adds items to it. */
  readonly callers: readonly string[];
  /** Its bound (maxsize, maxlen), if any. */
  readonly bound: number | null;
}

/** Objects by type at several moments, which show growth if no agent records allocations. */
export interface CensusEvidence {
  readonly pid: Pid;
  /** Ascending. */
  readonly timesMs: readonly TimeMs[];
  readonly types: readonly TypeCourse[];
}

export interface TypeCourse {
  /** "app.Session" */
  readonly type: string;
  /** By census, including the buffers that the objects own; 0 if there were none. */
  readonly bytes: readonly Bytes[];
  readonly objects: readonly Objects[];
}

/** The results of `gc.collect()` and `malloc_trim(0)` in the program at the end of the window. */
export interface ProbeEvidence {
  readonly pid: Pid;
  readonly collectedObjects: Objects;
  /** Live memory that the collector freed. */
  readonly freedBytes: Bytes;
  /** Resident memory that the allocator returned afterwards; null if it could not be called. */
  readonly returnedBytes: Bytes | null;
  /** Why it could not be called; "" if it was. */
  readonly refusal: string;
}

/** A process that ran out of memory, with a sentence about it. */
export interface MemoryEndEvidence extends MemoryEnd {
  readonly sentence: string;
}

/** The process whose series has the figures of the whole tree, and the number of processes in it. */
export interface TreeEvidence {
  readonly root: ProcessEvidence;
  readonly members: number;
}

/** The context of a selection of rows. */
interface Selection {
  /** "thread=worker and label=ingest". */
  readonly where: string;
  /** With the metrics of the whole program. */
  readonly whole: TreeEvidence;
}

export interface Evidence {
  readonly target: TargetJson;
  readonly window: { readonly startMs: TimeMs; readonly endMs: TimeMs };
  /** The target first, then its descendants. */
  readonly processes: readonly ProcessEvidence[];
  /** Set if a launcher (`timeout`, `tini`, a shell script) started the target, whose tree then is the launcher's. */
  readonly tree?: TreeEvidence;
  readonly events: readonly TimelineEvent[];
  /** Set if an agent ran. */
  readonly sites?: SiteHistories;
  /** Set if an agent ran and a process ran out of memory: one snapshot, at the peak of live bytes. */
  readonly sitesAtPeak?: SiteHistories;
  /**
   * Set if an agent ran: mappings of files, shared memory and devices at the snapshots of {@link sites},
   * including those that are not kept.
   */
  readonly mappings?: SiteHistories;
  /** Without an agent, during the whole window; with one, at each holder lookup. */
  readonly census?: CensusEvidence;
  /** Set if the user requested it. */
  readonly probe?: ProbeEvidence;
  readonly collectors?: readonly CollectorEvidence[];
  readonly holders?: readonly HolderEvidence[];
  /** The documents of `tidemark gpu` about the allocator snapshots that belong to it. */
  readonly snapshots?: readonly GpuJson[];
  /** What a program that has ended held until then, without mappings; absent if it is unknown, or the program runs. */
  readonly liveAtEndBytes?: Bytes;
  /** Set if the program ended by itself, without an error. */
  readonly isComplete?: boolean;
  /** Processes that ran out of memory. */
  readonly memoryEnds?: readonly MemoryEndEvidence[];
  /** Whether the source of an imported recording does not know which memory native code allocated. */
  readonly allocatorsUnknown?: true;
  /** The tool whose file the recording was imported from: "memory_profiler". */
  readonly importedFrom?: string;
  /** Set if only some rows of the profiles are selected. */
  readonly selection?: Selection;
  /** Why the agent could not enter, although it was wanted. */
  readonly refusal?: string;
  /** Sentences about missing evidence and the reasons. */
  readonly limits: readonly string[];
}
