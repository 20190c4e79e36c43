/**
 * Temporary allocations: allocated often and soon freed. They cost time and raise the peak, but live bytes do
 * not show them.
 */

import { useMemo } from "react";
import { float64At } from "../../../src/model/base/columns.js";
import { LIFETIME_BUCKETS } from "../../../src/model/profile/profile.js";
import { medianLifetime } from "../../../src/model/profile/site_groups.js";
import { formatBytes, formatCount, formatDuration, formatShare } from "../format/numbers.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { Histogram } from "../widgets/Histogram.js";
import { domainColumn, functionColumn, placeColumn } from "./columns.js";
import {
  emptyTable,
  type NamedGroup,
  placeOf,
  type SiteViewProps,
  useGroups,
} from "./useGroups.js";

export function LifetimesTable(props: SiteViewProps) {
  const groups = useGroups(props);
  const { snapshot } = props;
  const columns = useMemo(() => lifetimeColumns((snapshot?.durationMs ?? 0) / 1000), [snapshot]);
  const churning = useMemo(() => groups.filter((group) => freedBytes(group) > 0), [groups]);
  const all = useMemo(() => {
    const sums = new Float64Array(LIFETIME_BUCKETS);
    for (const { lifetimes } of churning) {
      for (let bucket = 0; bucket < LIFETIME_BUCKETS; bucket++) {
        sums[bucket] = float64At(sums, bucket) + float64At(lifetimes, bucket);
      }
    }
    return sums;
  }, [churning]);
  return (
    <>
      {churning.length > 0 && (
        <div className="overview">
          <h3>Freed objects by lifetime</h3>
          <Histogram
            bars={Array.from(all, (objects, bucket) => ({
              value: objects,
              label: formatDuration(2 ** bucket),
              title: `${bucketWords(bucket)}: ${formatCount(objects)} objects`,
            }))}
          />
        </div>
      )}
      <DataTable
        name="Temporaries by site"
        rows={churning}
        columns={columns}
        keyOf={(group) => group.key}
        sortedBy="freed"
        open={(group) => props.searchFor(placeOf(group))}
        empty={
          groups.length > 0
            ? "Nothing has been freed yet: all sampled allocations are still live."
            : emptyTable(props)
        }
      />
    </>
  );
}

function freedBytes(group: NamedGroup): number {
  return Math.max(group.allocatedBytes - group.liveBytes, 0);
}

function bucketWords(bucket: number): string {
  if (bucket === 0) {
    return "under 1 ms";
  }
  const from = formatDuration(2 ** (bucket - 1));
  return bucket === LIFETIME_BUCKETS - 1
    ? `over ${from}`
    : `${from} to ${formatDuration(2 ** bucket)}`;
}

function lifetimeColumns(seconds: number): Column<NamedGroup>[] {
  return [
    functionColumn,
    placeColumn,
    {
      id: "freed",
      name: "Freed",
      title: "Allocated and no longer live",
      track: "6.6rem",
      numeric: true,
      cell: (group) => formatBytes(freedBytes(group)),
      order: freedBytes,
    },
    {
      id: "rate",
      name: "Per second",
      track: "6.4rem",
      numeric: true,
      wide: true,
      cell: (group) => (seconds > 0 ? `${formatBytes(group.allocatedBytes / seconds)}` : "–"),
      order: (group) => group.allocatedBytes,
    },
    {
      id: "temporary",
      name: "Temporary",
      title: "Share of the allocated bytes that were freed",
      track: "5.6rem",
      numeric: true,
      wide: true,
      cell: (group) =>
        formatShare(
          group.allocatedBytes > 0 ? freedBytes(group) / group.allocatedBytes : Number.NaN,
        ),
      order: (group) =>
        group.allocatedBytes > 0 ? freedBytes(group) / group.allocatedBytes : Number.NaN,
    },
    {
      id: "lifetime",
      name: "Lifetime",
      title: "Half of the freed objects had a shorter lifetime",
      track: "5.6rem",
      numeric: true,
      cell: (group) => formatDuration(medianLifetime(group)),
      order: medianLifetime,
    },
    {
      id: "shape",
      name: "Lifetimes, short to long",
      track: "minmax(7rem, 1.2fr)",
      wide: true,
      cell: (group) => <Shape lifetimes={group.lifetimes} />,
      order: medianLifetime,
    },
    domainColumn(true),
  ];
}

function Shape({ lifetimes }: { lifetimes: Float64Array }) {
  const most = lifetimes.reduce((a, b) => Math.max(a, b), 0);
  return (
    <span className="cohorts">
      {Array.from(lifetimes, (objects, bucket) => (
        <i
          // biome-ignore lint/suspicious/noArrayIndexKey: buckets are identified by their number
          key={bucket}
          style={{ "--share": most > 0 ? objects / most : 0 } as React.CSSProperties}
          title={`${bucketWords(bucket)}: ${formatCount(objects)} objects`}
        />
      ))}
    </span>
  );
}
