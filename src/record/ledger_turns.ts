/** Ledgers of the recorded processes, one process a turn: the one whose last is the oldest. */
import { hasMuchUnknown, readLedger } from "../ledger/index.js";
import { openProcessMemory } from "../linux/index.js";
import { TidemarkError } from "../model/errors.js";
import { ledgerMetric } from "../model/series.js";
import type { Pid, TimeMs } from "../model/units.js";
import { bundledAllocators } from "../native/index.js";
import type { MetricRow } from "./writer.js";

export interface LedgerTurn {
  readonly rows: readonly MetricRow[];
  /** What the ledger could not see, each a sentence; why there is none, unless the process has just ended. */
  readonly limits: readonly string[];
}

export class LedgerTurns {
  /** When each process had its last turn, as a count of turns. */
  private readonly last = new Map<Pid, number>();
  /** Whose libraries were looked into for allocators of theirs: once is enough. */
  private readonly searched = new Set<Pid>();
  private turns = 0;

  /** @param living the processes to choose from, each with the number of its series. */
  next(living: ReadonlyMap<Pid, number>, timeMs: TimeMs): LedgerTurn {
    for (const pid of this.last.keys()) {
      if (!living.has(pid)) {
        this.last.delete(pid);
        this.searched.delete(pid);
      }
    }
    let chosen: Pid | null = null;
    for (const pid of living.keys()) {
      if (chosen === null || this.lastOf(pid) < this.lastOf(chosen)) {
        chosen = pid;
      }
    }
    if (chosen === null) {
      return { rows: [], limits: [] };
    }
    this.turns += 1;
    this.last.set(chosen, this.turns);
    return this.read(chosen, living.get(chosen) as number, timeMs);
  }

  private read(pid: Pid, series: number, timeMs: TimeMs): LedgerTurn {
    try {
      const { parts } = readLedger(pid, "cheap");
      const rows = parts.map(({ part, bytes }) => ({
        timeMs,
        series,
        metric: ledgerMetric(part),
        value: bytes,
      }));
      if (this.searched.has(pid) || !hasMuchUnknown(parts)) {
        return { rows, limits: [] };
      }
      this.searched.add(pid);
      return { rows, limits: unseenAllocators(pid) };
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      const limits = error.exitCode === 3 ? [`No ledger was read: ${error.what}.`] : [];
      return { rows: [], limits };
    }
  }

  private lastOf(pid: Pid): number {
    return this.last.get(pid) ?? 0;
  }
}

function unseenAllocators(pid: Pid): string[] {
  const memory = openProcessMemory(pid);
  try {
    return bundledAllocators(memory).map(
      ({ allocator, library }) =>
        `${allocator} in ${library} serves that library past the program's own malloc: what it holds is in no site, but in anon.other.`,
    );
  } finally {
    memory.close();
  }
}
