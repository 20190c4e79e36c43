/** What grows in a fleet, what differs, its endpoints and its verdicts, in a terminal. */
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatGrowth,
  formatSignedBytes,
} from "../../model/base/numbers.js";
import type {
  EndpointsJson,
  FleetDiffJson,
  FleetVerdictsJson,
  GrowingJson,
  StackFrameJson,
} from "../../model/documents/fleet_document.js";
import { instanceStateText } from "../../model/documents/instance_text.js";
import { oneLine } from "../../model/errors/errors.js";
import { type ListOptions, selectRows } from "../options/options.js";
import { type Column, printTable, type Screen } from "../text/output.js";

const DEFAULT_ROWS = 50;

export function printGrowing(screen: Screen, document: GrowingJson, options: ListOptions): void {
  const { paint } = screen;
  const { earlyBytes, lateBytes, growthBytesPerHour, other } = document;
  const lengthMs = document.late.endMs - document.early.startMs;
  const change = `${formatBytes(earlyBytes)} → ${formatBytes(lateBytes)} live, ${formatGrowth(growthBytesPerHour)} over ${formatDuration(lengthMs)}`;
  screen.line(`${paint.bold(oneLine(document.service))}  ${change}`);
  screen.line();
  const rows = selected(document.stacks, options, ({ lateBytes: bytes }) => bytes);
  const columns: Column[] = [
    { title: "TOTAL GROWTH", align: "right", paint: paint.bold },
    { title: "FIRST QUARTER", align: "right" },
    { title: "LAST QUARTER", align: "right" },
    { title: "SURVIVED", align: "right" },
    { title: "STACK", flexible: "cutEnd" },
  ];
  const cells = rows.map((row) => [
    formatGrowth(row.growthBytesPerHour),
    formatBytes(row.earlyBytes),
    formatBytes(row.lateBytes),
    row.survivedBytes === undefined ? "-" : formatBytes(row.survivedBytes),
    stackText(row.stack),
  ]);
  printRows(screen, columns, cells);
  printRest(screen, other.stacks, formatGrowth(other.growthBytesPerHour), document.limits);
}

export function printFleetDiff(
  screen: Screen,
  document: FleetDiffJson,
  options: ListOptions,
): void {
  const { paint } = screen;
  const isBytes = document.figure.endsWith("Bytes");
  const amount = (value: number) => (isBytes ? formatBytes(value) : formatCount(Math.round(value)));
  const change = (value: number) =>
    isBytes ? formatSignedBytes(value) : `${value > 0 ? "+" : ""}${Math.round(value)}`;
  for (const [name, side] of [
    ["A", document.left],
    ["B", document.right],
  ] as const) {
    const count = Math.round(side.instances * 10) / 10;
    const instances = `${count} ${count === 1 ? "instance" : "instances"}`;
    const scale = document.per === "instance" ? " each" : "";
    screen.line(
      `${paint.dim(name)}  ${paint.bold(oneLine(side.selector))}  ${amount(side.total)}${scale}, ${instances}`,
    );
  }
  screen.line();
  const rows = selected(document.stacks, options, ({ left, right }) => Math.max(left, right));
  const columns: Column[] = [
    { title: "CHANGE", align: "right", paint: paint.bold },
    { title: "A", align: "right" },
    { title: "B", align: "right" },
    { title: "STACK", flexible: "cutEnd" },
  ];
  const cells = rows.map((row) => [
    change(row.change),
    amount(row.left),
    amount(row.right),
    stackText(row.stack),
  ]);
  printRows(screen, columns, cells);
  printRest(screen, document.other.stacks, change(document.other.change), document.limits);
}

export function printEndpoints(
  screen: Screen,
  { endpoints, other, outside, limits }: EndpointsJson,
  options: ListOptions,
): void {
  const { rows, unmatched } = selectRows(
    endpoints,
    options,
    DEFAULT_ROWS,
    ({ liveBytes }) => liveBytes,
    ({ endpoint, framework }) => `${endpoint} ${framework}`,
  );
  if (unmatched !== undefined) {
    screen.line(screen.paint.dim(unmatched));
    return;
  }
  const columns: Column[] = [
    { title: "MEAN LIVE", align: "right", paint: screen.paint.bold },
    { title: "ALLOCATED", align: "right" },
    { title: "OBJECTS", align: "right" },
    { title: "CALLED BY" },
    { title: "ENDPOINT", flexible: "cutMiddle" },
  ];
  const figuresOf = (row: EndpointsJson["outside"]) => [
    formatBytes(row.liveBytes),
    formatBytes(row.allocatedBytes),
    formatCount(Math.round(row.liveObjects)),
  ];
  const cells = rows.map((row) => [...figuresOf(row), row.framework, oneLine(row.endpoint)]);
  cells.push([...figuresOf(outside), "", "outside of endpoints"]);
  printRows(screen, columns, cells);
  if (other.endpoints > 0) {
    screen.line();
    const rest = `${formatCount(other.endpoints)} other endpoints: ${formatBytes(other.liveBytes)}`;
    screen.line(`  ${screen.paint.dim(rest)}`);
  }
  printRest(screen, 0, "", limits);
}

export function printVerdicts(
  screen: Screen,
  { verdicts, window }: FleetVerdictsJson,
  options: ListOptions,
): void {
  const { rows, unmatched, leftOut } = selectRows(
    verdicts,
    options,
    DEFAULT_ROWS,
    ({ growthBytesPerHour = 0 }) => growthBytesPerHour,
    ({ service, version, host, pod, kind, summary }) =>
      [service, version, host, pod, kind, summary].join(" "),
  );
  if (rows.length === 0) {
    screen.line(
      screen.paint.dim(unmatched ?? "no verdicts in this time; look back further with --since"),
    );
    return;
  }
  const columns: Column[] = [
    { title: "SERVICE", paint: screen.paint.bold },
    { title: "VERSION" },
    { title: "INSTANCE" },
    { title: "GROWTH", align: "right" },
    { title: "STATE" },
    { title: "VERDICT" },
    { title: "", flexible: "cutEnd" },
  ];
  const cells = rows.map((row) => [
    row.service,
    row.version || "-",
    row.stream.slice(0, 8),
    row.growthBytesPerHour === undefined ? "-" : formatGrowth(row.growthBytesPerHour),
    instanceStateText(row, window.endMs),
    row.kind,
    row.summary,
  ]);
  printRows(screen, columns, cells);
  if (leftOut > 0) {
    screen.line();
    screen.line(`  ${screen.paint.dim(`${formatCount(leftOut)} more; --top 0 shows all`)}`);
  }
}

function selected<Row extends { readonly stack: StackFrameJson[] }>(
  stacks: readonly Row[],
  options: ListOptions,
  sizeOf: (row: Row) => number,
): Row[] {
  return selectRows(stacks, options, DEFAULT_ROWS, sizeOf, ({ stack }) => stackText(stack)).rows;
}

/** Leaf first, as "load app.py:12 ← main app.py:40". */
function stackText(stack: readonly StackFrameJson[]): string {
  return stack
    .map(({ function: name, file, line }) =>
      oneLine(
        file === "" ? name : `${name} ${file.split("/").at(-1)}${line > 0 ? `:${line}` : ""}`,
      ),
    )
    .join(" ← ");
}

function printRows(screen: Screen, columns: readonly Column[], cells: readonly string[][]): void {
  printTable(screen, columns, cells);
}

function printRest(
  screen: Screen,
  stacks: number,
  amount: string,
  limits: readonly string[],
): void {
  if (stacks > 0) {
    screen.line();
    screen.line(`  ${screen.paint.dim(`${formatCount(stacks)} other stacks: ${amount}`)}`);
  }
  for (const limit of limits) {
    for (const line of screen.wrap(oneLine(limit), 2)) {
      screen.line(`  ${screen.paint.yellow(line)}`);
    }
  }
}
