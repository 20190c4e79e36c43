/** What a collector captures when a trigger fires, and how it is described on disk. */
import type { Bytes, Millis, Pid, TimeMs } from "../base/units.js";

/**
 * `diagnose`: the verdict on its recording. `ledger`: every part of the memory of each process. `census`:
 * objects by type. `snapshot`: the object graph with retained sizes, for which the process is paused. `stacks`:
 * of all threads and tasks. `gpu`: the snapshot of torch's allocator, of every process that uses a device.
 * `flight_recorder`: the dump that torch wrote when a collective operation failed, of every process with a rank.
 */
export const CAPTURES = [
  "diagnose",
  "ledger",
  "census",
  "snapshot",
  "stacks",
  "gpu",
  "flight_recorder",
] as const;
export type Capture = (typeof CAPTURES)[number];

export interface ArtifactFileJson {
  /** Of the file beside `about.json`. */
  name: string;
  capture: Capture | "recording";
  /** 0: of the whole program. */
  pid: Pid;
}

/** `about.json` of an artifact: `tidemark.artifact/1`. */
export interface ArtifactJson {
  schema: "tidemark.artifact/1";
  service: string;
  /** "": unknown; also `env`. */
  version: string;
  env: string;
  host: string;
  /** Of the program's first process. */
  pid: Pid;
  command: string[];
  timeMs: TimeMs;
  /** One sentence: which condition held, with its figures. */
  reason: string;
  /** The program ran out of memory or crashed: the files show its last moment. */
  lastMoment: boolean;
  files: ArtifactFileJson[];
  /** What could not be captured, and why. */
  problems: string[];
}

/** One file of an artifact that a server has. */
export interface StoredArtifactFileJson extends ArtifactFileJson {
  bytes: Bytes;
  /** Whether the server's pages can open it; every file can be downloaded. */
  opens: boolean;
}

/** An artifact that a server has. */
export interface StoredArtifactJson extends Omit<ArtifactJson, "schema" | "files"> {
  /** Part of the addresses of its files. */
  id: string;
  receivedMs: TimeMs;
  bytes: Bytes;
  files: StoredArtifactFileJson[];
}

/** What a server has of artifacts: `tidemark.artifacts/1`. */
export interface ArtifactsJson {
  schema: "tidemark.artifacts/1";
  /** The newest first. */
  artifacts: StoredArtifactJson[];
  /** Of all files of artifacts, those that are still being received included. */
  bytes: Bytes;
  /** The oldest artifacts beyond these are removed. */
  limits: {
    count: number;
    keepMs: Millis;
    bytes: Bytes;
    /** Of one artifact. */
    artifactBytes: Bytes;
  };
  /** Recordings that programs sent; each is the report of an instance. */
  recordings: { streams: number; bytes: Bytes };
}
