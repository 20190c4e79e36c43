/**
 * The diagnosis of one service from all its processes, over versions and instances. Folders import those above them:
 *
 *   curves/      the evidence, load removed from it, and what one curve over age or time shows
 *   lines/       what the agent saw of single lines
 *   growth/      the decision about processes that are alike, by RSS, by lines and by earlier versions
 *   instances/   instances that differ from their siblings
 *
 * Data flow:
 *
 *   ServiceEvidence ─ load_removal ─┬─ by version ── odd_instances ─ the others ─ group_growth ─ precedent, site_growth ─┬─ verdict, change
 *   (fleet_evidence)                │                     │  (sibling_course)                                            ├─ forecast
 *                                   │                     └─────────────────────────────────── leaks of single instances ┤
 *                                   └─ sites of what leaks ─────────────────────────────────────────── fleet_suspects ───┘
 *
 * Whether a curve grows is decided by ../series/growth.ts, as for a single process; a fleet adds that the growth must last
 * (lasting_growth.ts), because a version's first hours are full of filling caches.
 *
 * Failure modes, and what is reported then:
 *   - a version too young, or a curve that a filling cache explains as well: insufficient-evidence, with a limit
 *   - load unknown (no request rate, less than two days of mature processes): under two days only straight growth of 10 % of the level, or of 5 % over a whole day, is a leak
 *   - readings missing: bins without readings are left out; offsets are fitted per process
 *   - all old processes ended before the window: no comparison of versions, with a limit
 *   - a cache that needs more than twice the observed time to fill cannot be distinguished from a leak by RSS alone
 *   - no agent on what leaks: no suspects, with a limit
 *   - agents, but no site that grows: undecided for four days
 */
import { formatDuration } from "../../model/base/numbers.js";
import type { Bytes, TimeMs } from "../../model/base/units.js";
import type { VerdictKind } from "../../model/documents/diagnosis_document.js";
import type {
  FleetDiagnosisJson,
  FleetRateJson,
  FleetShape,
  FleetSuspectJson,
  FleetVersionJson,
} from "../../model/documents/fleet_diagnosis_document.js";
import { median } from "../series/trend.js";
import {
  fleetEvidence,
  fleetSummary,
  neededText,
  shortLivesText,
  soonerText,
} from "../wording/fleet_sentence.js";
import { judgedVersions, lastingAccused, stillRuns } from "./accused_version.js";
import type { FleetProcess, ServiceEvidence } from "./curves/fleet_evidence.js";
import { isWeekOpen, loadRange, type Unloaded, withoutLoad } from "./curves/load_removal.js";
import { normalQuantile } from "./curves/normal_quantile.js";
import { firstLeaking, type LeakingLine } from "./first_leaking.js";
import { areRestartedInTime, forecasts } from "./forecast.js";
import { fleetSuspects } from "./growth/fleet_suspects.js";
import { type GroupGrowth, type Judging, LEAST_DECIDED_MS } from "./growth/group_growth.js";
import {
  accusedLives,
  type JudgedVersion,
  leaksEverywhere,
  memoryRate,
  rateOf,
} from "./judged_version.js";
import { needed } from "./needed.js";
import { ofOddInstances } from "./of_odd_instances.js";
import { commonKind, ownVerdict } from "./own_verdicts.js";
import { shortLives } from "./short_lives.js";
import { changeBetween } from "./version_change.js";

const HOUR_MS = 3_600_000;
/** Of wrong intervals over all services, versions and windows of one evaluation. */
const ERROR = 0.05;
const INTERVALS_OF_A_SERVICE = 6;

/**
 * `services`: how many are judged together; intervals are widened for it. Wider intervals may also hide that growth ends, so what is a
 * leak only among many services is none.
 */
export function diagnoseService(evidence: ServiceEvidence, services: number): FleetDiagnosisJson {
  const among = diagnosedWithin(evidence, widthFor(services));
  const alone =
    among.leak === undefined || services <= 1 ? null : diagnosedWithin(evidence, widthFor(1));
  return alone?.leak === undefined ? (alone ?? among) : among;
}

/** Half the width of an interval in standard errors. */
function widthFor(services: number): number {
  return normalQuantile(1 - ERROR / (2 * INTERVALS_OF_A_SERVICE * Math.max(1, services)));
}

function diagnosedWithin(evidence: ServiceEvidence, z: number): FleetDiagnosisJson {
  const { service, window } = evidence;
  const unloaded = withoutLoad(evidence.processes);
  const { processes, by } = unloaded;
  const judging: Omit<Judging, "before"> = {
    endMs: window.endMs,
    z,
    isLoadKnown: by !== "unknown",
    isWeekOpen: isWeekOpen(unloaded, window.endMs),
  };
  const versions = judgedVersions(processes, judging);
  const newest = versions.at(-1);
  const accused = lastingAccused(versions, processes, judging);
  const lives = accused === null ? [] : accusedLives(accused);
  const ofAccused = lives.map(({ process }) => process);
  const inMemory = accused === null ? null : memoryRate(accused);
  const suspects = inMemory === null ? [] : fleetSuspects(ofAccused, inMemory, judging);
  const lived = accused === null ? versions : ofOddInstances(versions, accused, judging);
  const leaking = accused === null ? null : (lived[versions.indexOf(accused)] ?? null);
  const firstLived =
    leaking === null ? null : firstLeaking(lived, leaking, surelyLeaking(suspects));
  const first = firstLived === null ? null : (versions[lived.indexOf(firstLived)] ?? null);
  const leak = leaking === null ? null : rateOf(leaking);
  const change = changeBetween(lived, firstLived, z, leak, judging.isLoadKnown);
  const single = newest === undefined ? null : singleVerdict(newest, window.endMs);
  const shape = accused !== null ? "leaking" : single?.isFirst ? "short" : shapeOf(newest);
  const kind = kindOf(shape, ofAccused, newest ?? null);
  const odd = versions.flatMap(({ version, odd: found }) =>
    found.map(({ instance, growth }) => ({ instance, version, ...rateJson(growth) })),
  );
  const isEverywhere = accused !== null && leaksEverywhere(accused);
  const isRestarted = areRestartedInTime(lives, window.endMs);
  const about = {
    service,
    shape,
    isEverywhere,
    isRunning: accused !== null && stillRuns(accused, window.endMs),
    instances: instancesAtEnd(lives, window.endMs),
    isRestarted,
    kind,
    accused,
    first,
    versions,
    change,
    suspects,
    by,
    loadBytes: by === "requests" ? loadRange(newest?.processes ?? []) : 0,
    levelBytes: newest?.growth?.level ?? 0,
    rate: inMemory?.rate ?? 0,
    bytesPerRequest: inMemory === null ? 0 : bytesPerRequest(inMemory),
  };
  const brief = shape === "short" && kind === "insufficient-evidence" ? shortLives(evidence) : null;
  const own = kind === "insufficient-evidence" ? (single?.verdict ?? null) : null;
  const open = accused === null ? needed(versions, window.endMs) : null;
  const forecast = inMemory === null || isRestarted ? [] : forecasts(lives, inMemory, window.endMs);
  return {
    schema: "tidemark.fleetDiagnosis/1",
    service,
    window: { ...window },
    verdict: {
      kind,
      confidence: confidenceOf(shape, accused),
      summary: [
        fleetSummary({ ...about, forecast }),
        ...(brief === null ? [] : [shortLivesText(brief)]),
      ].join(" "),
    },
    ...(accused === null ? {} : { leak: leakJson(accused, first, window.endMs) }),
    versions: versions.flatMap(versionJson),
    ...(change === null ? {} : { change }),
    ...(open === null ? {} : { needed: open }),
    ...(own === null ? {} : { own }),
    oddInstances: odd,
    suspects,
    forecast,
    evidence: fleetEvidence(about),
    limits: [
      ...limitsOf(evidence, ofAccused, about, accused),
      ...(open === null ? [] : [neededText(open)]),
      ...(kind === "insufficient-evidence" ? [soonerText(limitOf(newest))] : []),
    ],
  };
}

/** The first suspect, if its interval is above zero. */
function surelyLeaking([first]: readonly FleetSuspectJson[]): LeakingLine | null {
  return first === undefined || first.low <= 0
    ? null
    : { line: first.line, rate: first.growthBytesPerHour / HOUR_MS };
}

/** Of those that run, otherwise of all. */
function instancesAtEnd(lives: readonly Unloaded[], endMs: TimeMs): number {
  const running = lives.filter(({ process }) => (process.endedMs ?? endMs) >= endMs);
  return new Set((running.length > 0 ? running : lives).map(({ process }) => process.instance))
    .size;
}

/** Of a version that is not accused. */
function shapeOf(version: JudgedVersion | undefined): FleetShape {
  const shape = version?.growth?.shape ?? "short";
  return shape === "leaking" ? "undecided" : shape;
}

/** The kind that the processes' own diagnoses name most often, otherwise that of Python objects. */
function kindOf(
  shape: FleetShape,
  accused: readonly FleetProcess[],
  newest: JudgedVersion | null,
): VerdictKind {
  if (shape === "leaking") {
    return commonKind(accused) ?? "python-leak";
  }
  const fillMs = newest?.growth?.fillMs ?? 0;
  return shape === "filling"
    ? fillMs > HOUR_MS
      ? "cache-plateau"
      : "warm-up"
    : shape === "short" || shape === "undecided"
      ? "insufficient-evidence"
      : "steady";
}

/** How far the interval is from zero, in its half-widths. */
function confidenceOf(shape: FleetShape, accused: JudgedVersion | null): number {
  if (accused !== null) {
    const { rate, low } = rateOf(accused);
    return Math.min(0.99, 0.8 + (0.19 * low) / rate);
  }
  return shape === "short" || shape === "undecided" ? 0 : 0.9;
}

function rateJson({ rate, low, high }: Pick<GroupGrowth, "rate" | "low" | "high">): FleetRateJson {
  return { growthBytesPerHour: rate * HOUR_MS, low: low * HOUR_MS, high: high * HOUR_MS };
}

/** 0: it follows time, or the requests are unknown. */
function bytesPerRequest({ rate, isByWork, curve }: GroupGrowth): number {
  return isByWork && curve.requestsPerMs > 0 ? rate / curve.requestsPerMs : 0;
}

function leakJson(
  accused: JudgedVersion,
  first: JudgedVersion | null,
  endMs: number,
): NonNullable<FleetDiagnosisJson["leak"]> {
  const running = accused.processes.filter(({ process }) => (process.endedMs ?? endMs) >= endMs);
  const odd = new Set(accused.odd.map(({ instance }) => instance));
  const affected = leaksEverywhere(accused)
    ? running
    : running.filter(({ process }) => odd.has(process.instance));
  const growth = memoryRate(accused);
  const perRequest = bytesPerRequest(growth);
  return {
    ...rateJson(growth),
    ...(perRequest > 0 ? { bytesPerRequest: perRequest } : {}),
    version: accused.version,
    since: first?.version ?? accused.version,
    affectedInstances: affected.length,
    runningInstances: running.length,
  };
}

function versionJson({ version, growth, processes }: JudgedVersion): FleetVersionJson[] {
  // Several recordings of one process have the same start.
  const known = new Set(
    processes.map(({ process: { instance, startedMs } }) => `${instance} ${startedMs}`),
  );
  return growth === null
    ? []
    : [
        {
          version,
          instances: Math.min(growth.curve.processes, known.size),
          ...rateJson(growth),
          shape: growth.shape,
          windowMs: growth.windowMs,
          levelBytes: growth.level,
        },
      ];
}

function limitsOf(
  { processes }: ServiceEvidence,
  ofAccused: readonly FleetProcess[],
  about: Parameters<typeof fleetEvidence>[0],
  accused: JudgedVersion | null,
): string[] {
  const { by, shape, suspects, versions } = about;
  const withAgent = processes.filter(({ sites }) => sites.length > 0).length;
  const lengths = versions.flatMap(({ growth }) => (growth === null ? [] : [growth.windowMs]));
  const instances = new Set(processes.map(({ instance }) => instance));
  return [
    ...(instances.size === 1
      ? ["One instance ran: nothing shows whether the others of its version would do the same."]
      : []),
    ...(accused !== null && ofAccused.every(({ limitBytes }) => limitBytes === 0)
      ? ["No memory limit of its processes is known, so there is no forecast."]
      : []),
    ...(by === "unknown"
      ? [
          "The daily load is unknown: there is no request rate, and less than two days of processes older than 6 h. Within two days only growth that is straight and at least 10 % of the level is decided.",
        ]
      : []),
    ...(accused === null ? [] : limitsOfAge(accused)),
    ...(shape === "undecided"
      ? [
          `A cache that fills slowly explains the growth as well as a leak does. A window of ${formatDuration(2 * median(lengths))}, twice as long, usually decides.`,
        ]
      : []),
    ...(accused !== null && suspects.length === 0
      ? [
          withAgent === 0
            ? "No agent ran on these processes: the line that allocates is unknown."
            : "No allocation site grows like the memory of these processes.",
        ]
      : []),
  ];
}

/** What single processes of a version show. `isFirst`: before the version has run long enough to show that it does not grow. */
function singleVerdict({ processes, growth }: JudgedVersion, endMs: number) {
  const verdict = ownVerdict(
    processes.map(({ process }) => process),
    endMs,
  );
  return verdict && { verdict, isFirst: (growth?.windowMs ?? 0) < HOUR_MS };
}

/** The least limit of its processes; 0: none is known. */
function limitOf(version: JudgedVersion | undefined): Bytes {
  const limits = version?.processes.flatMap(({ process }) => process.limitBytes || []) ?? [];
  return limits.length === 0 ? 0 : Math.min(...limits);
}

/** What an accusation within the first day cannot exclude. */
function limitsOfAge({ version, growth }: JudgedVersion): string[] {
  return growth?.shape === "leaking" && !growth.isFatal && growth.windowMs < LEAST_DECIDED_MS
    ? [
        `Version ${version || "unknown"} has run for ${formatDuration(growth.windowMs)}: a slow cache that only this version has would look the same so far.`,
      ]
    : [];
}
