/** The diagnoses of services, and the verdicts of all instances that ran in the chosen time. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useLocation } from "wouter";
import type { TimeMs } from "../../../src/model/base/units.js";
import type { FleetVerdictsJson } from "../../../src/model/documents/fleet_document.js";
import { formatCount } from "../format/numbers.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { DiagnosesPanel } from "./DiagnosesPanel.js";
import { askVerdicts } from "./frame/api.js";
import { Frame, Waiting } from "./frame/Frame.js";
import { useNow } from "./frame/live.js";
import { SearchField } from "./frame/SearchField.js";
import { useAddress } from "./frame/timeRange.js";
import { GROWTH, LIMIT_IN, PLACE, stateColumn, VERSION } from "./instanceColumns.js";
import type { PageProps } from "./ServicesPage.js";
import { VerdictMark } from "./VerdictMark.js";

type Row = FleetVerdictsJson["verdicts"][number];

export function VerdictsPage({ theme, toggleTheme }: PageProps) {
  const address = useAddress(useNow());
  const { range, change, search } = address;
  const [, go] = useLocation();
  const query = useQuery({
    queryKey: ["verdicts", range],
    queryFn: () => askVerdicts(range),
    placeholderData: keepPreviousData,
  });
  const endMs = query.data?.window.endMs ?? range.endMs;
  const wanted = address.get("q") ?? "";
  const rows = useMemo(
    () => (query.data?.verdicts ?? []).filter((row) => textOf(row).includes(wanted.toLowerCase())),
    [query.data, wanted],
  );
  const columns = useMemo(() => columnsOf(endMs, rows), [endMs, rows]);
  return (
    <Frame path={[["Verdicts", "/verdicts"]]} {...{ theme, toggleTheme }} chosen={address}>
      <DiagnosesPanel range={range} search={search} wanted={wanted.toLowerCase()} />
      {query.data === undefined ? (
        <Waiting error={query.error} />
      ) : (
        <section className="panel" aria-label="Verdicts">
          <div className="toolbar">
            <SearchField
              label="Search verdicts"
              placeholder="Service, version, host, verdict or function"
              value={wanted}
              set={(text) => change({ q: text })}
            />
            <span className="note">
              {formatCount(rows.length)} {rows.length === 1 ? "instance" : "instances"}
            </span>
          </div>
          <DataTable
            name="Verdicts"
            rows={rows}
            columns={columns}
            keyOf={(row) => row.stream}
            sortedBy="growth"
            open={(row) => go(`/instance/${row.stream}`)}
            empty={
              query.data.verdicts.length === 0
                ? "No instance has a verdict in this time. The server diagnoses an instance once it has run for a few minutes."
                : "No verdict matches the search."
            }
          />
        </section>
      )}
    </Frame>
  );
}

function textOf({ service, version, host, pod, kind, summary }: Row): string {
  return [service, version, host, pod, kind, summary].join(" ").toLowerCase();
}

const columnsOf = (endMs: TimeMs, rows: readonly Row[]): readonly Column<Row>[] => [
  {
    id: "service",
    name: "Service",
    track: "minmax(90px, 130px)",
    narrowTrack: "minmax(60px, 1fr)",
    cell: (row) => row.service,
    order: (row) => row.service,
  },
  VERSION,
  PLACE,
  { ...stateColumn(endMs, rows), wide: true },
  GROWTH,
  LIMIT_IN,
  {
    id: "verdict",
    name: "Verdict",
    track: "116px",
    narrowTrack: "106px",
    cell: (row) => <VerdictMark verdict={row} />,
    order: (row) => row.kind,
  },
  {
    id: "summary",
    name: "Why",
    track: "minmax(120px, 3fr)",
    wide: true,
    cell: (row) => <span title={row.summary}>{row.summary}</span>,
    order: (row) => row.summary,
  },
];
