import type { Interval } from "../base/interval.js";
import type { Bytes, Millis } from "../base/units.js";
import type { SuspectJson } from "./diagnosis_document.js";
import type { FrameJson, TargetJson, WindowJson } from "./documents.js";

/** What `tidemark check` compares. Names with "baseline-" compare with a baseline file. */
export type GateName =
  | "peak"
  | "growth"
  | "leak"
  | "baseline-peak"
  | "baseline-live"
  | "baseline-growth";

/** One comparison. */
export interface GateJson {
  gate: GateName;
  /** Of `limit`, `value` and `interval`. */
  unit: "bytes" | "bytesPerHour";
  /** null: the gate has none (`leak`). */
  limit: number | null;
  /** null: not measured. */
  value: number | null;
  /** The interval of the measured value; the gate fails if `low` is above the limit. Absent if nothing was measured. */
  interval?: Interval;
  /** False for a finding, and for a gate that could not be decided (unless --allow-undecided). */
  passed: boolean;
  /** False: there was too little data to decide; `reason` names what is missing. */
  decided: boolean;
  /** One sentence. */
  reason: string;
  /** The line of code behind the figure, and the bytes that it held; absent if unknown. */
  line?: { frame: FrameJson; bytes: Bytes };
  /** What keeps that memory, in words; absent if unknown. */
  holder?: string;
}

/** `tidemark.check/1` */
export interface CheckJson {
  schema: "tidemark.check/1";
  target: TargetJson;
  window: WindowJson;
  /** The program's own exit code, or 128 + its signal. */
  exitCode: number;
  /** Whether every gate passed. */
  passed: boolean;
  gates: GateJson[];
  /** As in the diagnosis. */
  suspects: SuspectJson[];
  /** Absolute path; null if it was not kept. */
  recording: string | null;
  durationMs: Millis;
  /** What could not be seen, and why. */
  limits: string[];
}
