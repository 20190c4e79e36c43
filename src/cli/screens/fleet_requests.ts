/** The profiles that people asked collectors for, in a terminal. */
import { formatCount, formatMoment } from "../../model/base/numbers.js";
import type { RequestJson, RequestsJson } from "../../model/documents/request_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { type CommonOptions, type ListOptions, selectRows } from "../options/options.js";
import { type Column, printTable, type Screen } from "../text/output.js";

const DEFAULT_ROWS = 50;

export function printRequests(
  screen: Screen,
  { requests, limits }: RequestsJson,
  options: ListOptions & CommonOptions,
): void {
  const { paint } = screen;
  const { rows, unmatched, leftOut } = selectRows(
    requests,
    options,
    DEFAULT_ROWS,
    ({ timeMs }) => timeMs,
    ({ service, by, hosts }) => [service, by, ...hosts.map(({ host }) => host)].join(" "),
  );
  if (rows.length === 0) {
    screen.line(
      paint.dim(unmatched ?? "nobody has asked for a profile: tidemark fleet profile SERVICE"),
    );
  } else {
    const columns: Column[] = [
      { title: "TIME" },
      { title: "UNTIL" },
      { title: "SERVICE", paint: paint.bold },
      { title: "BY" },
      { title: "AGENTS", align: "right" },
      { title: "", flexible: "cutEnd" },
    ];
    const cells = rows.map((request) => [
      formatMoment(request.timeMs),
      formatMoment(request.untilMs),
      oneLine(request.service),
      oneLine(request.by || "-"),
      request.captures === undefined
        ? formatCount(request.hosts.reduce((sum, { programs }) => sum + programs, 0))
        : "-",
      hostsText(request),
    ]);
    printTable(screen, columns, cells);
  }
  if (leftOut > 0) {
    screen.line();
    screen.line(`  ${paint.dim(`${formatCount(leftOut)} more; --top 0 shows all`)}`);
  }
  if (options.quiet !== true) {
    const line = `the server accepts ${limits.service} for a service and ${limits.fleet} for all`;
    screen.line(`  ${paint.dim(line)}`);
  }
}

export function printRequest(screen: Screen, { service, untilMs }: RequestJson): void {
  screen.line(
    `Requested a profile of ${oneLine(service)} until ${formatMoment(untilMs)}; collectors answer within 15 seconds: tidemark fleet requests`,
  );
}

function hostsText({ hosts, captures, untilMs }: RequestJson): string {
  const texts = hosts.map(({ host, programs, why }) =>
    oneLine(`${host}: ${formatCount(programs)}${why === "" ? "" : ` (${why})`}`),
  );
  const what = captures === undefined ? "" : `captures at ${formatMoment(captures.atMs)}: `;
  const none =
    untilMs > Date.now()
      ? "no collector with this service has answered yet"
      : "no collector with this service answered in this time";
  return `${what}${texts.length === 0 ? none : texts.join(", ")}`;
}
