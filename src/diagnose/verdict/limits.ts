import { formatDurationBriefly, formatSlopeBriefly } from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import { CALM_KINDS, type VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { Evidence } from "../evidence/evidence.js";
import type { Observations } from "../evidence/observations.js";
import { smallestRise } from "../series/growth.js";

/** The recorder has noted why there are none. */
const NOTED = /^(?:No holders were looked up|The holders of growing sites)/;

/** In a longer window a leak that is not seen is slow. */
const LONG_MS: Millis = 3_600_000;

/** After a short window a calm verdict says how slow a leak it may have missed. */
export function leastSeen({ total, windowMs }: Observations, kind: VerdictKind): string[] {
  const { shape, spanMs, level } = total;
  return CALM_KINDS.has(kind) && shape !== "short" && spanMs > 0 && windowMs < LONG_MS
    ? [
        `A slow leak may not show in ${formatDurationBriefly(windowMs)}: RSS counts as growing from about ${formatSlopeBriefly(smallestRise(spanMs, level) / spanMs)}.`,
      ]
    : [];
}

/** Evidence that the verdict lacks, as sentences for the reader. */
export function missingEvidence(
  { sites, holders = [], processes, snapshots, importedFrom, limits }: Evidence,
  kind: VerdictKind,
): string[] {
  const isPolled = processes.some(({ series }) => series.timesMs.length > 0);
  if (snapshots && !isPolled) {
    return []; // a snapshot alone does not show the host's memory
  }
  const hasLedger = processes[0]?.series.values.has("ledger.malloc.used") ?? false;
  const isSplit = processes[0]?.series.values.has("anonRssBytes") ?? false;
  return [
    ...(sites
      ? []
      : [
          importedFrom !== undefined
            ? `The file of ${importedFrom} contains no allocation sites.`
            : processes.some(({ profiled }) => profiled)
              ? "The recording ends before its first profile, so allocation sites are not known."
              : "No agent ran, so allocation sites are not known.",
        ]),
    ...(holders.length > 0 || CALM_KINDS.has(kind) || limits.some((limit) => NOTED.test(limit))
      ? []
      : [
          importedFrom === undefined
            ? "The objects that keep the memory are unknown: holders were not looked up, or the lookup found none."
            : `The objects that keep the memory are unknown: files of ${importedFrom} do not contain them.`,
        ]),
    ...(hasLedger || !isSplit
      ? []
      : ["No ledger was taken: RSS is split into private, file and shared pages only."]),
  ];
}
