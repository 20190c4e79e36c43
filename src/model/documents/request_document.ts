/** What people ask collectors for through a server: `tidemark fleet profile`, `tidemark fleet requests`. */
import type { TimeMs } from "../base/units.js";
import type { Capture } from "./artifact_document.js";

/** What a collector does about a request. */
export interface RequestHostJson {
  host: string;
  /** Programs of the service that have the agent now, or that were captured. */
  programs: number;
  /** Why others do not have it or were not captured; "": all do, or were. */
  why: string;
}

/** One program of the service, by its first process. */
export interface RequestedProgramJson {
  host: string;
  pid: number;
}

/** Asks all collectors to give the programs of a service the agent until a time, or to capture them at a moment. */
export interface RequestJson {
  id: string;
  service: string;
  timeMs: TimeMs;
  untilMs: TimeMs;
  /** Who asked, as given; "" if unknown. */
  by: string;
  /** Absent: all programs of the service. */
  programs?: RequestedProgramJson[];
  /** Captures of all its programs at the same moment on all hosts, instead of the agent. */
  captures?: { atMs: TimeMs; what: Capture[] };
  /** The hosts with programs of the service that have answered. */
  hosts: RequestHostJson[];
}

/** `tidemark.requests/1` */
export interface RequestsJson {
  schema: "tidemark.requests/1";
  /** Newest first. */
  requests: RequestJson[];
  /** How many the server accepts. */
  limits: { service: string; fleet: string };
}
