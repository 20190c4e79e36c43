/** One service: its memory over time, its profile, its instances and its events. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useLocation } from "wouter";
import type { Millis, TimeMs } from "../../../src/model/base/units.js";
import type { InstanceRowJson, ServiceJson } from "../../../src/model/documents/fleet_document.js";
import {
  restCountsText,
  serviceStateText,
  serviceVerdictText,
} from "../../../src/model/documents/instance_text.js";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatGrowth,
  formatWallClock,
} from "../format/numbers.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { Course } from "./Course.js";
import { askService } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { useNow } from "./frame/live.js";
import { serviceAddress, type TimeRange, useAddress } from "./frame/timeRange.js";
import { GROWTH, PLACE, stateColumn, VERSION } from "./instanceColumns.js";
import { ProfileRequest } from "./ProfileRequest.js";
import { ProfilePanel } from "./profile/ProfilePanel.js";
import type { PageProps } from "./ServicesPage.js";
import { VerdictMark } from "./VerdictMark.js";

/** How long a reading holds if no other follows. */
const HELD_MS: Millis = 300_000;

export function ServicePage({ name, theme, toggleTheme }: PageProps & { name: string }) {
  const address = useAddress(useNow());
  const { range } = address;
  const query = useQuery({
    queryKey: ["service", name, range],
    queryFn: () => askService(name, range),
    placeholderData: keepPreviousData,
  });
  const document = query.data;
  const path = [
    ["Services", "/"],
    [name, serviceAddress(name, address.search)],
  ] as const;
  const fitted = useMemo(() => fittedRange(document, address), [document, address]);
  return (
    <Frame path={path} theme={theme} toggleTheme={toggleTheme} chosen={address}>
      {document === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <>
          <Figures document={document} />
          <ProfileRequest service={name} />
          <Course
            name={name}
            range={fitted}
            theme={theme}
            address={address}
            hasRss={document.instances.some(({ source }) => source === undefined)}
            instances={document.instances.length}
          />
          <ProfilePanel
            service={name}
            range={fitted}
            theme={theme}
            instances={document.instances}
            address={address}
          />
          <Instances document={document} />
          <Happened document={document} />
        </>
      )}
    </Frame>
  );
}

/** A range up to now is shown from its first to its last report. Memory is averaged over the range, and a program that ran
for a minute would otherwise be a thin line in an hour. */
function fittedRange(
  document: ServiceJson | undefined,
  { span, range }: { span: string | null; range: TimeRange },
): TimeRange {
  const instances = document?.instances ?? [];
  if (span === null || instances.length === 0) {
    return range;
  }
  const startMs = Math.max(range.startMs, Math.min(...instances.map((row) => row.startedMs)));
  const last = Math.max(...instances.map((row) => row.endedMs ?? row.lastSeenMs + HELD_MS));
  const endMs = Math.min(range.endMs, last);
  return endMs - startMs < 1000 ? range : { startMs, endMs };
}

function Figures({ document: { summary, window } }: { document: ServiceJson }) {
  const isRunning = summary.state === "running";
  const figures = [
    [
      "Running",
      isRunning ? formatCount(summary.instances) : serviceStateText(summary, window.endMs),
      restCountsText(summary),
    ],
    ["RSS", isRunning ? formatBytes(summary.rssBytes) : "–", "of all instances that run"],
    [
      "Total growth",
      summary.growthBytesPerHour === undefined ? "–" : formatGrowth(summary.growthBytesPerHour),
      "sum over instances that run",
    ],
    [
      "Limit",
      summary.limitBytes === 0 ? "none" : formatBytes(summary.limitBytes),
      [
        summary.instances > 1 && summary.limitBytes > 0 ? "sum over instances" : "",
        summary.msToLimit === 0
          ? ""
          : `first instance reaches its own in ${formatDuration(summary.msToLimit)}`,
        summary.highBytes === undefined ? "" : `throttled above ${formatBytes(summary.highBytes)}`,
      ]
        .filter((note) => note !== "")
        .join("; "),
    ],
    ["Versions", summary.versions.join(", ") || "–", ""],
  ] as const;
  return (
    <section className="fleet-summary" aria-label="Summary">
      <dl className="figures">
        {figures.map(([name, value, note]) => (
          <div key={name} className="figure">
            <dt>{name}</dt>
            <dd className="value">{value}</dd>
            <dd className="note">{note}</dd>
          </div>
        ))}
      </dl>
      {summary.verdict.kind !== "none" && (
        <p className="fleet-verdict">
          <VerdictMark verdict={summary.verdict} of={summary.instances} />{" "}
          {serviceVerdictText(summary.verdict, summary.instances)}
        </p>
      )}
    </section>
  );
}

function Instances({ document }: { document: ServiceJson }) {
  const [, go] = useLocation();
  const { endMs } = document.window;
  const { instances } = document;
  const columns = useMemo(() => columnsOf(endMs, instances), [endMs, instances]);
  return (
    <section className="panel" aria-label="Instances">
      <h2 className="fleet-heading">Instances</h2>
      <DataTable
        name="Instances"
        rows={instances}
        columns={columns}
        keyOf={(row) => row.stream}
        sortedBy="rss"
        open={(row) => go(`/instance/${row.stream}`)}
        empty="No instance reported in this time."
      />
      {document.limits.map((sentence) => (
        <p key={sentence} className="note fleet-note">
          {sentence}
        </p>
      ))}
    </section>
  );
}

const columnsOf = (
  endMs: TimeMs,
  rows: readonly InstanceRowJson[],
): readonly Column<InstanceRowJson>[] => [
  {
    id: "instance",
    name: "Instance",
    track: "76px",
    narrowTrack: "64px",
    cell: (row) => <code>{row.stream.slice(0, 8)}</code>,
    order: (row) => row.stream,
  },
  VERSION,
  PLACE,
  {
    id: "pid",
    name: "PID",
    track: "60px",
    numeric: true,
    wide: true,
    cell: (row) => (row.pid === 0 ? "–" : row.pid),
    order: (row) => row.pid,
  },
  {
    id: "command",
    name: "Command",
    track: "minmax(100px, 1.6fr)",
    wide: true,
    cell: (row) =>
      row.source === undefined ? <code>{row.command}</code> : `profiles from ${row.source}`,
    order: (row) => row.command,
  },
  stateColumn(endMs, rows),
  {
    id: "rss",
    name: "RSS",
    title: "Of the program and its child processes, at the last reading",
    track: rows.some(({ source }) => source !== undefined) ? "100px" : "76px",
    narrowTrack: rows.some(({ source }) => source !== undefined) ? "84px" : "68px",
    numeric: true,
    cell: (row) =>
      row.source === undefined
        ? formatBytes(row.rssBytes)
        : row.liveBytes === undefined
          ? "unknown"
          : `${formatBytes(row.liveBytes)} live`,
    order: (row) => row.rssBytes,
  },
  {
    id: "peak",
    name: "Peak",
    track: "76px",
    numeric: true,
    wide: true,
    cell: (row) => (row.source === undefined ? formatBytes(row.peakRssBytes) : "–"),
    order: (row) => row.peakRssBytes,
  },
  { ...GROWTH, wide: true },
  {
    id: "verdict",
    name: "Verdict",
    track: "minmax(116px, 0.6fr)",
    narrowTrack: "minmax(90px, 106px)",
    cell: (row) => <VerdictMark verdict={row.verdict} />,
    order: (row) => row.verdict.kind,
  },
];

function Happened({ document: { events } }: { document: ServiceJson }) {
  if (events.length === 0) {
    return null;
  }
  return (
    <section className="panel" aria-label="Events">
      <h2 className="fleet-heading">Events</h2>
      <ul className="fleet-events">
        {events.slice(0, 50).map(({ timeMs, stream, pid, kind, detail }) => (
          <li key={`${timeMs} ${stream} ${pid} ${kind} ${detail}`}>
            <time>{formatWallClock(timeMs, true)}</time> <b>{kind}</b> {detail}{" "}
            <span className="note">
              process {pid} of <code>{stream.slice(0, 8)}</code>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
