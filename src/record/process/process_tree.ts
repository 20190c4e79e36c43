import {
  descendantsOf,
  ForeignSharedMemory,
  hasEnded,
  isLeaving,
  type ProcessStat,
  readCommand,
  readStat,
  readStatus,
  sharedMemoryUsed,
  startTimeMs,
} from "../../linux/index.js";
import type { Bytes, Pid, TimeMs } from "../../model/base/units.js";
import type { Metric, TimelineEvent } from "../../model/profile/series.js";
import type { SeriesRow } from "../../recording/batches.js";
import type { MetricRow } from "../../recording/writer.js";
import type { SegmentHeader } from "../../segment/index.js";
import { readFigures } from "./process_figures.js";

/** Beyond this, further processes count in the tree's figures only: the recording stays bounded. */
const MOST_PROCESSES = 10_000;
const SHM_WORTH_ASKING: Bytes = 2 ** 20;

/** Ended processes whose segment may still be read: as many as a pool has slots, and some. */
const ENDED_KNOWN = 2_048;

/** What one poll of the tree brought. */
export interface TreePoll {
  readonly timeMs: TimeMs;
  readonly metrics: MetricRow[];
  /** Rows of processes that are new or have changed. */
  readonly rows: SeriesRow[];
  readonly events: TimelineEvent[];
  readonly limits: string[];
}

interface Tracked {
  row: SeriesRow;
  readonly startTicks: number;
  stackStart: number;
  /** How often polls saw it exec. */
  execs: number;
}

/** The recorded program and its descendants, by /proc. A descendant whose parent has ended stays one. */
export class ProcessTree {
  private readonly alive = new Map<Pid, Tracked>();
  /** What lay in /dev/shm at the first poll; and whether so much came since that it matters who writes. */
  private shmFirst: Bytes | null = null;
  private asksWho = false;
  private readonly foreign = new ForeignSharedMemory();
  private foreignBytes: Bytes = 0;
  /** By pid and start ticks, oldest first. */
  private readonly ended = new Map<string, SeriesRow>();
  private count = 0;
  private uncounted = false;

  private rootIsNew = true;

  /** The root counts even where it has ended before the first poll. `startedMs`: of the recording; `follow`
   * false: the root alone; `rootStartedMs`: where it ran before. */
  constructor(
    private readonly root: Pid,
    startTicks: number,
    command: readonly string[],
    private readonly startedMs: TimeMs,
    private readonly follow: boolean,
    private readonly rootStartedMs = startedMs,
  ) {
    const row: SeriesRow = {
      series: this.count++,
      pid: root,
      parentPid: process.ppid, // the guard
      command,
      python: "",
      profiled: false,
      startedMs: rootStartedMs,
      endedMs: null,
    };
    this.alive.set(root, { row, startTicks, stackStart: 0, execs: 0 });
  }

  /** The living process with this pid, or the one that is known by it in its own pid namespace.
   * `startTicks` 0: its agent has no /proc (a bare chroot) to read them from. */
  find(pid: Pid, startTicks: number): SeriesRow | null {
    const same = (tracked: Tracked) => startTicks === 0 || tracked.startTicks === startTicks;
    const direct = this.alive.get(pid);
    if (direct && same(direct)) {
      return direct.row;
    }
    for (const tracked of this.alive.values()) {
      if (same(tracked) && readStatus(tracked.row.pid)?.namespacePids.at(-1) === pid) {
        return tracked.row;
      }
    }
    return null;
  }

  /** Takes up a living process that its segment tells of: one whose parents ended between two polls
   * (a daemon) hangs on no branch of the tree. null where there is none of that pid and start. */
  adopt(pid: Pid, startTicks: number, timeMs: TimeMs, poll: TreePoll): SeriesRow | null {
    const stat = readStat(pid);
    if (stat?.startTicks !== startTicks || hasEnded(stat) || this.alive.has(pid)) {
      return null;
    }
    this.discover(pid, stat, timeMs, poll);
    return this.alive.get(pid)?.row ?? null;
  }

  lives({ series, pid }: SeriesRow): boolean {
    return this.alive.get(pid)?.row.series === series;
  }

  /** How often a living process was seen to exec; 0 for one that has ended. */
  execs(row: SeriesRow): number {
    return this.lives(row) ? (this.alive.get(row.pid)?.execs ?? 0) : 0;
  }

  /** The process that had this pid, seen by a poll and ended: before its segment was found, where that one
   * is new. `startTicks`: as for {@link find}. */
  findEnded(pid: Pid, startTicks: number): SeriesRow | null {
    if (startTicks !== 0) {
      return this.ended.get(`${pid} ${startTicks}`) ?? null;
    }
    return [...this.ended.values()].findLast((row) => row.pid === pid) ?? null;
  }

  /** A process that came and ended between two polls; its segment tells of it. */
  addEnded(header: SegmentHeader, timeMs: TimeMs, poll: TreePoll): void {
    const { pid, parentPid, command, python } = header;
    if (this.isFull(poll)) {
      return;
    }
    const startedMs = Math.min(timeMs, header.startRealtimeMs);
    poll.rows.push({
      series: this.count++,
      pid,
      parentPid,
      command,
      python,
      profiled: true,
      startedMs,
      endedMs: timeMs,
    });
    const detail = commandLine(command);
    poll.events.push({ timeMs: startedMs, pid, kind: "process-start", detail });
    poll.events.push({ timeMs, pid, kind: "process-end", detail });
  }

  /** Marks a process as one that an agent runs in. */
  profiled(row: SeriesRow, python: string, command: readonly string[], poll: TreePoll): SeriesRow {
    if (row.profiled && row.python === python) {
      return row;
    }
    const known = row.command.length > 0 ? row.command : command;
    // One that ended meanwhile stays ended.
    const endedMs = this.lives(row) ? null : (row.endedMs ?? poll.timeMs);
    return this.replace({ ...row, profiled: true, python, command: known, endedMs }, poll);
  }

  get livingPids(): Pid[] {
    return [...this.alive.keys()];
  }

  /** Of each living process, the number of its series. */
  get livingSeries(): ReadonlyMap<Pid, number> {
    return new Map(Array.from(this.alive, ([pid, { row }]) => [pid, row.series]));
  }

  /** `dear`: PSS, USS and sockets, too. */
  poll(timeMs: TimeMs, dear: boolean): TreePoll {
    const poll = this.newPoll(timeMs);
    this.search(timeMs, poll);
    let treeRss: Bytes = 0;
    let treePss: Bytes | null = dear ? 0 : null;
    const shmUsed = sharedMemoryUsed(this.root);
    this.shmFirst ??= shmUsed;
    this.asksWho ||= (shmUsed ?? 0) - (this.shmFirst ?? 0) > SHM_WORTH_ASKING;
    for (const { row } of this.alive.values()) {
      const figures = readFigures(row.pid, { dear, written: this.asksWho });
      for (const [metric, value] of figures) {
        poll.metrics.push({ timeMs, series: row.series, metric, value });
      }
      treeRss += figures.get("rssBytes") ?? 0;
      const pss = figures.size === 0 ? 0 : (figures.get("pssBytes") ?? null);
      treePss = treePss === null || pss === null ? null : treePss + pss;
    }
    const root = this.alive.get(this.root);
    if (root) {
      const add = (metric: Metric, value: number) =>
        poll.metrics.push({ timeMs, series: root.row.series, metric, value });
      add("treeRssBytes", treeRss);
      add("children", this.alive.size - 1);
      if (this.asksWho && dear) {
        this.foreignBytes = this.foreign.bytesOf([this.root, ...this.alive.keys()]);
      }
      if (shmUsed !== null) {
        add("shmUsedBytes", Math.max(0, shmUsed - this.foreignBytes));
      }
      if (treePss !== null) {
        add("treePssBytes", treePss);
      }
    }
    return poll;
  }

  /** Those that run on now, though the root has ended. */
  outliving(): Pid[] {
    return this.livingPids.filter((pid) => pid !== this.root && this.stillRuns(pid));
  }

  /** Ends what still counts as living. `outliving`: how many of them run on. */
  end(timeMs: TimeMs, outliving: number): TreePoll {
    const poll = this.newPoll(timeMs);
    if (outliving > 0) {
      const [noun, verb] = outliving === 1 ? ["process", "runs"] : ["processes", "run"];
      poll.limits.push(
        `${outliving} ${noun} of the program's ${verb} on after its end, no longer recorded.`,
      );
    }
    for (const tracked of [...this.alive.values()]) {
      this.gone(tracked, timeMs, poll);
    }
    return poll;
  }

  /** The first one tells of the root. */
  newPoll(timeMs: TimeMs): TreePoll {
    const poll: TreePoll = { timeMs, metrics: [], rows: [], events: [], limits: [] };
    const root = this.alive.get(this.root);
    if (this.rootIsNew && root) {
      this.rootIsNew = false;
      this.announce(root.row, poll);
    }
    return poll;
  }

  private announce(row: SeriesRow, poll: TreePoll): void {
    poll.rows.push(row);
    poll.events.push({
      timeMs: Math.max(this.startedMs, row.startedMs),
      pid: row.pid,
      kind: "process-start",
      detail: commandLine(row.command),
    });
  }

  private isFull(poll: TreePoll): boolean {
    if (this.count < MOST_PROCESSES) {
      return false;
    }
    if (!this.uncounted) {
      this.uncounted = true;
      poll.limits.push(
        `The program started more than ${MOST_PROCESSES} processes: the later ones are left out.`,
      );
    }
    return true;
  }

  private stillRuns(pid: Pid): boolean {
    const stat = readStat(pid);
    return !isLeaving(stat) && stat?.startTicks === this.alive.get(pid)?.startTicks;
  }

  private search(timeMs: TimeMs, poll: TreePoll): void {
    const stats = new Map<Pid, ProcessStat | null>();
    for (const pid of this.alive.keys()) {
      stats.set(pid, readStat(pid));
    }
    for (const pid of this.follow ? [...stats.keys()] : []) {
      // The root, and whoever hangs on nobody of the tree since his parent has ended.
      if (!this.alive.has(stats.get(pid)?.parentPid ?? this.root)) {
        for (const descendant of descendantsOf(pid)) {
          stats.set(descendant, stats.get(descendant) ?? readStat(descendant));
        }
      }
    }
    for (const [pid, stat] of stats) {
      const tracked = this.alive.get(pid);
      const lives = stat !== null && !hasEnded(stat);
      if (tracked && (!lives || stat.startTicks !== tracked.startTicks)) {
        this.gone(tracked, timeMs, poll);
      } else if (tracked && stat && stat.stackStart !== tracked.stackStart) {
        this.replaced(tracked, stat, timeMs, poll);
      }
      if (lives && !this.alive.has(pid) && pid !== this.root) {
        this.discover(pid, stat, timeMs, poll);
      }
    }
  }

  private discover(pid: Pid, stat: ProcessStat, timeMs: TimeMs, poll: TreePoll): void {
    if (this.isFull(poll)) {
      return;
    }
    const row: SeriesRow = {
      series: this.count++,
      pid,
      parentPid: stat.parentPid,
      command: readCommand(pid) ?? [stat.name],
      python: "",
      profiled: false,
      startedMs: Math.max(this.rootStartedMs, Math.min(timeMs, startTimeMs(stat.startTicks))),
      endedMs: null,
    };
    const { startTicks, stackStart } = stat;
    this.alive.set(pid, { row, startTicks, stackStart, execs: 0 });
    this.announce(row, poll);
  }

  private replaced(tracked: Tracked, stat: ProcessStat, timeMs: TimeMs, poll: TreePoll): void {
    const first = tracked.stackStart === 0;
    tracked.stackStart = stat.stackStart;
    if (first) {
      return; // the root at its first poll: the start was the exec
    }
    tracked.execs += 1;
    const command = readCommand(tracked.row.pid);
    if (command && command.length > 0) {
      this.replace({ ...tracked.row, command }, poll);
      poll.events.push({
        timeMs,
        pid: tracked.row.pid,
        kind: "exec",
        detail: commandLine(command),
      });
    }
  }

  private gone(tracked: Tracked, timeMs: TimeMs, poll: TreePoll): void {
    const { row } = tracked;
    const last = this.replace({ ...row, endedMs: timeMs }, poll);
    this.alive.delete(row.pid);
    this.ended.set(`${row.pid} ${tracked.startTicks}`, last);
    for (const key of this.ended.keys()) {
      if (this.ended.size <= ENDED_KNOWN) {
        break;
      }
      this.ended.delete(key);
    }
    poll.events.push({
      timeMs,
      pid: row.pid,
      kind: "process-end",
      detail: commandLine(row.command),
    });
  }

  private replace(row: SeriesRow, poll: TreePoll): SeriesRow {
    const tracked = this.alive.get(row.pid);
    if (tracked?.row.series === row.series) {
      tracked.row = row; // the pid may be another process's by now
    }
    poll.rows.push(row);
    return row;
  }
}

/** One line for an event's mark. */
function commandLine(command: readonly string[]): string {
  const line = command.join(" ");
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
}
