import { basename } from "node:path";
import type { OnProgress } from "../../model/base/units.js";
import type { ReportDocument } from "../../model/documents/report_document.js";
import { foldSites } from "../../model/profile/fold_sites.js";
import { isUnknown } from "../../model/profile/imported.js";
import type { ProfileSnapshot, ProfileTables, SiteTable } from "../../model/profile/profile.js";
import type { RowCondition } from "../../model/profile/row_filter.js";
import { newSiteTable } from "../../model/profile/site_columns.js";
import type { Recording } from "../../recording/types.js";
import { diagnoseRecording, diagnosisPage } from "./diagnosis.js";
import { noSourceText, sourcesOf } from "./report_sources.js";
import { chosenRows } from "./rows/chosen_rows.js";
import { summarize } from "./summary.js";

/** More snapshots would enlarge the page without a visible gain in the timeline. */
const MOST_SNAPSHOTS = 60;
const NO_TABLES: ProfileTables = {
  strings: [""],
  frames: {
    length: 0,
    function: new Uint32Array(0),
    file: new Uint32Array(0),
    line: new Uint32Array(0),
    firstLine: new Uint32Array(0),
    kind: new Uint8Array(0),
    address: new Float64Array(0),
  },
  stacks: { length: 1, parent: new Uint32Array(1), frame: new Uint32Array(1) },
  processes: [],
  threads: [],
  labels: {
    length: 1,
    parent: new Uint32Array(1),
    key: new Uint32Array(1),
    value: new Uint32Array(1),
  },
};

/**
 * Everything that a report page shows of a recording, for only the rows that meet `where`. `onProgress` counts
 * snapshots. Throws TidemarkError if one is damaged, or for a condition that no row can meet.
 */
export async function buildReport(
  whole: Recording,
  onProgress: OnProgress,
  where: readonly RowCondition[] = [],
): Promise<ReportDocument> {
  const recording = chosenRows(whole, where);
  let tables: ProfileTables | null = null;
  const snapshots: ProfileSnapshot[] = [];
  const chosen = chooseSnapshots(recording);
  const peak = chosen.length > 0 ? recording.profileAt("peak").sites : null;
  for (const index of chosen) {
    const { timeMs, durationMs, sites, files, copies, cohorts, peakMs, ...rest } =
      recording.profileOf(index);
    tables = rest; // the last snapshot has every process's latest period
    snapshots.push({
      ...{ timeMs, durationMs, files, copies, cohorts, peakMs },
      sites: peak === null ? sites : withPeak(sites, peak, cohorts.length),
    });
    await onProgress(snapshots.length, chosen.length);
  }
  return {
    schema: "tidemark.report/1",
    title: basename(recording.path),
    summary: summarize(whole, "end", { where }),
    series: recording.series,
    events: recording.events,
    tables: tables ?? NO_TABLES,
    snapshots,
  };
}

/** The sites with the figures of the tree's peak, as the summary has them: those of an agent are at its own process's peak. */
function withPeak(sites: SiteTable, peak: SiteTable, cohorts: number): SiteTable {
  const { peakBytes, peakObjects, peakVariance } = newSiteTable(sites.length, 0);
  const { stack, process, thread, label, domain } = peak;
  const atPeak: SiteTable = {
    ...newSiteTable(peak.length, cohorts),
    ...{ stack, process, thread, label, domain },
    peakBytes: peak.liveBytes,
    peakObjects: peak.liveObjects,
    peakVariance: peak.liveVariance,
  };
  return foldSites([{ ...sites, peakBytes, peakObjects, peakVariance }, atPeak], cohorts);
}

/** Evenly by order, which is geometric in time; always includes the highest and the last. */
function chooseSnapshots({ snapshots }: Recording): number[] {
  if (snapshots.length === 0) {
    return [];
  }
  const last = snapshots.length - 1;
  const highest = snapshots.reduce(
    (best, snapshot, i) => (snapshot.liveBytes > (snapshots[best]?.liveBytes ?? 0) ? i : best),
    0,
  );
  const count = Math.min(snapshots.length, MOST_SNAPSHOTS - 2);
  const even = Array.from({ length: count }, (_, i) =>
    Math.round((i * last) / Math.max(1, count - 1)),
  );
  return [...new Set([...even, highest, last])].sort((a, b) => a - b);
}

function withSources({ meta }: Recording, report: ReportDocument): ReportDocument {
  const { tables, snapshots, summary } = report;
  const sources = sourcesOf(meta, tables, snapshots);
  if (sources.length > 0) {
    return { ...report, sources };
  }
  const why = noSourceText(meta, tables, snapshots);
  return why === undefined
    ? report
    : { ...report, summary: { ...summary, limits: [...summary.limits, why] } };
}

/** The report with its verdict and, with `source`, the program's own source text. `onProgress` counts snapshots twice, because they are read for the report and for the
 * verdict.
 * Throws as {@link buildReport}. */
export async function reportDocument(
  recording: Recording,
  onProgress: OnProgress,
  { where = [], source }: { where?: readonly RowCondition[] | undefined; source: boolean },
): Promise<ReportDocument> {
  const built = await buildReport(recording, onProgress, where);
  const report = source ? withSources(recording, built) : built;
  if (isUnknown(recording.meta.imported, "rss")) {
    return report; // A verdict is about the growth of RSS.
  }
  await onProgress(0, recording.snapshots.length);
  const diagnosis = await diagnoseRecording(recording, onProgress, where);
  return { ...report, diagnosis: diagnosisPage(diagnosis) };
}
