import type { Pid, TimeMs } from "../base/units.js";

/** `tidemark.doctor/1`: what works on this machine, and the command that enables what does not. */
export interface DoctorJson {
  schema: "tidemark.doctor/1";
  /** Version of this Tidemark. */
  version: string;
  atMs: TimeMs;
  /** The process of --pid. */
  pid?: Pid;
  /** False where a check's state is `missing`: the command then leaves with exit code 1. */
  ready: boolean;
  checks: DoctorCheckJson[];
}

export interface DoctorCheckJson {
  area: "machine" | "installation" | "permissions" | "memory" | "python" | "gpu" | "process";
  /** A short name, stable within the version: "C library", "recording", "python /usr/bin/python3". */
  check: string;
  /** ok: all of it works. limited: what `effect` names does not. missing: a command has no use without it. */
  state: "ok" | "limited" | "missing";
  /** What is there. */
  found: string;
  /** What does not work; "" where everything does. */
  effect: string;
  /** The command or setting that enables it; "" where nothing is needed, or nothing helps. */
  remedy: string;
}
