import type { Bytes, Millis, Objects, TimeMs } from "../base/units.js";
import type { FrameJson, TargetJson, WindowJson } from "./documents.js";

/** All verdicts: a closed list (docs/diagnosis.md explains each). */
export const VERDICT_KINDS = [
  "steady",
  "warm-up",
  "cache-plateau",
  "python-leak",
  "cycle-garbage",
  "native-leak",
  "graph-retention",
  "allocator-retention",
  "file-growth",
  "shm-growth",
  "child-growth",
  "copy-on-write",
  "gpu-leak",
  "gpu-fragmentation",
  "gpu-contention",
  "gpu-capacity",
  "handle-leak",
  "out-of-memory",
  "insufficient-evidence",
] as const;
export type VerdictKind = (typeof VERDICT_KINDS)[number];
/** Verdicts about something that is never released. `string`: a stored verdict may be of a kind that is not known here. */
export const LEAK_KINDS: ReadonlySet<string> = new Set<VerdictKind>([
  "python-leak",
  "cycle-garbage",
  "native-leak",
  "graph-retention",
  "file-growth",
  "shm-growth",
  "child-growth",
  "gpu-leak",
  "handle-leak",
]);
/** Verdicts about memory that does not grow, or whose growth ends by itself. */
export const CALM_KINDS: ReadonlySet<string> = new Set<VerdictKind>([
  "steady",
  "warm-up",
  "cache-plateau",
]);

/** Whether a verdict names something to do. */
export function callsForAction(kind: string): boolean {
  return kind !== "insufficient-evidence" && !CALM_KINDS.has(kind);
}

export interface AdviceJson {
  /** "TM-A003", as in docs/advice.md. */
  id: string;
  text: string;
}

export interface HolderJson {
  /** From the root down: "module app", "running_stats", "dict[...]". */
  path: string[];
  type: string;
  /** 0 if it was not computed. */
  retainedBytes: Bytes;
  /** Number of items; 0 if it is not a container. */
  entries: number;
  /** When its entries and retained bytes were counted; absent if that time is unknown. */
  atMs?: TimeMs;
  /** Functions of the program that add items to it, each with its line that adds; absent if none is known. */
  putters?: FrameJson[];
}

export interface SuspectJson {
  rank: number;
  /** Share of the growth of the whole program if that grows, otherwise of all suspects. */
  share: number;
  liveBytes: Bytes;
  growthBytesPerHour: number;
  /** For device memory, if growth is measured per step; hourly growth is then 0. */
  growthBytesPerStep?: Bytes;
  /** Leaf first; empty if no agent recorded the allocations. */
  stack: FrameJson[];
  /** Set if the suspect is a type instead of a site: "app.Session". */
  type?: string;
  /**
   * It keeps nothing, but reads objects that another process created before the fork; each read of a Python
   * object writes its reference count. Its growth is the memory that becomes private, and its share refers to
   * all such reads.
   */
  reads?: true;
  /**
   * Not growth, but memory that was live when the process ran out of memory; its share refers to all live
   * memory at that time.
   */
  atEnd?: true;
  /** It did not create the objects, but adds them to the holder; its figures, its share too, repeat those of the creating sites. */
  puts?: true;
  /** Rank of the suspect to whose objects its memory belongs; its share is included in that suspect's. */
  partOf?: number;
  /** The allocator; "device": torch's GPU allocator. */
  domain: "python" | "native" | "mapped" | "files" | "device";
  /** The process in which it grows most. */
  pid: number;
  /** If it grows in several processes of the tree: growth in each, largest first. */
  processes?: { pid: number; growthBytesPerHour: number }[];
  /** Live bytes older than an age, youngest age first; each includes the later ones. */
  ages: { olderThanMs: Millis; bytes: Bytes }[];
  /** Live bytes at snapshots, for a chart. */
  history: { timeMs: TimeMs; bytes: Bytes }[];
  holder?: HolderJson;
  /** Its items wait for a consumer that is slower than their producer; waitingMs is the age of the oldest item. */
  backlog?: { waitingMs: Millis; producedBytesPerHour: number; consumedBytesPerHour: number };
  advice: AdviceJson[];
}

/** Another cause of the growth, in addition to the verdict's. */
export interface AlsoFoundJson {
  kind: VerdictKind;
  /** Share of the whole growth, 0 to 1. */
  share: number;
  /** One sentence. */
  summary: string;
}

/** A growing site whose memory a container with a bound holds: it fills up, or is full and does not grow on. */
export interface FillingJson {
  /** Leaf first. */
  stack: FrameJson[];
  holder: HolderJson;
  /** Number of items at which the container drops old ones (maxsize, maxlen). */
  bound: number;
}

/** Growth in a process's heap from its first census to the last. */
export interface CensusJson {
  pid: number;
  fromMs: TimeMs;
  toMs: TimeMs;
  /** Number of censuses. */
  taken: number;
  /** Largest growth in bytes first; bytes include the buffers that the objects own. */
  types: {
    type: string;
    objects: Objects;
    bytes: Bytes;
    addedObjects: Objects;
    addedBytes: Bytes;
  }[];
}

export interface VerdictJson {
  kind: VerdictKind;
  /** Confidence in the kind, 0 to 1; 0 for `insufficient-evidence`. */
  confidence: number;
  /** One sentence. */
  summary: string;
}

/** `tidemark.diagnosis/1` */
export interface DiagnosisJson {
  schema: "tidemark.diagnosis/1";
  target: TargetJson;
  window: WindowJson;
  verdict: VerdictJson;
  /** Other causes of at least 10 % of the growth, largest first; absent if there are none. */
  alsoFound?: AlsoFoundJson[];
  /** Absent if there are none. They are no suspects. */
  filling?: FillingJson[];
  /**
   * Set if only some rows of the profiles are selected (`--where`): growth, suspects and the verdict cover only
   * these.
   */
  selection?: {
    /** "thread=worker and label=ingest" */
    where: string;
    /** Growth of all processes' memory, with its 95 % interval if the window is long enough. */
    wholeBytesPerHour: number;
    wholeLow?: number;
    wholeHigh?: number;
    /** Share of that growth that the rows explain, 0 to 1; absent if there is no measurable growth. */
    share?: number;
  };
  growth: {
    /**
     * Growth of the process tree, with its 95 % interval. If the whole tree shows no growth: growth of the
     * memory that the verdict concerns.
     */
    bytesPerHour: number;
    low: number;
    high: number;
    /** Limit of the control group; 0: none. */
    limitBytes: Bytes;
    /** Time until the limit at this rate; 0: no limit, or no growth. */
    msToLimit: Millis;
    /** Bytes per step if the program marks steps; otherwise absent. */
    bytesPerStep?: Bytes;
    /**
     * Set if these are the suspects' live bytes, because the readings of the whole tree do not show growth with certainty:
     * the header then has another rate, or none.
     */
    ofLiveBytes?: true;
    /** Set if sites keep more than this: the shares of suspects are then shares of what all sites keep. */
    sitesExceed?: true;
  };
  /**
   * The parts of memory that grow: parts as in `tidemark.ledger/1` if there are enough ledgers to measure
   * growth, otherwise those that the kernel distinguishes. Of the target alone, without its children.
   */
  ledger: { part: string; bytes: Bytes; growthBytesPerHour: number }[];
  /** Fastest growing first, except that readers and storing functions come second; empty if the verdict names none. */
  suspects: SuspectJson[];
  evidence: { rule: string; says: "leak" | "no leak" | "silent"; detail: string }[];
  /** Absent if there were fewer than two censuses, or nothing grew. */
  census?: CensusJson;
  /** For the verdict as a whole. */
  advice: AdviceJson[];
  /** What could not be observed, and why. */
  limits: string[];
}
