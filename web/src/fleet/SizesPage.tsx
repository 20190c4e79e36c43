/** The memory that services need, and what a change of their limits would save or break. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useLocation } from "wouter";
import { monthlyText, SIZE_STATE_TEXT } from "../../../src/model/documents/size_text.js";
import type {
  FleetSizesJson,
  ServiceSizeJson,
} from "../../../src/model/documents/sizes_document.js";
import { formatBytes, formatCount, formatShare } from "../format/numbers.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { askSizes } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { useNow } from "./frame/live.js";
import { SearchField } from "./frame/SearchField.js";
import { serviceAddress, useAddress } from "./frame/timeRange.js";
import type { PageProps } from "./ServicesPage.js";

export function SizesPage({ theme, toggleTheme }: PageProps) {
  const address = useAddress(useNow());
  const { range } = address;
  const query = useQuery({
    queryKey: ["sizes", range],
    queryFn: () => askSizes(range),
    placeholderData: keepPreviousData,
  });
  return (
    <Frame path={[["Sizes", "/sizes"]]} {...{ theme, toggleTheme }} chosen={address}>
      {query.data === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <Sizes document={query.data} {...address} />
      )}
    </Frame>
  );
}

interface SizesProps extends Pick<ReturnType<typeof useAddress>, "get" | "change" | "search"> {
  document: FleetSizesJson;
}

function Sizes({ document: { sizes, savedBytes, price, marginShare }, ...address }: SizesProps) {
  const [, go] = useLocation();
  const wanted = (address.get("q") ?? "").toLowerCase();
  const rows = useMemo(() => sizes.filter((row) => textOf(row).includes(wanted)), [sizes, wanted]);
  const columns = useMemo(() => columnsOf(price), [price]);
  const monthly = monthlyText(savedBytes, price);
  return (
    <section className="panel" aria-label="Sizes">
      <div className="toolbar">
        <SearchField
          label="Search sizes"
          placeholder="Service, version or state"
          value={address.get("q") ?? ""}
          set={(text) => address.change({ q: text })}
        />
        <span className="note">
          Lower limits would free <b>{formatBytes(savedBytes)}</b>
          {monthly !== null && `, ${monthly} a month`}
        </span>
      </div>
      <DataTable
        name="Sizes"
        rows={rows}
        columns={columns}
        keyOf={(row) => row.service}
        sortedBy="saves"
        open={(row) => go(serviceAddress(row.service, address.search))}
        empty={
          sizes.length === 0
            ? "No service reported its RSS in this time."
            : "No service matches the search."
        }
      />
      <p className="note sizes-note">
        From the two weeks before the end of the chosen time. A peak counts memory that the
        processes of an instance share once (PSS), and is therefore below RSS on other pages. The
        limit that a service needs is the 99th percentile of the daily peaks of an instance and{" "}
        {formatShare(marginShare)} more; the request covers 95 % of its hours. No collector changes
        a limit: set it where the service is deployed.
      </p>
    </section>
  );
}

function textOf({ service, state, summary, versions }: ServiceSizeJson): string {
  return [service, SIZE_STATE_TEXT[state], summary, ...versions].join(" ").toLowerCase();
}

function sizeColumn(
  id: string,
  name: string,
  title: string,
  bytesOf: (row: ServiceSizeJson) => number | undefined,
): Column<ServiceSizeJson> {
  return {
    ...{ id, name, title, track: "80px", numeric: true },
    cell: (row) => {
      const bytes = bytesOf(row);
      return bytes === undefined || bytes === 0 ? "–" : formatBytes(bytes);
    },
    order: (row) => bytesOf(row) || Number.NaN,
  };
}

const columnsOf = (price: FleetSizesJson["price"]): readonly Column<ServiceSizeJson>[] => [
  {
    id: "service",
    name: "Service",
    track: "minmax(100px, 1.2fr)",
    cell: (row) => <b>{row.service}</b>,
    order: (row) => row.service,
  },
  {
    id: "instances",
    name: "Instances",
    title: "Instances that run",
    track: "80px",
    numeric: true,
    wide: true,
    cell: (row) => formatCount(row.instances),
    order: (row) => row.instances,
  },
  {
    ...sizeColumn(
      "peak",
      "Peak",
      "99th percentile of the daily peaks of an instance. Where PSS is known, memory that its processes share counts once, so it is less than RSS",
      (row) => row.peakBytes,
    ),
    wide: true,
  },
  {
    ...sizeColumn("limit", "Limit now", "Of most running instances", (row) => row.limitBytes),
    wide: true,
  },
  {
    ...sizeColumn(
      "needed",
      "Needed",
      "The limit that it needs: peak and margin",
      (row) => row.needs?.limitBytes,
    ),
    // A phone has no column for the state.
    cell: ({ needs, state }) =>
      needs === undefined ? (
        <>
          <span className="wide">–</span>
          <span className="narrow">{SIZE_STATE_TEXT[state]}</span>
        </>
      ) : (
        formatBytes(needs.limitBytes)
      ),
    narrowTrack: "100px",
  },
  {
    ...sizeColumn(
      "request",
      "Request",
      "Covers 95 % of the hours of an instance",
      (row) => row.needs?.requestBytes,
    ),
    wide: true,
  },
  {
    id: "used",
    name: "Of the limit",
    title: "The peak, and a mark at the limit that it needs",
    track: "minmax(80px, 160px)",
    wide: true,
    cell: (row) => (row.limitBytes > 0 ? <UsedBar size={row} /> : "–"),
    order: ({ peakBytes, limitBytes }) => (limitBytes > 0 ? peakBytes / limitBytes : Number.NaN),
  },
  {
    id: "saves",
    name: "Saves",
    title: "Of all running instances; negative: more is needed",
    track: price === undefined ? "80px" : "190px",
    narrowTrack: "80px",
    numeric: true,
    cell: ({ savedBytes }) => savesCell(savedBytes, price),
    order: ({ savedBytes }) => savedBytes,
  },
  {
    id: "state",
    name: "Limit",
    track: "116px",
    wide: true,
    cell: ({ state }) => (
      <span className={`verdict-mark ${MARKS[state]}`}>{SIZE_STATE_TEXT[state]}</span>
    ),
    order: ({ state }) => SIZE_STATE_TEXT[state],
  },
  {
    id: "why",
    name: "What would break",
    track: "minmax(120px, 3fr)",
    wide: true,
    cell: ({ state, summary, cautions }) => (
      <span title={[summary, ...cautions].join(" ")}>
        {cautions[0] ?? (state === "leaks" || state === "unknown" ? summary : "–")}
      </span>
    ),
    order: ({ cautions, summary }) => cautions[0] ?? summary,
  },
];

/** The whole width is the limit, or what is needed if that is more. */
function UsedBar({ size: { service, limitBytes, peakBytes, needs } }: { size: ServiceSizeJson }) {
  const needed = needs?.limitBytes ?? 0;
  const most = Math.max(limitBytes, needed, peakBytes);
  const at = (bytes: number) => (100 * bytes) / most;
  return (
    <svg
      className="size-bar"
      viewBox="0 0 100 10"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${service}: peak ${formatBytes(peakBytes)}, limit ${formatBytes(limitBytes)}`}
    >
      <rect className="size-bar-limit" width={at(limitBytes)} height="10" />
      <rect className="size-bar-peak" width={at(peakBytes)} height="10" />
      {needed > 0 && (
        <rect className="size-bar-needed" x={at(needed) - 1} width="1.5" height="10" />
      )}
    </svg>
  );
}

function savesCell(bytes: number, price: FleetSizesJson["price"]) {
  if (bytes === 0) {
    return "–";
  }
  const monthly = monthlyText(bytes, price);
  return (
    <>
      {formatBytes(bytes)}
      {monthly !== null && <span className="wide"> ({monthly})</span>}
    </>
  );
}

const MARKS: Readonly<Record<ServiceSizeJson["state"], string>> = {
  lower: "fleet-alert-warning",
  higher: "verdict-alarm",
  fits: "verdict-calm",
  unlimited: "fleet-alert-warning",
  leaks: "verdict-alarm",
  unknown: "",
};
