/** What `tidemark fleet` prints: services and their instances, as a server knows them. */
import type { Bytes, Millis, Pid, TimeMs } from "../base/units.js";

/** `tidemark.serving/1`: what `tidemark serve` prints once it listens. */
export interface ServingJson {
  schema: "tidemark.serving/1";
  url: string;
  /** Where it keeps everything. */
  folder: string;
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
}

/** One row of `tidemark.services/1`. Figures of memory are sums over the instances that run. */
export interface ServiceRowJson {
  service: string;
  /** Of the instances that run, or of the last ones if none runs. */
  versions: string[];
  /** Recorded programs that run, each with its child processes. */
  instances: number;
  /** Recorded programs that ended within the window. */
  endedInstances: number;
  /** Sum of RSS; shared memory counts more than once. */
  rssBytes: Bytes;
  /** Sum over instances; absent if no verdict measured it. */
  growthBytesPerHour?: number;
  /** Sum of the limits of the control groups; 0: an instance has none. */
  limitBytes: Bytes;
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
  version: string;
  env: string;
  host: string;
  pod: string;
  container: string;
  pid: Pid;
  command: string;
  python: string;
  startedMs: TimeMs;
  /** Absent while it runs. */
  endedMs?: TimeMs;
  lastSeenMs: TimeMs;
  /** Of the program and its child processes, at the last reading. */
  rssBytes: Bytes;
  peakRssBytes: Bytes;
  processes: number;
  growthBytesPerHour?: number;
  /** 0: none. */
  limitBytes: Bytes;
  msToLimit: Millis;
  verdict: { kind: string; confidence: number; summary: string };
  labels: Record<string, string>;
  /** Another profiler that sent its profiles: "pyroscope", "otlp" or "datadog". RSS is unknown then. */
  source?: string;
  /** With {@link source}: of its last profile. */
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
