/** The ledger as a screen: a bar of the parts, a row for each, and memory outside RSS. */

import { itemAt } from "../../model/base/columns.js";
import { formatBytes, formatCount, formatDuration, formatShare } from "../../model/base/numbers.js";
import type { CoreLedgerJson, LedgerJson } from "../../model/documents/ledger_document.js";
import { oneLine } from "../../model/errors/errors.js";
import type { Reclaim } from "../../model/profile/ledger.js";
import { bar, type Column, formatTable, type Paint, type Screen } from "../text/output.js";
import { commandText } from "./summary.js";

/** How a part is drawn in the bar: distinguished by colour on a terminal and by pattern everywhere. */
const PART_STYLES: readonly (readonly [fill: string, colour: keyof Paint])[] = [
  ["█", "green"],
  ["▒", "green"],
  ["█", "blue"],
  ["▒", "blue"],
  ["▓", "magenta"],
  ["░", "cyan"],
  ["▚", "cyan"],
  ["▞", "yellow"],
  ["▓", "yellow"],
  ["░", "magenta"],
  ["░", "dim"],
  ["?", "red"],
];

const RECLAIM_TEXT: Readonly<Record<Reclaim, string>> = {
  "malloc-trim": "malloc_trim(0)",
  "gc-collect": "dropping objects, gc.collect()",
  program: "the program freeing it",
  "close-file": "closing the files",
  "end-threads": "threads that end",
  unlink: "unlinking it everywhere",
  detach: "detaching Tidemark",
  nothing: "process exit",
};
const LEAST_BAR = 8;
const SHOWN_LIMITS = 6;

interface ShownLedger {
  readonly quiet: boolean;
  /** Number of children that --top, --min and --filter left out. */
  readonly leftOut: number;
  /** Why no child is listed although there are some. */
  readonly unmatched?: string;
}

export function printLedger(screen: Screen, ledger: LedgerJson, shown: ShownLedger): void {
  printHead(screen, ledger);
  printParts(screen, ledger.parts, ledger.rssBytes);
  printBeside(screen, [...allocatorRows(ledger), ...systemRows(ledger)]);
  if (ledger.children.length > 0 || shown.leftOut > 0 || shown.unmatched !== undefined) {
    printChildren(screen, ledger, shown);
  }
  if (!shown.quiet) {
    printLimits(screen, ledger.limits, howRead(ledger));
  }
}

export function printCoreLedger(screen: Screen, core: CoreLedgerJson, quiet: boolean): void {
  printCoreHead(screen, core);
  printParts(screen, core.parts, core.bytes);
  printBeside(screen, allocatorRows(core));
  if (!quiet) {
    printLimits(screen, core.limits, howReadCore(core));
  }
}

function printCoreHead(
  screen: Screen,
  { target, bytes, zeroBytes, vmsBytes, leftOutBytes }: CoreLedgerJson,
): void {
  const by = target.pid === 0 ? "" : `, left by process ${target.pid}`;
  const python = target.python === "" ? "" : `, Python ${target.python}`;
  const name = oneLine(commandText(target.command), Number.POSITIVE_INFINITY);
  screen.line(screen.cutEnd(`${name}${by}${python}`, screen.columns));
  const figures: [string, number][] = [
    ["holds", bytes],
    ["zeroes", zeroBytes],
    ["not written", leftOutBytes],
    ["VMS", vmsBytes],
  ];
  screen.line(figures.map(([title, size]) => `${title} ${formatBytes(size)}`).join("   "));
  screen.line();
}

function printHead(
  screen: Screen,
  { target, rssBytes, pssBytes, ussBytes, swapBytes, vmsBytes }: LedgerJson,
): void {
  const { paint } = screen;
  const python = target.python === "" ? "" : `, Python ${target.python}`;
  const name = `process ${target.pid}${python}: `;
  screen.line(
    paint.bold(name) +
      screen.cutEnd(
        oneLine(commandText(target.command), Number.POSITIVE_INFINITY),
        screen.columns - name.length,
      ),
  );
  const figures: [string, number][] = [
    ["RSS", rssBytes],
    ["PSS", pssBytes],
    ["USS", ussBytes],
    ["swap", swapBytes],
    ["VMS", vmsBytes],
  ];
  screen.line(figures.map(([title, bytes]) => `${title} ${formatBytes(bytes)}`).join("   "));
  screen.line();
}

type Parts = LedgerJson["parts"];

function printParts(screen: Screen, parts: Parts, whole: number): void {
  const { paint } = screen;
  const width = screen.pictureColumns - 4;
  screen.line(`  ${stackedBar(parts, whole, width, paint)}`);
  screen.line();
  const rows = parts
    .map((part, index) => ({ ...part, index }))
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
  const wide = screen.columns >= 76;
  const columns: Column[] = [
    { title: " " },
    { title: "PART", paint: paint.bold },
    { title: "BYTES", align: "right" },
    { title: "SHARE", align: "right" },
    ...(wide ? [{ title: "" }] : []),
    { title: "RETURNED BY", flexible: "cutEnd" },
  ];
  const table = formatTable(
    screen,
    columns,
    rows.map(({ part, bytes, reclaim, index }) => {
      const share = whole > 0 ? bytes / whole : 0;
      return [
        PART_STYLES[index]?.[0] ?? "",
        part,
        formatBytes(bytes),
        formatShare(share),
        ...(wide ? [bar(share, LEAST_BAR)] : []),
        pathText(reclaim),
      ];
    }),
  );
  table.forEach((line, row) => {
    const colour = PART_STYLES[rows[row - 1]?.index ?? -1]?.[1];
    // The pattern before a part's name has the part's colour in the bar.
    const shown =
      colour === undefined ? line : `  ${paint[colour](line.charAt(2))}${line.slice(3)}`;
    screen.line(shown);
  });
}

/** Each part's share of the width; a part too small for one column appears only in the rows. */
function stackedBar(parts: Parts, whole: number, width: number, paint: Paint): string {
  let drawn = 0;
  let before = 0;
  return parts
    .map(({ bytes }, index) => {
      before += bytes;
      const until = whole > 0 ? Math.round((before / whole) * width) : 0;
      const [fill, colour] = itemAt(PART_STYLES, index);
      const text = fill.repeat(until - drawn);
      drawn = until;
      return paint[colour](text);
    })
    .join("");
}

function pathText({ by, bytes }: LedgerJson["parts"][number]["reclaim"]): string {
  return bytes === undefined || bytes === 0 || by === "nothing"
    ? by === "malloc-trim" && bytes === 0
      ? "malloc_trim(0): nothing now"
      : RECLAIM_TEXT[by]
    : `${RECLAIM_TEXT[by]}: ${formatBytes(bytes)}`;
}

type Row = readonly [title: string, text: string];

function allocatorRows({ malloc, pymalloc }: LedgerJson | CoreLedgerJson): Row[] {
  const rows: Row[] = [];
  if (pymalloc !== undefined) {
    const blocks =
      pymalloc.usedBlocks > 0 ? `, ${formatCount(pymalloc.usedBlocks)} blocks in use` : "";
    rows.push([
      "pymalloc",
      `${counted(pymalloc.arenas, "arena")}, ${formatBytes(pymalloc.arenaBytes)}${blocks}, ${formatBytes(pymalloc.freePoolBytes)} in free pools`,
    ]);
  }
  if (malloc !== undefined) {
    rows.push([
      "malloc",
      `${counted(malloc.arenas, "arena")}, ${formatBytes(malloc.systemBytes)}, ${formatBytes(malloc.freeBytes)} free, the largest piece ${formatBytes(malloc.largestFreeBytes)}; ${counted(malloc.mmappedChunks, "block")} with own mappings, ${formatBytes(malloc.mmappedBytes)}`,
    ]);
  }
  return rows;
}

function systemRows(ledger: LedgerJson): Row[] {
  const { cgroup, parts } = ledger;
  const files = parts.find(({ part }) => part === "file.mapped");
  const rows: Row[] = [];
  if (files?.cleanBytes !== undefined && files.dirtyBytes !== undefined) {
    rows.push([
      "files",
      `${formatBytes(files.cleanBytes)} clean, ${formatBytes(files.dirtyBytes)} changed`,
    ]);
  }
  if (cgroup !== undefined) {
    const limit =
      cgroup.limitBytes === null ? "no limit" : `limit ${formatBytes(cgroup.limitBytes)}`;
    const { highBytes = null } = cgroup;
    const high = highBytes === null ? "" : `, throttled above ${formatBytes(highBytes)}`;
    const cache =
      cgroup.pageCacheBytes === null
        ? ""
        : `, ${formatBytes(cgroup.pageCacheBytes)} of it page cache`;
    rows.push(["cgroup", `${formatBytes(cgroup.usageBytes)} in use${cache}, ${limit}${high}`]);
  }
  if (ledger.anonymousHugeBytes + ledger.hugetlbBytes > 0) {
    rows.push([
      "huge pages",
      `${formatBytes(ledger.anonymousHugeBytes)} transparent, included in RSS; ${formatBytes(ledger.hugetlbBytes)} of hugetlb in addition`,
    ]);
  }
  return rows;
}

function printBeside(screen: Screen, rows: readonly Row[]): void {
  screen.line();
  for (const [title, text] of rows) {
    const lines = screen.wrap(text, 14);
    lines.forEach((line, index) => {
      screen.line(`  ${screen.paint.dim((index === 0 ? title : "").padEnd(12))}${line}`);
    });
  }
}

function counted(count: number, name: string): string {
  return `${formatCount(count)} ${name}${count === 1 ? "" : "s"}`;
}

function printChildren(
  screen: Screen,
  { children }: LedgerJson,
  { leftOut, unmatched }: ShownLedger,
): void {
  const right = { align: "right" } as const;
  screen.line();
  const table = formatTable(
    screen,
    [
      { title: "CHILD", ...right },
      { title: "RSS", ...right, paint: screen.paint.bold },
      { title: "PRIVATE DIRTY", ...right },
      { title: "SHARED", ...right },
      { title: "COMMAND", flexible: "cutEnd" },
    ],
    children.map((child) => [
      String(child.pid),
      formatBytes(child.rssBytes),
      formatBytes(child.privateDirtyBytes),
      formatBytes(child.sharedBytes),
      commandText(child.command),
    ]),
  );
  for (const line of unmatched === undefined ? table : [screen.paint.dim(`  ${unmatched}`)]) {
    screen.line(line);
  }
  if (leftOut > 0) {
    screen.line(screen.paint.dim(`  ${formatCount(leftOut)} more`));
  }
}

function howRead({ depth, tookMs }: LedgerJson): string {
  return (
    `read in ${formatDuration(tookMs)} while the program ran, without a pause: ` +
    (depth === "full"
      ? "Python's pools, malloc's chunks, then smaps and pagemap"
      : "Python's arenas, malloc's bins, then smaps and pagemap")
  );
}

function howReadCore({ tookMs }: CoreLedgerJson): string {
  return (
    `read in ${formatDuration(tookMs)}; a core file has no RSS: these are the pages in it, except pages ` +
    "of zeroes, which usually were never touched; unchanged pages of files are not in the core file"
  );
}

function printLimits(screen: Screen, limits: readonly string[], how: string): void {
  screen.line();
  for (const text of [...limits.slice(0, SHOWN_LIMITS), how]) {
    for (const line of screen.wrap(oneLine(text), 2)) {
      screen.line(`  ${screen.paint.dim(line)}`);
    }
  }
}
