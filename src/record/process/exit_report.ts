import { timeAt } from "../../linux/this_process/clock.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";

/** How a program ended. */
export type ProgramExit = Pick<ExitReport, "exitCode" | "signal">;

/** How the program ended, from the guard's wait4. */
export interface ExitReport {
  /** Exit code; null if a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: number | null;
  readonly maxRssBytes: Bytes;
  readonly userMs: Millis;
  readonly systemMs: Millis;
  /** null: unknown. */
  readonly endedMs: TimeMs | null;
}

/**
 * When a process ended that ran at `aliveMs`, as the kernel reported it, or as far as it is known otherwise; null: unknown.
 * Both times are of `monotonicMs`.
 */
export type ExitOf = (pid: Pid, aliveMs: Millis) => Millis | null;

/** The same on the clock of recordings. */
export function endByKernel(exitOf: ExitOf | undefined, pid: Pid, seenMs: TimeMs): TimeMs | null {
  const exitMs = exitOf?.(pid, seenMs - timeAt(0)) ?? null;
  return exitMs === null ? null : timeAt(exitMs);
}
