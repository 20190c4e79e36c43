/** A verdict on selected rows states this, and their share of the whole process's growth. */
import { formatBytesBriefly, formatShare, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import type { Evidence } from "../evidence/evidence.js";
import type { Observations } from "../evidence/observations.js";
import { type Finding, open, type Rule } from "../rules/rule.js";
import { afterFirstThird, assessGrowth, smallestRise } from "../series/growth.js";
import type { Readings } from "../series/readings.js";
import { totalGrowth } from "../series/total_growth.js";
import { settledBy } from "../wording/window_needed.js";

const MS_PER_HOUR = 3_600_000;
const SHORTEST_SPAN_MS: Millis = 5000;
/** Rules that judge only sites. The others concern the memory of the whole process. */
const OF_SITES = new Set([
  "age-cohorts",
  "autograd-graph",
  "bounded-holder",
  "garbage-cycles",
  "native-memory",
  "plateau",
  "small-growth",
  "window",
]);

/** The rules that apply to the evidence; for selected rows only those that judge sites. */
export function rulesFor({ selection }: Evidence, rules: readonly Rule[]): readonly Rule[] {
  return selection === undefined ? rules : rules.filter(({ name }) => OF_SITES.has(name));
}

/** For selected rows without an accused site: whether their live bytes grow anyway. null if all rows are selected. */
export function selectionGrowth(observations: Observations): Finding | null {
  const { evidence, windowMs, suspects } = observations;
  if (evidence.selection === undefined || evidence.sites === undefined || suspects.length > 0) {
    return null;
  }
  const { snapshotTimes, sites, passing } = evidence.sites;
  const all = [...sites, ...passing];
  const values = snapshotTimes.map((_, snapshot) =>
    all.reduce((sum, { liveBytes }) => sum + (liveBytes[snapshot] ?? 0), 0),
  );
  const growth = assessGrowth({ times: snapshotTimes, values });
  if (growth.shape === "short" && !staysLevel({ times: snapshotTimes, values })) {
    return null;
  }
  return growth.shape === "growing"
    ? {
        ...open(
          `Live memory of these rows grows by ${formatSlopeBriefly(growth.slope)}, but no single site is known to keep it; ${settledBy(observations, 2 * windowMs)}.`,
          0.6,
          2 * windowMs,
        ),
        growth,
      }
    : {
        says: "no leak",
        kind: "steady",
        weight: 0.5,
        detail: `Live memory of these rows does not grow: ${formatBytesBriefly(values.at(-1) ?? 0)}.`,
      };
}

/** With few snapshots: the last two thirds of the window do not end significantly higher than they begin. */
function staysLevel(readings: Readings): boolean {
  const { times, values } = afterFirstThird(readings);
  const [first, last] = [values[0], values.at(-1)];
  const spanMs = (times.at(-1) ?? 0) - (times[0] ?? 0);
  return (
    first !== undefined &&
    last !== undefined &&
    spanMs >= SHORTEST_SPAN_MS &&
    last - first < smallestRise(spanMs, last)
  );
}

/** Returns the document unchanged if all rows are selected. */
export function withSelection(document: DiagnosisJson, { evidence }: Observations): DiagnosisJson {
  const { selection } = evidence;
  if (selection === undefined) {
    return document;
  }
  const { where, whole } = selection;
  const { root, members } = whole;
  const { slope, low, high, shape } = totalGrowth(root, members);
  const isKnown = shape !== "short" && low > 0;
  const own = Math.max(0, document.growth.bytesPerHour / MS_PER_HOUR);
  const share = isKnown ? Math.min(1, own / slope) : null;
  const memory = members > 1 ? "The memory of all processes" : "RSS of the whole process";
  const grows =
    share === null
      ? `${memory} shows no measurable growth.`
      : `${memory} grows by ${formatSlopeBriefly(slope)}, of which the selected sites explain ${formatShare(share)}.`;
  return {
    ...document,
    verdict: {
      ...document.verdict,
      summary: `${document.verdict.summary} This covers only ${where}. ${grows}`,
    },
    selection: {
      where,
      wholeBytesPerHour: Math.round(slope * MS_PER_HOUR),
      ...(shape === "short"
        ? {}
        : { wholeLow: Math.round(low * MS_PER_HOUR), wholeHigh: Math.round(high * MS_PER_HOUR) }),
      ...(share === null ? {} : { share }),
    },
  };
}
