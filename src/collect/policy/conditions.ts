/**
 * The conditions of triggers: how a policy writes them, and whether one holds for a program.
 *
 *     {growth: 20%/h, for: 15min}     RSS grew by more than that over the last 15 minutes, with certainty
 *     {rss: 2GiB}                     RSS is above a size
 *     {rss: 500MiB above baseline}    ... or that much above what it was after the start
 *     {limit: 90%}                    share of the control group's memory limit in use
 *     {pressure: 10%}                 share of the last ten seconds in which processes waited for memory
 *     {verdict: "*leak"}              kind of the newest verdict
 *     {oom_kill: true}                the kernel killed a process of its control group for memory
 */
import { assessGrowth } from "../../diagnose/index.js";
import { formatBytes, formatDuration, formatShare } from "../../model/base/numbers.js";
import { bytesIn } from "../../model/base/quantities.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import { fits } from "../../model/settings/pattern.js";
import type { Rate } from "../../model/settings/rate.js";

const HOUR: Millis = 3_600_000;
const GROWTH_WINDOW: Millis = 15 * 60_000;
/** Growth is not decided from fewer readings. */
const SHORTEST_WINDOW: Millis = 60_000;
/** Most readings of a window. */
const OF_A_WINDOW = 20;
const LONGEST_DISTANCE: Millis = 10_000;

export interface Level {
  readonly bytes: Bytes;
  readonly aboveBaseline: boolean;
}

export type Condition =
  | { readonly kind: "growth"; readonly rate: Rate; readonly windowMs: Millis }
  | ({ readonly kind: "rss" } & Level)
  | { readonly kind: "limit" | "pressure"; readonly share: number }
  | { readonly kind: "verdict"; readonly pattern: string }
  | { readonly kind: "oom-kill" };

/** "2GiB", "500MiB above baseline"; null for anything else. */
export function levelIn(text: string): Level | null {
  const [, size = text, above] = /^(.+?)\s+(above\s+baseline)$/i.exec(text.trim()) ?? [];
  const bytes = bytesIn(size);
  return bytes === null ? null : { bytes, aboveBaseline: above !== undefined };
}

/** Settings of `when`, each already read. */
interface Written {
  readonly growth?: Rate | undefined;
  readonly for?: Millis | undefined;
  readonly rss?: Level | undefined;
  readonly limit?: number | undefined;
  readonly pressure?: number | undefined;
  readonly verdict?: string | undefined;
  readonly oom_kill?: true | undefined;
}

/** A string describes the error. */
export function conditionOf({ for: windowMs, ...when }: Written): Condition | string {
  const [first, second] = Object.entries(when).filter(([, value]) => value !== undefined);
  if (first === undefined || second !== undefined) {
    return "expected one condition: growth, rss, limit, pressure, verdict or oom_kill";
  }
  if (windowMs !== undefined && when.growth === undefined) {
    return "for belongs to growth";
  }
  if (windowMs !== undefined && windowMs < SHORTEST_WINDOW) {
    return "expected at least 1min in for: growth is not certain after less";
  }
  if (when.growth !== undefined) {
    return { kind: "growth", rate: when.growth, windowMs: windowMs ?? GROWTH_WINDOW };
  }
  if (when.rss !== undefined) {
    return { kind: "rss", ...when.rss };
  }
  if (when.verdict !== undefined) {
    return { kind: "verdict", pattern: when.verdict };
  }
  if (when.limit !== undefined) {
    return { kind: "limit", share: when.limit };
  }
  return when.pressure === undefined
    ? { kind: "oom-kill" }
    : { kind: "pressure", share: when.pressure };
}

/** One reading of a program. null: the kernel does not report it, or there is no limit. */
export interface Reading {
  readonly timeMs: Millis;
  /** Sum over its processes; null: not read, because no condition needs it ({@link ProgramReadings.wantsRss}). */
  readonly rssBytes: Bytes | null;
  readonly limit: { readonly bytes: Bytes; readonly usedBytes: Bytes } | null;
  readonly pressure: number | null;
  /** Processes of its control group that the kernel has killed so far. */
  readonly oomKills: number | null;
  /** A process of the program has ended since the previous reading. */
  readonly hasLost: boolean;
}

/** Longest interval between readings for these conditions. */
export function distanceOf(conditions: readonly Condition[]): Millis {
  const windows = conditions.flatMap((one) => (one.kind === "growth" ? [one.windowMs] : []));
  return Math.min(LONGEST_DISTANCE, ...windows.map((windowMs) => windowMs / OF_A_WINDOW));
}

/** Readings of the first minute give the baseline. */
const BASELINE_MS: Millis = 60_000;
/** If there are more readings, old ones are thinned out: the interval between them is then this share of their age. */
const MOST_READINGS = 600;
const DISTANCE_BY_AGE = 1 / 60;
/** A kill and the end of a process are the same event if they are seen within this time. */
const KILL_TO_END_MS: Millis = 30_000;
/** Readings must cover at least this part of the window. */
const LEAST_WINDOW = 0.9;

/** The readings of one program that its conditions need, and its newest verdict. */
export class ProgramReadings {
  #conditions: readonly Condition[] = [];
  /** Of all conditions that are older than the last reading; the last one only, unless a condition is about growth. */
  #all: Reading[] = [];
  #first: Reading | null = null;
  #baseline: Bytes = 0;
  #verdict = "";
  #killedMs = Number.NEGATIVE_INFINITY;
  #lostMs = Number.NEGATIVE_INFINITY;

  /** What the readings from now on must show. */
  for(conditions: readonly Condition[]): this {
    this.#conditions = conditions;
    return this;
  }

  /** Whether a reading at this time needs RSS: for a condition, or for the baseline of a later one. */
  wantsRss(timeMs: Millis): boolean {
    return (
      this.#isInFirstMinute(timeMs) ||
      this.#conditions.some(({ kind }) => kind === "growth" || kind === "rss")
    );
  }

  #isInFirstMinute(timeMs: Millis): boolean {
    return timeMs - (this.#first?.timeMs ?? timeMs) <= BASELINE_MS;
  }

  add(reading: Reading): void {
    this.#first ??= reading;
    if (this.#isInFirstMinute(reading.timeMs)) {
      this.#baseline = Math.max(this.#baseline, reading.rssBytes ?? 0);
    }
    const killsBefore = this.#all.at(-1)?.oomKills ?? reading.oomKills ?? 0;
    if ((reading.oomKills ?? 0) > killsBefore) {
      this.#killedMs = reading.timeMs;
    }
    if (reading.hasLost) {
      this.#lostMs = reading.timeMs;
    }
    if (!this.#conditions.some(({ kind }) => kind === "growth")) {
      this.#all = [];
    }
    this.#all.push(reading);
    if (this.#all.length > MOST_READINGS) {
      this.#all = thinned(this.#all, reading.timeMs);
    }
  }

  /** Kind of the newest verdict. */
  judged(kind: string): void {
    this.#verdict = kind;
  }

  /** A sentence with the figures if the condition holds now, otherwise null. */
  holds(condition: Condition): string | null {
    const last = this.#all.at(-1);
    if (last === undefined) {
      return null;
    }
    switch (condition.kind) {
      case "growth":
        return this.#grows(condition.rate, condition.windowMs, last);
      case "rss":
        return this.#isLarge(condition, last);
      case "limit": {
        const share = last.limit === null ? 0 : last.limit.usedBytes / last.limit.bytes;
        return last.limit !== null && share >= condition.share
          ? `${formatShare(share)} of its memory limit of ${formatBytes(last.limit.bytes)} is in use`
          : null;
      }
      case "pressure":
        return last.pressure !== null && last.pressure >= condition.share
          ? `its processes waited for memory during ${formatShare(last.pressure)} of the last 10 s`
          : null;
      case "verdict":
        return this.#verdict !== "" && fits(this.#verdict, condition.pattern)
          ? `the verdict is ${this.#verdict}`
          : null;
      case "oom-kill":
        return this.#wasKilled(last);
    }
  }

  #isLarge({ bytes, aboveBaseline }: Level, { rssBytes }: Reading): string | null {
    const least = bytes + (aboveBaseline ? this.#baseline : 0);
    if (rssBytes === null || rssBytes < least) {
      return null;
    }
    const level = `its RSS is ${formatBytes(rssBytes)}`;
    return aboveBaseline
      ? `${level}, ${formatBytes(rssBytes - this.#baseline)} above its baseline of ${formatBytes(this.#baseline)}`
      : level;
  }

  /** Other programs may be in the same group, so a process of this program must have ended. */
  #wasKilled({ timeMs }: Reading): string | null {
    const oldest = Math.min(this.#killedMs, this.#lostMs);
    return timeMs - oldest < KILL_TO_END_MS
      ? "one of its processes ended when the OOM killer ran in its control group"
      : null;
  }

  /** The lower end of the interval must be above the rate, so that noise does not trigger a capture. */
  #grows(rate: Rate, windowMs: Millis, last: Reading): string | null {
    const window = this.#all.flatMap(({ timeMs, rssBytes }) =>
      rssBytes !== null && timeMs >= last.timeMs - windowMs ? [{ timeMs, rssBytes }] : [],
    );
    const [begin] = window;
    const spanMs = last.timeMs - (begin?.timeMs ?? last.timeMs);
    if (begin === undefined || spanMs < windowMs * LEAST_WINDOW) {
      return null;
    }
    const { shape, slope, low } = assessGrowth({
      times: window.map(({ timeMs }) => timeMs),
      values: window.map(({ rssBytes }) => rssBytes),
    });
    const perHour = "bytes" in rate ? rate.bytes : rate.share * begin.rssBytes;
    if (shape !== "growing" || low * HOUR < perHour) {
      return null;
    }
    const share = (slope * HOUR) / Math.max(1, begin.rssBytes);
    return `its RSS grew by ${formatBytes(slope * HOUR)}/h (${formatShare(share)} an hour) over the last ${formatDuration(windowMs)}`;
  }
}

function thinned(readings: readonly Reading[], nowMs: Millis): Reading[] {
  let keptMs = Number.POSITIVE_INFINITY;
  return readings
    .toReversed()
    .filter(({ timeMs }) => {
      const isKept = keptMs - timeMs >= (nowMs - timeMs) * DISTANCE_BY_AGE;
      keptMs = isKept ? timeMs : keptMs;
      return isKept;
    })
    .toReversed();
}
