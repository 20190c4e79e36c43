import type { Bytes, Millis, Objects, TimeMs } from "../base/units.js";
import type { FrameJson, TargetJson, WindowJson } from "./documents.js";

/** What a verdict may be: a closed list (docs/diagnosis.md explains each). */
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

export interface AdviceJson {
  /** "TM-A003": stands in docs/advice.md. */
  id: string;
  text: string;
}

export interface HolderJson {
  /** From the root down: "module app", "running_stats", "dict[...]". */
  path: string[];
  type: string;
  /** 0 where it was not worked out. */
  retainedBytes: Bytes;
  /** Items it holds; 0 where it is no container. */
  entries: number;
  /** When its entries and retained bytes were counted; left out where that time is not known. */
  atMs?: TimeMs;
  /** Functions of the program that put things into it, by their first lines; left out where none is known. */
  putters?: FrameJson[];
}

export interface SuspectJson {
  rank: number;
  /** Of the growth: of the whole program where that grows, else of all suspects. */
  share: number;
  liveBytes: Bytes;
  growthBytesPerHour: number;
  /** Of device memory, where steps are what can be counted; an hour's growth is then 0. */
  growthBytesPerStep?: Bytes;
  /** Leaf first; empty where no agent saw the allocations. */
  stack: FrameJson[];
  /** Where all objects of a type are meant, and not a site's: "app.Session". */
  type?: string;
  /** It keeps nothing: it reads what another process had made before the fork, and each read of a Python object writes
   * a reference count. Its growth is what turns private, its share is of all such reading. */
  reads?: true;
  /** Not what grew, but what lived when the process ran out of memory: its share is of all that lived then. */
  atEnd?: true;
  /** It made none of it: it puts what others make into the holder, and its figures are theirs. */
  puts?: true;
  /** Which allocator was asked; "device": torch's, of a GPU. */
  domain: "python" | "native" | "mapped" | "files" | "device";
  /** The process in which it grows most. */
  pid: number;
  /** Where it grows in several processes of the tree: in each, the most first. */
  processes?: { pid: number; growthBytesPerHour: number }[];
  /** Live bytes older than an age, youngest age first; each includes the ones behind it. */
  ages: { olderThanMs: Millis; bytes: Bytes }[];
  /** Live bytes at looks, for a chart. */
  history: { timeMs: TimeMs; bytes: Bytes }[];
  holder?: HolderJson;
  /** Its items wait for a consumer that is slower than their producer; waitingMs is the age of the oldest item. */
  backlog?: { waitingMs: Millis; producedBytesPerHour: number; consumedBytesPerHour: number };
  advice: AdviceJson[];
}

/** Another cause of the growth, beside the verdict's. */
export interface AlsoFoundJson {
  kind: VerdictKind;
  /** Of the whole growth, 0 to 1. */
  share: number;
  /** One sentence. */
  summary: string;
}

/** What the heap of a process holds more of, from the first of its censuses to the last. */
export interface CensusJson {
  pid: number;
  fromMs: TimeMs;
  toMs: TimeMs;
  /** How many were taken. */
  taken: number;
  /** What came to most bytes first; bytes with the buffers that the objects own. */
  types: {
    type: string;
    objects: Objects;
    bytes: Bytes;
    addedObjects: Objects;
    addedBytes: Bytes;
  }[];
}

/** `tidemark.diagnosis/1` */
export interface DiagnosisJson {
  schema: "tidemark.diagnosis/1";
  target: TargetJson;
  window: WindowJson;
  verdict: {
    kind: VerdictKind;
    /** Of the kind, 0 to 1. */
    confidence: number;
    /** One sentence. */
    summary: string;
  };
  /** Other causes of at least 10 % of the growth, the largest first; left out where there are none. */
  alsoFound?: AlsoFoundJson[];
  /** Where only some rows of the profiles count (`--where`): growth, suspects and the verdict are of these. */
  selection?: {
    /** "thread=worker and label=ingest" */
    where: string;
    /** Growth of all processes' memory, with its 95 % interval where the window is long enough. */
    wholeBytesPerHour: number;
    wholeLow?: number;
    wholeHigh?: number;
    /** Of that growth, what the rows explain, 0 to 1; left out where no growth can be measured. */
    share?: number;
  };
  growth: {
    /** Of the process tree, with its 95 % interval. Where the tree as a whole shows no growth: of the memory that the
     * verdict is about. */
    bytesPerHour: number;
    low: number;
    high: number;
    /** Of the control group; 0: none. */
    limitBytes: Bytes;
    /** Until the limit at this rate; 0: no limit, or no growth. */
    msToLimit: Millis;
    /** MiB a step where the program counts steps; left out where it does not. */
    bytesPerStep?: Bytes;
  };
  /** Which part of the memory grows: parts as in `tidemark.ledger/1` where enough were taken to tell a
   * growth, else those that the kernel tells apart. */
  ledger: { part: string; bytes: Bytes; growthBytesPerHour: number }[];
  /** Fastest growing first, but that who reads, and who is called to put things there, stand second; empty where the
   * verdict names none. */
  suspects: SuspectJson[];
  evidence: { rule: string; says: "leak" | "no leak" | "silent"; detail: string }[];
  /** Left out where objects were counted less than twice, or none became more. */
  census?: CensusJson;
  /** For the verdict as a whole. */
  advice: AdviceJson[];
  /** What could not be seen, and why. */
  limits: string[];
}
