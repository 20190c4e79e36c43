import { setTimeout as sleep } from "node:timers/promises";
import type { RecentTexts } from "../../linux/index.js";
import { monotonicMs, nowMs, processCpu, threadCpu } from "../../linux/this_process/clock.js";
import type { MemoryRoom } from "../../linux/this_process/memory_room.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import type { SeriesRow } from "../../recording/batches.js";
import type { MetricRow, RecordingWriter } from "../../recording/writer.js";
import type { CpuBudget } from "../budget/cpu_budget.js";
import { LedgerSchedule, PollSchedule, SnapshotSchedule } from "../budget/schedule.js";
import type { DeviceUse } from "../devices/device_use.js";
import type { DeviceWatch } from "../devices/device_watch.js";
import {
  type ExitOf,
  type ExitReport,
  endByKernel,
  type ProgramExit,
} from "../process/exit_report.js";
import { LedgerTurns } from "../process/ledger_turns.js";
import { MemoryWatch } from "../process/memory_watch.js";
import type { PoolWatch } from "../process/pool_watch.js";
import { ProcessTree } from "../process/process_tree.js";
import { RequestRates } from "../process/request_rates.js";
import { SuspectWatch } from "../process/suspect_watch.js";
import type { TreePoll } from "../process/tree_poll.js";
import { LEAST_ROOM } from "./hand_over.js";

/** Rows are written together at this interval, so a reader of the growing file is at most that far behind. */
const FLUSH_MS = 1_000;
/** An agent disarms itself this long after its recorder died; long enough that a slow recorder does not cause it. */
const SHORTEST_LEASE_MS = 30_000;
/** multiprocessing's resource tracker and fork server end within this time after the program. */
const HELPERS_END_MS = 300;
/** Interval of a small read between two polls: short while new processes start, otherwise long. */
const CROWD_CHECK_MS = 250;
/** Reading the available memory costs as much as a poll, so it is read at each poll only if memory is short. */
const WIDE_ROOM: Bytes = 512 * 2 ** 20;
const ROOM_CHECK_MS = 10_000;
const QUIET_CHECK_MS = 1_000;
/** Reading RSS alone costs little, so it does not become rarer with the polls. */
const RSS_MS: Millis = 20_000;
/** Share of a core for that; only trees of thousands of processes need more. */
const RSS_SHARE = 0.001;

interface RecorderOptions {
  readonly writer: RecordingWriter;
  readonly pid: Pid;
  readonly startTicks: number;
  readonly command: readonly string[];
  readonly startedMs: TimeMs;
  /** Start of the program if it ran before the recording; otherwise as `startedMs`. */
  readonly programStartedMs?: TimeMs;
  readonly follow: boolean;
  /** null: no agent runs; only /proc is recorded. */
  readonly pool: PoolWatch | null;
  /** Figures of its devices, if requested. */
  readonly devices: DeviceWatch | null;
  /** Shared by all recorders of this Node process. */
  readonly budget: CpuBudget;
  readonly memory: MemoryRoom;
  /**
   * The latest end of the recording, after its start, if the program is left then and its holders are looked up; infinite if
   * it is not known yet. Left out: the program ends with the recording, or is not looked up at the end.
   */
  readonly endsMs?: Millis | undefined;
  /** Shared by recorders of this Node process; left out: each reads for itself. */
  readonly texts?: RecentTexts;
  readonly deviceUse?: DeviceUse;
  readonly exitOf?: ExitOf;
  /** Longest time between two readings of RSS; left out: {@link RSS_MS}. */
  readonly rssMs?: () => Millis;
}

/** Polls a program from start to end and writes the recording, within its CPU budget (cpu_budget.ts). */
export class Recorder {
  readonly #tree: ProcessTree;
  readonly #polls: PollSchedule;
  readonly #snapshots: SnapshotSchedule;
  readonly #ledgers: LedgerSchedule;
  readonly #leaveBudget: () => void;
  readonly #ledgerTurns = new LedgerTurns();
  readonly #startMs = monotonicMs();
  readonly #cpu = processCpu();
  readonly #memory: MemoryWatch;
  readonly #addDeviceUse: ((poll: TreePoll) => void) | undefined;
  readonly #requests: RequestRates;
  readonly #suspects: SuspectWatch;
  #highest: { readonly timeMs: TimeMs; readonly bytes: Bytes } | null = null;
  #timer: NodeJS.Timeout | null = null;
  #pendingMetrics: MetricRow[] = [];
  #flushedMs = 0;
  #isStopped = false;
  #hasEnded = false;
  /** Of the root, by its guard. */
  #reportedEndMs: TimeMs | null = null;
  #rssReadMs: Millis = 0;
  #rssCostMs: Millis = 0;
  #leftMs: TimeMs = 0;
  #nextRoomCheckMs: Millis = 0;
  #leaveForMemory!: (room: { readonly roomBytes: Bytes }) => void;
  /** At the end of the last step: CPU time of this process, and whether a lookup was running. */
  #steppedCpuMs: Millis = 0;
  #steppedWithLookup = false;

  /** Settles when there is too little memory for a recorder. */
  readonly outOfMemory = new Promise<{ readonly roomBytes: Bytes }>((resolve) => {
    this.#leaveForMemory = resolve;
  });

  /** Called after the poll that finds the program ended. */
  onRootEnd: (() => void) | null = null;

  readonly #options: RecorderOptions;

  constructor(options: RecorderOptions) {
    this.#options = options;

    const { budget } = options;
    this.#leaveBudget = budget.join();
    this.#polls = new PollSchedule(budget);
    this.#snapshots = new SnapshotSchedule(budget);
    this.#ledgers = new LedgerSchedule(budget);
    this.#tree = new ProcessTree(
      options.pid,
      options.startTicks,
      options.command,
      options.startedMs,
      options.follow,
      options.programStartedMs,
      (row, seenMs) => this.#endOf(row, seenMs),
    );
    this.#memory = new MemoryWatch(options.pid, options.texts);
    this.#addDeviceUse = options.deviceUse?.reader();
    this.#requests = new RequestRates(options.startedMs);
    this.#suspects = new SuspectWatch({
      root: options.pid,
      startMs: options.startedMs,
      budget,
      endsMs: options.endsMs,
      addLimits: (timeMs, sentences) => options.writer.limits(timeMs, sentences),
      found: (timeMs, batch) => options.writer.holders(timeMs, batch),
      counted: (timeMs, census) => options.writer.census(timeMs, census),
    });
  }

  start(): void {
    this.#step();
  }

  /**
   * The program has ended: takes the last snapshot and ends the recording. `report` null: the guard was killed,
   * so it is unknown how the program ended, unless `outcomeOf` knows.
   */
  async finish(
    report: ExitReport | null,
    outcomeOf?: () => Promise<ProgramExit | null>,
  ): Promise<void> {
    this.#stopTimer();
    this.#reportedEndMs = report?.endedMs ?? null;
    const { writer, pool, devices } = this.#options;
    const poll = this.#tree.poll(nowMs(), false);
    const { timeMs } = poll;
    await devices?.lastWords(poll);
    pool?.adoptStrays(poll, this.#options.startTicks);
    pool?.lastPoll(poll, report?.exitCode == null);
    // Where `outcomeOf` will know how it ended, its limits alone do not decide.
    this.#pollMemory(poll, report ?? (outcomeOf === undefined ? undefined : null));
    if (this.#highest) {
      const { timeMs: peakMs, bytes } = this.#highest;
      poll.events.push({
        timeMs: peakMs,
        pid: this.#options.pid,
        kind: "peak",
        detail: "highest RSS of all processes together",
        value: bytes,
      });
    }
    this.#take(poll);
    this.#takeSnapshot("end", timeMs);
    this.#take(this.#tree.end(timeMs, await this.#countOutliving(timeMs)));
    pool?.close();
    this.#flush(timeMs);
    // A running lookup may still finish, because its copy of the heap outlives the program.
    await this.#suspects.settled();
    this.#closeLookups(timeMs);
    this.#leaveBudget();
    const exit = report ?? (await outcomeOf?.());
    writer.end({
      timeMs,
      exitCode: exit?.exitCode ?? null,
      signal: exit?.signal ?? null,
      maxRssBytes: this.#tree.sawReader ? 0 : (report?.maxRssBytes ?? 0),
      userMs: report?.userMs ?? 0,
      systemMs: report?.systemMs ?? 0,
    });
  }

  /** Processes that outlive the program; its own helpers notice its end and exit too. */
  async #countOutliving(timeMs: TimeMs): Promise<number> {
    const { pool, startTicks } = this.#options;
    const timeoutMs = monotonicMs() + HELPERS_END_MS;
    for (;;) {
      if (this.#tree.outliving().length === 0) {
        // The last of them may have forked before it ended, as a daemon does, at any time since it was last seen alive.
        const poll = this.#tree.newPoll(timeMs);
        pool?.adoptStrays(poll, startTicks);
        this.#take(poll);
      }
      const count = this.#tree.outliving().length;
      if (count === 0 || monotonicMs() >= timeoutMs) {
        return count;
      }
      await sleep(20);
    }
  }

  /** The program continues without a recorder; its guard keeps the profile. `why`: a sentence. */
  handOver(why: string): void {
    const timeMs = this.#stop("poll", false);
    this.#options.writer.limits(timeMs, [why]);
    this.#closeLookups(timeMs);
    this.#options.pool?.keepWithoutLease();
    this.#options.pool?.close();
  }

  /**
   * The program continues and is left: writes its current profile. `looksUp`: starts a holder lookup if a
   * growing site has no known holder. Call `concludeLeft` after it.
   */
  leave(looksUp: boolean): void {
    this.#leftMs = this.#stop("end", looksUp);
    this.#options.pool?.close();
  }

  /**
   * Ends the recording of a program that was left. `onLookup`: called before it waits for a running holder lookup, which
   * needs no agent; without it, it does not wait.
   */
  async concludeLeft(onLookup: (() => void) | undefined, until?: AbortSignal): Promise<void> {
    if (onLookup !== undefined && this.#suspects.isBusy) {
      onLookup();
      await this.#suspects.settled(until ?? new AbortController().signal);
    }
    const timeMs = this.#leftMs;
    this.#closeLookups(timeMs);
    this.#options.writer.end({
      timeMs,
      exitCode: null,
      signal: null,
      maxRssBytes: 0,
      userMs: 0,
      systemMs: 0,
    });
  }

  /** Stops recording after one last poll and snapshot of that kind; `looksUp`: the holders, too. @returns their time. */
  #stop(kind: "poll" | "end", looksUp: boolean): TimeMs {
    this.#stopTimer();
    this.#leaveBudget();
    this.#options.devices?.leave();
    const elapsedMs = monotonicMs() - this.#startMs;
    this.#poll(elapsedMs, this.#polls.expensiveIsDue(elapsedMs));
    const timeMs = this.#tree.rootEndMs ?? nowMs();
    this.#takeSnapshot(kind, timeMs, looksUp);
    this.#flush(timeMs);
    this.#isStopped = true;
    return timeMs;
  }

  #closeLookups(timeMs: TimeMs): void {
    this.#suspects.close(monotonicMs() - this.#startMs, timeMs);
  }

  /** CPU time of this process since the recorder was made. */
  get cpuMs(): Millis {
    return this.#cpu();
  }

  /** True while the recorded program runs, according to the newest poll; false once polling has stopped. */
  get rootLives(): boolean {
    return !this.#isStopped && !this.#hasEnded && this.#tree.livingPids.includes(this.#options.pid);
  }

  /**
   * One poll, a snapshot if one is due, and the timer for the next poll; nothing if the program has ended, because
   * `finish` makes the last poll, which knows when that was.
   */
  #step(): void {
    if (!this.#tree.rootRuns(nowMs())) {
      this.#hasEnded = true;
      this.onRootEnd?.();
      return;
    }
    const elapsedMs = monotonicMs() - this.#startMs;
    const waitCpuMs = this.#cpu() - this.#steppedCpuMs;
    const pollCpu = threadCpu();
    const expensive = this.#polls.expensiveIsDue(elapsedMs);
    const polledMs = this.#poll(elapsedMs, expensive);
    this.#rssReadMs = elapsedMs;
    // A lookup's thread is not part of a poll's cost.
    const hadLookup = this.#steppedWithLookup || this.#suspects.isBusy;
    this.#polls.polled(elapsedMs, {
      ownCpuMs: pollCpu(),
      waitCpuMs: hadLookup ? 0 : waitCpuMs,
      processes: this.#tree.livingPids.length,
      expensive,
    });
    const { pool } = this.#options;
    if (pool) {
      const due = this.#snapshots.due(elapsedMs, pool.liveBytes);
      const isWanted = this.#suspects.wantsSnapshot(elapsedMs, pool.liveBytes);
      const kind = due ?? (isWanted ? "poll" : null);
      if (kind) {
        const snapshotCpu = threadCpu();
        this.#takeSnapshot(kind, nowMs());
        this.#snapshots.taken(elapsedMs, pool.liveBytes, snapshotCpu());
      }
    }
    if (this.#ledgers.due(elapsedMs) || this.#memory.isNearer) {
      this.#memory.ledgerRead();
      const ledgerCpu = threadCpu();
      this.#readLedger(polledMs);
      this.#ledgers.read(elapsedMs, ledgerCpu());
    }
    this.#checkRoom(elapsedMs);
    const distance = this.#polls.distance(elapsedMs);
    pool?.renewLease(Math.max(SHORTEST_LEASE_MS, distance * 4));
    this.#steppedCpuMs = this.#cpu();
    this.#steppedWithLookup = this.#suspects.isBusy;
    this.#wait(distance);
    if (!this.rootLives) {
      this.onRootEnd?.();
    }
  }

  #checkRoom(elapsedMs: Millis): void {
    if (elapsedMs < this.#nextRoomCheckMs) {
      return;
    }
    const roomBytes = this.#options.memory.read();
    this.#suspects.roomBytes = roomBytes;
    this.#nextRoomCheckMs = elapsedMs + (roomBytes < WIDE_ROOM ? 0 : ROOM_CHECK_MS);
    if (roomBytes < LEAST_ROOM) {
      this.#leaveForMemory({ roomBytes });
    }
  }

  /**
   * Time until the next step; shorter if so many processes start that slots run short. After a long wait, recorders of one
   * Node process act at the same moments, so that it wakes once for all of them.
   */
  #wait(distance: Millis): void {
    const { pool } = this.#options;
    const everyMs = pool?.isClaimed ? CROWD_CHECK_MS : QUIET_CHECK_MS;
    const part = distance < everyMs ? distance : everyMs - (monotonicMs() % everyMs);
    // After the end of other work that waits, such as an event of the program's end.
    this.#timer = setTimeout(() => setImmediate(() => this.#wake(distance - part)), part);
  }

  #wake(leftMs: Millis): void {
    if (this.#timer === null) {
      return; // stopped in the meantime
    }
    if (leftMs > 0 && !this.#options.pool?.crowded && this.#tree.rootRuns(nowMs())) {
      this.#readRss();
      this.#wait(leftMs);
    } else {
      this.#step();
    }
  }

  #stopTimer(): void {
    if (this.#timer) {
      clearTimeout(this.#timer);
      this.#timer = null;
    }
  }

  /** Between two polls that are far apart. */
  #readRss(): void {
    const elapsedMs = monotonicMs() - this.#startMs;
    const everyMs = this.#options.rssMs?.() ?? RSS_MS;
    // Waits end up to half an interval of checks early or late.
    const dueMs = this.#rssReadMs + Math.max(everyMs, this.#rssCostMs / RSS_SHARE);
    if (elapsedMs + QUIET_CHECK_MS / 2 < dueMs) {
      return;
    }
    const cpu = threadCpu();
    const timeMs = nowMs();
    const poll = this.#tree.pollRss(timeMs);
    this.#memory.keepFigures(poll);
    this.#take(poll);
    this.#flush(timeMs);
    this.#rssReadMs = elapsedMs;
    this.#rssCostMs = cpu();
  }

  /** What is known best: its guard's report, the kernel's event, or its own last trace. */
  #endOf(row: SeriesRow, seenMs: TimeMs): TimeMs | null {
    const { pid, exitOf, pool } = this.#options;
    const reported = row.pid === pid ? this.#reportedEndMs : null;
    return reported ?? endByKernel(exitOf, row.pid, seenMs) ?? pool?.lastChangeMs(row) ?? null;
  }

  /** @returns the poll's time. */
  #poll(elapsedMs: Millis, expensive: boolean): TimeMs {
    const timeMs = nowMs();
    const poll = this.#tree.poll(timeMs, expensive);
    this.#options.pool?.poll(poll);
    this.#options.devices?.poll(poll);
    this.#addDeviceUse?.(poll);
    this.#requests.poll(poll);
    this.#pollMemory(poll, null); // its report may still come
    this.#take(poll);
    if (elapsedMs - this.#flushedMs >= FLUSH_MS || elapsedMs < FLUSH_MS) {
      this.#flush(timeMs);
      this.#flushedMs = elapsedMs;
    }
    return timeMs;
  }

  /** Its figures belong to the latest poll, because a process's rows are in order of time. */
  #readLedger(timeMs: TimeMs): void {
    const { rows, allocators, limits } = this.#ledgerTurns.next(this.#tree.livingSeries, timeMs);
    this.#pendingMetrics.push(...rows);
    this.#suspects.polled(rows);
    if (allocators !== null) {
      this.#suspects.allocatorsFound(allocators);
    }
    this.#options.writer.limits(timeMs, limits);
  }

  #pollMemory(poll: TreePoll, report: ExitReport | null | undefined): void {
    const ends = this.#memory.poll(poll, this.rootLives, report);
    this.#options.writer.memoryEnds(poll.timeMs, ends);
  }

  #takeSnapshot(kind: "poll" | "peak" | "end", timeMs: TimeMs, looksUp = kind !== "end"): void {
    const { pool, writer } = this.#options;
    const taken = pool?.snapshot(timeMs);
    if (pool && taken) {
      writer.events(timeMs, pool.takeEvents()); // up to the snapshot: no poll comes after the last one
      writer.snapshot(taken.tables, taken.snapshot, { kind, agent: taken.agent });
      if (looksUp) {
        const elapsedMs = monotonicMs() - this.#startMs;
        this.#suspects.snapshotTaken(taken, pool, elapsedMs, kind === "end");
      }
      writer.agentLimits(timeMs, taken.limits);
    }
  }

  #take(poll: TreePoll): void {
    const { writer } = this.#options;
    const { timeMs } = poll;
    if (poll.rows.length > 0) {
      writer.processes(timeMs, poll.rows);
    }
    writer.events(timeMs, poll.events);
    writer.limits(timeMs, poll.limits);
    this.#suspects.polled(poll.metrics);
    for (const row of poll.metrics) {
      this.#pendingMetrics.push(row);
      if (row.metric === "treeRssBytes" && row.value > (this.#highest?.bytes ?? 0)) {
        this.#highest = { timeMs, bytes: row.value };
      }
    }
  }

  #flush(timeMs: TimeMs): void {
    this.#options.writer.metrics(timeMs, this.#pendingMetrics);
    this.#pendingMetrics = [];
  }
}
