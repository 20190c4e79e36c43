/** The devices of a host, each with its processes. */
import { oneLine } from "../../model/errors.js";
import type { GpuTopJson } from "../../model/gpu_document.js";
import { bar, formatBytes, formatShare, formatTable, type Screen } from "../output.js";
import { printLimits } from "./gpu.js";

export function printGpuTop(
  screen: Screen,
  document: GpuTopJson,
  options: { readonly quiet?: boolean },
): void {
  const { paint } = screen;
  for (const [row, device] of document.devices.entries()) {
    if (row > 0) screen.line();
    const busy = device.utilisation === null ? "" : `, ${formatShare(device.utilisation)} busy`;
    screen.line(
      `${paint.bold(`Device ${device.index}`)}  ${oneLine(device.name)}${device.mig ? ", MIG" : ""}${busy}`,
    );
    screen.line(
      `  ${formatBytes(device.usedBytes)} of ${formatBytes(device.totalBytes)}  ${paint.cyan(
        bar(device.usedBytes / device.totalBytes, 30),
      )}`,
    );
    const table = formatTable(
      screen,
      [
        { title: "PID", align: "right" },
        { title: "DEVICE", align: "right", paint: paint.bold },
        { title: "RSS", align: "right" },
        { title: "COMMAND", flexible: "cutEnd" },
      ],
      [
        ...device.processes.map(({ pid, command, deviceBytes, rssBytes }) => [
          String(pid),
          deviceBytes === null ? "kept back" : formatBytes(deviceBytes),
          rssBytes === 0 ? "" : formatBytes(rssBytes),
          command.length === 0 ? "(of another container)" : command.join(" "),
        ]),
        ["", formatBytes(device.unlistedBytes), "", "(the driver, and what it does not list)"],
      ],
    );
    for (const line of table) screen.line(line);
  }
  printLimits(screen, document.limits, options);
}
