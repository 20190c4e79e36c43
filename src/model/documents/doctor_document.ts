import type { Pid, TimeMs } from "../base/units.js";

/** `tidemark.doctor/1`: what works on this machine, and the command that enables what does not. */
export interface DoctorJson {
  schema: "tidemark.doctor/1";
  /** Version of this Tidemark. */
  version: string;
  atMs: TimeMs;
  /** The process of --pid. */
  pid?: Pid;
  /** False if a check's state is `missing`; the exit code is then 1. */
  ready: boolean;
  checks: DoctorCheckJson[];
}

export interface DoctorCheckJson {
  area: "machine" | "installation" | "permissions" | "memory" | "python" | "gpu" | "process";
  /** A short name, stable within the version: "C library", "recording", "python /usr/bin/python3". */
  check: string;
  /** ok: everything works. limited: the things in `effect` do not work. missing: a command cannot work without it. */
  state: "ok" | "limited" | "missing";
  /** What was found. */
  found: string;
  /** What does not work; "" if everything does. */
  effect: string;
  /** The command or setting that enables it; "" if nothing is needed or nothing helps. */
  remedy: string;
}
