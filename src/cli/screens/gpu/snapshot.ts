/** The screen of one snapshot. */

import { formatBytes, formatCount, formatShare } from "../../../model/base/numbers.js";
import type {
  GpuDeviceJson,
  GpuJson,
  GpuSiteJson,
} from "../../../model/documents/gpu/gpu_document.js";
import { oneLine } from "../../../model/errors/errors.js";
import { HOST_MEMORY } from "../../../model/gpu/gpu_snapshot.js";
import { type ListOptions, selectRows } from "../../options/options.js";
import { formatTable, padStart, type Screen, sparkline } from "../../text/output.js";
import { gpuSiteName, siteText } from "./site.js";

export { siteText };

export const DEFAULT_GPU_SITES = 10;
type Options = ListOptions & { readonly quiet?: boolean };

export function printGpu(screen: Screen, document: GpuJson, options: Options): void {
  const { paint } = screen;
  screen.line(paint.bold(oneLine(document.file)));
  if (document.verdict !== undefined && document.verdict.kind !== "insufficient-evidence") {
    const { kind, confidence, summary } = document.verdict;
    const colour = kind === "steady" ? paint.green : paint.red;
    screen.line(`${paint.bold(colour(kind))} ${paint.dim(`(${formatShare(confidence)} sure)`)}`);
    printParagraph(screen, "", summary);
  }
  for (const device of document.devices) {
    printDevice(screen, device, options);
  }
  if (document.advice.length > 0) {
    screen.line();
    screen.line(paint.bold("What to do"));
    for (const { id, text } of document.advice) {
      printParagraph(screen, `${id}  `, text);
    }
  }
  printLimits(screen, document.limits, options);
}

export function printLimits(screen: Screen, limits: readonly string[], options: Options): void {
  if (options.quiet === true || limits.length === 0) {
    return;
  }
  screen.line();
  for (const limit of limits) {
    for (const line of screen.wrap(oneLine(limit), 2)) {
      screen.line(`  ${screen.paint.yellow(line)}`);
    }
  }
}

function printParagraph(screen: Screen, head: string, text: string): void {
  screen.wrap(oneLine(text), head.length + 2).forEach((line, row) => {
    screen.line(`  ${row === 0 ? head : " ".repeat(head.length)}${line}`);
  });
}

function printDevice(screen: Screen, device: GpuDeviceJson, options: Options): void {
  const { paint } = screen;
  screen.line();
  screen.line(
    `${paint.bold(device.device === HOST_MEMORY ? "Pinned host memory" : `Device ${device.device}`)}  ${paint.dim(
      `${formatCount(device.events)} events, ${formatCount(device.segments)} segments`,
    )}`,
  );
  printTotals(screen, device);
  printSites(screen, `At the peak (${momentName(device)})`, device.peak.sites, options);
  if (device.peak.eventIndex !== device.events) {
    printSites(screen, "At the end", device.sites, options);
  }
  printWaste(screen, device);
  printFragmentation(screen, device);
  printOutOfMemory(screen, device);
  printGrowth(screen, device, options);
}

function momentName({ peak, events }: GpuDeviceJson): string {
  if (peak.eventIndex === events) {
    return "the end";
  }
  return peak.eventIndex === 0
    ? "at the start of the trace"
    : `after event ${formatCount(peak.eventIndex)}`;
}

function printTotals(screen: Screen, { end, peak, ...device }: GpuDeviceJson): void {
  const { paint } = screen;
  const rows: [string, number, string][] = [
    ["Reserved", end.reservedBytes, `highest ${formatBytes(device.highestReservedBytes)}`],
    ["Allocated", end.allocatedBytes, ""],
    ["Active", end.activeBytes, ""],
    ["Requested", end.requestedBytes, `peak ${formatBytes(peak.requestedBytes)}`],
  ];
  for (const [name, bytes, note] of rows) {
    const figure = paint.bold(padStart(formatBytes(bytes), 10));
    screen.line(`  ${name.padEnd(10)}${figure}  ${paint.dim(note)}`);
  }
  if (device.events > 0) {
    const line = sparkline(
      device.timeline.map(({ eventIndex }) => eventIndex),
      device.timeline.map(({ requestedBytes }) => requestedBytes),
      screen.pictureColumns - 4,
    );
    screen.line(`  ${paint.cyan(line)}`);
  }
}

function printSites(
  screen: Screen,
  title: string,
  sites: readonly GpuSiteJson[],
  options: Options,
): void {
  const { paint } = screen;
  const total = sites.reduce((sum, site) => sum + site.bytes, 0);
  const rows = selectRows(
    groupByName(sites),
    options,
    DEFAULT_GPU_SITES,
    (row) => row.bytes,
    (row) => row.text,
  );
  screen.line();
  screen.line(`${paint.bold(title)}  ${paint.dim(formatBytes(total))}`);
  const table = formatTable(
    screen,
    [
      { title: "BYTES", align: "right", paint: paint.bold },
      { title: "SHARE", align: "right" },
      { title: "N", align: "right" },
      { title: "CATEGORY" },
      { title: "SITE", flexible: "cutEnd" },
    ],
    rows.rows.map((row) => [
      formatBytes(row.bytes),
      formatShare(row.bytes / total),
      formatCount(row.allocations),
      row.category === "unknown" ? "" : `${row.category}${row.sure ? "" : "?"}`,
      row.name,
    ]),
  );
  for (const line of table) {
    screen.line(line);
  }
  if (rows.unmatched !== undefined) {
    screen.line(paint.dim(`  ${rows.unmatched}`));
  }
  if (rows.leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(rows.leftOut)} more`));
  }
}

/** Sites of the same own line and category form one row. */
function groupByName(sites: readonly GpuSiteJson[]) {
  const rows = new Map<
    string,
    {
      name: string;
      category: string;
      bytes: number;
      allocations: number;
      sure: boolean;
      text: string;
    }
  >();
  for (const site of sites) {
    const name = gpuSiteName(site.stack);
    const key = `${name}\t${site.category}`;
    const row = rows.get(key);
    if (row === undefined) {
      const { category, bytes, allocations, sure } = site;
      rows.set(key, { name, category, bytes, allocations, sure, text: siteText(site) });
    } else {
      row.bytes += site.bytes;
      row.allocations += site.allocations;
      row.sure &&= site.sure;
      row.text += ` ${siteText(site)}`;
    }
  }
  return [...rows.values()].sort((a, b) => b.bytes - a.bytes);
}

function printWaste(screen: Screen, { waste, end }: GpuDeviceJson): void {
  const { paint } = screen;
  const part = (name: string, bytes: number) =>
    `${name} ${paint.bold(formatBytes(bytes))} (${formatShare(bytes / end.reservedBytes)})`;
  screen.line();
  screen.line(
    `${paint.bold("Not used")}  ${[
      part("rounding", waste.roundingBytes),
      part("split", waste.splitBytes),
      part("cached", waste.cachedBytes),
    ].join(", ")}`,
  );
}

/** Pools, streams and kinds of blocks, largest first. */
export function printFragmentation(
  screen: Screen,
  { fragmentation }: Pick<GpuDeviceJson, "fragmentation">,
): void {
  if (fragmentation.length === 0) {
    return;
  }
  const table = formatTable(
    screen,
    [
      { title: "POOL" },
      { title: "STREAM" },
      { title: "BLOCKS" },
      { title: "RESERVED", align: "right" },
      { title: "FREE", align: "right" },
      { title: "SPLIT", align: "right" },
      { title: "LARGEST", align: "right" },
      { title: "FRAGMENTED", align: "right" },
    ],
    fragmentation
      .slice(0, 12)
      .map((group) => [
        group.pool === "0,0" || group.pool === "" ? "common" : group.pool,
        group.stream === 0 ? "default" : `0x${group.stream.toString(16)}`,
        `${group.type}${group.expandable ? ", expandable" : ""}`,
        formatBytes(group.reservedBytes),
        formatBytes(group.freeBytes),
        formatBytes(group.splitBytes),
        formatBytes(group.largestFreeBytes),
        formatShare(group.ratio),
      ]),
  );
  for (const line of table) {
    screen.line(line);
  }
  if (fragmentation.length > 12) {
    screen.line(screen.paint.dim(`  ${fragmentation.length - 12} more`));
  }
}

function printOutOfMemory(screen: Screen, device: GpuDeviceJson): void {
  const { paint } = screen;
  const { count, beforeRequest } = device.cacheReleases;
  if (count > 0) {
    screen.line();
    screen.line(
      `${paint.bold("Cache released")}  ${formatCount(count)} times, ${formatCount(beforeRequest)} of them right before a request (retries)`,
    );
  }
  for (const event of device.outOfMemory.slice(-5)) {
    screen.line();
    screen.line(
      `${paint.red("Out of memory")} at event ${formatCount(event.eventIndex)}: ${paint.bold(event.kind)}`,
    );
    printParagraph(
      screen,
      "",
      `requested ${formatBytes(event.requestedBytes)}; the device had ${formatBytes(event.deviceFreeBytes)} free. ` +
        `Reserved ${formatBytes(event.reservedBytes)}, in use ${formatBytes(event.liveBytes)}; free on the stream ` +
        `at most ${formatBytes(event.freeInSegmentsBytes)}, the largest piece ${formatBytes(event.largestFreeBytes)}.`,
    );
    screen.line(paint.dim(`  ${gpuSiteName(event.stack)}`));
  }
  const more = device.outOfMemory.length - 5;
  if (more > 0) {
    screen.line(paint.dim(`  ${formatCount(more)} earlier ones`));
  }
}

function printGrowth(screen: Screen, device: GpuDeviceJson, options: Options): void {
  const { paint } = screen;
  if (device.growth.length === 0) {
    return;
  }
  const { rows, leftOut, unmatched } = selectRows(
    device.growth,
    options,
    DEFAULT_GPU_SITES,
    (site) => site.bytes,
    siteText,
  );
  screen.line();
  screen.line(
    `${paint.red("Grows with each step")}  ${paint.dim(`${device.growth[0]?.steps} steps, detected by ${device.stepsFrom}`)}`,
  );
  const table = formatTable(
    screen,
    [
      { title: "A STEP", align: "right", paint: paint.bold },
      { title: "NOW", align: "right" },
      { title: "N", align: "right" },
      { title: "CATEGORY" },
      { title: "SITE", flexible: "cutEnd" },
    ],
    rows.map((site) => [
      `+${formatBytes(site.bytesPerStep)}`,
      formatBytes(site.bytes),
      formatCount(site.allocations),
      site.category === "unknown" ? "" : `${site.category}${site.sure ? "" : "?"}`,
      gpuSiteName(site.stack),
    ]),
  );
  for (const line of table) {
    screen.line(line);
  }
  if (unmatched !== undefined) {
    screen.line(paint.dim(`  ${unmatched}`));
  }
  if (leftOut > 0) {
    screen.line(paint.dim(`  ${formatCount(leftOut)} more`));
  }
}
