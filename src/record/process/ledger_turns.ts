/** Reads ledgers of the recorded processes, one process per turn: the one with the oldest ledger. */
import { hasMuchUnknown, LedgerPlaces, readLedger } from "../../ledger/index.js";
import { openProcessMemory } from "../../linux/index.js";
import type { Bytes, Pid, TimeMs } from "../../model/base/units.js";
import { internalError, TidemarkError } from "../../model/errors/errors.js";
import { ledgerMetric } from "../../model/profile/series.js";
import { type BundledAllocator, bundledAllocators } from "../../native/index.js";
import type { MetricRow } from "../../recording/writer.js";
import { LEAST_UNKNOWN_RISE } from "./unsampled_growth.js";

export interface LedgerTurn {
  readonly rows: readonly MetricRow[];
  /** null at most turns, because a process is searched only once. */
  readonly allocators: FoundAllocators | null;
  /** Sentences about what the ledger does not cover, or why there is none, unless the process has just ended. */
  readonly limits: readonly string[];
}

export interface FoundAllocators {
  readonly pid: Pid;
  /** Files of libraries that contain their own allocator. */
  readonly libraries: readonly string[];
}

/** State of a process between two of its ledgers. */
interface Kept {
  /** Its last turn, as a count of turns; 0: none yet. */
  turn: number;
  readonly places: LedgerPlaces;
  /** The smallest unattributed memory so far. */
  leastUnknown: Bytes;
  /**
   * Much memory was unattributed, or it grew: its libraries were searched once for their own allocators, and
   * from then on interpreters other than the main one are also read.
   */
  searched: boolean;
}

export class LedgerTurns {
  readonly #kept = new Map<Pid, Kept>();
  #turns = 0;

  /** @param living the processes to choose from, each with the number of its series. */
  next(living: ReadonlyMap<Pid, number>, timeMs: TimeMs): LedgerTurn {
    for (const pid of this.#kept.keys()) {
      if (!living.has(pid)) {
        this.#kept.delete(pid);
      }
    }
    const turnOf = (pid: Pid) => this.#kept.get(pid)?.turn ?? 0;
    let chosen: Pid | null = null;
    for (const pid of living.keys()) {
      if (chosen === null || turnOf(pid) < turnOf(chosen)) {
        chosen = pid;
      }
    }
    if (chosen === null) {
      return { rows: [], allocators: null, limits: [] };
    }
    const kept = this.#kept.get(chosen) ?? newlyMet(this.#kept.values());
    this.#kept.set(chosen, kept);
    this.#turns += 1;
    kept.turn = this.#turns;
    return read(chosen, kept, living.get(chosen) as number, timeMs);
  }
}

/**
 * A forked process has its heaps where its siblings have them. Elsewhere the places are found to be wrong when they are
 * first read, and are searched.
 */
function newlyMet(others: Iterable<Kept>): Kept {
  const places = new LedgerPlaces();
  places.arenas.ofOthers = false;
  for (const { places: known } of others) {
    if (known.arenas.words.length > 0) {
      places.arenas.words = known.arenas.words;
      places.glibc.bins = known.glibc.bins;
      break;
    }
  }
  return { turn: 0, places, leastUnknown: Number.POSITIVE_INFINITY, searched: false };
}

/** Exit codes of errors that are no consequence of the program's end: it cannot be read, or Tidemark has a bug. */
const REPORTED: ReadonlySet<number> = new Set([3, 5]);

function read(pid: Pid, kept: Kept, series: number, timeMs: TimeMs): LedgerTurn {
  try {
    const { parts } = readLedger(pid, "cheap", kept.places);
    const rows = parts.map(({ part, bytes }) => ({
      timeMs,
      series,
      metric: ledgerMetric(part),
      value: bytes,
    }));
    const unknown = parts.find(({ part }) => part === "anon.other")?.bytes ?? 0;
    kept.leastUnknown = Math.min(kept.leastUnknown, unknown);
    const grew = unknown >= kept.leastUnknown + LEAST_UNKNOWN_RISE;
    if (kept.searched || !(grew || hasMuchUnknown(parts))) {
      return { rows, allocators: null, limits: [] };
    }
    kept.searched = true;
    kept.places.arenas.ofOthers = true;
    const found = allocatorsOf(pid);
    return {
      rows,
      allocators: { pid, libraries: found.map(({ path }) => path) },
      limits: found.map(
        ({ allocator, library }) =>
          `${allocator} in ${library} serves that library instead of the program's malloc: its memory is not in any site, but in anon.other.`,
      ),
    };
  } catch (error) {
    // A bug in the reading of a heap that changes costs a ledger, not the recording.
    const { what, exitCode } = error instanceof TidemarkError ? error : internalError(error);
    const limits = REPORTED.has(exitCode) ? [`No ledger was read: ${what}.`] : [];
    return { rows: [], allocators: null, limits };
  }
}

function allocatorsOf(pid: Pid): BundledAllocator[] {
  const memory = openProcessMemory(pid);
  try {
    return bundledAllocators(memory);
  } finally {
    memory.close();
  }
}
