/** The live list of devices: keys and drawing. */

import { type GpuTopHistory, gpuTopPoller } from "../../inspect/index.js";
import { formatBytes, formatCount } from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import type { GpuTopProcessJson } from "../../model/documents/gpu/gpu_document.js";
import type { ListOptions } from "../options/options.js";
import { chosenProcesses, printDevice } from "../screens/gpu/top.js";
import { type Screen, sparkline } from "../text/output.js";
import type { FullScreenView } from "./full_screen.js";
import { pressInList } from "./list_keys.js";

const SORTS = {
  device: { key: "d", of: (row: GpuTopProcessJson) => row.deviceBytes ?? 0 },
  reserved: { key: "r", of: (row: GpuTopProcessJson) => row.allocator?.reservedBytes ?? 0 },
  RSS: { key: "m", of: (row: GpuTopProcessJson) => row.rssBytes },
  pid: { key: "p", of: (row: GpuTopProcessJson) => -row.pid },
} as const;
type SortKey = keyof typeof SORTS;
const SORT_KEYS = Object.keys(SORTS) as SortKey[];

interface GpuTopChoice {
  readonly sort: SortKey;
  readonly firstRow: number;
}

const TREND_COLUMNS = 20;

export function gpuTopView(
  options: ListOptions,
  intervalMs: Millis,
): FullScreenView<GpuTopHistory, GpuTopChoice> {
  return {
    name: "gpu top",
    instead: "tidemark gpu top | cat",
    intervalMs,
    choice: { sort: "device", firstRow: 0 },
    poll: gpuTopPoller(),
    draw: (screen, seen, choice, rows) => drawGpuTop(screen, seen, choice, options, rows),
    press: (choice, input, key) => pressInList(choice, input, key, SORTS),
  };
}

function drawGpuTop(
  screen: Screen,
  { document, timesMs, used }: GpuTopHistory,
  { sort, firstRow }: GpuTopChoice,
  options: ListOptions,
  rows: number,
): void {
  const { paint } = screen;
  const { devices } = document;
  const total = devices.reduce((sum, { usedBytes }) => sum + usedBytes, 0);
  screen.line(
    `${paint.cyan(paint.bold("tidemark gpu top"))}  ${formatCount(devices.length)} ${devices.length === 1 ? "device" : "devices"} · ` +
      `${formatBytes(total)} in use · by ${sort}`,
  );
  const keys = SORT_KEYS.map((name) => `${SORTS[name].key} ${name}`).join("  ");
  screen.line(paint.dim(`q quit  arrows scroll  sort: ${keys}`.slice(0, screen.columns)));
  const lines: string[] = [];
  const into = { ...screen, line: (text = "") => lines.push(text) };
  const { of } = SORTS[sort];
  for (const device of devices) {
    const readings = used.get(device.index) ?? [];
    const course =
      readings.length < 2
        ? ""
        : sparkline(timesMs.slice(-readings.length), readings, TREND_COLUMNS);
    const chosen = chosenProcesses(device, options).sort((a, b) => of(b) - of(a) || a.pid - b.pid);
    printDevice(into, device, chosen, course);
    into.line();
  }
  const room = Math.max(1, rows - 2);
  const from = Math.max(0, Math.min(firstRow, lines.length - room));
  for (const line of lines.slice(from, from + room)) {
    screen.line(line);
  }
}
