/**
 * PyTorch's memory timeline (`profiler.export_memory_timeline(FILE)`, torch/profiler/_memory_profiler.py):
 * `.raw.json.gz` is a list of [ns, action, signed bytes, category], `.json` is [times in us, [[0, bytes by
 * category]...]].
 */
import type { TimeMs } from "../../../model/base/units.js";
import { Domain, FrameKind } from "../../../model/profile/profile.js";
import { ImportedSites } from "../imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  type ProfileImporter,
} from "../importer.js";
import { amountOf, type Json, listOf, parseJson } from "../json.js";

/** In the order of their numbers in the file. */
const CATEGORIES = [
  "parameters",
  "optimizer state",
  "inputs",
  "temporaries",
  "activations",
  "gradients",
  "autograd details",
  "unknown",
] as const;

export const torchTimeline: ProfileImporter = {
  name: "torch memory timeline",
  description: "torch: export_memory_timeline to .json or .raw.json.gz",
  recognizes: ({ head }) =>
    /^\s*\[\s*\[\s*-?\d+,\s*[1-4],\s*-?\d+,\s*\d\s*\]/.test(head) ||
    /^\s*\[\s*\[\s*\d{12,}(?:,\s*\d{12,})*\s*[,\]]/.test(head),
  read,
};

interface Change {
  /** Before the first time: memory that was there already. */
  readonly timeMs: TimeMs | null;
  readonly category: number;
  readonly bytes: number;
}

function read(file: ForeignFile): ForeignRecording {
  const content = listOf(parseJson(file));
  const changes =
    Array.isArray(listOf(content[0])[0]) || listOf(content[1]).some(Array.isArray)
      ? fromTable(content)
      : fromEvents(content);
  const timed = changes.flatMap(({ timeMs }) => (timeMs === null ? [] : [timeMs]));
  if (timed.length === 0) {
    throw new ForeignFault("it has no event with a time");
  }
  const startedMs = timed.reduce((least, time) => Math.min(least, time));
  const endedMs = timed.reduce((most, time) => Math.max(most, time));
  const sites = new ImportedSites({ pid: 0, command: [], python: "", startedMs });
  const totals = replay(changes, startedMs);
  addTotals(sites, totals);
  return {
    tool: "torch memory timeline",
    precision: "exact",
    known: ["live", "peak", "time"],
    snapshots: [sites.snapshot(endedMs, endedMs - startedMs, totals.peakMs)],
    tables: sites.tables(),
    startedMs,
    endedMs,
    metrics: totals.series.map((row) => ({ metric: "liveBytes" as const, ...row })),
    events: [],
    lines: [],
    limits: [
      "Memory is of the device that the timeline was exported for, by category; the file has no stacks.",
    ],
  };
}

function fromEvents(content: readonly Json[]): Change[] {
  return content.map((row) => {
    const [time, , bytes, category] = listOf(row);
    if (typeof time !== "number" || typeof bytes !== "number" || typeof category !== "number") {
      throw new ForeignFault("an event is not a list of four numbers");
    }
    requireExact(bytes);
    return { timeMs: time < 0 ? null : time / 1e6, category, bytes };
  });
}

/** A row of sizes is a total by category: changes are differences. */
function fromTable([times, sizes]: readonly Json[]): Change[] {
  const rows = listOf(sizes).map((row) =>
    listOf(row).map((bytes) => amountOf(bytes, "the size of a category")),
  );
  return listOf(times).flatMap((time, index) => {
    const [before, now] = [rows[index - 1] ?? [], rows[index]];
    if (now === undefined) {
      throw new ForeignFault("it has more times than sizes");
    }
    const timeMs = amountOf(time, "a time") / 1e3;
    return now.slice(1).map((bytes, category) => ({
      timeMs,
      category,
      bytes: bytes - (before[category + 1] ?? 0),
    }));
  });
}

function requireExact(bytes: number): void {
  if (!(Math.abs(bytes) <= Number.MAX_SAFE_INTEGER)) {
    throw new ForeignFault("an event has an impossible size");
  }
}

interface Totals {
  readonly live: readonly number[];
  readonly peak: readonly number[];
  readonly peakMs: TimeMs;
  readonly series: readonly { readonly timeMs: TimeMs; readonly value: number }[];
}

function replay(changes: readonly Change[], startedMs: TimeMs): Totals {
  const live = new Array<number>(CATEGORIES.length).fill(0);
  let [peak, peakMs, total, highest] = [live.slice(), startedMs, 0, 0];
  const series = new Map<TimeMs, number>();
  changes.forEach(({ timeMs, category, bytes }, index) => {
    if (CATEGORIES[category] === undefined) {
      throw new ForeignFault(`the category ${category} is unknown`);
    }
    const at = timeMs ?? startedMs;
    live[category] = (live[category] ?? 0) + bytes;
    total += bytes;
    series.set(at, total);
    // Changes of one moment belong together: a change of category is a free and an allocation.
    const isLast = (changes[index + 1]?.timeMs ?? startedMs) !== at || index === changes.length - 1;
    if (isLast && total > highest) {
      [peak, peakMs, highest] = [live.slice(), at, total];
    }
  });
  return { live, peak, peakMs, series: [...series].map(([timeMs, value]) => ({ timeMs, value })) };
}

function addTotals(sites: ImportedSites, { live, peak }: Totals): void {
  CATEGORIES.forEach((name, category) => {
    const frame = { function: name, file: "", line: 0, kind: FrameKind.mark };
    sites.add(
      { stack: sites.push(0, frame), domain: Domain.native, label: sites.label("category", name) },
      { live: live[category] ?? 0, peak: peak[category] ?? 0 },
    );
  });
}
