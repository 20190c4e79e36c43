/** The memory that services need, in a terminal: a line for each service, or everything about one. */
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatShare,
  formatSignedBytes,
} from "../../model/base/numbers.js";
import { monthlyText, SIZE_STATE_TEXT } from "../../model/documents/size_text.js";
import type { FleetSizesJson, ServiceSizeJson } from "../../model/documents/sizes_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { type ListOptions, selectRows } from "../options/options.js";
import { type Column, printTable, type Screen } from "../text/output.js";

const DEFAULT_ROWS = 50;

export function printSizes(screen: Screen, document: FleetSizesJson, options: ListOptions): void {
  const { paint } = screen;
  const { rows, unmatched, leftOut } = selectRows(
    document.sizes,
    options,
    DEFAULT_ROWS,
    ({ savedBytes }) => savedBytes,
    ({ service, state, summary, versions }) => [service, state, summary, ...versions].join(" "),
  );
  if (rows.length === 0) {
    const none = "no service reported its RSS in this time; look back further with --since";
    screen.line(paint.dim(unmatched ?? none));
    return;
  }
  const { price } = document;
  const columns: Column[] = [
    { title: "SERVICE", paint: paint.bold },
    { title: "INSTANCES", align: "right" },
    { title: "PEAK", align: "right" },
    { title: "LIMIT NOW", align: "right" },
    { title: "NEEDED", align: "right", paint: paint.bold },
    { title: "REQUEST", align: "right" },
    { title: "SAVES", align: "right" },
    ...(price === undefined ? [] : [{ title: "A MONTH", align: "right" } as const]),
    { title: "LIMIT" },
    { title: "", flexible: "cutEnd" },
  ];
  const cells = rows.map((each) => [
    each.service,
    formatCount(each.instances),
    formatBytes(each.peakBytes),
    each.limitBytes === 0 ? "-" : formatBytes(each.limitBytes),
    each.needs === undefined ? "-" : formatBytes(each.needs.limitBytes),
    each.needs === undefined ? "-" : formatBytes(each.needs.requestBytes),
    each.savedBytes === 0 ? "-" : formatBytesSaved(each.savedBytes),
    ...(price === undefined
      ? []
      : [each.savedBytes === 0 ? "-" : (monthlyText(each.savedBytes, price) ?? "-")]),
    SIZE_STATE_TEXT[each.state],
    each.cautions[0] ?? "",
  ]);
  printTable(screen, columns, cells);
  screen.line();
  if (leftOut > 0) {
    screen.line(`  ${paint.dim(`${formatCount(leftOut)} more; --top 0 shows all`)}`);
  }
  const monthly = monthlyText(document.savedBytes, price);
  const worth = monthly === null ? "" : `, ${monthly} a month`;
  screen.line(
    `  lower limits would free ${paint.bold(formatBytes(document.savedBytes))}${worth}; a limit is the peak and ${formatShare(document.marginShare)} more`,
  );
}

export function printSize(screen: Screen, { sizes, price, marginShare }: FleetSizesJson): void {
  const { paint } = screen;
  const [size] = sizes;
  if (size === undefined) {
    return;
  }
  for (const line of screen.wrap(`${oneLine(size.service)}: ${size.summary}`, 0)) {
    screen.line(paint.bold(line));
  }
  screen.line();
  for (const [name, text] of factsOf(size, price, marginShare)) {
    screen.line(`  ${name.padEnd(11)}${oneLine(text)}`);
  }
  for (const caution of size.cautions) {
    for (const line of screen.wrap(oneLine(caution), 2)) {
      screen.line(`  ${paint.yellow(line)}`);
    }
  }
}

function factsOf(
  size: ServiceSizeJson,
  price: FleetSizesJson["price"],
  marginShare: number,
): [name: string, text: string][] {
  const { needs, savedBytes, limitBytes, instances, kills } = size;
  const monthly = monthlyText(Math.abs(savedBytes), price);
  const worth = monthly === null ? "" : `, ${monthly} a month`;
  const versions = size.versions.map((version) => version || "unknown").join(", ");
  const facts: [string, string | false][] = [
    ["limit", limitBytes === 0 ? "none is known" : formatBytes(limitBytes)],
    [
      "needed",
      needs !== undefined &&
        `${formatBytes(needs.limitBytes)}: the 99th percentile of daily peaks and ${formatShare(marginShare)} more`,
    ],
    [
      "request",
      needs !== undefined &&
        `${formatBytes(needs.requestBytes)}: covers 95 % of the hours of an instance`,
    ],
    [
      "peak",
      `${formatBytes(size.peakBytes)}, the highest ${formatBytes(size.highestBytes)}, from ${formatCount(size.instanceDays)} days of an instance`,
    ],
    [
      "instances",
      `${formatCount(instances)} that run${versions === "" ? "" : `, of version ${versions}`}`,
    ],
    ["observed", formatDuration(size.observedMs)],
    ["killed", kills > 0 && `${kills} times for memory`],
    [
      savedBytes < 0 ? "costs" : "saves",
      savedBytes !== 0 && `${formatBytes(Math.abs(savedBytes))} of all instances${worth}`,
    ],
  ];
  return facts.flatMap(([name, text]) =>
    text === false ? [] : [[name, text] as [string, string]],
  );
}

/** A need is negative. */
function formatBytesSaved(bytes: number): string {
  return bytes < 0 ? formatSignedBytes(bytes) : formatBytes(bytes);
}
