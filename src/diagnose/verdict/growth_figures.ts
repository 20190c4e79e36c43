/** The figures of growth that go with a verdict: its own, and those of each part of the ledger. */

import { interval95 } from "../../model/base/interval.js";
import type { DiagnosisJson } from "../../model/documents/diagnosis_document.js";
import { LEDGER_PARTS } from "../../model/profile/ledger.js";
import { ledgerMetric, type Metric } from "../../model/profile/series.js";
import { sitesExceed } from "../causes/exceeding_sites.js";
import { bytesPerStep } from "../evidence/bytes_per_step.js";
import type { Observations } from "../evidence/observations.js";
import type { Finding } from "../rules/rule.js";
import { isFirm, type Slope } from "../series/growth.js";
import type { SiteJudgement } from "../sites/suspects.js";
import { deviceGrowth } from "./device_suspects.js";

const MS_PER_HOUR = 3_600_000;

/**
 * The growth of the process tree, as the header shows it; if the tree does not grow, the growth of the part that the
 * verdict names, or of the suspects.
 */
export function growthOf(
  observations: Observations,
  decisive: Finding | null,
  accused: readonly SiteJudgement[],
): DiagnosisJson["growth"] {
  const { evidence, target, total } = observations;
  if (decisive?.deviceSites !== undefined) {
    return deviceGrowth(decisive.deviceSites);
  }
  const ofSites = !isFirm(total) && decisive?.growth === undefined && accused.length > 0;
  const counted: Slope = ofSites
    ? sumOf(accused)
    : isFirm(total)
      ? total
      : (decisive?.growth ?? total);
  const limits = target.readings("cgroupLimitBytes").values;
  const usage = target.readings("cgroupUsageBytes").values;
  const limitBytes = limits.at(-1) ?? 0;
  const left = limitBytes - (usage.at(-1) ?? total.level);
  const ranOut = (evidence.memoryEnds ?? []).length > 0;
  const leaks = decisive?.says === "leak" && counted.slope > 0 && !ranOut;
  const perStep = bytesPerStep(evidence, counted.slope);
  return {
    bytesPerHour: Math.round(counted.slope * MS_PER_HOUR),
    low: Math.round(counted.low * MS_PER_HOUR),
    high: Math.round(counted.high * MS_PER_HOUR),
    limitBytes,
    msToLimit: leaks && limitBytes > 0 ? Math.max(0, Math.round(left / counted.slope)) : 0,
    ...(perStep === null ? {} : { bytesPerStep: perStep }),
    // Too short a window has no rate in the header.
    ...(ofSites && total.shape !== "short" ? { ofLiveBytes: true as const } : {}),
    ...(accused.length > 0 && sitesExceed(observations) ? { sitesExceed: true as const } : {}),
  };
}

/**
 * Each site's error comes from sampling alone, and sites are independent. A slope is kept bytes divided by time, so
 * its interval is that of a sum of samples.
 */
function sumOf(accused: readonly SiteJudgement[]): Slope {
  const slope = accused.reduce((sum, suspect) => sum + suspect.slope, 0);
  const variance = accused.reduce((sum, { site, slope: own, keptBytes }) => {
    const live = site.liveBytes.at(-1) ?? 0;
    // The standard error of the kept bytes, from their share of the samples.
    const error =
      live > 0 && keptBytes > 0 ? site.standardErrorBytes * Math.sqrt(keptBytes / live) : 0;
    return sum + (keptBytes > 0 ? ((error / keptBytes) * own) ** 2 : 0);
  }, 0);
  return { slope, ...interval95(slope, Math.sqrt(variance)) };
}

const KERNEL_PARTS: readonly (readonly [Metric, string])[] = [
  ["anonRssBytes", "anonymous"],
  ["fileRssBytes", "file.mapped"],
  ["shmemRssBytes", "shm"],
];

export function partsOf({ target }: Observations): DiagnosisJson["ledger"] {
  const rows = (parts: readonly (readonly [Metric, string])[]) =>
    parts.flatMap(([metric, part]) => {
      const bytes = target.readings(metric).values.at(-1);
      const { slope, low, high } = target.growth(metric);
      // A rate that the readings do not show is not stated.
      const growthBytesPerHour = low > 0 || high < 0 ? Math.round(slope * MS_PER_HOUR) : 0;
      return bytes === undefined ? [] : [{ part, bytes: Math.round(bytes), growthBytesPerHour }];
    });
  const ledger = rows(LEDGER_PARTS.map((part) => [ledgerMetric(part), part]));
  const kernel = rows(KERNEL_PARTS);
  const isLedgerMeasured = LEDGER_PARTS.some(
    (part) => target.growth(ledgerMetric(part)).shape !== "short",
  );
  return ledger.length > 0 && (isLedgerMeasured || kernel.length === 0) ? ledger : kernel;
}
