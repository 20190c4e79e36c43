/** Every allocation site with all its figures. */

import { useMemo } from "react";
import { float64At } from "../../../src/model/base/columns.js";
import type { SummaryJson } from "../../../src/model/documents/summary_document.js";
import {
  hasErrors,
  type ImportedFigure,
  isUnknown,
  precisionText,
} from "../../../src/model/profile/imported.js";
import { formatBytes, formatCount, formatShare } from "../format/numbers.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { domainColumn, functionColumn, placeColumn } from "./columns.js";
import {
  emptyTable,
  type NamedGroup,
  placeOf,
  type SiteViewProps,
  useGroups,
} from "./useGroups.js";

export function SitesTable(props: SiteViewProps) {
  const groups = useGroups(props);
  const total = useMemo(() => liveTotal(props), [props]);
  const { imported } = props.report.summary;
  const columns = useMemo(() => siteColumns(total, imported), [total, imported]);
  return (
    <DataTable
      name="Allocation sites"
      rows={groups}
      columns={columns}
      keyOf={(group) => group.key}
      sortedBy="live"
      open={(group) => props.searchFor(placeOf(group))}
      empty={emptyTable(props)}
    />
  );
}

/** Total of all rows that pass the filter, regardless of the search. */
function liveTotal({ snapshot, rows }: SiteViewProps): number {
  return snapshot === null
    ? 0
    : rows.reduce((sum, row) => sum + float64At(snapshot.sites.liveBytes, row), 0);
}

/** The figure of a column; a source that does not record it shows it as unknown. */
const FIGURES: Readonly<Record<string, ImportedFigure>> = {
  live: "live",
  peak: "peak",
  allocated: "allocated",
};

function siteColumns(total: number, imported: SummaryJson["imported"]): Column<NamedGroup>[] {
  const bytes = (
    id: string,
    name: string,
    of: (group: NamedGroup) => number,
    wide = false,
  ): Column<NamedGroup> => ({
    id,
    name,
    track: "5.8rem",
    numeric: true,
    wide,
    cell: (group) =>
      id in FIGURES && isUnknown(imported, FIGURES[id] as ImportedFigure)
        ? "unknown"
        : formatBytes(of(group)),
    order: of,
  });
  return [
    functionColumn,
    placeColumn,
    bytes("live", "Live", (group) => group.liveBytes),
    {
      id: "error",
      name: "± error",
      title: "Standard error of the live bytes; with fewer than ten samples it is only a hint",
      track: "5.8rem",
      numeric: true,
      wide: true,
      cell: (group) => (
        <span
          className={
            imported === undefined && group.liveBytes > 0 && group.liveSamples < 10 ? "hint" : ""
          }
          title={imported === undefined ? `${group.liveSamples} samples` : precisionText(imported)}
        >
          {!(group.liveBytes > 0)
            ? "–"
            : hasErrors(imported)
              ? formatBytes(Math.sqrt(group.liveVariance))
              : "unknown"}
        </span>
      ),
      order: (group) => group.liveVariance,
    },
    {
      id: "share",
      name: "Share",
      title: "Share of the live bytes that pass the filters",
      track: "5.4rem",
      numeric: true,
      cell: (group) => (
        <span
          className="share-bar"
          style={{ "--share": total > 0 ? group.liveBytes / total : 0 } as React.CSSProperties}
        >
          {total > 0 ? formatShare(group.liveBytes / total) : "–"}
        </span>
      ),
      order: (group) => group.liveBytes,
    },
    bytes("peak", "At peak", (group) => group.peakBytes, true),
    bytes("allocated", "Allocated", (group) => group.allocatedBytes, true),
    {
      id: "objects",
      name: "Objects",
      title: "Live objects",
      track: "4.8rem",
      numeric: true,
      wide: true,
      cell: (group) =>
        isUnknown(imported, "objects") ? "unknown" : formatCount(group.liveObjects),
      order: (group) => group.liveObjects,
    },
    domainColumn(!isUnknown(imported, "python")),
  ];
}
