/** A profile from another profiler, independent of its format: the result of all readers in this folder. */
import type { Bytes, Millis, Pid, TimeMs } from "../../../model/base/units.js";
import { badUsage, tooLarge } from "../../../model/errors/errors.js";
import type { ServiceIdentity } from "../../../model/wire/identity.js";
import { type Figure, frameCount, type ReceivedSamples } from "./received_samples.js";

export type SenderSource = "pyroscope" | "otlp" | "datadog";

/** The contents of a payload, before its sender is known. */
export interface DecodedProfile {
  readonly samples: ReceivedSamples;
  /** Figures that its sample types have. Empty: it is not a memory profile. */
  readonly figures: readonly Figure[];
  /** 0 if it has none. */
  readonly timeMs: TimeMs;
  /** 0: unknown. */
  readonly durationMs: Millis;
  /** Mean bytes between samples; 0: unknown. */
  readonly periodBytes: Bytes;
}

export interface ReceivedProfile extends DecodedProfile {
  readonly source: SenderSource;
  readonly identity: ServiceIdentity;
  readonly host: string;
  /** 0: unknown. */
  readonly pid: Pid;
  /** The same for a profile that is sent again. */
  readonly id: string;
}

/** Limits of one profile and of one request; each refusal names the limit. */
export const PROFILE_LIMITS = {
  /** Of a request's body, as sent and inflated. */
  "request-bytes": 8 << 20,
  /** Of one profile, inflated. */
  "profile-bytes": 4 << 20,
  "profiles-per-request": 1000,
  "samples-per-profile": 16_000,
  "stack-depth": 1000,
  /** Frames of all samples of one profile. */
  "frames-per-profile": 2_000_000,
  /** Of all profiles of one request together, as a small request can hold many large profiles. */
  "inflated-bytes-per-request": 64 << 20,
  "samples-per-request": 250_000,
  "frames-per-request": 4_000_000,
  "sample-labels": 30,
  "name-bytes": 4096,
} as const;
export type LimitName = keyof typeof PROFILE_LIMITS;

/** Throws TidemarkError if `count` is beyond a limit. */
export function withinLimit(name: LimitName, count: number): void {
  const limit = PROFILE_LIMITS[name];
  if (count > limit) {
    const text = limit >= 1 << 20 ? `${limit >> 20} MiB` : String(limit);
    throw tooLarge("the profile", `${name} = ${text}`);
  }
}

/** The totals of the profiles of one request. */
export class RequestBudget {
  readonly #used = new Map<LimitName, number>();

  /** Throws TidemarkError if the request has used up a limit. */
  take(name: LimitName, count: number): void {
    const used = (this.#used.get(name) ?? 0) + count;
    this.#used.set(name, used);
    withinLimit(name, used);
  }

  takeSamples(samples: ReceivedSamples): void {
    this.take("samples-per-request", samples.length);
    this.take("frames-per-request", frameCount(samples));
  }
}

/** Nanoseconds since 1970, as in profiles; 0 means that there is no time. */
export function timeOfNanos(nanos: number): TimeMs {
  const timeMs = Math.floor(nanos / 1e6);
  return timeMs === 0 && nanos !== 0 ? 1 : timeMs;
}

/** Throws TidemarkError for a payload that cannot be read. */
export function malformed(what: string): never {
  throw badUsage(`the profile cannot be read: ${what}`, "");
}

/**
 * The figure that a sample type measures, by its name in Go, Pyroscope, OTLP and Datadog. null if it does not measure
 * memory.
 */
export function figureOf(type: string): Figure | null {
  return Object.hasOwn(FIGURE_OF_TYPE, type) ? (FIGURE_OF_TYPE[type] ?? null) : null;
}

const FIGURE_OF_TYPE: Readonly<Record<string, Figure>> = {
  inuse_space: "liveBytes",
  inuse_objects: "liveObjects",
  alloc_space: "allocatedBytes",
  alloc_objects: "allocatedObjects",
  "heap-space": "liveBytes",
  "heap-live-samples": "liveObjects",
  "alloc-space": "allocatedBytes",
  "alloc-samples": "allocatedObjects",
};
