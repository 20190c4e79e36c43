/**
 * A program that gets the agent or loses it, or whose collector was restarted, has several recordings, each of which is a stream of
 * its own. They are parts of one process, which counts once:
 *
 *     process   ├──────────────────────────────────────
 *     streams   ├ outside ┤├──── agent ────┤├ outside ─
 */
import type { Millis, Pid, TimeMs } from "../../../model/base/units.js";

export interface Part {
  /** Left out: all rows are of one service. */
  readonly service?: string;
  readonly host: string;
  readonly pod: string;
  readonly container: string;
  /** 0: unknown. */
  readonly pid: Pid;
  /** Of the process. */
  readonly startedMs: TimeMs;
  /** Of the recording, and when it was last seen. */
  readonly recordedMs: TimeMs;
  readonly lastMs: TimeMs;
}

/** Each recording computes the start itself, from the clock and the time since boot. */
const SAME_START_MS: Millis = 2_000;
/** A recording begins after the one before has ended; the end of a process is noticed this much later. */
const OVERLAP_MS: Millis = 2_000;

/**
 * The rows of each process, the part that was recorded last at the end; processes in the order of their first rows. Programs of
 * containers that started at the same moment may have the same host name and pid, but are recorded at the same time.
 */
export function byProcess<Row>(rows: readonly Row[], partOf: (row: Row) => Part): Row[][] {
  const byFirst = new Map<Row, Row[]>();
  for (const alike of ofOnePid(rows, partOf)) {
    const processes: { last: Part; readonly rows: Row[] }[] = [];
    for (const { row, part } of alike.sort((a, b) => a.part.recordedMs - b.part.recordedMs)) {
      const process =
        part.pid === 0 ? undefined : processes.find(({ last }) => continues(part, last));
      if (process === undefined) {
        const begun = [row];
        byFirst.set(row, begun);
        processes.push({ last: part, rows: begun });
      } else {
        process.rows.push(row);
        process.last = part;
      }
    }
  }
  return rows.flatMap((row) => {
    const ofProcess = byFirst.get(row);
    return ofProcess === undefined ? [] : [ofProcess];
  });
}

function ofOnePid<Row>(rows: readonly Row[], partOf: (row: Row) => Part) {
  const groups = new Map<string, { readonly row: Row; readonly part: Part }[]>();
  for (const row of rows) {
    const part = partOf(row);
    const { service, host, pod, container, pid } = part;
    const name = [pid, service, host, pod, container].join("\0");
    const group = groups.get(name);
    if (group === undefined) {
      groups.set(name, [{ row, part }]);
    } else {
      group.push({ row, part });
    }
  }
  return groups.values();
}

function continues(part: Part, before: Part): boolean {
  return (
    Math.abs(part.startedMs - before.startedMs) <= SAME_START_MS &&
    part.recordedMs >= before.lastMs - OVERLAP_MS
  );
}
