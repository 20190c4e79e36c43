/** Columns that the tables of instances share. */
import type { TimeMs } from "../../../src/model/base/units.js";
import type { InstanceRowJson } from "../../../src/model/documents/fleet_document.js";
import { instanceStateText } from "../../../src/model/documents/instance_text.js";
import { formatDuration, formatGrowth } from "../format/numbers.js";
import type { Column } from "../widgets/DataTable.js";

export const VERSION: Column<Pick<InstanceRowJson, "version">> = {
  id: "version",
  name: "Version",
  track: "76px",
  wide: true,
  cell: (row) => row.version || "–",
  order: (row) => row.version,
};

export const PLACE: Column<Pick<InstanceRowJson, "pod" | "host">> = {
  id: "host",
  name: "Pod or host",
  track: "minmax(110px, 1.2fr)",
  wide: true,
  cell: (row) => row.pod || row.host,
  order: (row) => row.pod || row.host,
};

const STATES = ["running", "silent", "ended", "continued"];

type Stated = Pick<InstanceRowJson, "state" | "endedMs" | "lastSeenMs" | "continuedAs">;

/** `endMs`: of the window. */
export const stateColumn = (endMs: TimeMs, rows: readonly Stated[]): Column<Stated> => ({
  id: "state",
  name: "State",
  title:
    "At the end of the chosen time; silent: no reading for 5 minutes, and its end is not known",
  track: rows.some(({ state }) => state === "continued")
    ? "150px"
    : rows.every(({ state }) => state === "running")
      ? "52px"
      : "142px",
  narrowTrack: "60px",
  cell: (row) => (
    <>
      <span className="wide">{instanceStateText(row, endMs)}</span>
      <span className="narrow">{row.state === "running" ? "runs" : row.state}</span>
    </>
  ),
  order: (row) => STATES.indexOf(row.state),
});

/** Rows of instances that do not run, or whose growth is not measured, are last. */
export const GROWTH: Column<
  Pick<InstanceRowJson, "state"> & { readonly growthBytesPerHour?: number }
> = {
  id: "growth",
  name: "Growth",
  title: "Of this instance, while it ran",
  track: "100px",
  narrowTrack: "86px",
  numeric: true,
  cell: ({ state, growthBytesPerHour: growth }) => {
    const text = growth === undefined ? "–" : formatGrowth(growth);
    return state === "running" ? text : <span className="missing">{text}</span>;
  },
  order: ({ state, growthBytesPerHour: growth = Number.NaN }) =>
    state === "running" ? growth : Number.NaN,
};

export const LIMIT_IN: Column<Pick<InstanceRowJson, "msToLimit">> = {
  id: "limit",
  name: "Limit in",
  title: "Until this instance reaches its limit at this growth",
  track: "100px",
  numeric: true,
  wide: true,
  cell: (row) => (row.msToLimit === 0 ? "–" : formatDuration(row.msToLimit)),
  order: (row) => row.msToLimit || Number.NaN,
};
