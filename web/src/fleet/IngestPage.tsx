/** Who sends what to this server, what it stores of it, and for how long. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";
import type { IngestJson, IngestStreamJson } from "../../../src/model/documents/ingest_document.js";
import { formatBytes, formatCount, formatDuration, formatWallClock } from "../format/numbers.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { askIngest } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { useNow } from "./frame/live.js";
import { SearchField } from "./frame/SearchField.js";
import { serviceAddress, useAddress } from "./frame/timeRange.js";
import type { PageProps } from "./ServicesPage.js";

export function IngestPage({ theme, toggleTheme }: PageProps) {
  const nowMs = useNow();
  const query = useQuery({
    queryKey: ["ingest", nowMs],
    queryFn: askIngest,
    placeholderData: keepPreviousData,
  });
  return (
    <Frame path={[["Ingest", "/ingest"]]} {...{ theme, toggleTheme }}>
      {query.data === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <>
          <Senders document={query.data} />
          <Refused rows={query.data.refused} />
          <Storage document={query.data} />
          <Labels rows={query.data.labels} />
        </>
      )}
    </Frame>
  );
}

function Senders({ document: { streams, otherStreams } }: { document: IngestJson }) {
  const address = useAddress(useNow());
  const [, go] = useLocation();
  const wanted = (address.get("q") ?? "").toLowerCase();
  const rows = streams.filter(({ service, version, host, source, stream }) =>
    [service, version, host, source, stream].join(" ").toLowerCase().includes(wanted),
  );
  const rate = streams.reduce((sum, { bytesPerMinute }) => sum + bytesPerMinute, 0);
  return (
    <section className="panel" aria-label="Senders">
      <div className="toolbar">
        <b>Senders</b>
        <SearchField
          label="Search senders"
          placeholder="Service, version, host or source"
          value={address.get("q")}
          set={(text) => address.change({ q: text })}
        />
        <span className="note">
          {formatCount(rows.length)} {rows.length === 1 ? "stream" : "streams"}
          {otherStreams > 0 && `, ${formatCount(otherStreams)} older ones not listed`};{" "}
          {formatBytes(rate)} per minute
        </span>
      </div>
      {streams.length === 0 ? (
        <div className="empty">
          <p>Nothing has been sent to this server. Record a program to it:</p>
          <p>
            <code>tidemark run --to {location.origin} app.py</code>
          </p>
          <p>
            or point a Pyroscope, OpenTelemetry or Datadog profiler at{" "}
            <code>{location.origin}</code>.
          </p>
        </div>
      ) : (
        <DataTable
          name="Senders"
          rows={rows}
          columns={SENDERS}
          keyOf={(row) => row.stream}
          sortedBy="last"
          open={(row) => go(`/instance/${row.stream}`)}
          empty="No sender matches the search."
        />
      )}
    </section>
  );
}

const SENDERS: readonly Column<IngestStreamJson>[] = [
  {
    id: "service",
    name: "Service",
    track: "minmax(100px, 2fr)",
    cell: (row) => <b>{row.service === "" ? "not in the database yet" : row.service}</b>,
    order: (row) => row.service,
  },
  {
    id: "stream",
    name: "Stream",
    track: "90px",
    wide: true,
    cell: (row) => <code>{row.stream.slice(0, 8)}</code>,
    order: (row) => row.stream,
  },
  {
    id: "version",
    name: "Version",
    track: "100px",
    wide: true,
    cell: (row) => row.version || "–",
    order: (row) => row.version,
  },
  {
    id: "host",
    name: "Host",
    track: "minmax(80px, 1fr)",
    wide: true,
    cell: (row) => row.host || "–",
    order: (row) => row.host,
  },
  {
    id: "source",
    name: "Source",
    title: "Tidemark's own recordings, or another profiler",
    track: "110px",
    wide: true,
    cell: (row) => row.source,
    order: (row) => row.source,
  },
  {
    id: "rate",
    name: "Per minute",
    title: "Over the last five minutes",
    track: "100px",
    narrowTrack: "72px",
    numeric: true,
    cell: (row) => (row.bytesPerMinute === 0 ? "–" : formatBytes(row.bytesPerMinute)),
    order: (row) => row.bytesPerMinute,
  },
  {
    id: "bytes",
    name: "Received",
    track: "100px",
    numeric: true,
    wide: true,
    cell: (row) => formatBytes(row.bytes),
    order: (row) => row.bytes,
  },
  {
    id: "last",
    name: "Last frame",
    track: "150px",
    narrowTrack: "84px",
    numeric: true,
    cell: (row) => formatWallClock(row.lastMs, true),
    order: (row) => row.lastMs,
  },
  {
    id: "refused",
    name: "Refused",
    title: "Requests that were refused since the server's start",
    track: "80px",
    narrowTrack: "52px",
    numeric: true,
    cell: (row) => <span title={row.lastError}>{row.refused === 0 ? "–" : row.refused}</span>,
    order: (row) => row.refused,
  },
];

function Refused({ rows }: { rows: IngestJson["refused"] }) {
  return rows.length === 0 ? null : (
    <section className="panel" aria-label="Refused requests">
      <div className="toolbar">
        <b>Refused requests</b>
        <span className="note">since the server's start, by address</span>
      </div>
      {rows.map(({ path, requests, lastMs, lastError }) => (
        <article key={path} className="fleet-alert">
          <header>
            <span className="verdict-mark fleet-alert-warning">{formatCount(requests)}</span>
            <code>{path}</code>
            <span className="note">last at {formatWallClock(lastMs, true)}</span>
          </header>
          <p>{lastError}</p>
        </article>
      ))}
    </section>
  );
}

function daysOf(ms: number): string {
  const days = ms / 86_400_000;
  return days < 1 ? formatDuration(ms) : `${formatCount(Math.round(days))} days`;
}

const TIERS: Readonly<Record<string, string>> = {
  raw: "as sent",
  "10m": "means of 10 minutes",
  "1h": "means of an hour",
  "1d": "means of a day, by version",
};

function Storage({ document: { storage, retention } }: { document: IngestJson }) {
  const [, go] = useLocation();
  const used = storage.dictionariesBytes + storage.tiers.reduce((sum, { bytes }) => sum + bytes, 0);
  const untilOf = (tier: string) =>
    retention.tiers.find((each) => each.tier === tier)?.untilMs ?? retention.keepMs;
  const tiers = ["raw", "10m", "1h", "1d"].map((tier) => ({
    tier,
    ...storage.tiers.find((each) => each.tier === tier),
  }));
  return (
    <section className="panel" aria-label="Storage">
      <div className="toolbar">
        <b>Storage</b>
        <span className="note">
          database {formatBytes(used)} of {formatBytes(retention.bytes / 2)}; recordings{" "}
          {formatBytes(storage.recordings.bytes)} of {formatBytes(retention.bytes / 2)}, kept for{" "}
          {daysOf(retention.keepRecordingsMs)}
        </span>
      </div>
      <table className="fleet-plain">
        <thead>
          <tr>
            <th>Tier</th>
            <th>Days</th>
            <th>Size</th>
            <th>From</th>
            <th>Kept until it is</th>
          </tr>
        </thead>
        <tbody>
          {tiers.map(({ tier, days = 0, bytes = 0, fromMs }) => (
            <tr key={tier}>
              <td>{TIERS[tier]}</td>
              <td>{formatCount(days)}</td>
              <td>{formatBytes(bytes)}</td>
              <td>{fromMs === undefined ? "–" : formatWallClock(fromMs, true)}</td>
              <td>{daysOf(untilOf(tier))} old</td>
            </tr>
          ))}
        </tbody>
      </table>
      {storage.services.length > 0 && (
        <DataTable
          name="Storage by service"
          rows={storage.services}
          columns={SERVICES}
          keyOf={(row) => row.service}
          sortedBy="bytes"
          open={(row) => go(serviceAddress(row.service))}
          empty=""
        />
      )}
    </section>
  );
}

const SERVICES: readonly Column<IngestJson["storage"]["services"][number]>[] = [
  {
    id: "service",
    name: "Service",
    track: "minmax(100px, 2fr)",
    cell: (row) => <b>{row.service}</b>,
    order: (row) => row.service,
  },
  {
    id: "processes",
    name: "Processes",
    track: "110px",
    narrowTrack: "66px",
    numeric: true,
    cell: (row) => formatCount(row.processes),
    order: (row) => row.processes,
  },
  {
    id: "rows",
    name: "Rows",
    title: "Of samples and metrics",
    track: "110px",
    narrowTrack: "60px",
    numeric: true,
    cell: (row) => formatCount(row.rows),
    order: (row) => row.rows,
  },
  {
    id: "bytes",
    name: "Size",
    title: "The share of the database's files, by rows",
    track: "110px",
    narrowTrack: "72px",
    numeric: true,
    cell: (row) => formatBytes(row.bytes),
    order: (row) => row.bytes,
  },
];

function Labels({ rows }: { rows: IngestJson["labels"] }) {
  return (
    <section className="panel" aria-label="Labels">
      <div className="toolbar">
        <b>Labels</b>
        <span className="note">
          a label of a service keeps its first values; further ones are stored as{" "}
          <code>__overflow__</code>
        </span>
      </div>
      {rows.length === 0 ? (
        <p className="empty">
          No program sends labels of its own. In Python:{" "}
          <code>{'with tidemark.label(endpoint="/cart"):'}</code>
        </p>
      ) : (
        <DataTable
          name="Labels"
          rows={rows}
          columns={LABELS}
          keyOf={(row) => `${row.service} ${row.label}`}
          sortedBy="values"
          empty=""
        />
      )}
    </section>
  );
}

const LABELS: readonly Column<IngestJson["labels"][number]>[] = [
  {
    id: "service",
    name: "Service",
    track: "minmax(100px, 2fr)",
    cell: (row) => row.service,
    order: (row) => row.service,
  },
  {
    id: "label",
    name: "Label",
    track: "minmax(80px, 1fr)",
    cell: (row) => <code>{row.label}</code>,
    order: (row) => row.label,
  },
  {
    id: "values",
    name: "Values",
    track: "100px",
    narrowTrack: "52px",
    numeric: true,
    cell: (row) => formatCount(row.values),
    order: (row) => row.values,
  },
  {
    id: "overflowed",
    name: "Replaced",
    title: "Different values beyond the limit, since the server's start",
    track: "100px",
    narrowTrack: "62px",
    numeric: true,
    cell: (row) => (row.overflowed === 0 ? "–" : formatCount(row.overflowed)),
    order: (row) => row.overflowed,
  },
];
