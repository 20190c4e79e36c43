/** All services: which run, how much memory they use, how fast it grows, and the verdict. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useLocation } from "wouter";
import type { TimeMs } from "../../../src/model/base/units.js";
import type { AlertsJson } from "../../../src/model/documents/alert_document.js";
import type { ServiceRowJson } from "../../../src/model/documents/fleet_document.js";
import { serviceStateText } from "../../../src/model/documents/instance_text.js";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatGrowth,
  formatShare,
} from "../format/numbers.js";
import type { Theme } from "../theme/theme.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { askAlerts, askServices } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { useNow } from "./frame/live.js";
import { SearchField } from "./frame/SearchField.js";
import { serviceAddress, useAddress } from "./frame/timeRange.js";
import { Sparkline } from "./Sparkline.js";
import { VerdictMark } from "./VerdictMark.js";

export interface PageProps {
  theme: Theme;
  toggleTheme: () => void;
}

export function ServicesPage({ theme, toggleTheme }: PageProps) {
  const nowMs = useNow();
  const address = useAddress(nowMs);
  const { range, change, search } = address;
  const [, go] = useLocation();
  const query = useQuery({
    queryKey: ["services", range],
    queryFn: () => askServices(range),
    placeholderData: keepPreviousData,
  });
  const alerts = useQuery({
    queryKey: ["alerts", nowMs],
    queryFn: askAlerts,
    placeholderData: keepPreviousData,
  });
  const wanted = (address.get("q") ?? "").toLowerCase();
  const rows = useMemo(
    () =>
      (query.data?.services ?? []).filter((row) =>
        [row.service, ...row.versions, row.verdict.kind].join(" ").toLowerCase().includes(wanted),
      ),
    [query.data, wanted],
  );
  const endMs = query.data?.window.endMs ?? range.endMs;
  const columns = useMemo(
    () => [
      ...[NAME, runningColumn(endMs, rows.every(isRunning)), RSS],
      ...[...FIGURES, alertsColumn(alerts.data)],
    ],
    [alerts.data, endMs, rows],
  );
  const isEmpty = query.data !== undefined && query.data.services.length === 0;
  return (
    <Frame path={[["Services", "/"]]} theme={theme} toggleTheme={toggleTheme} chosen={address}>
      {query.data === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <section className="panel" aria-label="Services">
          <div className="toolbar">
            <SearchField
              label="Search services"
              placeholder="Service, version or verdict"
              value={address.get("q")}
              set={(text) => change({ q: text })}
            />
            <span className="note">
              {formatCount(rows.length)} {rows.length === 1 ? "service" : "services"}
            </span>
          </div>
          {isEmpty ? (
            <EmptyFleet />
          ) : (
            <DataTable
              name="Services"
              rows={rows}
              columns={columns}
              keyOf={(row) => row.service}
              sortedBy="rss"
              open={(row) => go(serviceAddress(row.service, search))}
              empty="No service matches the search."
            />
          )}
        </section>
      )}
    </Frame>
  );
}

function EmptyFleet() {
  return (
    <div className="empty">
      <p>No program reported in this time. Record one to this server:</p>
      <p>
        <code>tidemark run --to {location.origin} app.py</code>
      </p>
      <p>
        or load a recording: <code>tidemark serve --load app.tidemark</code>
      </p>
    </div>
  );
}

const NAME: Column<ServiceRowJson> = {
  id: "service",
  name: "Service",
  track: "minmax(100px, 2fr)",
  cell: (row) => <b>{row.service}</b>,
  order: (row) => row.service,
};

/** `areAll`: no row has the longer text of a service that does not run. */
const runningColumn = (endMs: TimeMs, areAll: boolean): Column<ServiceRowJson> => ({
  id: "instances",
  name: "Running",
  title: "Recorded programs that run, each with its child processes; if none does, since when",
  track: areAll ? "64px" : "142px",
  numeric: true,
  wide: true,
  cell: (row) => serviceStateText(row, endMs) || formatCount(row.instances),
  order: (row) => row.instances,
});

/** On a phone, it has no column beside it that shows whether the service runs. */
const RSS: Column<ServiceRowJson> = {
  id: "rss",
  name: "RSS",
  title: "Of all instances that run; what processes share counts more than once",
  track: "80px",
  numeric: true,
  cell: (row) =>
    isRunning(row) ? (
      formatBytes(row.rssBytes)
    ) : (
      <>
        <span className="wide">–</span>
        <span className="narrow">{row.state}</span>
      </>
    ),
  order: (row) => row.rssBytes,
};

function isRunning({ state }: ServiceRowJson): boolean {
  return state === "running";
}

const FIGURES: readonly Column<ServiceRowJson>[] = [
  {
    id: "ofLimit",
    name: "Of limit",
    title: "RSS relative to the limits of the instances' control groups, if each has one",
    track: "60px",
    numeric: true,
    wide: true,
    cell: (row) => (row.limitBytes === 0 ? "–" : formatShare(row.rssBytes / row.limitBytes)),
    order: (row) => (row.limitBytes === 0 ? Number.NaN : row.rssBytes / row.limitBytes),
  },
  {
    id: "growth",
    name: "Total growth",
    title: "Sum over the instances that run, by their verdicts",
    track: "100px",
    numeric: true,
    wide: true,
    cell: (row) =>
      row.growthBytesPerHour === undefined ? "–" : formatGrowth(row.growthBytesPerHour),
    order: (row) => row.growthBytesPerHour ?? Number.NaN,
  },
  {
    id: "limit",
    name: "First limit in",
    title: "Until the first instance reaches the limit of its control group at its own growth",
    track: "110px",
    numeric: true,
    wide: true,
    cell: (row) => (row.msToLimit === 0 ? "–" : formatDuration(row.msToLimit)),
    order: (row) => (row.msToLimit === 0 ? Number.NaN : -row.msToLimit),
  },
  {
    id: "course",
    name: "RSS over time",
    track: "124px",
    wide: true,
    cell: (row) => <Sparkline values={row.sparkline} name={`RSS of ${row.service} over time`} />,
    order: (row) => Math.max(0, ...row.sparkline.map((value) => value ?? 0)),
  },
  {
    id: "versions",
    name: "Versions",
    track: "minmax(60px, 1fr)",
    wide: true,
    cell: (row) => row.versions.join(", ") || "–",
    order: (row) => row.versions.join(", "),
  },
  {
    id: "verdict",
    name: "Verdict",
    track: "minmax(176px, 1fr)",
    narrowTrack: "106px",
    cell: (row) => <VerdictMark verdict={row.verdict} of={row.instances} />,
    order: (row) => row.verdict.kind,
  },
];

/** How many alerts of a service fire. */
function alertsColumn(document: AlertsJson | undefined): Column<ServiceRowJson> {
  const firing = (document?.alerts ?? []).filter(({ state }) => state === "firing");
  const count = ({ service }: ServiceRowJson) =>
    firing.filter((alert) => alert.service === service).length;
  return {
    id: "alerts",
    name: "Alerts",
    title: "Alerts that fire",
    track: "54px",
    numeric: true,
    wide: true,
    cell: (row) => (count(row) === 0 ? "–" : formatCount(count(row))),
    order: count,
  };
}
