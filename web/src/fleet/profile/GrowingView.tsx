/** What grew in the chosen time, and how much of what was allocated in it survived. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { GrowingJson } from "../../../../src/model/documents/fleet_document.js";
import { formatBytes, formatGrowth } from "../../format/numbers.js";
import { askGrowing } from "../frame/api.js";
import { Waiting } from "../frame/Frame.js";
import type { TimeRange } from "../frame/timeRange.js";
import { othersNote, type StackFigure, StackTable } from "./StackTable.js";

interface GrowingViewProps {
  service: string;
  range: TimeRange;
  /** null: all. */
  version: string | null;
}

export function GrowingView({ service, range, version }: GrowingViewProps) {
  const query = useQuery({
    queryKey: ["growing", service, range, version],
    queryFn: () => askGrowing(service, range, version),
    placeholderData: keepPreviousData,
  });
  if (query.data === undefined) {
    return <Waiting error={query.error} />;
  }
  const { earlyBytes, lateBytes, growthBytesPerHour, stacks, other, limits } = query.data;
  return (
    <>
      <p className="fleet-sentence">
        <b>{formatGrowth(growthBytesPerHour)}</b>: {formatBytes(earlyBytes)} live in the first
        quarter of this time, {formatBytes(lateBytes)} in the last.
      </p>
      <StackTable
        name="Growing stacks"
        rows={stacks}
        figures={FIGURES}
        sortedBy="growth"
        empty="No process of this service has a profile in this time."
        notes={[...othersNote(other.stacks, formatGrowth(other.growthBytesPerHour)), ...limits]}
      />
    </>
  );
}

const FIGURES: readonly StackFigure<GrowingJson["stacks"][number]>[] = [
  {
    id: "growth",
    name: "Total growth",
    title: "Sum over instances, from the first quarter of this time to the last",
    of: (row) => row.growthBytesPerHour,
    text: (row) => formatGrowth(row.growthBytesPerHour),
  },
  {
    id: "early",
    name: "First quarter",
    title: "Live bytes, the mean over the first quarter of this time",
    wide: true,
    of: (row) => row.earlyBytes,
    text: (row) => formatBytes(row.earlyBytes),
  },
  {
    id: "late",
    name: "Last quarter",
    title: "Live bytes, the mean over the last quarter of this time",
    wide: true,
    of: (row) => row.lateBytes,
    text: (row) => formatBytes(row.lateBytes),
  },
  {
    id: "survived",
    name: "Survived",
    title: "Allocated in this time, still live at its end, and older than a tenth of it",
    of: (row) => row.survivedBytes ?? Number.NaN,
    text: (row) => (row.survivedBytes === undefined ? "–" : formatBytes(row.survivedBytes)),
  },
];
