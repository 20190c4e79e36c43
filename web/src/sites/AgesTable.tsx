/** When live memory was allocated: memory that is allocated continually and never freed leaks. */

import { useMemo } from "react";
import { float64At } from "../../../src/model/base/columns.js";
import type { ProfileSnapshot } from "../../../src/model/profile/profile.js";
import { medianAge } from "../../../src/model/profile/site_groups.js";
import { formatBytes, formatDuration, formatElapsed } from "../format/numbers.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { Histogram } from "../widgets/Histogram.js";
import { functionColumn, placeColumn } from "./columns.js";
import {
  emptyTable,
  type NamedGroup,
  placeOf,
  type SiteViewProps,
  useGroups,
} from "./useGroups.js";

export function AgesTable(props: SiteViewProps) {
  const { report, snapshot } = props;
  const groups = useGroups(props);
  const startMs = report.summary.window.startMs;
  const surviving = useMemo(() => groups.filter((group) => group.liveBytes > 0), [groups]);
  const columns = useMemo(
    () => (snapshot ? ageColumns(snapshot, startMs) : []),
    [snapshot, startMs],
  );
  const all = useMemo(() => {
    const sums = new Float64Array(snapshot?.cohorts.length ?? 0);
    for (const { cohortBytes } of surviving) {
      for (let cohort = 0; cohort < sums.length; cohort++) {
        sums[cohort] = float64At(sums, cohort) + float64At(cohortBytes, cohort);
      }
    }
    return sums;
  }, [surviving, snapshot]);

  if (snapshot !== null && snapshot.cohorts.length === 0 && surviving.length > 0) {
    return (
      <p className="empty">
        This snapshot has no allocation times, because the agent had not recorded any yet.
      </p>
    );
  }
  return (
    <>
      {snapshot !== null && surviving.length > 0 && (
        <div className="overview">
          <h3>Live bytes by time of allocation</h3>
          <Histogram
            bars={Array.from(all, (bytes, cohort) => ({
              value: bytes,
              label: cohortEnd(snapshot, cohort, startMs),
              title: `allocated before ${cohortEnd(snapshot, cohort, startMs)}: ${formatBytes(bytes)}`,
            }))}
          />
          <p className="note">
            oldest on the left. A cache fills once and then stays old. A leak keeps adding, so every
            cohort has a share.
          </p>
        </div>
      )}
      <DataTable
        name="Ages of survivors by site"
        rows={surviving}
        columns={columns}
        keyOf={(group) => group.key}
        sortedBy="live"
        open={(group) => props.searchFor(placeOf(group))}
        empty={emptyTable(props)}
      />
    </>
  );
}

function ageColumns(snapshot: ProfileSnapshot, startMs: number): Column<NamedGroup>[] {
  return [
    functionColumn,
    placeColumn,
    {
      id: "live",
      name: "Live",
      track: "5.8rem",
      numeric: true,
      cell: (group) => formatBytes(group.liveBytes),
      order: (group) => group.liveBytes,
    },
    {
      id: "age",
      name: "Median age",
      title: "Half of the live bytes are older",
      track: "6.6rem",
      numeric: true,
      cell: (group) => formatDuration(medianAge(group, snapshot, startMs)),
      order: (group) => medianAge(group, snapshot, startMs),
    },
    {
      id: "births",
      name: "Allocated, oldest to newest",
      title: "Sorted by how evenly allocation times are spread; a leak's are",
      track: "minmax(7rem, 1.6fr)",
      cell: (group) => <Cohorts bytes={group.cohortBytes} snapshot={snapshot} startMs={startMs} />,
      order: (group) => spread(group.cohortBytes),
      largestFirst: true,
    },
  ];
}

/** The latest allocation time of a cohort; the last cohort ends at the snapshot. */
function cohortEnd({ cohorts, timeMs }: ProfileSnapshot, cohort: number, startMs: number): string {
  return formatElapsed(Math.min(cohorts[cohort] ?? timeMs, timeMs), startMs);
}

function Cohorts({
  bytes,
  snapshot,
  startMs,
}: {
  bytes: Float64Array;
  snapshot: ProfileSnapshot;
  startMs: number;
}) {
  const most = bytes.reduce((a, b) => Math.max(a, b), 0);
  return (
    <span className="cohorts">
      {Array.from(bytes, (value, cohort) => (
        <i
          key={snapshot.cohorts[cohort]}
          style={{ "--share": most > 0 ? value / most : 0 } as React.CSSProperties}
          title={`allocated before ${cohortEnd(snapshot, cohort, startMs)}: ${formatBytes(value)}`}
        />
      ))}
    </span>
  );
}

/** Share of cohorts that a site's bytes would fill if spread evenly: exp(entropy) divided by the number of cohorts. */
function spread(bytes: Float64Array): number {
  const total = bytes.reduce((a, b) => a + b, 0);
  if (!(total > 0)) {
    return 0;
  }
  let entropy = 0;
  for (const value of bytes) {
    if (value > 0) {
      entropy -= (value / total) * Math.log(value / total);
    }
  }
  return Math.exp(entropy) / bytes.length;
}
