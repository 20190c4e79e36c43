/** The members of the process tree, and the events. */
import { useMemo } from "react";
import type { Bytes } from "../../../src/model/base/units.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import type { SummaryJson } from "../../../src/model/documents/summary_document.js";
import type { TimelineEvent } from "../../../src/model/profile/series.js";
import { formatBytes, formatElapsed } from "../format/numbers.js";
import { matcher } from "../frames/frameNames.js";
import { type Column, DataTable } from "../widgets/DataTable.js";

type ProcessRow = SummaryJson["processes"][number];

export function ProcessesTable({ report, search }: { report: ReportDocument; search: string }) {
  const startMs = report.summary.window.startMs;
  const test = useMemo(
    () => (search === "" ? () => true : (matcher(search) ?? (() => false))),
    [search],
  );
  const processes = report.summary.processes.filter((one) =>
    test(`${one.pid} ${one.command.join(" ")}`),
  );
  const events = useMemo(
    () => report.events.filter((event) => test(`${event.pid} ${event.kind} ${event.detail}`)),
    [report, test],
  );
  const columns = useMemo(() => eventColumns(startMs), [startMs]);
  return (
    <div className="stacked">
      <DataTable
        name="Processes"
        rows={processes}
        columns={report.summary.imported === undefined ? PROCESS_COLUMNS : IMPORTED_COLUMNS}
        keyOf={(one) => `${one.pid} ${report.summary.processes.indexOf(one)}`}
        sortedBy="peak"
        empty="No process matches."
      />
      <h3>Events</h3>
      <DataTable
        name="Events"
        rows={events}
        columns={columns}
        keyOf={(one) => report.events.indexOf(one)}
        sortedBy="time"
        empty="No events were recorded."
      />
    </div>
  );
}

function readingText(bytes: Bytes | null) {
  return bytes === null ? (
    <span title="It started and ended between two readings">–</span>
  ) : (
    formatBytes(bytes)
  );
}

const PROCESS_COLUMNS: readonly Column<ProcessRow>[] = [
  { id: "pid", name: "pid", track: "5rem", cell: (one) => one.pid, order: (one) => one.pid },
  {
    id: "parent",
    name: "Parent",
    track: "5rem",
    wide: true,
    cell: (one) => one.parentPid,
    order: (one) => one.parentPid,
  },
  {
    id: "command",
    name: "Command",
    track: "minmax(8rem, 2fr)",
    cell: (one) => (
      <code title={one.command.join(" ")}>{one.command.join(" ") || "(unknown)"}</code>
    ),
    order: (one) => one.command.join(" "),
  },
  {
    id: "python",
    name: "Python",
    track: "5rem",
    wide: true,
    cell: (one) => one.python || "–",
    order: (one) => one.python,
  },
  {
    id: "peak",
    name: "Peak RSS",
    track: "6rem",
    numeric: true,
    cell: (one) => readingText(one.peakRssBytes),
    order: (one) => one.peakRssBytes ?? 0,
  },
  {
    id: "end",
    name: "Final RSS",
    track: "6rem",
    numeric: true,
    cell: (one) => readingText(one.endRssBytes),
    order: (one) => one.endRssBytes ?? 0,
  },
  {
    id: "profiled",
    name: "Profiled",
    title: "Whether the agent ran in it; otherwise only figures from /proc are known",
    track: "5rem",
    wide: true,
    cell: (one) => (one.profiled ? "yes" : "no"),
    order: (one) => Number(one.profiled),
  },
];

/** The agent runs in no process of another tool's file. */
const IMPORTED_COLUMNS = PROCESS_COLUMNS.filter(({ id }) => id !== "profiled");

function eventColumns(startMs: number): Column<TimelineEvent>[] {
  return [
    {
      id: "time",
      name: "Time",
      track: "6rem",
      cell: (one) => formatElapsed(one.timeMs, startMs),
      order: (one) => one.timeMs,
    },
    { id: "pid", name: "pid", track: "5rem", cell: (one) => one.pid, order: (one) => one.pid },
    {
      id: "kind",
      name: "Event",
      track: "8rem",
      cell: (one) => one.kind.replace("-", " "),
      order: (one) => one.kind,
    },
    {
      id: "detail",
      name: "Detail",
      track: "minmax(6rem, 2fr)",
      cell: (one) => <span title={one.detail}>{one.detail}</span>,
      order: (one) => one.detail,
    },
  ];
}
