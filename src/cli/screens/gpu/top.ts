/** The devices of a host, each with its processes. */

import { formatBytes, formatShare } from "../../../model/base/numbers.js";
import type { GpuTopJson, GpuTopProcessJson } from "../../../model/documents/gpu/gpu_document.js";
import { oneLine } from "../../../model/errors/errors.js";
import { type ListOptions, selectRows } from "../../options/options.js";
import { bar, formatTable, type Screen } from "../../text/output.js";
import { printLimits } from "./snapshot.js";

type Device = GpuTopJson["devices"][number];

const BAR_COLUMNS = 30;
const INSTANCE_BAR_COLUMNS = 16;

export function printGpuTop(
  screen: Screen,
  document: GpuTopJson,
  options: ListOptions & { readonly quiet?: boolean },
): void {
  for (const [row, device] of document.devices.entries()) {
    if (row > 0) {
      screen.line();
    }
    printDevice(screen, device, chosenProcesses(device, options));
  }
  printLimits(screen, document.limits, options);
}

/** The processes of a device that match the list options. */
export function chosenProcesses(device: Device, options: ListOptions): GpuTopProcessJson[] {
  return selectRows(
    device.processes,
    options,
    0,
    ({ deviceBytes }) => deviceBytes ?? 0,
    ({ pid, command }) => `${pid} ${command.join(" ")}`,
  ).rows;
}

/** @param course sparkline drawn after the bar; "" for a single reading */
export function printDevice(
  screen: Screen,
  device: Device,
  processes: readonly GpuTopProcessJson[],
  course = "",
): void {
  const { paint } = screen;
  const busy = device.utilisation === null ? "" : `, ${formatShare(device.utilisation)} busy`;
  screen.line(
    `${paint.bold(`Device ${device.index}`)}  ${oneLine(device.name)}${device.mig ? ", MIG" : ""}${busy}`,
  );
  const filled = paint.cyan(bar(device.usedBytes / device.totalBytes, BAR_COLUMNS));
  const trend = course === "" ? "" : `  ${paint.blue(course)}`;
  screen.line(
    `  ${formatBytes(device.usedBytes)} of ${formatBytes(device.totalBytes)}  ${filled}${trend}`,
  );
  for (const { index, gpuInstance, computeInstance, ...memory } of device.instances ?? []) {
    const share = memory.totalBytes === 0 ? 0 : memory.usedBytes / memory.totalBytes;
    screen.line(
      `  MIG ${index} ${paint.dim(`(instance ${gpuInstance}/${computeInstance})`)}  ${formatBytes(memory.usedBytes)} of ${formatBytes(memory.totalBytes)}  ${paint.cyan(bar(share, INSTANCE_BAR_COLUMNS))}`,
    );
  }
  for (const line of processTable(screen, device, processes)) {
    screen.line(line);
  }
}

function processTable(
  screen: Screen,
  device: Device,
  processes: readonly GpuTopProcessJson[],
): string[] {
  const { paint } = screen;
  const known = processes.some(({ allocator }) => allocator !== undefined);
  const divided = device.instances !== undefined;
  const own = ({ allocator, outsideBytes }: GpuTopProcessJson) =>
    allocator === undefined
      ? ["", "", ""]
      : [
          formatBytes(allocator.allocatedBytes),
          formatBytes(allocator.reservedBytes),
          outsideBytes === undefined ? "" : formatBytes(outsideBytes),
        ];
  return formatTable(
    screen,
    [
      { title: "PID", align: "right" },
      ...(divided ? [{ title: "MIG", align: "right" } as const] : []),
      { title: "DEVICE", align: "right", paint: paint.bold },
      ...(known
        ? (["ALLOCATED", "RESERVED", "OUTSIDE"] as const).map(
            (title) => ({ title, align: "right" }) as const,
          )
        : []),
      { title: "RSS", align: "right" },
      { title: "COMMAND", flexible: "cutEnd" },
    ],
    [
      ...processes.map((process) => [
        String(process.pid),
        ...(divided ? [process.instance === undefined ? "" : String(process.instance)] : []),
        process.deviceBytes === null ? "reserved by driver" : formatBytes(process.deviceBytes),
        ...(known ? own(process) : []),
        process.rssBytes === 0 ? "" : formatBytes(process.rssBytes),
        process.command.length === 0 ? "(in another container)" : process.command.join(" "),
      ]),
      [
        "",
        ...(divided ? [""] : []),
        formatBytes(device.unlistedBytes),
        ...(known ? ["", "", ""] : []),
        "",
        "(the driver and unlisted processes)",
      ],
    ],
  );
}
