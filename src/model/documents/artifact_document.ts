/** What a collector captures when a trigger fires, and how it is described on disk. */
import type { Pid, TimeMs } from "../base/units.js";

/**
 * `diagnose`: the verdict on its recording. `ledger`: every part of the memory of each process. `census`:
 * objects by type. `snapshot`: the object graph with retained sizes, for which the process is paused. `stacks`:
 * of all threads and tasks. `gpu`: the snapshot of torch's allocator, of every process that uses a device.
 */
export const CAPTURES = ["diagnose", "ledger", "census", "snapshot", "stacks", "gpu"] as const;
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
  /** The program was killed for memory: the files show its last moment. */
  lastMoment: boolean;
  files: ArtifactFileJson[];
  /** What could not be captured, and why. */
  problems: string[];
}
