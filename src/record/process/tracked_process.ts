import { hasEnded, type ProcessStat } from "../../linux/index.js";
import type { Pid, TimeMs } from "../../model/base/units.js";
import type { SeriesRow } from "../../recording/batches.js";
import { FigureTurns } from "./figure_turns.js";

/** A process that counted as alive at the last poll. */
export interface Tracked {
  row: SeriesRow;
  readonly startTicks: number;
  /** When it was last found alive. */
  seenMs: TimeMs;
  stackStart: number;
  /** How often polls saw it call exec. */
  execs: number;
  /** Its children that had ended and were not waited for. */
  endedChildren: ReadonlySet<Pid>;
  readonly turns: FigureTurns;
}

/** Whether the process still runs. `stat`: of its pid, as it was read now. */
export function isSame({ startTicks }: Tracked, stat: ProcessStat | null): boolean {
  return !hasEnded(stat) && stat?.startTicks === startTicks;
}

export function newlyTracked(
  row: SeriesRow,
  startTicks: number,
  stackStart: number,
  seenMs: TimeMs,
): Tracked {
  const turns = new FigureTurns();
  return { row, startTicks, seenMs, stackStart, execs: 0, endedChildren: new Set(), turns };
}
