/**
 * The memory limits of the recorded processes, and which of them run out of memory.
 *
 *   each poll ── counters of the groups, rlimits ──> metrics; a counted kill waits for its process
 *   a process has ended ── named by the kernel log, otherwise by a waiting kill, otherwise by its rlimits ──> MemoryEnd
 */
import {
  type CgroupPlace,
  findCgroup,
  type GroupCounters,
  type KernelKill,
  type MemoryRlimits,
  ofGroup,
  type ReadText,
  RecentTexts,
  readGroupCounters,
  readKernelKills,
  readLimiting,
  readMachineKills,
  readMachineMemory,
  readMemoryRlimits,
  readPressure,
  roomOf,
} from "../../linux/index.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { Millis, Pid } from "../../model/base/units.js";
import type { MemoryEnd } from "../../model/profile/memory_end.js";
import type { Metric } from "../../model/profile/series.js";
import type { ExitReport } from "./exit_report.js";
import {
  groupsAtLimit,
  killedByCounters,
  killedByKernel,
  type LastFigures,
  stoppedByRlimit,
} from "./memory_ends.js";
import type { TreePoll } from "./tree_poll.js";

/** A killed process has disappeared by then. */
const KILL_TO_END_MS: Millis = 10_000;
/** With more processes than this, rlimits are read only at the expensive polls. */
const FEW_PROCESSES = 16;
/**
 * Share of the limit at which a ledger is read, and again after each further step, because the process may be
 * gone at the next poll.
 */
const NEAR_LIMIT = 0.7;
const NEAR_STEP = 0.08;
/** Share of the last ten seconds in which processes of the group waited for memory. */
const PRESSURE = 0.01;
const SIGKILL = 9;

const machineKills = (_: null, read: ReadText) => readMachineKills(read);
const NOTHING: LastFigures = { rssBytes: 0, vmsBytes: 0, vmPeakBytes: 0, vmDataBytes: 0 };
const FIGURES: readonly (keyof LastFigures)[] = [
  "rssBytes",
  "vmsBytes",
  "vmPeakBytes",
  "vmDataBytes",
];

export class MemoryWatch {
  readonly #root: Pid;
  #place: CgroupPlace | null;
  readonly #sinceMs = monotonicMs();
  readonly #figures = new Map<number, LastFigures>();
  readonly #rlimits = new Map<Pid, MemoryRlimits>();
  readonly #reported = new Set<number>();
  #groups: readonly GroupCounters[];
  #machineKills: number | null;
  /** Counted kills whose process has not ended yet. */
  #waiting = { count: 0, groups: [] as readonly GroupCounters[], untilMs: 0 };
  #killedUntilMs = 0;
  #nearest = NEAR_LIMIT - NEAR_STEP;
  /** Largest share of an rlimit in use, and throttlings by `memory.high`, at the last poll that read them. */
  #rlimitShare = 0;
  #throttled: number | null = null;
  /** True if usage is nearer to the limit than at any previous ledger. */
  isNearer = false;
  readonly #texts: RecentTexts;

  /** `texts`: shared with other recordings of this process; the default reads each time. */
  constructor(root: Pid, texts = new RecentTexts(monotonicMs, 0)) {
    this.#root = root;
    this.#texts = texts;
    this.#place = findCgroup(root, texts.read);
    this.#groups = this.#counters();
    this.#machineKills = this.#countedOnMachine();
  }

  /** A limit is near, or processes of the group wait for memory: figures may change soon. */
  get isTight(): boolean {
    const place = this.#place;
    const pressure = this.#waitShare();
    const memory = ofGroup(place, this.#texts, readLimiting);
    const limitBytes = memory?.limitBytes ?? null;
    const isNear =
      limitBytes !== null &&
      (memory?.usageBytes ?? 0) >= NEAR_LIMIT * limitBytes &&
      (ofGroup(place, this.#texts, roomOf) ?? limitBytes) <= (1 - NEAR_LIMIT) * limitBytes;
    return (
      isNear ||
      (pressure ?? 0) >= PRESSURE ||
      this.#rlimitShare >= NEAR_LIMIT ||
      (memory?.highEvents ?? null) !== this.#throttled
    );
  }

  #waitShare(): number | null {
    return this.#texts.worked(readPressure, this.#place, this.#place?.directories[0] ?? "");
  }

  #countedOnMachine(): number | null {
    return this.#texts.worked(machineKills, null, "");
  }

  #counters(): readonly GroupCounters[] {
    return ofGroup(this.#place, this.#texts, readGroupCounters) ?? [];
  }

  /** Adds the group's figures to the poll. `report`: how the root ended, if it has and its guard knows; left out: nobody
   * will know.
   * @returns the processes that ran out of memory since the previous poll. */
  poll(poll: TreePoll, rootLives: boolean, report?: ExitReport | null): MemoryEnd[] {
    this.#measureGroup(poll, rootLives);
    this.#remember(poll);
    const ends = this.#endsIn(poll, rootLives, report);
    for (const end of ends) {
      const kind = end.cause === "rlimit" ? "limit" : "oom-kill";
      poll.events.push({
        timeMs: end.timeMs,
        pid: end.pid,
        kind,
        detail:
          end.cause === "rlimit"
            ? `out of memory at ${end.limit}`
            : `killed for memory by the kernel (${end.cause === "cgroup" ? end.limit : "the machine"})`,
        value: end.usedBytes,
      });
    }
    return ends;
  }

  /** Keeps what a poll has read, for processes that end before the next one. */
  keepFigures({ metrics }: Pick<TreePoll, "metrics">): void {
    for (const { series, metric, value } of metrics) {
      const name = FIGURES.find((figure) => figure === metric);
      if (name !== undefined) {
        this.#figures.set(series, { ...(this.#figures.get(series) ?? NOTHING), [name]: value });
      }
    }
  }

  ledgerRead(): void {
    this.isNearer = false;
  }

  #measureGroup(poll: TreePoll, rootLives: boolean): void {
    if (rootLives && poll.metrics.some(({ metric }) => metric === "pssBytes")) {
      this.#findGroup();
    }
    const waitShare = rootLives ? this.#waitShare() : null;
    if (waitShare !== null && (waitShare > 0 || !poll.isQuiet)) {
      poll.measure({ series: 0 }, "memoryWaitShare", waitShare);
    }
    const memory = ofGroup(this.#place, this.#texts, readLimiting);
    if (
      !memory ||
      !rootLives ||
      (poll.isQuiet && (memory.limitBytes ?? memory.highBytes) === null)
    ) {
      return; // the figures are stored with the root's, which has ended
    }
    this.#throttled = memory.highEvents;
    const figures: readonly [Metric, number | null][] = [
      ["cgroupUsageBytes", memory.usageBytes],
      ["cgroupLimitBytes", memory.limitBytes],
      ["cgroupHighBytes", memory.highBytes],
      ["cgroupOomKills", memory.oomKills],
      ["cgroupHighEvents", memory.highEvents],
      ["cgroupMaxEvents", memory.maxEvents],
    ];
    for (const [metric, value] of poll.isQuiet ? figures.slice(0, 3) : figures) {
      if (value !== null) {
        poll.measure({ series: 0 }, metric, value);
      }
    }
    this.#nears(memory.limitBytes === null ? 0 : memory.usageBytes / memory.limitBytes);
  }

  /** A program may be moved to another group after its start, for example by a container runtime. */
  #findGroup(): void {
    const place = findCgroup(this.#root, this.#texts.read);
    if (place !== null && place.directories[0] !== this.#place?.directories[0]) {
      this.#place = place;
      this.#groups = this.#counters();
    }
  }

  #nears(share: number): void {
    if (share >= this.#nearest + NEAR_STEP) {
      this.#nearest = share;
      this.isNearer = true;
    }
  }

  /** The last figures of each process, which are unavailable once it has ended, and its limits. */
  #remember(poll: TreePoll): void {
    this.keepFigures(poll);
    const { metrics, tree, isQuiet } = poll;
    if (isQuiet) {
      return;
    }
    const living = tree.livingSeries;
    const expensive = metrics.some(({ metric }) => metric === "pssBytes");
    if (living.size > FEW_PROCESSES && !expensive) {
      return;
    }
    this.#rlimitShare = 0;
    for (const [pid, series] of living) {
      const limits = readMemoryRlimits(pid);
      if (limits !== null) {
        this.#rlimits.set(pid, limits);
        const { vmsBytes = 0, vmDataBytes = 0 } = this.#figures.get(series) ?? {};
        for (const share of [
          vmsBytes / (limits.addressSpaceBytes ?? Number.POSITIVE_INFINITY),
          vmDataBytes / (limits.dataBytes ?? Number.POSITIVE_INFINITY),
        ]) {
          this.#nears(share);
          this.#rlimitShare = Math.max(this.#rlimitShare, share);
        }
      }
    }
  }

  #endsIn(poll: TreePoll, rootLives: boolean, report?: ExitReport | null): MemoryEnd[] {
    const ended = new Map(
      poll.rows
        .filter(({ series, endedMs }) => endedMs !== null && !this.#reported.has(series))
        .map(({ series, pid }) => [series, pid] as const),
    );
    const root = rootLives || this.#reported.has(0) ? [] : [[0, this.#root] as const];
    const all = new Map([...ended, ...root]);
    if (all.size > 0) {
      this.#texts.forget(); // the counters may have changed as they ended
    }
    const anyKilled = this.#countKills();
    if (all.size === 0) {
      return [];
    }
    const canBeKilled = anyKilled || this.#waiting.count > 0 || report?.signal === SIGKILL;
    const kills = canBeKilled ? readKernelKills(this.#sinceMs) : null;
    const largestFirst = [...all].sort(
      ([a], [b]) => (this.#figures.get(b)?.rssBytes ?? 0) - (this.#figures.get(a)?.rssBytes ?? 0),
    );
    return largestFirst.flatMap(([series, pid]) => {
      const isRoot = pid === this.#root;
      // How a child ended is unknown, and the limits decide only if its agent saw an allocation fail. Without a guard, or
      // any report, all that is known is how near to its limits it was.
      const known = isRoot ? report : poll.failed.get(series) ? undefined : null;
      const end = this.#endOf(series, pid, poll, known, kills);
      if (end !== null || known || !isRoot) {
        this.#reported.add(series);
      }
      return end === null ? [] : [end];
    });
  }

  #endOf(
    series: number,
    pid: Pid,
    { timeMs, failed }: TreePoll,
    report: ExitReport | null | undefined,
    kills: readonly KernelKill[] | null,
  ): MemoryEnd | null {
    const last = this.#figures.get(series) ?? NOTHING;
    const base = { pid, timeMs, last, maxRssBytes: report?.maxRssBytes ?? 0 };
    if (!report || report.signal === SIGKILL) {
      const kill = kills?.find((one) => one.pid === pid) ?? null;
      if (kill !== null) {
        this.#waiting.count = Math.max(0, this.#waiting.count - 1);
        return killedByKernel(base, kill, readMachineMemory());
      }
      // The log names other processes, so the counted kill belongs to them.
      if (this.#waiting.count > 0 && (kills === null || kills.length === 0)) {
        this.#waiting.count -= 1;
        return killedByCounters(base, this.#waiting.groups, readMachineMemory());
      }
    }
    return report === null
      ? null
      : stoppedByRlimit(base, this.#rlimits.get(pid), report ?? null, failed.get(series));
  }

  /** Kills since the last poll. Version 2 counts kills of parent groups only there.
   * @returns whether the kernel recently killed any process of the machine, perhaps in another group than the
   * root's. */
  #countKills(): boolean {
    const machine = this.#countedOnMachine();
    const now = this.#counters();
    const before = new Map(this.#groups.map(({ directory, kills }) => [directory, kills]));
    const own = Math.max(
      0,
      ...now.map(({ directory, kills }) => kills - (before.get(directory) ?? kills)),
    );
    // Without groups, only the machine's counter is available.
    const others =
      now.length === 0 ? Math.max(0, (machine ?? 0) - (this.#machineKills ?? machine ?? 0)) : 0;
    if (monotonicMs() > this.#waiting.untilMs) {
      this.#waiting.count = 0;
    }
    if ((machine ?? 0) > (this.#machineKills ?? machine ?? 0)) {
      this.#killedUntilMs = monotonicMs() + KILL_TO_END_MS;
    }
    if (own + others > 0) {
      this.#waiting = {
        count: this.#waiting.count + own + others,
        groups: groupsAtLimit(this.#groups, now),
        untilMs: monotonicMs() + KILL_TO_END_MS,
      };
    }
    this.#groups = now;
    this.#machineKills = machine;
    return monotonicMs() <= this.#killedUntilMs;
  }
}
