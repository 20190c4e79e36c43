import type { Pid, TimeMs } from "../../model/base/units.js";
import type { Metric, TimelineEvent } from "../../model/profile/series.js";
import type { SeriesRow } from "../../recording/batches.js";
import type { MetricRow } from "../../recording/writer.js";
import { type FailedAllocation, type SegmentHeader, seesAllocations } from "../../segment/index.js";

/** The tree that was polled, for those that add what they know of its processes. `ProcessTree` is one. */
export interface PolledTree {
  /** The series of each living process. */
  readonly livingSeries: ReadonlyMap<Pid, number>;
  /**
   * The live process with this pid, or with this pid in its own pid namespace. `startTicks` 0: its agent has no
   * /proc (a bare chroot) to read them from.
   */
  find(pid: Pid, startTicks: number): SeriesRow | null;
  /**
   * The process that had this pid, was seen by a poll and has ended; for a new segment, before the segment was
   * found. `startTicks`: as for {@link find}.
   */
  findEnded(pid: Pid, startTicks: number): SeriesRow | null;
  lives(row: SeriesRow): boolean;
  /** How often a live process was seen to call exec; 0 for one that has ended. */
  execs(row: SeriesRow): number;
  /** Processes that still run although the root has ended. */
  outliving(): Pid[];
  /** See {@link TreePoll.adopt}, {@link TreePoll.addEnded} and {@link TreePoll.profiled}. */
  adopt(pid: Pid, startTicks: number, poll: TreePoll): SeriesRow | null;
  addEnded(header: SegmentHeader, poll: TreePoll): void;
  profiled(row: SeriesRow, header: SegmentHeader, poll: TreePoll): SeriesRow;
}

/**
 * The result of one poll of a process tree: readings, new or changed processes, events and limits, all at one
 * moment. Other readers of the processes add their data here.
 */
export class TreePoll {
  readonly metrics: MetricRow[] = [];
  /** Rows of processes that are new or have changed. */
  readonly rows: SeriesRow[] = [];
  readonly events: TimelineEvent[] = [];
  readonly limits: string[] = [];
  /** By series, for each process whose agent sees large allocations: the newest that failed; null: none has. */
  readonly failed = new Map<number, FailedAllocation | null>();
  /** Only RSS was read: no process has changed. */
  isQuiet = false;

  constructor(
    readonly tree: PolledTree,
    readonly timeMs: TimeMs,
  ) {}

  /** Adds a reading of the process with that row. */
  measure({ series }: Pick<SeriesRow, "series">, metric: Metric, value: number): void {
    this.metrics.push({ timeMs: this.timeMs, series, metric, value });
  }

  /** Adds an event of a process. `timeMs`: set if it happened before this poll. */
  mark(
    { pid, command }: Pick<SeriesRow, "pid" | "command">,
    kind: "process-start" | "process-end" | "exec",
    timeMs: TimeMs = this.timeMs,
  ): void {
    this.events.push({ timeMs, pid, kind, detail: commandLine(command) });
  }

  /**
   * Adds a live process found by its segment or its mappings: a process whose parents ended between two polls
   * (a daemon) is not reachable in the tree. null if there is none with that pid and start, or it is already
   * known.
   */
  adopt(pid: Pid, startTicks: number): SeriesRow | null {
    return this.tree.adopt(pid, startTicks, this);
  }

  /** Adds a process that started and ended between two polls; its segment describes it. */
  addEnded(header: SegmentHeader): void {
    this.tree.addEnded(header, this);
  }

  /** Marks a process as one that an agent runs in. */
  profiled(row: SeriesRow, header: SegmentHeader): SeriesRow {
    this.noteFailed(row.series, header);
    return this.tree.profiled(row, header, this);
  }

  noteFailed(series: number, header: SegmentHeader): void {
    if (seesAllocations(header)) {
      this.failed.set(series, header.failed);
    }
  }
}

/** One line for an event's mark. */
function commandLine(command: readonly string[]): string {
  const line = command.join(" ");
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
}
