/** The last check of an imported file: figures and times that no tool can have measured. */
import { ForeignFault, type ForeignRecording } from "./importer.js";

/** The last time that a date of JavaScript can hold is in the year 275760; this one is in the year 2286. */
const LATEST_MS = 1e13;
/** Linux's PID_MAX_LIMIT; programs of other systems have pids of 32 bits. */
const LARGEST_PID = 2 ** 32;

/** Throws ForeignFault for times out of order or range, and for readings below 0 or beyond 2^53. */
export function requirePossible(recording: ForeignRecording): void {
  const { startedMs, endedMs, metrics, events, lines, snapshots, tables } = recording;
  requireTimes([startedMs, endedMs]);
  for (const { timeMs, value } of metrics) {
    requireAmount(value, "a reading");
    requireTimes([startedMs, timeMs]);
  }
  for (const { timeMs } of events) {
    requireTimes([startedMs, timeMs]);
  }
  for (const { peakBytes, copiedBytes } of lines) {
    requireAmount(peakBytes ?? 0, "a line's peak");
    requireAmount(copiedBytes ?? 0, "a line's copied bytes");
  }
  requireTimes(snapshots.map(({ timeMs }) => timeMs));
  for (const { pid } of tables.processes) {
    if (!(Number.isInteger(pid) && pid >= 0 && pid <= LARGEST_PID)) {
      throw new ForeignFault(`its process id is impossible: ${pid}`);
    }
  }
}

function requireAmount(value: number, what: string): void {
  if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) {
    throw new ForeignFault(`${what} is impossible: ${value} bytes`);
  }
}

/** Ascending. */
function requireTimes(times: readonly number[]): void {
  times.forEach((time, index) => {
    if (!(time >= (times[index - 1] ?? 0) && time < LATEST_MS)) {
      throw new ForeignFault(`a time is impossible: ${time} ms since 1970`);
    }
  });
}
