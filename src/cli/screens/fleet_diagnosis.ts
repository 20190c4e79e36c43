/** The fleet's diagnosis in a terminal: a line for each service, or everything about one. */

import {
  formatBytes,
  formatCount,
  formatDuration,
  formatGrowth,
} from "../../model/base/numbers.js";
import type {
  FleetDiagnosesJson,
  FleetDiagnosisJson,
  FleetRateJson,
} from "../../model/documents/fleet_diagnosis_document.js";
import { holderPathText } from "../../model/documents/holder_path.js";
import { affectedText } from "../../model/documents/instance_text.js";
import { oneLine } from "../../model/errors/errors.js";
import { type ListOptions, selectRows } from "../options/options.js";
import { type Column, printTable, type Screen } from "../text/output.js";

const DEFAULT_ROWS = 50;
const MOST_FORECASTS = 5;

export function printDiagnoses(
  screen: Screen,
  { diagnoses }: FleetDiagnosesJson,
  options: ListOptions,
): void {
  const { paint } = screen;
  const { rows, unmatched, leftOut } = selectRows(
    diagnoses,
    options,
    DEFAULT_ROWS,
    ({ leak }) => leak?.growthBytesPerHour ?? 0,
    ({ service, verdict, versions }) =>
      [service, verdict.kind, verdict.summary, ...versions.map(({ version }) => version)].join(" "),
  );
  if (rows.length === 0) {
    const none = "no service reported its RSS in this time; look back further with --since";
    screen.line(paint.dim(unmatched ?? none));
    return;
  }
  const columns: Column[] = [
    { title: "SERVICE", paint: paint.bold },
    { title: "VERSION" },
    { title: "GROWTH PER INSTANCE", align: "right" },
    { title: "INTERVAL", align: "right" },
    { title: "INSTANCES", align: "right" },
    { title: "FIRST LIMIT IN", align: "right" },
    { title: "VERDICT" },
    { title: "", flexible: "cutEnd" },
  ];
  const cells = rows.map((each) => {
    const { service, verdict, leak, versions } = each;
    const newest = versions.at(-1);
    return [
      oneLine(service),
      oneLine((leak ?? newest)?.version || "-"),
      leak === undefined ? "-" : formatGrowth(leak.growthBytesPerHour),
      leak === undefined ? "-" : intervalText(leak),
      leak === undefined ? "-" : affectedText(leak),
      limitText(each),
      verdictText(each),
      oneLine(verdict.summary),
    ];
  });
  printTable(screen, columns, cells);
  if (leftOut > 0) {
    screen.line();
    screen.line(`  ${paint.dim(`${formatCount(leftOut)} more; --top 0 shows all`)}`);
  }
}

export function printDiagnosis(screen: Screen, document: FleetDiagnosisJson): void {
  const { paint } = screen;
  const { verdict, versions, suspects, forecast, evidence, limits } = document;
  for (const line of screen.wrap(oneLine(verdict.summary), 0)) {
    screen.line(paint.bold(line));
  }
  screen.line();
  if (versions.length > 0) {
    const columns: Column[] = [
      { title: "VERSION", paint: paint.bold },
      { title: "PROCESSES", align: "right" },
      { title: "GROWTH PER INSTANCE", align: "right" },
      { title: "INTERVAL", align: "right" },
      { title: "RSS", align: "right" },
      { title: "COURSE" },
      { title: "OVER", align: "right" },
    ];
    const cells = versions.map((each) => [
      oneLine(each.version || "-"),
      formatCount(each.instances),
      ...(each.shape === "short"
        ? ["-", "-"]
        : [formatGrowth(each.growthBytesPerHour), intervalText(each)]),
      formatBytes(each.levelBytes),
      each.shape,
      formatDuration(each.windowMs),
    ]);
    printTable(screen, columns, cells);
    screen.line();
  }
  for (const { line, share, growthBytesPerHour, holder } of suspects) {
    const held = holder === undefined ? "" : `, held by ${holderPathText(holder.path)}`;
    const place = `${line.function} ${line.file}:${line.line}`;
    const amount = `${formatGrowth(growthBytesPerHour)}, ${Math.round(share * 100)} % of the growth`;
    screen.line(`  ${paint.bold(oneLine(place))}  ${amount}${oneLine(held)}`);
  }
  for (const each of forecast.filter(({ msToLimit }) => msToLimit > 0).slice(0, MOST_FORECASTS)) {
    const latest = each.latestMs === 0 ? "" : ` to ${formatDuration(each.latestMs)}`;
    const range = each.earliestMs === 0 ? "" : ` (${formatDuration(each.earliestMs)}${latest})`;
    screen.line(
      `  ${oneLine(each.instance)} reaches its limit in ${formatDuration(each.msToLimit)}${range}`,
    );
  }
  for (const { detail } of evidence) {
    screen.line(`  ${paint.dim(oneLine(detail))}`);
  }
  for (const limit of limits) {
    for (const line of screen.wrap(oneLine(limit), 2)) {
      screen.line(`  ${paint.yellow(line)}`);
    }
  }
}

/** "insufficient-evidence (python-leak in 1 of 1)" while only the diagnoses of single processes know more. */
function verdictText({ verdict, own }: FleetDiagnosisJson): string {
  return own === undefined
    ? verdict.kind
    : `${verdict.kind} (${own.kind} in ${own.instances} of ${own.running})`;
}

function intervalText({ low, high }: FleetRateJson): string {
  const [from, to] = [formatGrowth(low), formatGrowth(high)];
  return from === to ? from : `${from} … ${to}`;
}

function limitText({ leak, forecast }: FleetDiagnosisJson): string {
  const left = forecast[0]?.msToLimit ?? 0;
  return leak === undefined || leak.runningInstances === 0
    ? "-"
    : left > 0
      ? formatDuration(left)
      : "no limit";
}
