import { fstatSync, readSync } from "node:fs";
import { isLeaving, isMapping, processesMapping, readStat } from "../../linux/index.js";
import { processLives } from "../../linux/process/process_identity.js";
import { monotonicMs, timeAt } from "../../linux/this_process/clock.js";
import type { Bytes, Millis, Pid, ProcessIndex, TimeMs } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import type { ProfileSnapshot, ProfileTables } from "../../model/profile/profile.js";
import type { Metric, TimelineEvent } from "../../model/profile/series.js";
import { Symboliser } from "../../native/index.js";
import type { SeriesRow } from "../../recording/batches.js";
import type { AgentFigures } from "../../recording/types.js";
import { parseSegmentHeader, type SegmentHeader } from "../../segment/header.js";
import {
  type LiveSamples,
  type Opening,
  type PoolReader,
  type PoolSlot,
  ProfileAssembler,
  poolLimits,
  SegmentReader,
} from "../../segment/index.js";
import { CONSTANTS } from "../../segment/layout.js";
import { ThreadNames } from "./thread_names.js";
import type { PolledTree, TreePoll } from "./tree_poll.js";

export interface TakenSnapshot {
  readonly tables: ProfileTables;
  readonly snapshot: ProfileSnapshot;
  readonly agent: AgentFigures;
  /** What the agents could not see, as of this snapshot. */
  readonly limits: readonly string[];
}

interface Watched {
  readonly key: string;
  readonly slot: PoolSlot;
  readonly reader: SegmentReader;
  /** null until its owner has initialized the segment. */
  process: ProcessIndex | null;
  row: SeriesRow | null;
  liveBytes: Bytes;
  /** Sequence number of the last event read by a snapshot. */
  eventsTaken: number;
  /** Number of polls that did not find its owner. */
  missed: number;
  /** Number of the owner's execs after which the segment is known to be still in use; null: not checked yet. */
  execs: number | null;
  /** Whether its owner runs an image without an agent. */
  outlived: boolean;
}

/** The process data in a segment's header, in the recording's terms. */
const SEGMENT_FIGURES = [
  "liveBytes",
  "liveObjects",
  "allocatedBytes",
  "allocatedObjects",
  "periodBytes",
] as const satisfies readonly Metric[];
/**
 * A process in a pid namespace has another pid there, so only the next poll of the tree shows that it is alive.
 * Freeing the slot of a live owner would give it two. Also, a killed process may be the first of many ended by
 * the same signal, including the program.
 */
const MISSED_TO_BE_GONE = 2;
const POOL_NAME = "tidemark-pool";
/** Most walks for daemons that fork and exit meanwhile; a chain of them may outrun any walk. */
const MOST_WALKS = 20;

/**
 * The segments of a pool: figures at every poll, profiles at snapshots, and slots of ended processes drained
 * and freed.
 */
export class PoolWatch {
  readonly #names = new ThreadNames();
  readonly #assembler = new ProfileAssembler({
    symbols: new Symboliser(),
    threads: this.#names,
  });
  readonly #watched = new Map<string, Watched>();
  /** Sentences about invalid segments, by pid. */
  readonly #damaged = new Map<Pid, string>();
  /** Slots that were read completely but could not be freed. */
  readonly #stuck = new Set<string>();
  #claimsAtPoll = 0;
  /** Whether processes started between the last two polls, or since the last one according to the latest check. */
  isClaimed = true;
  readonly #inode: number;

  readonly #pool: PoolReader;
  readonly #descriptor: number;
  readonly #root: Pid;

  /** `root`: the recorded program, whose segment is kept until the last snapshot. */
  constructor(pool: PoolReader, descriptor: number, root: Pid) {
    this.#pool = pool;
    this.#descriptor = descriptor;
    this.#root = root;

    this.#inode = fstatSync(descriptor).ino;
  }

  /** Estimated live bytes of all processes, at the last poll. */
  get liveBytes(): Bytes {
    let sum = 0;
    for (const { liveBytes } of this.#watched.values()) {
      sum += liveBytes;
    }
    return sum;
  }

  /** How long the agents continue without renewal from us. */
  renewLease(forMs: Millis): void {
    this.#pool.setLease(monotonicMs() + forMs);
  }

  /** Lets the agents continue without a recorder. */
  keepWithoutLease(): void {
    this.#pool.setLease(0);
  }

  /**
   * True once so many processes started since the last poll that the slots of ended ones are needed. Check it
   * between polls.
   */
  get crowded(): boolean {
    const head = this.#guarded(null, () => this.#pool.header());
    this.isClaimed ||= head !== null && head.claims > this.#claimsAtPoll;
    return head !== null && head.claims - this.#claimsAtPoll > head.slotCount / 4;
  }

  /**
   * Adds new segments, reads every header, and releases those whose owner ended while the root was alive, since
   * they have no live memory. {@link lastPoll} handles processes that ended with the root.
   */
  poll(poll: TreePoll): void {
    const claims = this.#guarded(null, () => this.#pool.header())?.claims ?? 0;
    this.isClaimed = claims > this.#claimsAtPoll;
    this.#claimsAtPoll = claims;
    for (const { watched, header, state } of this.#readSlots(poll)) {
      if (state === "replaced" || (state === "gone" && this.#goneForSure(watched, header))) {
        this.#drain(watched, header, poll);
      } else if (state === "gone") {
        watched.liveBytes = 0; // most likely, and the total must not show a peak that never existed
      } else {
        watched.missed = 0;
      }
    }
    poll.events.push(...this.#assembler.takeEvents());
  }

  /**
   * The same once the root has ended. `killed`: by a signal; processes that ended with it, and not by their own
   * exit, keep their live heap for the last snapshot, like the root.
   */
  lastPoll(poll: TreePoll, killed: boolean): void {
    for (const { watched, header, state } of this.#readSlots(poll)) {
      if (state === "replaced" || (state === "gone" && !(killed && header?.state !== "ended"))) {
        this.#drain(watched, header, poll);
        continue;
      }
      watched.missed = 0;
      if (state === "gone" && watched.row === null && header) {
        poll.addEnded(header);
      }
    }
    poll.events.push(...this.#assembler.takeEvents());
  }

  /**
   * Adds processes that were forked from the program and left the tree before any poll saw them and without a
   * segment yet; they still have the pool mapped. Only for the end: walks /proc repeatedly until a walk missed
   * no process, because a daemon's parents end during the walk.
   */
  adoptStrays(poll: TreePoll, sinceTicks: number): void {
    const seenEnded = new Set<Pid>();
    for (let walk = 0; walk < MOST_WALKS; walk++) {
      const { mapping, ended } = processesMapping(POOL_NAME, this.#inode, sinceTicks);
      for (const pid of mapping) {
        const stat = readStat(pid);
        if (stat) {
          poll.adopt(pid, stat.startTicks);
        }
      }
      const outliving = poll.tree.outliving();
      const justEnded = ended.filter((pid) => !seenEnded.has(pid));
      if (justEnded.length === 0 && mapping.every((pid) => outliving.includes(pid))) {
        break;
      }
      for (const pid of justEnded) {
        seenEnded.add(pid);
      }
    }
  }

  *#readSlots(poll: TreePoll): Iterable<{
    readonly watched: Watched;
    readonly header: SegmentHeader | null;
    /** `replaced`: by a later image; `gone`: its process has ended. */
    readonly state: "kept" | "replaced" | "gone";
  }> {
    const { tree } = poll;
    const slots = this.#guarded(null, () => this.#pool.slots()) ?? [];
    const newest = newestImages(slots);
    for (const slot of slots) {
      const watched = this.#watch(slot);
      if (watched === null) {
        continue;
      }
      watched.row ??=
        tree.find(slot.pid, slot.processStartTicks) ??
        poll.adopt(slot.pid, slot.processStartTicks) ??
        tree.findEnded(slot.pid, slot.processStartTicks);
      const header = this.#guarded(watched, () => this.#header(slot));
      if (!watched.outlived && this.#isOutlived(watched, tree)) {
        this.#outlive(watched, poll);
      } else if (header && !watched.outlived) {
        this.#readFigures(watched, header, poll);
      }
      const kept = slot.pid === this.#root || this.#lives(watched, tree);
      yield { watched, header, state: !newest.has(slot) ? "replaced" : kept ? "kept" : "gone" };
    }
  }

  /**
   * An image without an agent claims no segment. Whether one took over is visible in the mappings, which are
   * read once after each exec.
   */
  #isOutlived(watched: Watched, tree: PolledTree): boolean {
    const { row } = watched;
    if (row === null || !tree.lives(row) || watched.execs === tree.execs(row)) {
      return false;
    }
    const maps = isMapping(row.pid, POOL_NAME, this.#inode);
    watched.execs = maps === null ? watched.execs : tree.execs(row);
    return maps === false && !isLeaving(readStat(row.pid));
  }

  /**
   * The image's live memory is gone with it. Its slot is kept, so that a later image with an agent can
   * recognize its predecessor.
   */
  #outlive(watched: Watched, poll: TreePoll): void {
    watched.outlived = true;
    watched.liveBytes = 0;
    this.#renew(watched);
    if (watched.process !== null) {
      this.#assembler.end(watched.process);
    }
    if (watched.row !== null) {
      poll.measure(watched.row, "liveBytes", 0);
      poll.measure(watched.row, "liveObjects", 0);
    }
  }

  /**
   * The root is checked after the others, because a process that ended before the root was seen alive did not
   * end with it.
   */
  #goneForSure(watched: Watched, header: SegmentHeader | null): boolean {
    watched.missed += 1;
    const byItself = watched.row !== null && header?.state === "ended";
    return !isLeaving(readStat(this.#root)) && (byItself || watched.missed >= MISSED_TO_BE_GONE);
  }

  /** A full snapshot of every segment. null if no process has initialized one yet. */
  snapshot(timeMs: TimeMs): TakenSnapshot | null {
    let any = this.#assembler.totals().samples > 0;
    const gone = new Set<ProcessIndex>();
    for (const watched of this.#watched.values()) {
      any = (watched.missed === 0 && this.#renew(watched)) || any;
      if (watched.missed > 0 && watched.process !== null) {
        gone.add(watched.process);
      }
    }
    const head = this.#guarded(null, () => this.#pool.header());
    const unserved = head ? poolLimits(head.unserved, head.unservedReason) : [];
    if (!any && unserved.length === 0 && this.#damaged.size === 0) {
      return null;
    }
    const { samples, lost, cpuMs, periodBytes } = this.#assembler.totals();
    return {
      ...this.#assembler.take(timeMs, gone),
      agent: { samples, lost, cpuMs, periodBytes },
      limits: [...this.#assembler.limits(), ...this.#damaged.values(), ...unserved],
    };
  }

  /** Marks found in the segments since the last call or poll, ascending by time. */
  takeEvents(): TimelineEvent[] {
    return this.#assembler.takeEvents();
  }

  /** For each process: its sampled live allocations at the last snapshot. */
  liveSamples(): ReadonlyMap<Pid, LiveSamples> {
    return this.#assembler.liveSamples();
  }

  /** For each process: the stacks that opened its descriptors, as of the last snapshot. */
  openings(): ReadonlyMap<Pid, readonly Opening[]> {
    return this.#assembler.openings();
  }

  /** When the agent of a process last changed its segment; null if it has none. */
  lastChangeMs({ series }: Pick<SeriesRow, "series">): TimeMs | null {
    let last: TimeMs | null = null;
    for (const watched of this.#watched.values()) {
      const header =
        watched.row?.series === series
          ? this.#guarded(watched, () => this.#header(watched.slot))
          : null;
      last = header === null ? last : Math.max(last ?? 0, timeAt(header.heartbeatMs));
    }
    return last;
  }

  /** No more snapshots are taken. */
  close(): void {
    this.#names.close();
  }

  /** null for a slot that was read completely but could not be freed. */
  #watch(slot: PoolSlot): Watched | null {
    const key = `${slot.index} ${slot.pid} ${slot.processStartTicks} ${slot.image} ${slot.claimedMs}`;
    if (this.#stuck.has(key)) {
      return null;
    }
    let watched = this.#watched.get(key);
    if (!watched) {
      watched = {
        key,
        slot,
        reader: new SegmentReader(this.#descriptor, this.#pool.slotRange(slot.index)),
        process: null,
        row: null,
        liveBytes: 0,
        eventsTaken: 0,
        missed: 0,
        execs: null,
        outlived: false,
      };
      this.#watched.set(key, watched);
    }
    return watched;
  }

  #header(slot: PoolSlot): SegmentHeader | null {
    const { offset, length } = this.#pool.slotRange(slot.index);
    const page = Buffer.alloc(CONSTANTS.TM_PAGE);
    const got = readSync(this.#descriptor, page, 0, page.length, offset);
    return got === page.length ? parseSegmentHeader(page, length, "the agent's memory") : null;
  }

  #readFigures(watched: Watched, header: SegmentHeader, poll: TreePoll): void {
    watched.liveBytes = header.liveBytes;
    const events = header.sections[CONSTANTS.TM_SECTION_EVENTS];
    if (events && events.count - watched.eventsTaken > events.capacity / 2) {
      this.#renew(watched); // before the ring overwrites unread entries
    }
    if (watched.row === null) {
      return;
    }
    const row = poll.profiled(watched.row, header);
    watched.row = row;
    for (const metric of SEGMENT_FIGURES) {
      poll.measure(row, metric, header[metric]);
    }
  }

  #lives({ slot, row }: Watched, tree: PolledTree): boolean {
    if (row !== null) {
      return tree.lives(row);
    }
    return processLives(slot.pid, slot.processStartTicks);
  }

  /**
   * A program that writes to wrong addresses may corrupt the agents' shared memory; this is reported, and the
   * rest is still read. `watched` null: the pool's own header.
   */
  #guarded<Value>(watched: Watched | null, read: () => Value): Value | null {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      const pid = watched?.slot.pid ?? 0;
      const whose = watched ? `process ${pid}: its profile` : "the header of the agents' memory";
      this.#damaged.set(pid, `${whose} cannot be read: ${error.what}`);
      return null;
    }
  }

  /** False if there is nothing to read yet. */
  #renew(watched: Watched): boolean {
    const snapshot = this.#guarded(watched, () => watched.reader.snapshot());
    if (snapshot === null) {
      return false;
    }
    watched.process ??= this.#assembler.begin(
      snapshot.header,
      watched.row?.pid,
      watched.row?.parentPid,
    );
    watched.eventsTaken = snapshot.header.sections[CONSTANTS.TM_SECTION_EVENTS]?.count ?? 0;
    this.#assembler.renew(watched.process, snapshot);
    return true;
  }

  #drain(watched: Watched, header: SegmentHeader | null, poll: TreePoll): void {
    this.#renew(watched);
    if (watched.process !== null) {
      this.#assembler.end(watched.process);
    }
    if (watched.row === null && header) {
      poll.addEnded(header);
    }
    if (!this.#pool.freeSlot(watched.slot.index)) {
      this.#stuck.add(watched.key);
    }
    this.#watched.delete(watched.key);
  }
}

/** The slot that the current image of a process claimed. */
function newestImages(slots: readonly PoolSlot[]): Set<PoolSlot> {
  const newest = new Map<string, PoolSlot>();
  for (const slot of slots) {
    const key = `${slot.pid} ${slot.processStartTicks}`;
    const known = newest.get(key);
    if (
      !known ||
      slot.claimedMs > known.claimedMs ||
      (slot.claimedMs === known.claimedMs && slot.image > known.image)
    ) {
      newest.set(key, slot);
    }
  }
  return new Set(newest.values());
}
