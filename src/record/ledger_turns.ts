/** Ledgers of the recorded processes, one process a turn: the one whose last is the oldest. */
import { ArenaPlaces } from "../cpython/arenas.js";
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

/** What is kept of a process from one of its ledgers to the next. */
interface Kept {
  /** Its last turn, as a count of turns; 0: none yet. */
  turn: number;
  readonly places: ArenaPlaces;
  /** Much of it was unknown: its libraries were looked into for allocators of theirs, once, and from then on
   * other interpreters than the main one are asked for. */
  searched: boolean;
}

export class LedgerTurns {
  private readonly kept = new Map<Pid, Kept>();
  private turns = 0;

  /** @param living the processes to choose from, each with the number of its series. */
  next(living: ReadonlyMap<Pid, number>, timeMs: TimeMs): LedgerTurn {
    for (const pid of this.kept.keys()) {
      if (!living.has(pid)) {
        this.kept.delete(pid);
      }
    }
    const turnOf = (pid: Pid) => this.kept.get(pid)?.turn ?? 0;
    let chosen: Pid | null = null;
    for (const pid of living.keys()) {
      if (chosen === null || turnOf(pid) < turnOf(chosen)) {
        chosen = pid;
      }
    }
    if (chosen === null) {
      return { rows: [], limits: [] };
    }
    const kept = this.kept.get(chosen) ?? newlyMet();
    this.kept.set(chosen, kept);
    this.turns += 1;
    kept.turn = this.turns;
    return read(chosen, kept, living.get(chosen) as number, timeMs);
  }
}

function newlyMet(): Kept {
  const places = new ArenaPlaces();
  places.ofOthers = false;
  return { turn: 0, places, searched: false };
}

function read(pid: Pid, kept: Kept, series: number, timeMs: TimeMs): LedgerTurn {
  try {
    const { parts } = readLedger(pid, "cheap", kept.places);
    const rows = parts.map(({ part, bytes }) => ({
      timeMs,
      series,
      metric: ledgerMetric(part),
      value: bytes,
    }));
    if (kept.searched || !hasMuchUnknown(parts)) {
      return { rows, limits: [] };
    }
    kept.searched = true;
    kept.places.ofOthers = true;
    return { rows, limits: unseenAllocators(pid) };
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    const limits = error.exitCode === 3 ? [`No ledger was read: ${error.what}.`] : [];
    return { rows: [], limits };
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
