/**
 * Files of memory_profiler's `mprof run` (.dat): readings of the process's memory over time.
 *
 *     CMDLINE python app.py
 *     MEM 26.527344 1795640055.6897          MiB, seconds since 1970
 *     CHLD 4243 12.5 1795640055.6897         a child: pid, MiB, seconds
 *     FUNC app.load 27.56 1795640075.47 58.93 1795640075.79 0
 */
import type { TimeMs } from "../../model/base/units.js";
import type { TimelineEvent } from "../../model/profile/series.js";
import { ImportedSites } from "./imported_sites.js";
import {
  ForeignFault,
  type ForeignFile,
  type ForeignRecording,
  MOST_ROWS,
  type ProfileImporter,
  requireRoom,
} from "./importer.js";
import { linesOf, requireLastLine } from "./text.js";

const MIB = 2 ** 20;

export const memoryProfiler: ProfileImporter = {
  name: "memory_profiler",
  description: "memory_profiler: mprofile_*.dat of mprof run",
  recognizes: ({ head }) => /^(?:CMDLINE .*\n)?(?:MEM|FUNC|CHLD) [^\n]*?\d\.\d/.test(head),
  read,
};

function read(file: ForeignFile): ForeignRecording {
  requireLastLine(file.bytes);
  let command: readonly string[] = [];
  const metrics: { metric: "rssBytes"; timeMs: TimeMs; value: number }[] = [];
  const events: TimelineEvent[] = [];
  let children = false;
  for (const line of linesOf(file.bytes)) {
    const [kind = "", ...words] = line.trim().split(/\s+/);
    if (kind === "CMDLINE") {
      command = words;
    } else if (kind === "MEM") {
      const [mib, seconds] = numbers(words, line);
      requireRoom(metrics.length, MOST_ROWS, "readings");
      // mprof reads 0 MiB once the process has ended.
      if (mib > 0) {
        metrics.push({ metric: "rssBytes", timeMs: seconds * 1000, value: mib * MIB });
      }
    } else if (kind === "FUNC") {
      requireRoom(events.length, MOST_ROWS, "calls");
      events.push(...callOf(words, line));
    } else if (kind === "CHLD") {
      children = true;
    } else if (kind !== "") {
      throw new ForeignFault(`the line '${line.slice(0, 40)}' is unknown`);
    }
  }
  if (metrics.length === 0) {
    throw new ForeignFault("it has no reading");
  }
  metrics.sort((a, b) => a.timeMs - b.timeMs);
  const times = [...metrics, ...events].map(({ timeMs }) => timeMs);
  const startedMs = times.reduce((least, time) => Math.min(least, time));
  const endedMs = times.reduce((most, time) => Math.max(most, time));
  return {
    tool: "memory_profiler",
    precision: "sampled",
    known: ["rss", "time"],
    tables: new ImportedSites({ pid: 0, command, python: "", startedMs }).tables(),
    snapshots: [],
    startedMs,
    endedMs,
    metrics,
    events: events.sort((a, b) => a.timeMs - b.timeMs),
    lines: [],
    limits: [
      ...(children
        ? [
            "The readings of single child processes (mprof run --multiprocess) are left out. With --include-children, RSS is the sum of all processes.",
          ]
        : []),
    ],
  };
}

function callOf([name = "", ...words]: readonly string[], line: string): TimelineEvent[] {
  const [, beginSeconds] = numbers(words, line);
  const [, endSeconds] = numbers(words.slice(2), line);
  return [
    { timeMs: beginSeconds * 1000, pid: 0, kind: "step-begin", detail: name },
    { timeMs: endSeconds * 1000, pid: 0, kind: "step-end", detail: name },
  ];
}

function numbers(words: readonly string[], line: string): readonly [number, number] {
  const [first = Number.NaN, second = Number.NaN] = words
    .slice(0, 2)
    .map((word) => (/^\d+(?:\.\d+)?$/.test(word) ? Number(word) : Number.NaN));
  if (!(first >= 0 && second >= 0 && second < 1e11)) {
    throw new ForeignFault(`the line '${line.slice(0, 40)}' is incomplete`);
  }
  return [first, second];
}
