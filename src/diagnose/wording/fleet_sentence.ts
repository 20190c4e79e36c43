/** The sentences of a fleet's diagnosis. */

import {
  formatBytes,
  formatDuration,
  formatDurationBriefly,
  formatGrowth,
  formatGrowthInterval,
  formatRate,
  formatShare,
  formatUtcTime,
} from "../../model/base/numbers.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import type { VerdictKind } from "../../model/documents/diagnosis_document.js";
import type {
  FleetDiagnosisJson,
  FleetKillsJson,
  FleetNeededJson,
  FleetShape,
  FleetSuspectJson,
} from "../../model/documents/fleet_diagnosis_document.js";
import { holderPathText } from "../../model/documents/holder_path.js";
import { NOT_ENOUGH } from "./summary_sentence.js";
import { frameText } from "./words.js";

const HOUR_MS = 3_600_000;

interface Version {
  readonly version: string;
  readonly processes: readonly unknown[];
  readonly growth: {
    readonly shape: FleetShape;
    readonly rate: number;
    readonly low: number;
    readonly high: number;
    readonly fillMs: number;
    readonly windowMs: number;
    readonly curve: { readonly processes: number };
  } | null;
  readonly odd: readonly {
    readonly instance: string;
    readonly growth: { readonly rate: number };
  }[];
}

interface About {
  readonly service: string;
  readonly shape: FleetShape;
  readonly kind: VerdictKind;
  readonly accused: Version | null;
  /** Whether all instances of the accused version leak. */
  readonly isEverywhere: boolean;
  /** Whether an instance of the accused version runs. */
  readonly isRunning: boolean;
  /** How many instances of it there are; of those that run, if any do. */
  readonly instances: number;
  /** Whether its processes are restarted before they reach the limit. */
  readonly isRestarted: boolean;
  readonly first: Version | null;
  readonly versions: readonly Version[];
  readonly change: FleetDiagnosisJson["change"] | null;
  readonly suspects: readonly FleetSuspectJson[];
  readonly by: "requests" | "day" | "unknown";
  /** How far the requests move the memory of a process of the newest version, and what it has; 0: unknown. */
  readonly loadBytes: Bytes;
  readonly levelBytes: Bytes;
  /** Of the accused version, bytes per ms. */
  readonly rate: number;
  /** The same by request; 0: its growth does not follow the requests. */
  readonly bytesPerRequest: Bytes;
}

/** The rise, as a share of the limit, from which growth that will pass the limit is decided (fleet/growth/group_growth.ts). */
export const SOONER = 0.2;

/** Requests that move a smaller share of a process's memory are not mentioned. */
const LEAST_OF_LEVEL = 0.05;

/** "checkout leaks 4.2 MiB/h on all 5 instances since 2.42.0, at price_for (prices.py:73); the first reaches its limit ..." */
export function fleetSummary(
  about: About & { readonly forecast: FleetDiagnosisJson["forecast"] },
): string {
  const { service, accused, first, versions, shape, change, suspects, forecast } = about;
  if (accused !== null) {
    const all = about.isEverywhere;
    const where = all
      ? about.instances === 1
        ? "its only instance"
        : "each instance"
      : accused.odd.length === 1
        ? `instance ${accused.odd[0]?.instance} alone`
        : `${accused.odd.length} instances (${accused.odd.map(({ instance }) => instance).join(", ")})`;
    const [suspect] = suspects;
    const holder =
      suspect?.holder === undefined ? "" : `, held by ${holderPathText(suspect.holder.path)}`;
    const line = suspect === undefined ? "" : `, allocated at ${frameText(suspect.line)}${holder}`;
    const next = forecast[0];
    const own =
      next?.growthBytesPerHour === undefined
        ? ""
        : `, which grows by ${formatRate(next.growthBytesPerHour)},`;
    const limit = !about.isRunning
      ? `; that version no longer runs${accused === versions.at(-1) ? "" : `, and it is too early to say whether ${versions.at(-1)?.version || "the next one"} leaks`}`
      : about.isRestarted
        ? "; its processes are restarted before they reach the limit"
        : next === undefined || next.msToLimit === 0
          ? ""
          : `; the first instance${own} reaches its limit in ${formatDuration(next.msToLimit)}`;
    const perRequest =
      about.bytesPerRequest > 0 ? `, ${formatBytes(about.bytesPerRequest)} a request` : "";
    const leaks = about.isRunning ? "leaks" : "leaked";
    return `${service} ${leaks} ${formatRate(about.rate * HOUR_MS)} on ${where}${perRequest} ${sinceText(first, accused, about)}${line}${limit}.`;
  }
  const newest = versions.at(-1);
  const name = newest?.version ? `Version ${newest.version} of ${service}` : service;
  const atLoad = about.by === "unknown" ? "" : " at the usual load";
  const step =
    change?.kind === "level"
      ? ` It uses ${formatBytes(Math.abs(change.levelBytes))} ${change.levelBytes > 0 ? "more" : "less"} than version ${change.against}${atLoad}.`
      : "";
  switch (shape) {
    case "undecided": {
      const rate = (newest?.growth?.rate ?? 0) * HOUR_MS;
      const grows =
        rate > 0 && formatGrowth(rate) !== formatGrowth(0)
          ? `grows by ${formatRate(rate)}`
          : "may grow";
      return `${name} ${grows}; a filling cache or daily load may explain it.${step}`;
    }
    case "filling":
      return `${name} filled up and hardly grows any more.${step}`;
    case "stepped":
      return `${name} rose in one or two steps, and does not grow otherwise.${step}`;
    case "short":
      return `${name} has not run long enough for the fleet's verdict.`;
    default:
      return about.loadBytes > LEAST_OF_LEVEL * about.levelBytes
        ? `${name} does not grow: its memory follows the request rate, by up to ${formatBytes(about.loadBytes)} on each instance.${step}`
        : `${name} does not grow.${step}`;
  }
}

/**
 * Where the oldest version that was seen leaks, nothing shows which was the first; nor where those before it may have grown as fast.
 */
function sinceText(
  first: Version | null,
  accused: Version,
  { versions, change }: Pick<About, "versions" | "change">,
): string {
  const name = (each: Version | null) => each?.version || "unknown";
  if (first !== versions[0]) {
    return change?.kind === "growth"
      ? `since version ${name(first)}`
      : `since version ${name(first)} or an earlier one`;
  }
  if (accused !== versions.at(-1)) {
    return first === accused
      ? `in version ${name(accused)}`
      : `in versions ${name(first)} to ${name(accused)}`;
  }
  return first === accused
    ? `in version ${name(accused)}, the only one seen`
    : `in every version since ${name(first)}, the oldest seen`;
}

/** Processes of the newest version, each of which ended within a minute. */
export interface ShortLives {
  /** Of a typical life. */
  readonly lifeMs: Millis;
  /** Lives in which memory grew, of those that ended in the last hour. */
  readonly growing: number;
  readonly of: number;
  /** What the diagnosis of the newest one of these says. */
  readonly observed: string;
}

export function shortLivesText({ lifeMs, growing, of, observed }: ShortLives): string {
  return `Its processes end after about ${formatDurationBriefly(lifeMs)}, too soon for the fleet's verdict; the agent saw memory grow in ${growing} of the ${of} that ended in the last hour. The newest of these: ${observed.replace(`${NOT_ENOUGH}. `, "")}`;
}

/** How each version and the load were judged. */
export function fleetEvidence(about: About): FleetDiagnosisJson["evidence"] {
  const { versions, change, by } = about;
  const load = {
    requests: `Memory that follows the request rate was removed: up to ${formatBytes(about.loadBytes)} of each process.`,
    day: "Memory that follows the daily load was removed.",
    unknown: "The daily load is unknown.",
  }[by];
  return [
    { rule: "load", says: "no leak", detail: load },
    ...versions.flatMap(({ version, growth, odd }) => [
      ...(growth === null
        ? []
        : [
            {
              rule: "version-growth",
              says:
                growth.shape === "leaking" && about.accused !== null
                  ? ("leak" as const)
                  : ("no leak" as const),
              detail: `${version || "The unknown version"}: ${growth.shape === "leaking" && about.accused === null ? "undecided" : growth.shape}, ${growth.shape === "short" ? "no rate yet" : `growth ${interval(growth)}`} over ${formatDuration(growth.windowMs)}, ${growth.curve.processes} ${growth.curve.processes === 1 ? "process" : "processes"}.`,
            },
          ]),
      ...odd.map(({ instance, growth: own }) => ({
        rule: "odd-instance",
        says: "leak" as const,
        detail: `${instance} of ${version} grows by ${formatRate(own.rate * HOUR_MS)}, unlike its siblings.`,
      })),
    ]),
    ...(change === null || change === undefined
      ? []
      : [
          {
            rule: "version-change",
            says: change.kind === "growth" ? ("leak" as const) : ("no leak" as const),
            detail: `${change.version} against ${change.against}: ${formatGrowth(change.growth.growthBytesPerHour)} of growth${levelText(change)}.`,
          },
        ]),
  ];
}

/** "Version 2.43.0 runs on 1 instance, for 40 min. A leak of 5 % of the limit a day can be decided with 3 instances ..." */
export function neededText(needed: FleetNeededJson): string {
  const { version, share, isOfLimit, instances, ms, running, ranMs } = needed;
  const on = (count: number) => `${count} instance${count === 1 ? "" : "s"}`;
  const full = isOfLimit ? "limit" : "level";
  return `Version ${version || "unknown"} runs on ${on(running)}, for ${formatDuration(ranMs)}. A leak of ${formatShare(share)} of the ${full} a day can be decided with ${on(instances)} after ${formatDuration(ms)}.`;
}

/** When growth that is obvious is decided, whatever the age of the version. `limit`: of memory; 0: unknown. */
export function soonerText(limit: Bytes): string {
  const single = "Until then, the diagnoses of single processes count.";
  return limit > 0
    ? `Fast growth is decided sooner: once RSS has risen by ${formatBytes(SOONER * limit)} (${formatShare(SOONER)} of the limit) and will pass the limit within a week. ${single}`
    : `No memory limit of its processes is known. Without one, growth is decided by the age of the version, however fast it is. ${single}`;
}

/** "The kernel killed 3 processes for memory since ... 2 of these kills were forecast, 6 h ahead at the median; ..." */
export function killsText(kills: FleetKillsJson): string {
  const { sinceMs, count, forecast, withinInterval, medianLeadMs } = kills;
  const killed = (processes: string) =>
    `The kernel killed ${processes} for memory since ${formatUtcTime(sinceMs)}.`;
  const lead = formatDuration(medianLeadMs ?? 0);
  if (count === 1) {
    const place = withinInterval === 1 ? "within" : "outside";
    return forecast === 1
      ? `${killed("one process")} The kill was forecast ${lead} ahead, and fell ${place} the interval.`
      : `${killed("one process")} There was no forecast.`;
  }
  return forecast === 0
    ? `${killed(`${count} processes`)} There was no forecast of any of these kills.`
    : `${killed(`${count} processes`)} ${forecast} of these kills ${forecast === 1 ? "was" : "were"} forecast, ${lead} ahead at the median; ${withinInterval} fell within the interval.`;
}

function interval({ rate, low, high }: { rate: number; low: number; high: number }): string {
  return formatGrowthInterval(rate * HOUR_MS, low * HOUR_MS, high * HOUR_MS);
}

/** ", and 109 MiB more memory"; "" if that is not certain. */
function levelText({ levelBytes, low, high }: NonNullable<FleetDiagnosisJson["change"]>): string {
  return low <= 0 && high >= 0
    ? ""
    : `, and ${formatBytes(Math.abs(levelBytes))} ${levelBytes > 0 ? "more" : "less"} memory`;
}
