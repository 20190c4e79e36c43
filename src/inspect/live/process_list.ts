/** The Python processes of this host, once (`tidemark ps`) and repeatedly (`tidemark top`). */
import { readDeviceUse } from "../../gpu/devices/device_totals.js";
import { readPythonProcesses } from "../../linux/index.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import type { PsJson } from "../../model/documents/documents.js";
import {
  type Course,
  growthBetween,
  growthIn,
  growthInRecording,
  type MeasuredGrowth,
  withReading,
} from "./measured_growth.js";
import { readPreviousSizes, writePreviousSizes } from "./previous_sizes.js";
import { keyOf, type ProcessRow, processRow } from "./process_rows.js";

interface ProcessList {
  /** Largest RSS first. */
  readonly document: PsJson;
  /** Time since the previous list, which growth refers to; null if there was none. */
  readonly sinceMs: Millis | null;
}

/** Lists all Python processes, and keeps their sizes for the next call of this user. */
export async function listProcesses(): Promise<ProcessList> {
  const before = readPreviousSizes();
  const device = readDeviceUse();
  const processes = readPythonProcesses(true);
  const now = Date.now();
  const least = new Map(
    processes.map((process) => {
      const key = keyOf(process);
      const earlier = before?.least?.get(key) ?? before?.sizes.get(key) ?? process.rssBytes;
      return [key, Math.min(earlier, process.rssBytes)];
    }),
  );
  writePreviousSizes({
    timeMs: now,
    sizes: new Map(processes.map((process) => [keyOf(process), process.rssBytes])),
    least,
  });
  const use = await device;
  const rows = processes.map((process) => {
    const row = processRow(process, before?.sizes ?? null, use);
    const key = keyOf(process);
    const minimum = least.get(key);
    const sincePreviousSizes: MeasuredGrowth =
      before?.sizes.has(key) && minimum !== undefined
        ? { minRssBytes: minimum, ...growthBetween(row.growthBytes, now - before.timeMs) }
        : {};
    return { ...row, ...sincePreviousSizes, ...growthInRecording(process.pid) };
  });
  return {
    document: documentOf(rows),
    sinceMs: before === null ? null : now - before.timeMs,
  };
}

/** The Python processes of this host by pid, without the expensive figures. */
export function pythonProcesses(): { readonly pid: Pid; readonly command: readonly string[] }[] {
  return readPythonProcesses(false);
}

/** One process over the time it was watched. */
interface WatchedProcess {
  readonly row: ProcessRow;
  /** RSS of the latest polls, oldest first. */
  readonly timesMs: readonly TimeMs[];
  readonly rssBytes: readonly Bytes[];
  /** RSS at the first poll, which growth refers to. */
  readonly firstRssBytes: Bytes;
  /** RSS since the first poll, from which growth per hour is measured. */
  readonly course: Course;
}

export interface WatchedProcesses {
  readonly polls: number;
  readonly watched: ReadonlyMap<string, WatchedProcess>;
}

/** Number of polls that a sparkline shows. */
const HISTORY = 60;
/** PSS and USS require a walk over every page, so they are read only every this many polls. */
const POLLS_PER_SHARES = 10;

/** Polls all Python processes. @param before the previous poll; null at the first */
export async function watchProcesses(before: WatchedProcesses | null): Promise<WatchedProcesses> {
  const polls = before?.polls ?? 0;
  const device = await readDeviceUse();
  const shares = polls % POLLS_PER_SHARES === 0;
  const now = Date.now();
  const watched = new Map<string, WatchedProcess>();
  for (const process of readPythonProcesses(shares)) {
    const key = keyOf(process);
    const earlier = before?.watched.get(key);
    const firstRssBytes = earlier?.firstRssBytes ?? process.rssBytes;
    const course = withReading(earlier?.course, now, process.rssBytes);
    const row = {
      ...processRow(process, new Map([[key, firstRssBytes]]), device),
      ...growthIn(course),
    };
    watched.set(key, {
      row: shares || earlier === undefined ? row : withShares(row, earlier.row),
      timesMs: [...(earlier?.timesMs ?? []), now].slice(-HISTORY),
      rssBytes: [...(earlier?.rssBytes ?? []), process.rssBytes].slice(-HISTORY),
      firstRssBytes,
      course,
    });
  }
  return { polls: polls + 1, watched };
}

/** The document of one poll, largest RSS first. */
export function watchedDocument({ watched }: WatchedProcesses): PsJson {
  return documentOf([...watched.values()].map(({ row }) => row));
}

function documentOf(rows: readonly ProcessRow[]): PsJson {
  return { schema: "tidemark.ps/1", processes: rows.toSorted((a, b) => b.rssBytes - a.rssBytes) };
}

function withShares(row: ProcessRow, { pssBytes, ussBytes }: ProcessRow): ProcessRow {
  return { ...row, pssBytes, ussBytes };
}
