/** What `tidemark fleet` prints: services and their instances, as a server knows them. */
import type { Bytes, Millis, Pid, TimeMs } from "../base/units.js";

/** `tidemark.serving/1`: what `tidemark serve` prints once it listens. */
export interface ServingJson {
  schema: "tidemark.serving/1";
  url: string;
  /** Where it keeps everything. */
  folder: string;
}

/** `tidemark.backup/1`: what `tidemark serve --backup` and `--restore` print. */
export interface BackupJson {
  schema: "tidemark.backup/1";
  /** Where the copy is. */
  folder: string;
  /** When the backup was made. */
  madeMs: TimeMs;
  files: number;
  bytes: Bytes;
}

/** The verdict of a service: that of the instance that grows most. */
export interface FleetVerdictJson {
  /** As in `tidemark.diagnosis/1`; "none" if there is no verdict yet. */
  kind: string;
  /** Of the kind, 0 to 1. */
  confidence: number;
  /** One sentence. */
  summary: string;
  /** Instances with a verdict of this kind. */
  instances: number;
  /** The instance whose verdict it is; absent if none has one. */
  stream?: string;
}

/**
 * At the end of the window. running: it reports. silent: it has not reported for 5 minutes, and its end is not known: its
 * recorder or its host may be gone. ended: its end is known. continued: a later recording of the same process follows.
 */
export type InstanceState = "running" | "silent" | "ended" | "continued";

/** One row of `tidemark.services/1`. Figures of memory are sums over the instances that run. */
export interface ServiceRowJson {
  service: string;
  /** "running" if an instance runs, otherwise "silent" if the end of one is not known. */
  state: Exclude<InstanceState, "continued">;
  /** Of the instances that run, or of the last ones if none runs. */
  versions: string[];
  /** Recorded programs that run, each with its child processes. */
  instances: number;
  /** Recorded programs that ended within the window. */
  endedInstances: number;
  /** Recorded programs that reported within the window and are silent at its end. */
  silentInstances: number;
  /** Sum of RSS; shared memory counts more than once. */
  rssBytes: Bytes;
  /** Sum over the instances that run; absent if none does, or no verdict measured it. */
  growthBytesPerHour?: number;
  /** Sum of the limits of the control groups; 0: an instance has none. */
  limitBytes: Bytes;
  /** Sum of `memory.high` of the control groups, above which they are throttled; absent: an instance has none. */
  highBytes?: Bytes;
  /** Of the instance that reaches its limit first; 0: no limit, or no growth. */
  msToLimit: Millis;
  verdict: FleetVerdictJson;
  /** RSS over the window in equal steps, the newest last; null: no instance reported. */
  sparkline: (Bytes | null)[];
  /** When an instance last reported. */
  lastSeenMs: TimeMs;
}

/** `tidemark.services/1` */
export interface ServicesJson {
  schema: "tidemark.services/1";
  window: { startMs: TimeMs; endMs: TimeMs };
  /** By name. */
  services: ServiceRowJson[];
}

/** One recorded program of a service. */
export interface InstanceRowJson {
  /** Name of its stream; the address of its page ends in it. */
  stream: string;
  state: InstanceState;
  version: string;
  env: string;
  host: string;
  pod: string;
  container: string;
  pid: Pid;
  command: string;
  python: string;
  startedMs: TimeMs;
  /** Absent if its end is not known; after the window if it ran at the window's end. */
  endedMs?: TimeMs;
  lastSeenMs: TimeMs;
  /** Of the program and its child processes, at the last reading. */
  rssBytes: Bytes;
  peakRssBytes: Bytes;
  /** The program and its child processes that run; of a program that has ended, all that it had. */
  processes: number;
  /** By its verdict, while it ran; absent if that did not measure it. */
  growthBytesPerHour?: number;
  /** 0: none. */
  limitBytes: Bytes;
  /** Stream of the next recording of the same process, which got the agent or lost it then; absent: this is the last one. */
  continuedAs?: string;
  /** `memory.high` of its control group; absent: none. */
  highBytes?: Bytes;
  /** Until this instance reaches its limit; 0: no limit, no growth, or it does not run. */
  msToLimit: Millis;
  verdict: { kind: string; confidence: number; summary: string };
  labels: Record<string, string>;
  /**
   * Another profiler that sent its profiles ("pyroscope", "otlp", "datadog"), or the tool of an imported file without
   * RSS ("tracemalloc"). RSS is unknown then.
   */
  source?: string;
  /** With {@link source}: of its last profile; absent if it has none. */
  liveBytes?: Bytes;
}

/** `tidemark.service/1` */
export interface ServiceJson {
  schema: "tidemark.service/1";
  service: string;
  window: { startMs: TimeMs; endMs: TimeMs };
  summary: ServiceRowJson;
  /** Those that run first, then by RSS. */
  instances: InstanceRowJson[];
  /** The newest first, at most 200. */
  events: { timeMs: TimeMs; stream: string; pid: Pid; kind: string; detail: string }[];
  /** What could not be seen, and why. */
  limits: string[];
}

/** One side of `tidemark.fleet_diff/1`. */
export interface DiffSideJson {
  /** The processes, as labels select them. */
  selector: string;
  startMs: TimeMs;
  endMs: TimeMs;
  /** Mean number of instances with a profile, from the first to the last moment of the window at which one had one. */
  instances: number;
  /** Set if the selection matches no stored process, in this window or any other. */
  isUnknown?: true;
  /** With {@link isUnknown}: which name is not stored, and similar ones; one line. */
  unknown?: string;
  /** Of all stacks, in bytes or objects; divided by {@link instances} with `per` "instance". */
  total: number;
}

/** How much of the selected instances their profiles cover. */
export interface CoverageJson {
  /** Mean over the window of the number of instances with a profile; figures are sums over them. */
  instances: number;
  /** The same of the instances that ran, with a profile or without. */
  running: number;
  /** Figures multiplied by it estimate those of all; 1: they are those of all. */
  factor: number;
}

/** A frame of a stack. */
export interface StackFrameJson {
  function: string;
  file: string;
  line: number;
  kind: "python" | "native" | "mark";
}

/** `tidemark.fleet_diff/1`: what differs between two selections of profiles. */
export interface FleetDiffJson {
  schema: "tidemark.fleet_diff/1";
  figure: "liveBytes" | "liveObjects" | "allocatedBytes" | "allocatedObjects";
  /** What both sides are divided by. */
  per: "none" | "instance";
  left: DiffSideJson;
  right: DiffSideJson;
  /** The largest change first. `change`: right less left. */
  stacks: {
    /** Leaf first. */
    stack: StackFrameJson[];
    left: number;
    right: number;
    change: number;
  }[];
  /** What was left out, exactly. */
  other: { stacks: number; left: number; right: number; change: number };
  /** What could not be seen, and why. */
  limits: string[];
}

/** `tidemark.growing/1`: what grew in a window. */
export interface GrowingJson {
  schema: "tidemark.growing/1";
  service: string;
  window: { startMs: TimeMs; endMs: TimeMs };
  /** The two parts of the window that are compared: its first and its last quarter. */
  early: { startMs: TimeMs; endMs: TimeMs };
  late: { startMs: TimeMs; endMs: TimeMs };
  /** Of the late part. */
  coverage: CoverageJson;
  /** Means over the parts, of all stacks. */
  earlyBytes: Bytes;
  lateBytes: Bytes;
  growthBytesPerHour: number;
  /** The fastest growing first; stacks that shrink are at the end. */
  stacks: {
    /** Leaf first. */
    stack: StackFrameJson[];
    earlyBytes: Bytes;
    lateBytes: Bytes;
    growthBytesPerHour: number;
    /** Allocated within the window, live in the last profiles of it, and older than a tenth of the window. Left out where
     * ages are unknown. */
    survivedBytes?: Bytes;
  }[];
  /** What was left out, exactly. */
  other: { stacks: number; earlyBytes: Bytes; lateBytes: Bytes; growthBytesPerHour: number };
  limits: string[];
}

/** `tidemark.endpoints/1`: the memory of a service by endpoint, the most live bytes first. */
export interface EndpointsJson {
  schema: "tidemark.endpoints/1";
  service: string;
  window: { startMs: TimeMs; endMs: TimeMs };
  /** Mean over the window of the number of instances with a profile; figures are sums over them. */
  instances: number;
  coverage: CoverageJson;
  endpoints: {
    /** The name for queries: function and file, or the value of a label. */
    endpoint: string;
    /** Or the value of a label. */
    function: string;
    /** "" for a label. */
    file: string;
    /** Whose dispatcher called it; `tidemark.label`: the program set the label. */
    framework: string;
    /** The mean over the window. */
    liveBytes: Bytes;
    liveObjects: number;
    /** In the window. */
    allocatedBytes: Bytes;
    stacks: number;
  }[];
  /** Endpoints that were left out. */
  other: {
    endpoints: number;
    liveBytes: Bytes;
    liveObjects: number;
    allocatedBytes: Bytes;
    stacks: number;
  };
  /** What was allocated outside of endpoints: imports, start-up, background threads. */
  outside: { liveBytes: Bytes; liveObjects: number; allocatedBytes: Bytes; stacks: number };
  limits: string[];
}

/** `tidemark.fleet_verdicts/1`: the verdicts of instances. */
export interface FleetVerdictsJson {
  schema: "tidemark.fleet_verdicts/1";
  window: { startMs: TimeMs; endMs: TimeMs };
  /** Those that run first, then the fastest growing. */
  verdicts: {
    service: string;
    version: string;
    stream: string;
    host: string;
    pod: string;
    pid: Pid;
    isRunning: boolean;
    state: InstanceState;
    /** When it last reported. */
    lastSeenMs: TimeMs;
    /** Absent if its end is not known. */
    endedMs?: TimeMs;
    /** Stream of the next recording of the same process. */
    continuedAs?: string;
    kind: string;
    /** 0 to 1. */
    confidence: number;
    /** One sentence. */
    summary: string;
    /** Of this instance, while it ran. Left out where growth was not measured. */
    growthBytesPerHour?: number;
    /** Until this instance reaches its limit; 0: no limit, no growth, or it does not run. */
    msToLimit: Millis;
  }[];
}
