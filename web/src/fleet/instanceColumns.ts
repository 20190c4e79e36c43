/** Columns that the tables of instances share. */
import type { InstanceRowJson } from "../../../src/model/documents/fleet_document.js";
import { formatGrowth } from "../format/numbers.js";
import type { Column } from "../widgets/DataTable.js";

export const VERSION: Column<Pick<InstanceRowJson, "version">> = {
  id: "version",
  name: "Version",
  track: "90px",
  wide: true,
  cell: (row) => row.version || "–",
  order: (row) => row.version,
};

export const PLACE: Column<Pick<InstanceRowJson, "pod" | "host">> = {
  id: "host",
  name: "Pod or host",
  track: "minmax(110px, 1fr)",
  wide: true,
  cell: (row) => row.pod || row.host,
  order: (row) => row.pod || row.host,
};

/** Where growth is not measured, the row is last. */
export const GROWTH: Column<{ readonly growthBytesPerHour?: number }> = {
  id: "growth",
  name: "Growth",
  track: "110px",
  numeric: true,
  cell: (row) =>
    row.growthBytesPerHour === undefined ? "–" : formatGrowth(row.growthBytesPerHour),
  order: (row) => row.growthBytesPerHour ?? Number.NaN,
};
