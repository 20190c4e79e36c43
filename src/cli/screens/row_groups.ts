/** Live bytes by group, one row each: `summary --by thread`. */
import { formatBytes, formatCount, formatGrowth, formatShare } from "../../model/base/numbers.js";
import type { RowGroupJson } from "../../model/documents/documents.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { hasErrors, type ImportedFigure, isUnknown } from "../../model/profile/imported.js";
import { NO_VALUE } from "../../model/profile/row_filter.js";
import { type ListOptions, selectRows } from "../options/options.js";
import { formatTable, type Screen } from "../text/output.js";

export const DEFAULT_GROUPS = 15;

/** The name of a group, for people. */
export function groupName(group: string): string {
  return group === "" ? NO_VALUE : oneLine(group);
}

/** One table, with the growth of each group if the snapshots show it. */
export function printRowGroups(
  screen: Screen,
  {
    by,
    groups,
    when,
    imported,
  }: {
    readonly imported: SummaryJson["imported"];
    readonly by: string;
    readonly groups: readonly RowGroupJson[];
    readonly when: string;
  },
  options: ListOptions,
): void {
  const { paint } = screen;
  const known = (figure: ImportedFigure) => !isUnknown(imported, figure);
  const ifLive = (text: string) => (known("live") ? text : "unknown");
  const hasLive = known("live") || known("peak");
  const sizeOf = (row: RowGroupJson) => {
    if (!hasLive) {
      return row.allocatedBytes;
    }
    return known("live") ? row.liveBytes : row.liveBytesAtPeak;
  };
  const { rows, leftOut, unmatched } = selectRows(
    groups.filter((group) => !hasLive || group.liveBytes + group.liveBytesAtPeak > 0),
    options,
    DEFAULT_GROUPS,
    sizeOf,
    (row) => groupName(row.group),
  );
  const table = formatTable(
    screen,
    [
      { title: "LIVE", align: "right", paint: paint.bold },
      { title: "±", align: "right", paint: paint.dim },
      { title: "SHARE", align: "right" },
      { title: "AT PEAK", align: "right" },
      ...(hasLive ? [] : [{ title: "ALLOCATED", align: "right" as const }]),
      { title: "GROWTH", align: "right" },
      { title: "±", align: "right", paint: paint.dim },
      { title: "SITES", align: "right" },
      { title: by.toUpperCase(), flexible: "cutMiddle" },
    ],
    rows.map((row) => [
      ifLive(formatBytes(row.liveBytes)),
      ifLive(hasErrors(imported) ? formatBytes(row.standardErrorBytes) : "unknown"),
      ifLive(formatShare(row.share)),
      known("peak") ? formatBytes(row.liveBytesAtPeak) : "unknown",
      ...(hasLive ? [] : [formatBytes(row.allocatedBytes)]),
      ...growthCells(row),
      ifLive(formatCount(row.sites)),
      groupName(row.group),
    ]),
  );
  screen.line();
  const what = known("live") ? `Live bytes by ${oneLine(by)} ${when}` : `Memory by ${oneLine(by)}`;
  screen.line(paint.bold(what));
  for (const line of rows.length > 0 ? table : [paint.dim(`  ${unmatched ?? "none"}`)]) {
    screen.line(line);
  }
  if (leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(leftOut)} more`));
  }
}

/** Growth and half of its 95 % interval. */
function growthCells({
  growthBytesPerHour,
  growthLowBytesPerHour: low,
  growthHighBytesPerHour: high,
}: RowGroupJson): [string, string] {
  return growthBytesPerHour === undefined || low === undefined || high === undefined
    ? ["-", ""]
    : [formatGrowth(growthBytesPerHour), formatGrowth((high - low) / 2).replace(/^\+/, "")];
}
