/**
 * What the rules find in a fleet at one moment.
 *
 *     diagnoses of services ─ growth, time to limit, verdict, regression ─┐
 *                                                                        ├─ Finding: rule, service, version, cause
 *     lives of processes ──── OOM kills, restarts, fragmentation, silence ┘
 *
 * Failure modes, and what is done then:
 *   - a service without readings: no finding; unheard() names it, and its alerts keep their state
 *   - a job that a clock starts repeatedly: its starts are at equal distances, which is no restart loop
 *   - instances that ended without saying so (their host is gone): silent, until their last reading is a day old
 *   - the server itself was down: a host is silent only once the server has listened for as long
 *   - a version that was rolled back: its leak is over for the alerts, although the diagnosis still compares it
 */
import {
  formatBytes,
  formatDuration,
  formatGrowthInterval,
  formatRate,
  formatShare,
  formatUtcTime,
} from "../../model/base/numbers.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { AlertCause, AlertJson } from "../../model/documents/alert_document.js";
import type {
  FleetDiagnosisJson,
  FleetRateJson,
  FleetVersionJson,
} from "../../model/documents/fleet_diagnosis_document.js";
import { fits } from "../../model/settings/pattern.js";
import type { Rate } from "../../model/settings/rate.js";
import type { ProcessLife } from "../../store/index.js";
import { restartsOf } from "./restarts.js";
import type { AlertRule } from "./rules.js";

export interface FleetFacts {
  readonly nowMs: TimeMs;
  readonly diagnoses: readonly FleetDiagnosisJson[];
  /** Since when senders can reach the server. */
  readonly listeningMs: TimeMs;
  /** Processes that reported within the last day. */
  readonly lives: readonly ProcessLife[];
}

export interface Finding
  extends Pick<AlertJson, "summary" | "line" | "holder" | "growth" | "forecast"> {
  readonly rule: AlertRule;
  /** "nearly": short of the threshold by a fifth at most, which keeps an alert and does not begin one. */
  readonly holds: "fully" | "nearly";
  readonly service: string;
  readonly version: string;
  readonly host: string;
  readonly cause: AlertCause;
}

/** Of the level of the version before: a smaller rise is no regression. */
const LEAST_RISE = 0.2;
/** Of a threshold: what keeps an alert. */
const NEARLY = 0.8;

export function findingsOf(rules: readonly AlertRule[], facts: FleetFacts): Finding[] {
  return rules.flatMap((rule) => {
    const { condition, match } = rule;
    const found = (() => {
      switch (condition.kind) {
        case "growth":
        case "time-to-limit":
        case "verdict":
        case "regression":
          return facts.diagnoses.flatMap((diagnosis) => ofDiagnosis(rule, diagnosis, facts));
        case "fragmentation":
          return fragmented(rule, condition.share, facts);
        case "oom-kills":
          return killed(rule, condition, facts);
        case "restarts":
          return restarting(rule, condition, facts);
        case "silence":
          return silent(rule, condition.ms, {
            ...facts,
            lives: facts.lives.filter(matches(match)),
          });
      }
    })();
    // A silent host has no service; the processes that ran there matched.
    return condition.kind === "silence" ? found : found.filter(matches(match));
  });
}

function matches({ service = "*", version = "*" }: AlertRule["match"]) {
  return (about: { readonly service: string; readonly version: string }) =>
    fits(about.service, service) && fits(about.version, version);
}

/** Services all of whose processes are silent for that long: nothing can be said about them. */
export function unheard({ lives, nowMs }: FleetFacts, ms: Millis): Set<string> {
  const lastOf = new Map<string, TimeMs>();
  for (const { service, lastMs, endedMs } of lives) {
    if (endedMs === null) {
      lastOf.set(service, Math.max(lastOf.get(service) ?? 0, lastMs));
    }
  }
  return new Set([...lastOf].filter(([, lastMs]) => lastMs < nowMs - ms).map(([name]) => name));
}

function ofDiagnosis(
  rule: AlertRule,
  diagnosis: FleetDiagnosisJson,
  { lives, nowMs }: FleetFacts,
): Finding[] {
  const { condition } = rule;
  const { service, leak, verdict, change, forecast, versions } = diagnosis;
  if (leak?.runningInstances === 0 && condition.kind !== "regression") {
    return [];
  }
  const about = (version: string) => ({ rule, service, version, host: "", ...memoryOf(diagnosis) });
  switch (condition.kind) {
    case "verdict":
      return condition.patterns.some((pattern) => fits(verdict.kind, pattern))
        ? [
            {
              ...about(leak?.since ?? versions.at(-1)?.version ?? ""),
              ...{ holds: "fully", cause: "growth", summary: verdict.summary },
            },
          ]
        : [];
    case "growth": {
      const grown = growing(diagnosis, condition.rate);
      return grown === null
        ? []
        : [
            {
              ...about(grown.version),
              cause: "growth",
              holds: grown.holds,
              summary: grown.summary,
            },
          ];
    }
    case "time-to-limit": {
      const [first] = forecast;
      if (first === undefined || first.msToLimit === 0 || first.msToLimit > condition.ms / NEARLY) {
        return [];
      }
      const holds = first.msToLimit <= condition.ms ? "fully" : "nearly";
      const version = leak?.since ?? first.version;
      return [{ ...about(version), cause: "growth", holds, summary: verdict.summary }];
    }
    case "regression": {
      const wanted = condition.change === "any" || condition.change === change?.kind;
      const old = versions.find(({ version }) => version === change?.against)?.levelBytes ?? 0;
      const runs = lives.some(
        (life) =>
          life.service === service && life.version === change?.version && isRunning(life, nowMs),
      );
      if (change === undefined || !wanted || !runs) {
        return [];
      }
      const isLarge = change.kind === "growth" || change.low >= old * LEAST_RISE;
      const isNearlyLarge = isLarge || change.low >= old * LEAST_RISE * NEARLY;
      return isNearlyLarge
        ? [
            {
              ...about(change.version),
              holds: isLarge ? "fully" : "nearly",
              cause: change.kind,
              summary: changeSummary(diagnosis, change),
            },
          ]
        : [];
    }
    default:
      return [];
  }
}

/** The line, the holder, the growth and the forecast that a diagnosis names. */
function memoryOf({
  leak,
  suspects: [suspect],
  forecast: [first],
}: FleetDiagnosisJson): Pick<Finding, "line" | "holder" | "growth" | "forecast"> {
  const holder = suspect?.holder;
  return {
    ...(suspect === undefined ? {} : { line: suspect.line }),
    ...(holder === undefined ? {} : { holder: { path: holder.path, type: holder.type } }),
    ...(leak === undefined ? {} : { growth: rateOf(leak) }),
    ...(first === undefined
      ? {}
      : {
          forecast: {
            msToLimit: first.msToLimit,
            earliestMs: first.earliestMs,
            latestMs: first.latestMs,
          },
        }),
  };
}

function rateOf({ growthBytesPerHour, low, high }: FleetRateJson): FleetRateJson {
  return { growthBytesPerHour, low, high };
}

/** The leak, or else the newest version that grows without a level that it approaches. */
function growing(
  { service, leak, versions, verdict }: FleetDiagnosisJson,
  rate: Rate,
): { version: string; holds: Finding["holds"]; summary: string } | null {
  const newest = versions.findLast(({ shape }) => shape !== "short");
  const ofLeak = versions.find(({ version }) => version === leak?.version);
  const level = (ofLeak ?? newest)?.levelBytes ?? 0;
  const isGrowing = newest?.shape === "leaking" || newest?.shape === "undecided";
  const measured: FleetRateJson | undefined = leak ?? (isGrowing ? newest : undefined);
  const least = "bytes" in rate ? rate.bytes : rate.share * level;
  if (measured === undefined || least <= 0 || measured.low < least * NEARLY) {
    return null;
  }
  const version = leak?.since ?? newest?.version ?? "";
  const amount = formatGrowthInterval(
    measured.growthBytesPerHour,
    measured.low,
    measured.high,
  ).replaceAll("+", "");
  return {
    version,
    holds: measured.low >= least ? "fully" : "nearly",
    summary:
      leak === undefined
        ? `${nameOf(service, version)} grows by ${amount} on each instance.`
        : verdict.summary,
  };
}

function changeSummary(
  { service, leak, verdict }: FleetDiagnosisJson,
  change: NonNullable<FleetDiagnosisJson["change"]>,
): string {
  if (change.kind === "growth" && leak?.since === change.version) {
    return verdict.summary;
  }
  const name = `Version ${change.version || "unknown"} of ${service}`;
  return change.kind === "growth"
    ? `${name} grows by ${formatRate(change.growth.growthBytesPerHour)} more on each instance than version ${change.against}.`
    : `${name} needs ${formatBytes(change.levelBytes)} more on each instance than version ${change.against}.`;
}

type Lives = readonly ProcessLife[];

function fragmented(rule: AlertRule, share: number, { lives, nowMs }: FleetFacts): Finding[] {
  return byVersion(lives.filter((life) => isRunning(life, nowMs))).flatMap(([first, own]) => {
    const highest = Math.max(...own.map(({ fragmentation }) => fragmentation ?? 0));
    if (highest < share * NEARLY) {
      return [];
    }
    const count = own.filter(({ fragmentation }) => (fragmentation ?? 0) >= share * NEARLY).length;
    return [
      {
        ...{ rule, ...aboutVersion(first), cause: "fragmentation" },
        holds: highest >= share ? "fully" : "nearly",
        summary: `${nameOf(first.service, first.version)}: ${formatShare(highest)} of the memory that PyTorch reserved on a GPU is free, but in pieces; ${instancesText(count)} above ${formatShare(share * NEARLY)}. Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.`,
      } as const,
    ];
  });
}

function killed(
  rule: AlertRule,
  { count, withinMs }: { count: number; withinMs: Millis },
  { lives, nowMs, diagnoses }: FleetFacts,
): Finding[] {
  return byVersion(lives).flatMap(([first, own]) => {
    const kills = own.flatMap(({ killsMs, pod, host }) =>
      killsMs
        .filter((timeMs) => timeMs > nowMs - withinMs)
        .map((timeMs) => ({ timeMs, place: pod || host })),
    );
    const last = kills.sort((a, b) => a.timeMs - b.timeMs).at(-1);
    if (last === undefined || kills.length < count) {
      return [];
    }
    const diagnosis = diagnoses.find(({ service }) => service === first.service);
    const leak = diagnosis?.leak;
    const because = leak === undefined ? "" : ` ${diagnosis?.verdict.summary}`;
    return [
      {
        ...{ rule, ...aboutVersion(first), cause: "oom-kill", holds: "fully" },
        ...(diagnosis === undefined || leak === undefined ? {} : memoryOf(diagnosis)),
        summary: `The OOM killer ended ${kills.length === 1 ? "a process" : `${kills.length} processes`} of ${nameOf(first.service, first.version)} within ${formatDuration(withinMs)}, the last on ${last.place || "an unknown host"} at ${formatUtcTime(last.timeMs)}.${because}`,
      } as const,
    ];
  });
}

function restarting(
  rule: AlertRule,
  { count, withinMs }: { count: number; withinMs: Millis },
  { lives, nowMs }: FleetFacts,
): Finding[] {
  return byVersion(lives).flatMap(([first, own]) => {
    const { restarts, place } = restartsOf(own, nowMs - withinMs);
    return restarts < count
      ? []
      : [
          {
            ...{ rule, ...aboutVersion(first), cause: "restart-loop", holds: "fully" },
            summary: `${nameOf(first.service, first.version)} restarted ${restarts} times on ${place || "one instance"} within ${formatDuration(withinMs)}.`,
          } as const,
        ];
  });
}

/**
 * Hosts of which no process is heard. If that is all of several, one finding about all begins an alert; those of single
 * hosts then only keep theirs.
 */
function silent(rule: AlertRule, ms: Millis, { lives, nowMs, listeningMs }: FleetFacts): Finding[] {
  /** Processes that have not ended. */
  const open = new Map<string, number>();
  const lastOf = new Map<string, TimeMs>();
  for (const life of lives) {
    const host = life.host || "unknown host";
    lastOf.set(host, Math.max(lastOf.get(host) ?? 0, life.lastMs));
    if (life.endedMs === null) {
      open.set(host, (open.get(host) ?? 0) + 1);
    }
  }
  const lastMsOf = (host: string) => lastOf.get(host) ?? 0;
  const quiet = [...open.keys()].filter((host) => lastMsOf(host) < nowMs - ms);
  const about = { rule, service: "", version: "", cause: "silence" } as const;
  const listens = nowMs - listeningMs >= ms;
  const isAll = quiet.length > 1 && quiet.length === open.size;
  const ofHosts = quiet.map((host) => {
    const processes = open.get(host) ?? 0;
    return {
      ...about,
      host,
      holds: listens && !isAll ? "fully" : "nearly",
      summary: `Host ${host} sends nothing since ${formatUtcTime(lastMsOf(host))}; ${processes === 1 ? "a process" : `${processes} processes`} ran there. Either its collector ended, or the host is gone.`,
    } as const;
  });
  if (!isAll) {
    return ofHosts;
  }
  const lastMs = Math.max(...quiet.map(lastMsOf));
  const summary = `No host sends anything since ${formatUtcTime(lastMs)}: ${quiet.length} hosts did before. Either the collectors cannot reach this server, or none of them runs.`;
  return [{ ...about, host: "", holds: listens ? "fully" : "nearly", summary }, ...ofHosts];
}

function isRunning({ endedMs, lastMs }: ProcessLife, nowMs: TimeMs): boolean {
  return endedMs === null && lastMs > nowMs - RECENT_MS;
}

const RECENT_MS: Millis = 10 * 60_000;

function byVersion(lives: Lives): [first: ProcessLife, all: ProcessLife[]][] {
  const groups = new Map<string, [ProcessLife, ProcessLife[]]>();
  for (const life of lives) {
    const key = JSON.stringify([life.service, life.version]);
    const group = groups.get(key);
    if (group === undefined) {
      groups.set(key, [life, [life]]);
    } else {
      group[1].push(life);
    }
  }
  return [...groups.values()];
}

function aboutVersion({ service, version }: ProcessLife) {
  return { service, version, host: "" };
}

function nameOf(service: string, version: FleetVersionJson["version"]): string {
  return version === "" ? service : `${service} ${version}`;
}

function instancesText(count: number): string {
  return count === 1 ? "1 instance is" : `${count} instances are`;
}
