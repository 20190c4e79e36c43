import {
  descendantsOf,
  endedChildren,
  hasEnded,
  isLeaving,
  type ProcessStat,
  readCommand,
  readRank,
  readRss,
  readStat,
  readStatus,
  startTimeMs,
} from "../../linux/index.js";
import { timeAt } from "../../linux/this_process/clock.js";
import type { Bytes, Pid, TimeMs } from "../../model/base/units.js";
import type { SeriesRow } from "../../recording/batches.js";
import type { SegmentHeader } from "../../segment/index.js";
import { readFigures } from "./process_figures.js";
import { isReader } from "./reader_process.js";
import { SharedMemoryGrowth } from "./shared_memory_growth.js";
import { isSame, newlyTracked, type Tracked } from "./tracked_process.js";
import { type PolledTree, TreePoll } from "./tree_poll.js";

/** Further processes count only in the tree's figures, so that the recording stays bounded. */
const MOST_PROCESSES = 10_000;

/** The children of a process with more threads are read as rarely as other expensive figures: each thread has its own. */
const MOST_THREADS = 64;

/** Ended processes whose segment may still be read: slightly more than a pool has slots. */
const ENDED_KNOWN = 2_048;

/**
 * When a process ended, or did something for the last time, from another source than /proc; null: unknown. It is asked only
 * about processes that have ended.
 */
export type EndOf = (row: SeriesRow, seenMs: TimeMs) => TimeMs | null;

/** Lets a poll leave out the figures of processes that do not change. */
export interface SparsePoll {
  /** Whether a process may have started below this one since the previous poll. */
  readonly hasStartedBelow: (pid: Pid) => boolean;
}

/** The recorded program and its descendants, from /proc. A descendant whose parent has ended remains one. */
export class ProcessTree implements PolledTree {
  readonly #alive = new Map<Pid, Tracked>();
  readonly #sharedMemory: SharedMemoryGrowth;
  /** By pid and start ticks, oldest first. */
  readonly #ended = new Map<string, SeriesRow>();
  #count = 0;
  #uncounted = false;

  #rootIsNew = true;
  #sawReader = false;

  readonly #root: Pid;
  readonly #startedMs: TimeMs;
  readonly #follow: boolean;
  readonly #rootStartedMs: number;
  readonly #endOf: EndOf;
  #rootEndMs: TimeMs | null = null;

  /**
   * The root counts even if it ended before the first poll. `startedMs`: start of the recording; `follow`
   * false: only the root; `rootStartedMs`: set if it ran before.
   */
  constructor(
    root: Pid,
    startTicks: number,
    command: readonly string[],
    startedMs: TimeMs,
    follow: boolean,
    rootStartedMs = startedMs,
    endOf: EndOf = () => null,
  ) {
    this.#root = root;
    this.#sharedMemory = new SharedMemoryGrowth(root);
    this.#endOf = endOf;
    this.#startedMs = startedMs;
    this.#follow = follow;
    this.#rootStartedMs = rootStartedMs;

    const row: SeriesRow = {
      series: this.#count++,
      pid: root,
      parentPid: process.ppid, // the guard
      command,
      python: "",
      profiled: false,
      startedMs: rootStartedMs,
      endedMs: null,
      rank: readRank(root),
    };
    this.#alive.set(root, newlyTracked(row, startTicks, 0, startedMs));
  }

  find(pid: Pid, startTicks: number): SeriesRow | null {
    const same = (tracked: Tracked) => startTicks === 0 || tracked.startTicks === startTicks;
    const direct = this.#alive.get(pid);
    if (direct && same(direct)) {
      return direct.row;
    }
    for (const tracked of this.#alive.values()) {
      if (same(tracked) && readStatus(tracked.row.pid)?.namespacePids.at(-1) === pid) {
        return tracked.row;
      }
    }
    return null;
  }

  adopt(pid: Pid, startTicks: number, poll: TreePoll): SeriesRow | null {
    const stat = readStat(pid);
    if (stat?.startTicks !== startTicks || hasEnded(stat) || this.#alive.has(pid)) {
      return null;
    }
    this.#discover(pid, stat, poll);
    return this.#alive.get(pid)?.row ?? null;
  }

  lives({ series, pid }: SeriesRow): boolean {
    return this.#alive.get(pid)?.row.series === series;
  }

  execs(row: SeriesRow): number {
    return this.lives(row) ? (this.#alive.get(row.pid)?.execs ?? 0) : 0;
  }

  findEnded(pid: Pid, startTicks: number): SeriesRow | null {
    if (startTicks !== 0) {
      return this.#ended.get(`${pid} ${startTicks}`) ?? null;
    }
    return [...this.#ended.values()].findLast((row) => row.pid === pid) ?? null;
  }

  addEnded(header: SegmentHeader, poll: TreePoll): void {
    if (this.#isFull(poll)) {
      return;
    }
    const { pid, parentPid, command, python, startRealtimeMs, heartbeatMs } = header;
    const startedMs = Math.min(poll.timeMs, startRealtimeMs);
    const series = this.#count++;
    const endedMs = between(startedMs, timeAt(heartbeatMs), poll.timeMs);
    const row = { series, pid, parentPid, command, python, profiled: true, startedMs, endedMs };
    poll.rows.push(row);
    poll.noteFailed(series, header);
    poll.mark(row, "process-start", startedMs);
    poll.mark(row, "process-end", endedMs);
  }

  profiled(
    row: SeriesRow,
    { python, command }: Pick<SeriesRow, "python" | "command">,
    poll: TreePoll,
  ): SeriesRow {
    if (row.profiled && row.python === python) {
      return row;
    }
    const known = row.command.length > 0 ? row.command : command;
    // A process that has ended in the meantime stays ended.
    const endedMs = this.lives(row) ? null : (row.endedMs ?? poll.timeMs);
    return this.#replace({ ...row, profiled: true, python, command: known, endedMs }, poll);
  }

  /** Whether the program read its own profile: the kernel counts that reader in the program's highest RSS. */
  get sawReader(): boolean {
    return this.#sawReader;
  }

  get livingPids(): Pid[] {
    return [...this.#alive.keys()];
  }

  /** For each live process, the number of its series. */
  get livingSeries(): ReadonlyMap<Pid, number> {
    return new Map(Array.from(this.#alive, ([pid, { row }]) => [pid, row.series]));
  }

  /** Whether the root runs now. */
  rootRuns(timeMs: TimeMs): boolean {
    const root = this.#alive.get(this.#root);
    const runs = root !== undefined && isSame(root, readStat(this.#root));
    if (runs) {
      root.seenMs = timeMs;
    }
    return runs;
  }

  /** Only RSS of the known processes. */
  pollRss(timeMs: TimeMs): TreePoll {
    const poll = this.newPoll(timeMs);
    let treeRss: Bytes = 0;
    for (const { row } of this.#alive.values()) {
      const rssBytes = readRss(row.pid);
      if (rssBytes !== null && rssBytes > 0) {
        poll.measure(row, "rssBytes", rssBytes);
        treeRss += rssBytes;
      }
    }
    const root = this.#alive.get(this.#root)?.row;
    if (root) {
      poll.measure(root, "treeRssBytes", treeRss);
    }
    return poll;
  }

  /**
   * `expensive`: also reads PSS, USS and sockets. `sparse`: null: all figures of all processes are read. If the root has
   * ended, the poll's time is the end.
   */
  poll(timeMs: TimeMs, expensive: boolean, sparse: SparsePoll | null = null): TreePoll {
    const stats = new Map([...this.#alive.keys()].map((pid) => [pid, readStat(pid)]));
    this.#noteEnd(stats.get(this.#root) ?? null, timeMs);
    const poll = this.newPoll(timeMs);
    this.#search(stats, poll, sparse);
    const due = new Set<SeriesRow>();
    for (const { row, turns } of this.#alive.values()) {
      const stat = stats.get(row.pid) ?? null;
      const isSparse = sparse !== null && !expensive && stat !== null;
      if (!isSparse || turns.isDue(stat, readRss(row.pid), timeMs)) {
        due.add(row);
      }
    }
    poll.isQuiet = due.size === 0;
    let treeRss: Bytes = 0;
    let treePss: Bytes | null = expensive ? 0 : null;
    if (!poll.isQuiet) {
      this.#sharedMemory.read();
    }
    for (const tracked of this.#alive.values()) {
      const { row, turns } = tracked;
      if (!due.has(row)) {
        poll.measure(row, "rssBytes", turns.rssBytes);
        treeRss += turns.rssBytes;
        continue;
      }
      const figures = readFigures(row.pid, { expensive, written: this.#sharedMemory.asksWho });
      for (const [metric, value] of figures) {
        poll.measure(row, metric, value);
      }
      if (figures.size > 0 && (expensive || (figures.get("threads") ?? 0) <= MOST_THREADS)) {
        this.#countEnded(tracked, poll);
      }
      turns.read(stats.get(row.pid) ?? null, figures, timeMs);
      treeRss += figures.get("rssBytes") ?? 0;
      const pss = figures.size === 0 ? 0 : (figures.get("pssBytes") ?? null);
      treePss = treePss === null || pss === null ? null : treePss + pss;
    }
    const root = this.#alive.get(this.#root)?.row;
    if (root) {
      poll.measure(root, "treeRssBytes", treeRss);
    }
    if (root && !poll.isQuiet) {
      poll.measure(root, "children", this.#alive.size - 1);
      const members = expensive ? [this.#root, ...this.#alive.keys()] : null;
      const shmUsed = this.#sharedMemory.usedBytes(members);
      if (shmUsed !== null) {
        poll.measure(root, "shmUsedBytes", shmUsed);
      }
      if (treePss !== null) {
        poll.measure(root, "treePssBytes", treePss);
      }
    }
    return poll;
  }

  outliving(): Pid[] {
    return this.livingPids.filter((pid) => pid !== this.#root && this.#stillRuns(pid));
  }

  /** Ends the processes that still count as alive. `outliving`: how many of them continue. */
  end(timeMs: TimeMs, outliving: number): TreePoll {
    const poll = this.newPoll(timeMs);
    if (outliving > 0) {
      const [noun, verb] = outliving === 1 ? ["process", "runs"] : ["processes", "run"];
      poll.limits.push(
        `${outliving} ${noun} of the program's ${verb} on after its end, no longer recorded.`,
      );
    }
    for (const tracked of [...this.#alive.values()]) {
      this.#gone(tracked, poll);
    }
    return poll;
  }

  /** When the root ended; null while no poll has missed it. */
  get rootEndMs(): TimeMs | null {
    return this.#rootEndMs;
  }

  /** The first one describes the root. */
  newPoll(timeMs: TimeMs): TreePoll {
    const poll = new TreePoll(this, this.#rootEndMs ?? timeMs);
    const root = this.#alive.get(this.#root);
    if (this.#rootIsNew && root) {
      this.#rootIsNew = false;
      this.#announce(root.row, poll);
    }
    return poll;
  }

  /** What ran before the recording began has not started now. */
  #announce(row: SeriesRow, poll: TreePoll): void {
    poll.rows.push(row);
    if (row.startedMs >= this.#startedMs) {
      poll.mark(row, "process-start", row.startedMs);
    }
  }

  #countEnded(tracked: Tracked, poll: TreePoll): void {
    const ended = endedChildren(tracked.row.pid, tracked.endedChildren);
    if (ended !== null) {
      tracked.endedChildren = ended;
      poll.measure(tracked.row, "endedChildren", ended.size);
    }
  }

  #isFull(poll: TreePoll): boolean {
    if (this.#count < MOST_PROCESSES) {
      return false;
    }
    if (!this.#uncounted) {
      this.#uncounted = true;
      poll.limits.push(
        `The program started more than ${MOST_PROCESSES} processes: later ones are not recorded individually.`,
      );
    }
    return true;
  }

  #stillRuns(pid: Pid): boolean {
    const stat = readStat(pid);
    return !isLeaving(stat) && stat?.startTicks === this.#alive.get(pid)?.startTicks;
  }

  /** `stat`: the root's, as it was read now. */
  #noteEnd(stat: ProcessStat | null, timeMs: TimeMs): void {
    const root = this.#alive.get(this.#root);
    if (root && !isSame(root, stat)) {
      this.#rootEndMs = this.#endMs(root, timeMs);
    }
  }

  /** When a process ended that is missing at `nowMs`: without another source, when it was last found alive. */
  #endMs({ row, seenMs }: Tracked, nowMs: TimeMs): TimeMs {
    return between(seenMs, this.#endOf(row, seenMs) ?? seenMs, nowMs);
  }

  /** `stats`: of the known processes; those of new ones are added. */
  #search(stats: Map<Pid, ProcessStat | null>, poll: TreePoll, sparse: SparsePoll | null): void {
    const mayHaveMore =
      this.#follow && (sparse === null || [...stats.keys()].some(sparse.hasStartedBelow));
    for (const pid of mayHaveMore ? [...stats.keys()] : []) {
      // The root, and processes without a parent in the tree because it has ended.
      if (!this.#alive.has(stats.get(pid)?.parentPid ?? this.#root)) {
        for (const descendant of descendantsOf(pid)) {
          stats.set(descendant, stats.get(descendant) ?? readStat(descendant));
        }
      }
    }
    for (const [pid, stat] of stats) {
      const tracked = this.#alive.get(pid);
      const lives = stat !== null && !hasEnded(stat);
      if (tracked && !isSame(tracked, stat)) {
        this.#gone(tracked, poll, this.#endMs(tracked, poll.timeMs));
      } else if (tracked && stat) {
        tracked.seenMs = poll.timeMs;
        if (stat.stackStart !== tracked.stackStart) {
          this.#replaced(tracked, stat, poll);
        }
      }
      if (lives && !this.#alive.has(pid) && pid !== this.#root) {
        if (isReader(pid)) {
          this.#sawReader = true;
        } else {
          this.#discover(pid, stat, poll);
        }
      }
    }
  }

  #discover(pid: Pid, stat: ProcessStat, poll: TreePoll): void {
    if (this.#isFull(poll)) {
      return;
    }
    const row: SeriesRow = {
      series: this.#count++,
      pid,
      parentPid: stat.parentPid,
      command: readCommand(pid) ?? [stat.name],
      python: "",
      profiled: false,
      startedMs: Math.max(this.#rootStartedMs, Math.min(poll.timeMs, startTimeMs(stat.startTicks))),
      endedMs: null,
      rank: readRank(pid),
    };
    this.#alive.set(pid, newlyTracked(row, stat.startTicks, stat.stackStart, poll.timeMs));
    this.#announce(row, poll);
  }

  #replaced(tracked: Tracked, stat: ProcessStat, poll: TreePoll): void {
    const first = tracked.stackStart === 0;
    tracked.stackStart = stat.stackStart;
    if (first) {
      return; // for the root at its first poll, the start was the exec
    }
    tracked.execs += 1;
    const { pid } = tracked.row;
    if (pid !== this.#root && isReader(pid)) {
      this.#sawReader = true;
      this.#gone(tracked, poll);
      return;
    }
    const command = readCommand(pid);
    if (command && command.length > 0) {
      const row = { ...tracked.row, command, rank: readRank(pid) };
      poll.mark(this.#replace(row, poll), "exec");
    }
  }

  #gone(tracked: Tracked, poll: TreePoll, endedMs = poll.timeMs): void {
    const last = this.#replace({ ...tracked.row, endedMs }, poll);
    this.#alive.delete(last.pid);
    this.#ended.set(`${last.pid} ${tracked.startTicks}`, last);
    for (const key of this.#ended.keys()) {
      if (this.#ended.size <= ENDED_KNOWN) {
        break;
      }
      this.#ended.delete(key);
    }
    poll.mark(last, "process-end", endedMs);
  }

  #replace(row: SeriesRow, poll: TreePoll): SeriesRow {
    const tracked = this.#alive.get(row.pid);
    if (tracked?.row.series === row.series) {
      tracked.row = row; // the pid may belong to another process by now
    }
    poll.rows.push(row);
    return row;
  }
}

function between(low: TimeMs, timeMs: TimeMs, high: TimeMs): TimeMs {
  return Math.max(low, Math.min(high, timeMs));
}
