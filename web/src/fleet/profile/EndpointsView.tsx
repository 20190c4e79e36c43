/** Memory by endpoint: the program's functions that a web or task framework called. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { EndpointsJson } from "../../../../src/model/documents/fleet_document.js";
import { formatBytes, formatCount, formatShare } from "../../format/numbers.js";
import { type Column, DataTable } from "../../widgets/DataTable.js";
import { askEndpoints } from "../frame/api.js";
import { Waiting } from "../frame/Frame.js";
import type { TimeRange } from "../frame/timeRange.js";

interface EndpointsViewProps {
  service: string;
  range: TimeRange;
  /** null: all. */
  version: string | null;
  choose: (endpoint: string) => void;
}

type Row = EndpointsJson["endpoints"][number];

export function EndpointsView({ service, range, version, choose }: EndpointsViewProps) {
  const query = useQuery({
    queryKey: ["endpoints", service, range, version],
    queryFn: () => askEndpoints(service, range, version),
    placeholderData: keepPreviousData,
  });
  if (query.data === undefined) {
    return <Waiting error={query.error} />;
  }
  const { endpoints, other, outside, limits } = query.data;
  const total = [...endpoints, other, outside].reduce((sum, { liveBytes }) => sum + liveBytes, 0);
  return (
    <>
      <p className="fleet-sentence">
        <b>{formatBytes(total - outside.liveBytes)}</b> live in endpoints,{" "}
        {formatBytes(outside.liveBytes)} outside of them: imports, start-up, background threads. A
        row opens its flame graph.
      </p>
      <DataTable
        name="Endpoints"
        rows={endpoints}
        columns={columnsOf(total)}
        keyOf={({ endpoint }) => endpoint}
        sortedBy="live"
        open={({ endpoint }) => choose(endpoint)}
        empty="No stack passes through a dispatcher of FastAPI, Starlette, Flask, Django, Tornado, aiohttp, Celery, gRPC, Ray or another framework that Tidemark knows."
      />
      {limits.map((sentence) => (
        <p key={sentence} className="note fleet-note">
          {sentence}
        </p>
      ))}
    </>
  );
}

function columnsOf(total: number): Column<Row>[] {
  return [
    {
      id: "endpoint",
      name: "Endpoint",
      track: "minmax(8rem, 1.4fr)",
      cell: (row) => <code>{row.function}</code>,
      order: (row) => row.function,
    },
    {
      id: "file",
      name: "File",
      track: "minmax(8rem, 2fr)",
      wide: true,
      cell: (row) => <span className="place">{row.file}</span>,
      order: (row) => row.file,
    },
    {
      id: "framework",
      name: "Called by",
      track: "6rem",
      wide: true,
      cell: (row) => row.framework,
      order: (row) => row.framework,
    },
    {
      id: "live",
      name: "Live",
      track: "6rem",
      numeric: true,
      cell: (row) => formatBytes(row.liveBytes),
      order: (row) => row.liveBytes,
    },
    {
      id: "share",
      name: "Share",
      title: "Share of the live bytes of the service",
      track: "5.4rem",
      numeric: true,
      cell: (row) => (total > 0 ? formatShare(row.liveBytes / total) : "–"),
      order: (row) => row.liveBytes,
    },
    {
      id: "allocated",
      name: "Allocated",
      title: "In the chosen time",
      track: "6rem",
      numeric: true,
      wide: true,
      cell: (row) => formatBytes(row.allocatedBytes),
      order: (row) => row.allocatedBytes,
    },
    {
      id: "objects",
      name: "Objects",
      title: "Live objects",
      track: "5.4rem",
      numeric: true,
      wide: true,
      cell: (row) => formatCount(Math.round(row.liveObjects)),
      order: (row) => row.liveObjects,
    },
  ];
}
