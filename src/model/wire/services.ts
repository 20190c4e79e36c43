/** The server's answers about the services of a fleet: types of its API and of `tidemark fleet --json`. */

import type { Bytes, Millis, TimeMs } from "../base/units.js";
import type { CoverageJson, StackFrameJson } from "../documents/fleet_document.js";

export const SERVICES_PATH = "/api/v1/services";
export const SERVICE_PATH = "/api/v1/service";
export const SERIES_PATH = "/api/v1/series";
export const PROFILE_PATH = "/api/v1/profile";
export const DIFF_PATH = "/api/v1/diff";
export const GROWING_PATH = "/api/v1/growing";
export const ENDPOINTS_PATH = "/api/v1/endpoints";
export const VERDICTS_PATH = "/api/v1/verdicts";
export const DIAGNOSES_PATH = "/api/v1/diagnoses";
export const SIZES_PATH = "/api/v1/sizes";
export const ALERTS_PATH = "/api/v1/alerts";
/** Paths of what people do about one alert. */
export const ACKNOWLEDGE_PATH = "/api/v1/alerts/{id}/acknowledge";
export const SILENCE_PATH = "/api/v1/alerts/{id}/silence";
export const INSTANCE_PATH = "/api/v1/instance";
export const INSTANCE_REPORT_PATH = "/api/v1/instance/report";
export const INGEST_PATH = "/api/v1/ingest";
export const EVENTS_PATH = "/api/v1/events";

/**
 * The metrics of a series: RSS of the whole program, its PSS, live bytes by the agent's samples, the ledger, RSS by kind of
 * page (which needs no agent), memory on devices as their driver counts it, requests a second where the program counts them,
 * or use, limit and `memory.high` of the control group of each program: programs of one group each count it.
 */
export const SERIES_NAMES = [
  "rssBytes",
  "pssBytes",
  "liveBytes",
  "ledger",
  "pages",
  "deviceBytes",
  "requestsPerSecond",
  "cgroupUsageBytes",
  "cgroupLimitBytes",
  "cgroupHighBytes",
] as const;
export type SeriesName = (typeof SERIES_NAMES)[number];

/** What a series is divided by. */
export const SERIES_GROUPS = ["none", "version", "instance", "part"] as const;
export type SeriesGroup = (typeof SERIES_GROUPS)[number];

/** The metrics by which two selections can be compared. */
export const DIFF_FIGURES = [
  "liveBytes",
  "liveObjects",
  "allocatedBytes",
  "allocatedObjects",
] as const;
export type DiffFigure = (typeof DIFF_FIGURES)[number];

/** What both sides of a comparison are divided by. */
export const DIFF_SCALES = ["none", "instance"] as const;
export type DiffScale = (typeof DIFF_SCALES)[number];

/** Answer of `GET /api/v1/series`: the sum over instances of the mean over each step, weighted by time. */
export interface SeriesAnswer {
  readonly service: string;
  readonly name: SeriesName;
  readonly startMs: TimeMs;
  readonly stepMs: Millis;
  readonly groups: readonly {
    readonly group: string;
    /** By step, in the unit of the name; null: no instance reported. */
    readonly values: readonly (number | null)[];
  }[];
}

/** Answer of `GET /api/v1/profile?format=json`: the functions of a window's flame graph. */
export interface ProfileAnswer {
  readonly service: string;
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
  readonly coverage: CoverageJson;
  /** Of all stacks, including those that are left out. */
  readonly liveBytes: Bytes;
  readonly allocatedBytes: Bytes;
  /** Leaf first, most live bytes first. */
  readonly stacks: readonly {
    readonly stack: readonly StackFrameJson[];
    readonly domain: "python" | "native" | "mapped";
    readonly liveBytes: Bytes;
    readonly liveObjects: number;
    readonly allocatedBytes: Bytes;
  }[];
  /** What was left out, exactly. */
  readonly other: {
    readonly stacks: number;
    readonly liveBytes: Bytes;
    readonly allocatedBytes: Bytes;
  };
  /** What could not be seen, and why. */
  readonly limits: readonly string[];
}
