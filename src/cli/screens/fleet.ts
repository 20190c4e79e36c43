/** Prints the services and instances of a server. */
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatGrowth,
} from "../../model/base/numbers.js";
import type { TimeMs } from "../../model/base/units.js";
import type {
  InstanceRowJson,
  ServiceJson,
  ServiceRowJson,
} from "../../model/documents/fleet_document.js";
import {
  instanceStateText,
  serviceStateText,
  serviceVerdictText,
} from "../../model/documents/instance_text.js";
import { oneLine } from "../../model/errors/errors.js";
import type { SelectedRows } from "../options/options.js";
import { type Column, printTable, type Screen, sparkline } from "../text/output.js";

const SPARKLINE_COLUMNS = 16;

/** The text that `--filter` searches. */
export function serviceText(row: ServiceRowJson): string {
  return [row.service, ...row.versions, row.verdict.kind].join(" ");
}

/** The text that `--filter` searches. */
export function instanceText(row: InstanceRowJson): string {
  const labels = Object.entries(row.labels).map(([key, value]) => `${key}=${value}`);
  const { stream, version, env, host, pod, container, pid, command, verdict } = row;
  return [stream, version, env, host, pod, container, pid, command, verdict.kind, ...labels].join(
    " ",
  );
}

/** `nowMs`: the end of their window. */
export function printServices(
  screen: Screen,
  { rows, leftOut, unmatched }: SelectedRows<ServiceRowJson>,
  { nowMs, isQuiet }: { readonly nowMs: TimeMs; readonly isQuiet: boolean },
): void {
  if (rows.length === 0) {
    const empty = "no service reported; send one: tidemark run --to URL app.py";
    screen.line(screen.paint.dim(unmatched ?? empty));
    return;
  }
  const columns: Column[] = [
    { title: "SERVICE", paint: screen.paint.bold },
    { title: "RUNNING", align: "right" },
    { title: "RSS", align: "right" },
    { title: "TOTAL GROWTH", align: "right" },
    { title: "FIRST LIMIT IN", align: "right" },
    { title: "RSS OVER TIME" },
    { title: "VERSIONS" },
    { title: "VERDICT", flexible: "cutEnd" },
  ];
  const cells = rows.map((row) => [
    row.service,
    serviceStateText(row, nowMs) || formatCount(row.instances),
    row.instances === 0 ? "-" : formatBytes(row.rssBytes),
    row.growthBytesPerHour === undefined ? "-" : formatGrowth(row.growthBytesPerHour),
    row.msToLimit === 0 ? "-" : formatDuration(row.msToLimit),
    picture(row.sparkline),
    row.versions.join(", ") || "-",
    verdictText(row),
  ]);
  printTable(screen, columns, cells);
  if (!isQuiet) {
    printMore(screen, leftOut);
  }
}

export function printService(
  screen: Screen,
  { service, summary, window }: ServiceJson,
  { rows, leftOut, unmatched }: SelectedRows<InstanceRowJson>,
): void {
  const { paint } = screen;
  const state = serviceStateText(summary, window.endMs);
  const heading = [paint.bold(oneLine(service)), verdictText(summary), paint.dim(state)];
  screen.line(heading.join("  ").trimEnd());
  const sentence = serviceVerdictText(summary.verdict, summary.instances);
  if (summary.verdict.kind !== "none") {
    for (const line of screen.wrap(oneLine(sentence), 2)) {
      screen.line(`  ${line}`);
    }
  }
  screen.line();
  if (rows.length === 0) {
    screen.line(
      paint.dim(unmatched ?? "no instance reported in this time; look back further with --since"),
    );
    return;
  }
  const columns: Column[] = [
    { title: "INSTANCE" },
    { title: "VERSION" },
    { title: "HOST" },
    { title: "PID", align: "right" },
    { title: "PROCESSES", align: "right" },
    { title: "AGE", align: "right" },
    { title: "RSS", align: "right", paint: paint.bold },
    { title: "PEAK", align: "right" },
    { title: "GROWTH", align: "right" },
    { title: "STATE" },
    { title: "VERDICT", flexible: "cutEnd" },
  ];
  const cells = rows.map((row) => [
    row.stream.slice(0, 8),
    row.version || "-",
    row.pod || row.host,
    row.pid === 0 ? "-" : String(row.pid),
    formatCount(row.processes),
    formatDuration(Math.max(0, (row.endedMs ?? window.endMs) - row.startedMs)),
    ...(row.source === undefined
      ? [formatBytes(row.rssBytes), formatBytes(row.peakRssBytes)]
      : ["-", "-"]),
    row.growthBytesPerHour === undefined ? "-" : formatGrowth(row.growthBytesPerHour),
    instanceStateText(row, window.endMs),
    row.source === undefined
      ? row.verdict.kind
      : `${row.liveBytes === undefined ? "" : `${formatBytes(row.liveBytes)} live, `}from ${row.source}`,
  ]);
  printTable(screen, columns, cells);
  printMore(screen, leftOut);
}

function verdictText({ verdict, instances }: ServiceRowJson): string {
  if (verdict.kind === "none") {
    return verdict.summary;
  }
  const share = instances > 1 ? ` in ${verdict.instances} of ${instances}` : "";
  return `${verdict.kind}${share}`;
}

function picture(values: readonly (number | null)[]): string {
  return sparkline(
    values.map((_, step) => step),
    values.map((value) => value ?? Number.NaN),
    SPARKLINE_COLUMNS,
  );
}

function printMore(screen: Screen, leftOut: number): void {
  if (leftOut > 0) {
    screen.line();
    screen.line(`  ${screen.paint.dim(`${formatCount(leftOut)} more; --top 0 shows all`)}`);
  }
}
