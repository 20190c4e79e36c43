/** The alerts of a server in a terminal. */
import { formatCount, formatDuration, formatWallClock } from "../../model/base/numbers.js";
import type { AlertJson, AlertsJson } from "../../model/documents/alert_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { type CommonOptions, type ListOptions, selectRows } from "../options/options.js";
import { type Column, printTable, type Screen } from "../text/output.js";

const DEFAULT_ROWS = 50;

export function printAlerts(
  screen: Screen,
  document: AlertsJson,
  options: ListOptions & CommonOptions,
): void {
  const { paint } = screen;
  const { alerts, receivers, evaluatedMs, limits } = document;
  const { rows, unmatched, leftOut } = selectRows(
    alerts,
    options,
    DEFAULT_ROWS,
    ({ growth }) => growth?.growthBytesPerHour ?? 0,
    ({ service, version, host, cause, summary }) =>
      [service, version, host, cause, summary].join(" "),
  );
  if (rows.length === 0) {
    const none =
      evaluatedMs === 0 ? "the rules have not been evaluated yet" : "no rule holds anywhere";
    screen.line(paint.dim(unmatched ?? none));
  } else {
    const columns: Column[] = [
      { title: "STATE", paint: paint.bold },
      { title: "SEVERITY" },
      { title: "SINCE" },
      { title: "SERVICE", paint: paint.bold },
      { title: "VERSION" },
      { title: "CAUSE" },
      { title: "FIRST LIMIT IN", align: "right" },
      { title: "", flexible: "cutEnd" },
    ];
    const cells = rows.map((alert) => [
      stateText(alert),
      alert.severity,
      formatWallClock(alert.firingMs ?? alert.sinceMs, true),
      oneLine(alert.service || alert.host || "-"),
      oneLine(alert.version || "-"),
      alert.cause,
      limitText(alert),
      oneLine(alert.summary),
    ]);
    printTable(screen, columns, cells);
  }
  if (leftOut > 0) {
    screen.line();
    screen.line(`  ${paint.dim(`${formatCount(leftOut)} more; --top 0 shows all`)}`);
  }
  for (const { name, error } of receivers) {
    if (error !== undefined) {
      screen.line(`  ${paint.yellow(oneLine(`notifying ${name} failed: ${error}`))}`);
    }
  }
  if (receivers.length === 0 && options.quiet !== true) {
    const line =
      "nobody is notified: the server's configuration names no receivers (docs/alerts.md)";
    screen.line(`  ${paint.dim(line)}`);
  }
  for (const limit of limits) {
    screen.line(`  ${paint.yellow(oneLine(limit))}`);
  }
}

function stateText({ state, acknowledged, silenced }: AlertJson): string {
  const also = silenced !== undefined ? ", silenced" : acknowledged !== undefined ? ", seen" : "";
  return `${state}${also}`;
}

function limitText({ forecast }: AlertJson): string {
  return forecast === undefined || forecast.msToLimit === 0
    ? "-"
    : formatDuration(forecast.msToLimit);
}
