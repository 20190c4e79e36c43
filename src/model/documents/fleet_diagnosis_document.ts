import type { Bytes, Millis, TimeMs } from "../base/units.js";
import type { VerdictKind } from "./diagnosis_document.js";
import type { FrameJson } from "./documents.js";

/** What a window of a version's processes shows. */
export type FleetShape =
  /** It keeps growing; no level explains the course. */
  | "leaking"
  /** It grows, but a level that it approaches explains the course as well; a longer window decides. */
  | "undecided"
  /** It grew and approaches a level. */
  | "filling"
  | "stepped"
  | "flat"
  /** Too few readings. */
  | "short";

/** A growth rate with its interval, corrected for the number of services that are judged together. */
export interface FleetRateJson {
  growthBytesPerHour: number;
  low: number;
  high: number;
}

export interface FleetVersionJson extends FleetRateJson {
  version: string;
  /** Processes whose readings were used. */
  instances: number;
  shape: FleetShape;
  /** The window that decided: 1 h, 6 h, 1 d or 7 d, or less if the version is younger. */
  windowMs: Millis;
  /** Median RSS at the end. */
  levelBytes: Bytes;
}

export interface FleetForecastJson {
  /** Its name in the store: the id of its page. */
  process: string;
  instance: string;
  version: string;
  /** Until the limit is reached, at the rate, at its high and at its low end; 0: never at that rate. */
  msToLimit: Millis;
  earliestMs: Millis;
  latestMs: Millis;
  /** Its own rate, where that certainly differs from that of the others. */
  growthBytesPerHour?: number;
}

export interface FleetSuspectJson extends FleetRateJson {
  rank: number;
  /** Of the growth of the version's RSS; at most 1. */
  share: number;
  liveBytes: Bytes;
  /** Leaf first. */
  stack: FrameJson[];
  /** The frame of the program's own code that names the line. */
  line: FrameJson;
  /** The object that keeps its memory, as the diagnosis of one of the processes found it. */
  holder?: FleetHolderJson;
}

export interface FleetHolderJson {
  /** From the root down: "module app", "running_stats", "dict[...]". */
  path: string[];
  type: string;
}

/** Of the version that leaks: each instance grows at this rate. */
export interface FleetLeakJson extends FleetRateJson {
  /** The version that runs; "": unknown. */
  version: string;
  /** The first version that leaks. */
  since: string;
  /** Running instances of `version` that leak, and all that run. */
  affectedInstances: number;
  runningInstances: number;
  /** Set if the growth follows the number of requests more closely than time. */
  bytesPerRequest?: Bytes;
}

/** How many instances of a young version, running for how long, are enough for a decision about it. */
export interface FleetNeededJson {
  version: string;
  /** A leak of this share of the limit, or of the level if no limit is known, a day would be seen. */
  share: number;
  isOfLimit: boolean;
  /** So many instances, for so long. */
  instances: number;
  ms: Millis;
  /** Those that run so far, and for how long. */
  running: number;
  ranMs: Millis;
}

/** What the diagnoses of the running processes say while the service has no verdict of its own. */
export interface FleetOwnVerdictJson {
  /** The most frequent kind that calls for action. */
  kind: VerdictKind;
  /** Running instances with this verdict. */
  instances: number;
  /** All running instances. */
  running: number;
  /** Sum over the instances with this verdict whose growth was measured. */
  growthBytesPerHour: number;
}

/** Kills for memory, and what the diagnosis had forecast about the processes before. */
export interface FleetKillsJson {
  /** Kills of the last two weeks, while the server has kept its forecasts. */
  sinceMs: TimeMs;
  count: number;
  /** Kills that the first forecast about the process came at least 5 minutes ahead of. */
  forecast: number;
  /** Of these, how many came within the interval of that forecast. */
  withinInterval: number;
  /** From that forecast to the kill; absent if none was forecast. */
  medianLeadMs?: Millis;
}

/** `tidemark.fleetDiagnosis/1`: what one service's processes show together. */
export interface FleetDiagnosisJson {
  schema: "tidemark.fleetDiagnosis/1";
  service: string;
  window: { startMs: TimeMs; endMs: TimeMs };
  verdict: {
    kind: VerdictKind;
    /** 0 to 1. */
    confidence: number;
    /** One sentence. */
    summary: string;
  };
  /** Set if the service leaks. */
  leak?: FleetLeakJson;
  /** The newest last. */
  versions: FleetVersionJson[];
  /** Set if growth or the level changed with the newest version or the first that grows. */
  change?: {
    version: string;
    against: string;
    /** "growth": a regression. "level": the version needs more or less memory, and does not grow faster. */
    kind: "growth" | "level";
    growth: FleetRateJson;
    /** Level of the new minus that of the old version at the same age; if that is not known, 0 within a wide interval. */
    levelBytes: Bytes;
    low: Bytes;
    high: Bytes;
  };
  /** Set if nothing leaks, and the newest version is too young for that to be sure. */
  needed?: FleetNeededJson;
  /** Set if the verdict is `insufficient-evidence` and single processes have one. */
  own?: FleetOwnVerdictJson;
  /** Instances that differ from their siblings. */
  oddInstances: (FleetRateJson & { instance: string; version: string })[];
  suspects: FleetSuspectJson[];
  /** Of running instances that grow, the first to reach its limit first. */
  forecast: FleetForecastJson[];
  /** Set by the server if something was killed. */
  kills?: FleetKillsJson;
  evidence: { rule: string; says: "leak" | "no leak"; detail: string }[];
  /** What could not be seen, and why. */
  limits: string[];
}

/** `tidemark.fleetDiagnoses/1`: the diagnoses of all services that ran in a window. */
export interface FleetDiagnosesJson {
  schema: "tidemark.fleetDiagnoses/1";
  window: { startMs: TimeMs; endMs: TimeMs };
  /** Services that leak first, the one that reaches its limit first on top. */
  diagnoses: FleetDiagnosisJson[];
}
