/**
 * Decides each gate from what was measured. A figure is an interval, so three answers are possible:
 *
 *     low above the limit        fails
 *     high below the limit       passes
 *     the limit lies between     passes: the difference is within the noise, and the reason states it
 *
 * A gate without enough data (the program ended too soon, or no recorder saw it) is not decided. It counts as a
 * finding, because a gate that can never fail protects nothing; --allow-undecided lets it pass.
 */

import type { SiteGroup } from "../inspect/index.js";
import type { Interval } from "../model/base/interval.js";
import {
  formatBytes,
  formatDuration,
  formatExactCount,
  formatGrowth,
  formatGrowthInterval,
} from "../model/base/numbers.js";
import type { Bytes } from "../model/base/units.js";
import type { GateJson, GateName } from "../model/documents/check_document.js";
import {
  CALM_KINDS,
  type DiagnosisJson,
  LEAK_KINDS,
  type VerdictKind,
} from "../model/documents/diagnosis_document.js";
import { holderPathText } from "../model/documents/holder_path.js";
import { ownFrame } from "../model/documents/own_code.js";
import { type Baseline, siteName } from "./baseline.js";
import {
  atPeakOf,
  type Figure,
  type Measured,
  type MeasuredGrowth,
  SETTLED_MS,
} from "./measured.js";

/** What `check` was asked to compare. */
export interface Gates {
  readonly peakBytes?: Bytes;
  readonly growthBytesPerHour?: number;
  readonly leak: boolean;
  readonly baseline?: Baseline;
  readonly allowUndecided: boolean;
}

const MS_PER_HOUR = 3_600_000;
/** A heap with requests of random sizes adds about half as much in the last third of a run, however long it is. */
const LEAST_EXCESS: Bytes = 256 * 1024;

type Judged = Omit<GateJson, "passed"> & { readonly fails: boolean };

/** In the order of the options. */
export function judge(gates: Gates, measured: Measured): GateJson[] {
  const { baseline } = gates;
  const judged: Judged[] = [
    ...(gates.peakBytes === undefined ? [] : [peakGate("peak", gates.peakBytes, measured)]),
    ...(gates.growthBytesPerHour === undefined
      ? []
      : [growthGate("growth", gates.growthBytesPerHour, measured)]),
    ...(gates.leak ? [leakGate(measured)] : []),
    ...(baseline?.peak === undefined
      ? []
      : [
          {
            ...peakGate("baseline-peak", baseline.peak.high, measured),
            ...grown(baseline, measured),
          },
        ]),
    ...(baseline?.live === undefined ? [] : [liveGate(baseline, baseline.live, measured)]),
    ...(baseline?.growth === undefined
      ? []
      : [growthGate("baseline-growth", Math.max(0, baseline.growth.high), measured)]),
  ];
  return judged.map(({ fails, ...gate }) => ({
    ...gate,
    passed: !fails && (gate.decided || gates.allowUndecided),
  }));
}

function peakGate(gate: GateName, limit: Bytes, measured: Measured): Judged {
  const { peak, groups, summary } = measured;
  if (peak === null) {
    return undecided(gate, "bytes", limit, "no reading of its memory was taken");
  }
  const among = summary.processes.length;
  const what =
    among > 1
      ? `${formatBytes(peak.low)} to ${formatBytes(peak.high)} in ${among} processes (PSS to sum of RSS)`
      : `${formatBytes(peak.value)} RSS`;
  return {
    gate,
    unit: "bytes",
    limit,
    ...figureOf(peak),
    fails: peak.low > limit,
    decided: true,
    reason: compared(what, peak, limit, formatBytes(limit)),
    ...lineOf(groups[0]),
  };
}

function liveGate(baseline: Baseline, { high: limit }: Interval, measured: Measured): Judged {
  const { live } = measured;
  if (live === null) {
    return undecided("baseline-live", "bytes", limit, "no allocation was sampled");
  }
  const what = `${formatBytes(live.value)} live at the peak (${formatBytes(live.low)} to ${formatBytes(live.high)})`;
  return {
    gate: "baseline-live",
    unit: "bytes",
    limit,
    ...figureOf(live),
    fails: live.low > limit,
    decided: true,
    reason: compared(what, live, limit, formatBytes(limit)),
    ...grown(baseline, measured),
  };
}

function growthGate(gate: GateName, limit: number, measured: Measured): Judged {
  const { growth, diagnosis, durationMs } = measured;
  const { kind, summary } = diagnosis.verdict;
  const unit = "bytesPerHour";
  const ran = `it ran ${formatDuration(durationMs)}, and growth cannot be distinguished from start-up in less than ${formatDuration(SETTLED_MS)}`;
  if (growth === null) {
    return undecided(gate, unit, limit, ran);
  }
  const figures = { gate, unit, limit, ...figureOf(growth) } as const;
  const what = formatGrowthInterval(growth.value, growth.low, growth.high);
  const isOver = growth.low > limit;
  const isUnder = growth.high <= limit;
  if (isUnder || (!isOver && durationMs >= SETTLED_MS)) {
    const reason = compared(what, growth, limit, formatGrowth(limit));
    return { ...figures, fails: false, decided: true, reason };
  }
  if (isOver && CALM_KINDS.has(kind) && !goesOn(growth, limit, kind)) {
    const reason = `${what}, but ${whyCalm(growth, limit)}: ${summary}`;
    return { ...figures, fails: false, decided: true, reason };
  }
  if (durationMs < SETTLED_MS) {
    return { ...undecided(gate, unit, limit, `${what}, but ${ran}`), ...figureOf(growth) };
  }
  if (kind === "insufficient-evidence" && !goesOn(growth, limit, kind)) {
    return { ...undecided(gate, unit, limit, `${what}: ${summary}`), ...figureOf(growth) };
  }
  const reason = compared(what, growth, limit, formatGrowth(limit));
  return { ...figures, fails: true, decided: true, reason, ...growerOf(measured) };
}

/**
 * A verdict is about what is significant for the whole program; a limit may be smaller. Growth that the verdict finds
 * harmless, or cannot explain yet, still exceeds the limit if it continues to the end, unless a cache fills.
 */
function goesOn({ isSteady, late, lateMs }: MeasuredGrowth, limit: number, kind: VerdictKind) {
  const excess = ((late.value - limit) * lateMs) / MS_PER_HOUR;
  return kind !== "cache-plateau" && isSteady && late.low > limit && excess >= LEAST_EXCESS;
}

function whyCalm({ late, lateMs }: MeasuredGrowth, limit: number): string {
  const added = (late.value * lateMs) / MS_PER_HOUR;
  return late.low > limit && added < 2 * LEAST_EXCESS
    ? `only ${formatBytes(added)} in the last third of the run`
    : `${formatGrowthInterval(late.value, late.low, late.high)} in the last third of the run`;
}

/** The rate is the verdict's own, which may be that of the suspects alone. */
function leakGate({ diagnosis, growth: measured }: Measured): Judged {
  const { verdict, growth } = diagnosis;
  const { bytesPerHour: value, low, high } = growth;
  const figures = {
    gate: "leak",
    unit: "bytesPerHour",
    limit: null,
    ...(measured === null ? { value: null } : figureOf({ value, low, high })),
  } as const;
  if (verdict.kind === "insufficient-evidence") {
    return { ...figures, fails: false, decided: false, reason: verdict.summary };
  }
  const fails = LEAK_KINDS.has(verdict.kind);
  return {
    ...figures,
    fails,
    decided: true,
    reason: `${verdict.kind}: ${verdict.summary}`,
    ...(fails ? suspectOf(diagnosis) : {}),
  };
}

function undecided(gate: GateName, unit: GateJson["unit"], limit: number, why: string): Judged {
  return { gate, unit, limit, value: null, fails: false, decided: false, reason: why };
}

function figureOf({ value, low, high }: Figure): Pick<GateJson, "value" | "interval"> {
  return { value, interval: { low, high } };
}

function compared(what: string, { low, high }: Interval, limit: number, limitText: string): string {
  if (low > limit) {
    return `${what}, over ${limitText}`;
  }
  return high > limit ? `${what}, within the noise of ${limitText}` : `${what}, under ${limitText}`;
}

/** The line that holds most, and whether its memory was freed before the end. */
function lineOf(group: SiteGroup | undefined): Pick<GateJson, "line" | "holder"> {
  if (group === undefined) {
    return {};
  }
  const { value } = atPeakOf([group]);
  const left = group.live.bytes / value;
  const holder =
    left < 0.1
      ? "nothing any more: it was freed before the end"
      : `${formatBytes(group.live.bytes)} of it live at the end`;
  return { line: { frame: group.headline, bytes: value }, holder };
}

/**
 * The line of the function that is furthest above its range in the baseline; a function that is not in the baseline
 * has the range 0.
 */
function grown({ sites }: Baseline, { groups }: Measured): Pick<GateJson, "line" | "holder"> {
  const excess = (group: SiteGroup) =>
    atPeakOf([group]).value - (sites.get(siteName(group))?.high ?? 0);
  const [first] = groups.toSorted((a, b) => excess(b) - excess(a));
  return lineOf(first);
}

/** The verdict's suspect; if it has none, the line that grew most after the first third. */
function growerOf({ diagnosis, mostGrown }: Measured): Pick<GateJson, "line" | "holder"> {
  const site = diagnosis.suspects.length > 0 ? null : mostGrown();
  const frame = site === null ? undefined : ownFrame(site.stack);
  if (site === null || frame === undefined) {
    return suspectOf(diagnosis);
  }
  const { growthBytes, standardErrorBytes } = site;
  return {
    line: { frame, bytes: site.liveBytesB },
    holder: `not known; ${formatBytes(growthBytes)} ±${formatBytes(2 * standardErrorBytes)} of it since the first third of the run`,
  };
}

function suspectOf({ suspects }: DiagnosisJson): Pick<GateJson, "line" | "holder"> {
  const [first] = suspects;
  const frame = first === undefined ? undefined : ownFrame(first.stack);
  return {
    ...(first === undefined || frame === undefined
      ? {}
      : { line: { frame, bytes: first.liveBytes } }),
    ...(first?.holder === undefined ? {} : { holder: holderText(first.holder) }),
  };
}

function holderText({
  path,
  entries,
  retainedBytes,
}: NonNullable<DiagnosisJson["suspects"][number]["holder"]>): string {
  const facts = [
    entries > 0 ? `${formatExactCount(entries)} entries` : "",
    retainedBytes > 0 ? formatBytes(retainedBytes) : "",
  ].filter((fact) => fact !== "");
  return `${holderPathText(path)}${facts.length > 0 ? ` (${facts.join(", ")})` : ""}`;
}
