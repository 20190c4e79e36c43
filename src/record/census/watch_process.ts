/** Evidence of a live process only by polls from outside; nothing is loaded into it or written. */

import type { Evidence } from "../../diagnose/index.js";
import {
  isKernelThread,
  readAttachPermission,
  readCommand,
  readStat,
  startTimeMs,
} from "../../linux/index.js";
import { monotonicMs, nowMs, threadCpu } from "../../linux/this_process/clock.js";
import type { Millis, OnProgress, Pid, TimeMs } from "../../model/base/units.js";
import { notPermitted, processGone } from "../../model/errors/errors.js";
import type { SeriesRow } from "../../recording/batches.js";
import { SeriesReader } from "../../recording/series_reader.js";
import type { MetricRow } from "../../recording/writer.js";
import { LedgerSchedule, PollSchedule } from "../budget/schedule.js";
import { type LedgerTurn, LedgerTurns } from "../process/ledger_turns.js";
import { ProcessTree } from "../process/process_tree.js";
import type { TreePoll } from "../process/tree_poll.js";
import { CensusWatch } from "./census_watch.js";

/** Time after the watch for pending holder lookups. */
const LONGEST_LOOKUP_MS: Millis = 30_000;

/** A process that ends earlier is judged by the data so far. */
interface WatchOptions {
  readonly forMs: Millis;
  /** Version of its Python; "" unknown. */
  readonly python: string;
  /** Ends the watch early, on an interrupt; the data so far is used. */
  readonly until?: AbortSignal;
}

/**
 * Polls a process and its children for a time. `onProgress` counts seconds.
 * Throws TidemarkError (TM-E020) if there is no such process.
 */
export async function watchProcess(
  pid: Pid,
  options: WatchOptions,
  onProgress: OnProgress,
): Promise<Evidence> {
  const stat = readStat(pid);
  if (stat === null) {
    throw processGone(pid);
  }
  if (isKernelThread(pid)) {
    throw notPermitted(pid, readAttachPermission(pid).reason, "");
  }
  const startedMs = nowMs();
  const command = readCommand(pid) ?? [stat.name];
  const tree = new ProcessTree(pid, stat.startTicks, command, startedMs, true);
  const seen = new Seen();
  const schedule = new PollSchedule();
  const ledgers = new LedgerSchedule();
  const turns = new LedgerTurns();
  const censuses = new CensusWatch(pid, startedMs, options.forMs);
  const begun = monotonicMs();
  for (;;) {
    const elapsed = monotonicMs() - begun;
    const expensive = schedule.expensiveIsDue(elapsed);
    const pollCpu = threadCpu();
    const poll = tree.poll(nowMs(), expensive);
    seen.take(poll);
    schedule.polled(elapsed, {
      ownCpuMs: pollCpu(),
      waitCpuMs: 0,
      processes: tree.livingPids.length,
      expensive,
    });
    if (ledgers.due(elapsed)) {
      const ledgerCpu = threadCpu();
      seen.ledger(turns.next(tree.livingSeries, nowMs()));
      ledgers.read(elapsed, ledgerCpu());
    }
    censuses.polled(elapsed, nowMs());
    await onProgress(Math.min(elapsed, options.forMs) / 1000, options.forMs / 1000);
    const ended = !tree.livingPids.includes(pid);
    const left = options.forMs - (monotonicMs() - begun);
    if (ended || left <= 0 || options.until?.aborted) {
      if (!ended && !options.until?.aborted) {
        await censuses.finish(elapsed, LONGEST_LOOKUP_MS);
      }
      break;
    }
    await pause(Math.min(left, schedule.distance(elapsed)), options.until);
  }
  const { refusal, ...counted } = censuses.close();
  if (refusal !== "") {
    seen.limited(`Objects were not counted: ${refusal}.`);
  }
  const target = { pid, command, python: options.python, startedMs: startTimeMs(stat.startTicks) };
  return { ...seen.evidence(target, startedMs), ...counted };
}

function pause(ms: Millis, until: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      until?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    until?.addEventListener("abort", done);
  });
}

/** The results of the polls, combined. */
class Seen {
  readonly #rows: SeriesRow[] = [];
  readonly #reader = new SeriesReader();
  readonly #limits: string[] = [];
  readonly #events: TreePoll["events"] = [];
  #lastMs: TimeMs = 0;

  take(poll: TreePoll): void {
    for (const row of poll.rows) {
      this.#rows[row.series] = row;
    }
    this.#add(poll.metrics);
    this.#limits.push(...poll.limits);
    this.#events.push(...poll.events);
    this.#lastMs = poll.timeMs;
  }

  ledger({ rows, limits }: LedgerTurn): void {
    this.#add(rows);
    this.#limits.push(...limits.filter((sentence) => !this.#limits.includes(sentence)));
  }

  limited(sentence: string): void {
    this.#limits.push(sentence);
  }

  #add(rows: readonly MetricRow[]): void {
    const names = [...new Set(rows.map((row) => row.metric))];
    this.#reader.add(
      {
        names,
        timeMs: Float64Array.from(rows, (row) => row.timeMs),
        series: Uint32Array.from(rows, (row) => row.series),
        name: Uint8Array.from(rows, (row) => names.indexOf(row.metric)),
        value: Float64Array.from(rows, (row) => row.value),
      },
      this.#rows.length,
    );
  }

  evidence(target: Evidence["target"], startMs: TimeMs): Evidence {
    const series = this.#reader.series(this.#rows);
    return {
      target,
      window: { startMs, endMs: Math.max(startMs, this.#lastMs) },
      processes: this.#rows.flatMap((row, i) => {
        const own = series[i];
        return own
          ? [{ ...row, python: row.python || (i === 0 ? target.python : ""), series: own }]
          : [];
      }),
      events: this.#events,
      limits: this.#limits,
    };
  }
}
