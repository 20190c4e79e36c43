/** Ledgers of the recorded processes, one process a turn: the one whose last is the oldest. */
import { readLedger } from "../ledger/index.js";
import { TidemarkError } from "../model/errors.js";
import { ledgerMetric } from "../model/series.js";
import type { Pid, TimeMs } from "../model/units.js";
import type { MetricRow } from "./writer.js";

export interface LedgerTurn {
  readonly rows: readonly MetricRow[];
  /** Why there are none; "" where there are, or where the process has just ended. */
  readonly refusal: string;
}

export class LedgerTurns {
  /** When each process had its last turn, as a count of turns. */
  private readonly last = new Map<Pid, number>();
  private turns = 0;

  /** @param living the processes to choose from, each with the number of its series. */
  next(living: ReadonlyMap<Pid, number>, timeMs: TimeMs): LedgerTurn {
    for (const pid of this.last.keys()) {
      if (!living.has(pid)) {
        this.last.delete(pid);
      }
    }
    let chosen: Pid | null = null;
    for (const pid of living.keys()) {
      if (chosen === null || this.lastOf(pid) < this.lastOf(chosen)) {
        chosen = pid;
      }
    }
    if (chosen === null) {
      return { rows: [], refusal: "" };
    }
    this.turns += 1;
    this.last.set(chosen, this.turns);
    return read(chosen, living.get(chosen) as number, timeMs);
  }

  private lastOf(pid: Pid): number {
    return this.last.get(pid) ?? 0;
  }
}

function read(pid: Pid, series: number, timeMs: TimeMs): LedgerTurn {
  try {
    const { parts } = readLedger(pid, "cheap");
    const rows = parts.map(({ part, bytes }) => ({
      timeMs,
      series,
      metric: ledgerMetric(part),
      value: bytes,
    }));
    return { rows, refusal: "" };
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    return { rows: [], refusal: error.exitCode === 3 ? error.what : "" };
  }
}
