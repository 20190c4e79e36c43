/**
 * Files of memory_profiler's `mprof run` (.dat): readings of the process's memory over time.
 *
 *     CMDLINE python app.py
 *     MEM 26.527344 1795640055.6897          MiB, seconds since 1970
 *     CHLD 4243 12.5 1795640055.6897         a child: pid, MiB, seconds
 *     FUNC app.load 27.56 1795640075.47 58.93 1795640075.79 0
 *
 * The program itself writes FUNC lines, so they may come before the CMDLINE of their run, but not before the last reading of
 * an earlier one: `mprof run -o` of an existing file adds another run to it, and a run ends with its program.
 */
import { formatBytes, formatCount } from "../../model/base/numbers.js";
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
  const calls: MeasuredCall[] = [];
  let callsBeforeReading = 0;
  let runs = 1;
  let children = false;
  for (const line of linesOf(file.bytes)) {
    const [kind = "", ...words] = line.trim().split(/\s+/);
    if (kind === "CMDLINE") {
      command = words;
      if (metrics.length > 0) {
        runs += 1;
        metrics.length = 0;
        calls.splice(0, callsBeforeReading);
      }
    } else if (kind === "MEM") {
      const [mib, seconds] = numbers(words, line);
      requireRoom(metrics.length, MOST_ROWS, "readings");
      callsBeforeReading = calls.length;
      // mprof reads 0 MiB once the process has ended.
      if (mib > 0) {
        metrics.push({ metric: "rssBytes", timeMs: seconds * 1000, value: Math.round(mib * MIB) });
      }
    } else if (kind === "FUNC") {
      requireRoom(calls.length, MOST_ROWS, "calls");
      calls.push(callOf(words, line));
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
  const events: TimelineEvent[] = calls.flatMap((call) => call.events);
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
      ...(runs === 1
        ? []
        : [
            `The file contains ${formatCount(runs)} runs, because mprof adds to an existing file: this is the last one.`,
          ]),
      ...functionsText(calls),
      ...(children
        ? [
            "The readings of single child processes (mprof run --multiprocess) are left out. With --include-children, RSS is the sum of all processes.",
          ]
        : []),
    ],
  };
}

/** RSS before and after a call of a function with the decorator @profile. */
interface MeasuredCall {
  readonly name: string;
  readonly beginMib: number;
  readonly endMib: number;
  readonly events: readonly [begin: TimelineEvent, end: TimelineEvent];
}

function callOf([name = "", ...words]: readonly string[], line: string): MeasuredCall {
  const [beginMib, beginSeconds] = numbers(words, line);
  const [endMib, endSeconds] = numbers(words.slice(2), line);
  const about = { pid: 0, detail: name };
  return {
    name,
    beginMib,
    endMib,
    events: [
      { ...about, timeMs: beginSeconds * 1000, kind: "step-begin" },
      { ...about, timeMs: endSeconds * 1000, kind: "step-end" },
    ],
  };
}

const SHOWN_FUNCTIONS = 5;

/** One sentence: what RSS grew by during the calls of each function, the largest growth first. */
function functionsText(measured: readonly MeasuredCall[]): string[] {
  const functions = new Map<string, { readonly name: string; calls: number; growthMib: number }>();
  for (const { name, beginMib, endMib } of measured) {
    const known = functions.get(name) ?? { name, calls: 0, growthMib: 0 };
    known.calls += 1;
    known.growthMib += endMib - beginMib;
    functions.set(name, known);
  }
  const all = [...functions.values()].sort((a, b) => b.growthMib - a.growthMib);
  const shown = all.slice(0, SHOWN_FUNCTIONS).map(({ name, calls, growthMib }) => {
    const times = `${formatCount(calls)} ${calls === 1 ? "call" : "calls"}`;
    const sign = growthMib < 0 ? "-" : "+";
    return `${name} ${sign}${formatBytes(Math.abs(growthMib) * MIB)} (${times})`;
  });
  const more = all.length - shown.length;
  return all.length === 0
    ? []
    : [
        `RSS changed during calls of functions with @profile: ${shown.join(", ")}${more > 0 ? `, and ${formatCount(more)} more` : ""}. Calls within calls count in both.`,
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
