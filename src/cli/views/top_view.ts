/** The live list of Python processes: keys and drawing. */

import type { Key } from "ink";
import {
  filterText,
  type ProcessRow,
  type WatchedProcesses,
  watchProcesses,
} from "../../inspect/index.js";
import { formatBytes, formatCount } from "../../model/base/numbers.js";
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import { type ListOptions, selectRows } from "../options/options.js";
import { processTable } from "../screens/process_list.js";
import { type Screen, sparkline } from "../text/output.js";
import type { FullScreenView } from "./full_screen.js";
import { pressInList } from "./list_keys.js";

/** Sort orders in the order in which `s` cycles through them, each with its key and title. */
const SORTS = {
  rss: { key: "m", title: "RSS", of: (row: ProcessRow) => row.rssBytes },
  growth: { key: "g", title: "growth", of: (row: ProcessRow) => row.growthBytes },
  rate: { key: "r", title: "per hour", of: (row: ProcessRow) => row.growthBytesPerHour ?? 0 },
  uss: { key: "u", title: "USS", of: (row: ProcessRow) => row.ussBytes },
  threads: { key: "h", title: "threads", of: (row: ProcessRow) => row.threads },
  gpu: { key: "d", title: "device", of: (row: ProcessRow) => row.gpuBytes ?? 0 },
  pid: { key: "p", title: "pid", of: (row: ProcessRow) => -row.pid },
} as const;

export type SortKey = keyof typeof SORTS;
export const SORT_KEYS = Object.keys(SORTS) as SortKey[];

interface TopChoice {
  readonly sort: SortKey;
  readonly tree: boolean;
  readonly filter: string;
  /** Whether the filter is being typed. */
  readonly typing: boolean;
  readonly firstRow: number;
}

const TREND_COLUMNS = 12;

export function topView(
  choice: TopChoice,
  options: ListOptions,
  intervalMs: Millis,
): FullScreenView<WatchedProcesses, TopChoice> {
  return {
    name: "top",
    instead: "tidemark ps",
    intervalMs,
    choice,
    poll: watchProcesses,
    draw: (screen, seen, chosen, rows) => drawTop(screen, seen, chosen, options, rows),
    press: pressTop,
  };
}

function drawTop(
  screen: Screen,
  seen: WatchedProcesses,
  choice: TopChoice,
  options: ListOptions,
  rows: number,
): void {
  const { paint } = screen;
  const byPid = new Map([...seen.watched.values()].map((watched) => [watched.row.pid, watched]));
  const { rows: matching, unmatched } = selectRows(
    [...byPid.values()].map(({ row }) => row).sort(comparing(choice.sort)),
    { ...options, filter: choice.filter },
    0,
    (row) => row.rssBytes,
    filterText,
  );
  const { ordered, depths } = choice.tree ? asTree(matching) : { ordered: matching, depths: null };
  const total = matching.reduce((sum, row) => sum + row.rssBytes, 0);
  screen.line(
    `${paint.cyan(paint.bold("tidemark top"))}  ${formatCount(matching.length)} Python ${matching.length === 1 ? "process" : "processes"} · ` +
      `RSS ${formatBytes(total)} · by ${SORTS[choice.sort].title}`,
  );
  screen.line(paint.dim(choice.typing ? `filter: ${choice.filter}_` : keysLine(screen, choice)));
  const room = Math.max(1, rows - 3);
  const from = Math.max(0, Math.min(choice.firstRow, ordered.length - room));
  const shown = ordered.slice(from, from + room);
  if (shown.length === 0) {
    screen.line(paint.dim(`  ${unmatched ?? "no Python process was found"}`));
    return;
  }
  const trend = (row: ProcessRow) => {
    const watched = byPid.get(row.pid);
    return watched === undefined
      ? ""
      : sparkline(watched.timesMs, aboveFoot(watched.rssBytes), TREND_COLUMNS);
  };
  const table = processTable(screen, shown, {
    growth: true,
    extra: [{ title: "RSS TREND", paint: paint.blue, show: true, text: trend }],
    indent: (row) => "  ".repeat(depths?.get(row.pid) ?? 0),
  });
  for (const line of table) {
    screen.line(line);
  }
}

function keysLine(screen: Screen, { filter }: TopChoice): string {
  const sorts = SORT_KEYS.map((name) => `${SORTS[name].key} ${SORTS[name].title}`).join("  ");
  const line = `q quit  t tree  / filter${filter === "" ? "" : ` "${filter}"`}  sort: ${sorts}`;
  return line.slice(0, screen.columns);
}

/** Smallest range that the sparkline shows at full height, as a share of RSS; smaller changes look flat. */
const LEAST_RANGE = 0.02;

/** Height above the bottom of the range: growth of 50 MiB must be visible in a service of 2 GiB. */
function aboveFoot(readings: readonly Bytes[]): number[] {
  const highest = Math.max(...readings);
  const range = Math.max(highest - Math.min(...readings), highest * LEAST_RANGE);
  return readings.map((reading) => reading - (highest - range));
}

function comparing(sort: SortKey): (a: ProcessRow, b: ProcessRow) => number {
  const { of } = SORTS[sort];
  return (a, b) => of(b) - of(a) || a.pid - b.pid;
}

/** Children below their parents, siblings in the order given; a process whose parent is not listed is a root. */
function asTree(rows: readonly ProcessRow[]): {
  readonly ordered: ProcessRow[];
  readonly depths: ReadonlyMap<Pid, number>;
} {
  const listed = new Set(rows.map((row) => row.pid));
  const ordered: ProcessRow[] = [];
  const depths = new Map<Pid, number>();
  const place = (row: ProcessRow, depth: number) => {
    depths.set(row.pid, depth);
    ordered.push(row);
    for (const child of rows) {
      if (child.parentPid === row.pid && !depths.has(child.pid)) {
        place(child, depth + 1);
      }
    }
  };
  for (const row of rows) {
    if (!listed.has(row.parentPid)) {
      place(row, 0);
    }
  }
  return { ordered, depths };
}

function pressTop(choice: TopChoice, input: string, key: Key): TopChoice | null {
  return choice.typing ? type(choice, input, key) : command(choice, input, key);
}

function type(choice: TopChoice, input: string, key: Key): TopChoice {
  if (key.return) {
    return { ...choice, typing: false };
  }
  if (key.escape) {
    return { ...choice, typing: false, filter: "" };
  }
  if (key.backspace || key.delete) {
    return { ...choice, filter: choice.filter.slice(0, -1) };
  }
  return key.ctrl || key.meta ? choice : { ...choice, filter: choice.filter + input, firstRow: 0 };
}

function command(choice: TopChoice, input: string, key: Key): TopChoice | null {
  if (input === "t") {
    return { ...choice, tree: !choice.tree };
  }
  if (input === "/") {
    return { ...choice, typing: true, filter: "" };
  }
  if (input === "s") {
    const next = SORT_KEYS[(SORT_KEYS.indexOf(choice.sort) + 1) % SORT_KEYS.length];
    return { ...choice, sort: next ?? choice.sort };
  }
  return pressInList(choice, input, key, SORTS);
}
