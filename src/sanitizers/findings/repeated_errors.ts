/**
 * Errors that Valgrind counted, but did not report: it reports errors with the same four functions at the leaf once. All
 * calls that ctypes and cffi make of one C function have these in common, whichever Python line makes them.
 */
import type { PythonStackJson } from "../../model/documents/memcheck_document.js";
import type { Report, ReportFile } from "../reports/report.js";
import type { Owners } from "./owners.js";
import type { XmlIntervals } from "./python_frames.js";

/** The kind of such a report. */
const REPEATED = "Repeated";
/** So many frames Valgrind compares. */
const COMPARED_FRAMES = 4;

interface Repeated {
  readonly file: ReportFile;
  /** The Python stack of each added report. */
  readonly pythonOf: ReadonlyMap<Report, PythonStackJson>;
}

/** The file with a report for each other Python line at which ctypes or cffi made an error of the same C stack. */
export function withRepeats(file: ReportFile, intervals: XmlIntervals, owners: Owners): Repeated {
  const pythonOf = new Map<Report, PythonStackJson>();
  const counts = [...file.counts];
  const lines = new Map<number, Set<string>>();
  for (const { addresses, python } of intervals.repeats) {
    const at = file.reports.findIndex(
      ({ isLeak, stack }) =>
        !isLeak &&
        stack.length > 0 &&
        stack.slice(0, COMPARED_FRAMES).every(({ address }) => isAmong(address, addresses)),
    );
    const report = file.reports[at];
    if (report === undefined || !/^(?:ctypes|cffi)$/.test(owners.of(report).owner.module)) {
      continue;
    }
    const first = intervals.at(report);
    const known = lines.get(at) ?? new Set(first === undefined ? [] : [lineOf(first)]);
    lines.set(at, known);
    if (!known.has(lineOf(python))) {
      known.add(lineOf(python));
      counts[at] = Math.max(1, (counts[at] ?? 1) - 1);
      const [message = ""] = report.message.split("; ");
      pythonOf.set({ ...report, kind: REPEATED, message, freed: [], allocated: [] }, python);
    }
  }
  const reports = [...file.reports, ...pythonOf.keys()];
  return {
    file: { ...file, reports, counts: [...counts, ...[...pythonOf].map(() => 1)] },
    pythonOf,
  };
}

function isAmong(address: string, addresses: readonly string[]): boolean {
  return addresses.some((other) => other.toLowerCase() === address.toLowerCase());
}

/** "caller app.py:3". */
export function lineOf({ stack: [leaf] }: PythonStackJson): string {
  return leaf === undefined ? "" : `${leaf.function} ${leaf.file}:${leaf.line}`;
}
