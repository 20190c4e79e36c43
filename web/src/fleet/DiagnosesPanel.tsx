/** The diagnoses of services, from all their processes: which leak, since which version, on how many instances. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useLocation } from "wouter";
import type {
  FleetDiagnosisJson,
  FleetLeakJson,
  FleetOwnVerdictJson,
} from "../../../src/model/documents/fleet_diagnosis_document.js";
import { holderPathText } from "../../../src/model/documents/holder_path.js";
import { affectedText } from "../../../src/model/documents/instance_text.js";
import {
  formatCount,
  formatDuration,
  formatGrowth,
  formatGrowthInterval,
} from "../format/numbers.js";
import { type Column, DataTable } from "../widgets/DataTable.js";
import { askDiagnoses } from "./frame/api.js";
import { Waiting } from "./frame/Frame.js";
import { serviceAddress, type TimeRange } from "./frame/timeRange.js";
import { VerdictMark } from "./VerdictMark.js";

interface DiagnosesPanelProps {
  range: TimeRange;
  /** Of the address, kept in links. */
  search: string;
  /** In lower case. */
  wanted: string;
}

export function DiagnosesPanel({ range, search, wanted }: DiagnosesPanelProps) {
  const [, go] = useLocation();
  const query = useQuery({
    queryKey: ["diagnoses", range],
    queryFn: () => askDiagnoses(range),
    placeholderData: keepPreviousData,
  });
  const rows = useMemo(
    () => (query.data?.diagnoses ?? []).filter((row) => textOf(row).includes(wanted)),
    [query.data, wanted],
  );
  if (query.data === undefined) {
    return <Waiting error={query.error} />;
  }
  const { diagnoses } = query.data;
  const leaking = diagnoses.filter(({ leak }) => leak !== undefined).length;
  const open = diagnoses.filter(({ own }) => own !== undefined).length;
  return (
    <section className="panel" aria-label="Services that leak">
      <div className="toolbar">
        <b>Services</b>
        <span className="note">
          {formatCount(leaking)} of {formatCount(diagnoses.length)} leak
          {open > 0 &&
            `; ${formatCount(open)} ${open === 1 ? "is" : "are"} too young to decide, but single processes have a verdict`}
        </span>
      </div>
      <DataTable
        name="Diagnoses"
        rows={rows}
        columns={COLUMNS}
        keyOf={(row) => row.service}
        sortedBy="growth"
        open={(row) => go(serviceAddress(row.service, search))}
        empty={
          diagnoses.length === 0
            ? "No service reported its RSS in this time."
            : "No service matches the search."
        }
      />
    </section>
  );
}

function textOf({ service, versions, verdict }: FleetDiagnosisJson): string {
  const names = versions.map(({ version }) => version);
  return [service, ...names, verdict.kind, verdict.summary].join(" ").toLowerCase();
}

/** "2.42.0", or "2.42.0, since 2.40.0". */
function versionText({ leak, versions }: FleetDiagnosisJson): string {
  if (leak === undefined) {
    return versions.at(-1)?.version || "–";
  }
  const since = leak.since === leak.version ? "" : `, since ${leak.since || "an unknown version"}`;
  return `${leak.version || "unknown"}${since}`;
}

function placeText({ suspects: [suspect] }: FleetDiagnosisJson): string {
  if (suspect === undefined) {
    return "–";
  }
  const { line, holder } = suspect;
  const held = holder === undefined ? "" : `, held by ${holderPathText(holder.path)}`;
  return `${line.function} (${line.file.split("/").at(-1)}:${line.line})${held}`;
}

function ownRate({ growthBytesPerHour, instances }: FleetOwnVerdictJson): number {
  return growthBytesPerHour / instances;
}

/** "+3.76 MiB/h (+3.75 to +3.77)"; muted if no instance runs any more. */
function leakRate({ growthBytesPerHour: rate, low, high, runningInstances }: FleetLeakJson) {
  const [own, whole] = [formatGrowth(rate), formatGrowthInterval(rate, low, high)];
  return (
    <span className={runningInstances === 0 ? "missing" : ""}>
      {own}
      <span className="wide">{whole.startsWith(own) ? whole.slice(own.length) : ""}</span>
    </span>
  );
}

const COLUMNS: readonly Column<FleetDiagnosisJson>[] = [
  {
    id: "service",
    name: "Service",
    track: "minmax(100px, 1fr)",
    cell: (row) => <b>{row.service}</b>,
    order: (row) => row.service,
  },
  {
    id: "version",
    name: "Version",
    title: "The version that leaks, or the newest; and the first that leaks, if it is another",
    track: "minmax(70px, 140px)",
    wide: true,
    cell: versionText,
    order: versionText,
  },
  {
    id: "growth",
    name: "Growth per instance",
    title:
      "With its interval; while nothing is decided, the mean by the verdicts of single instances",
    track: "216px",
    narrowTrack: "92px",
    numeric: true,
    cell: ({ leak, own }) =>
      leak === undefined
        ? own === undefined
          ? "–"
          : `${formatGrowth(ownRate(own))} (undecided)`
        : leakRate(leak),
    order: ({ leak, own }) =>
      leak?.growthBytesPerHour ?? (own === undefined ? Number.NaN : ownRate(own)),
  },
  {
    id: "instances",
    name: "Instances",
    title: "Running instances of the version that leak, and all that run",
    track: "70px",
    numeric: true,
    wide: true,
    cell: ({ leak, own }) =>
      leak === undefined
        ? own === undefined
          ? "–"
          : `${own.instances} of ${own.running}`
        : affectedText(leak),
    order: ({ leak }) => leak?.affectedInstances ?? Number.NaN,
  },
  {
    id: "limit",
    name: "First limit in",
    title: "Until the first instance reaches its limit",
    track: "96px",
    numeric: true,
    wide: true,
    cell: ({ leak, forecast: [first] }) =>
      leak === undefined || leak.runningInstances === 0
        ? "–"
        : first === undefined || first.msToLimit === 0
          ? "no limit"
          : formatDuration(first.msToLimit),
    order: ({ forecast: [first] }) => first?.msToLimit || Number.NaN,
  },
  {
    id: "place",
    name: "Line and holder",
    track: "minmax(120px, 2fr)",
    wide: true,
    cell: (row) => <span title={placeText(row)}>{placeText(row)}</span>,
    order: placeText,
  },
  {
    id: "verdict",
    name: "Verdict",
    track: "116px",
    narrowTrack: "106px",
    cell: ({ verdict, own }) => (
      <VerdictMark verdict={own === undefined ? verdict : { ...verdict, kind: own.kind }} />
    ),
    order: (row) => row.verdict.kind,
  },
  {
    id: "summary",
    name: "Why",
    track: "minmax(120px, 3fr)",
    wide: true,
    cell: ({ verdict, limits }) => (
      <span title={[verdict.summary, ...limits].join(" ")}>{verdict.summary}</span>
    ),
    order: (row) => row.verdict.summary,
  },
];
