import { fstatSync, readSync } from "node:fs";
import { isLeaving, isMapping, processesMapping, readStat } from "../../linux/index.js";
import { processLives } from "../../linux/process/process_identity.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { Bytes, Millis, Pid, ProcessIndex, TimeMs } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import type { ProfileLook, ProfileTables } from "../../model/profile/profile.js";
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
import type { ProcessTree, TreePoll } from "./process_tree.js";
import { ThreadNames } from "./thread_names.js";

export interface TakenLook {
  readonly tables: ProfileTables;
  readonly look: ProfileLook;
  readonly agent: AgentFigures;
  /** What the agents could not see, as of this look. */
  readonly limits: readonly string[];
}

interface Watched {
  readonly key: string;
  readonly slot: PoolSlot;
  readonly reader: SegmentReader;
  /** null until its owner has set the segment up. */
  process: ProcessIndex | null;
  row: SeriesRow | null;
  liveBytes: Bytes;
  /** Running number of the last event that a look took. */
  eventsTaken: number;
  /** Polls that did not find its owner. */
  missed: number;
  /** The execs of its owner that are known to have left it its segment; null: not looked at yet. */
  execs: number | null;
  /** Its owner runs an image without an agent. */
  outlived: boolean;
}

/** What a segment's header has of its process, as the recording names it. */
const SEGMENT_FIGURES = [
  "liveBytes",
  "liveObjects",
  "allocatedBytes",
  "allocatedObjects",
  "periodBytes",
] as const satisfies readonly Metric[];
/** A process in a pid namespace is known by another number there: only the tree's next poll tells that it
 * lives. A slot that is freed under a living owner would have two. And what was killed may be the first of many
 * that the same signal ends, the program among them. */
const MISSED_TO_BE_GONE = 2;
const POOL_NAME = "tidemark-pool";
/** Daemons that fork and leave while they are looked for: a chain of them may outrun any walk. */
const MOST_WALKS = 20;

/** The segments of a pool: figures at every poll, profiles at looks, ended slots drained and freed. */
export class PoolWatch {
  readonly #names = new ThreadNames();
  readonly #assembler = new ProfileAssembler({
    symbols: new Symboliser(),
    threads: this.#names,
  });
  readonly #watched = new Map<string, Watched>();
  /** Sentences about segments that made no sense, by pid. */
  readonly #damaged = new Map<Pid, string>();
  /** Slots that were read to their end and could not be freed. */
  readonly #stuck = new Set<string>();
  #claimsAtPoll = 0;
  /** Whether processes came between the last two polls, or since the last one as far as was asked. */
  isClaimed = true;
  readonly #inode: number;

  readonly #pool: PoolReader;
  readonly #descriptor: number;
  readonly #root: Pid;

  /** `root`: the recorded program, whose segment stays until the last look. */
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

  /** The agents go on for so long without hearing from us again. */
  renewLease(forMs: Millis): void {
    this.#pool.setLease(monotonicMs() + forMs);
  }

  /** The agents go on without a recorder. */
  keepWithoutLease(): void {
    this.#pool.setLease(0);
  }

  /** True once so many processes came since the last poll that the slots of those that have ended are
   * wanted: to be asked between polls. */
  get crowded(): boolean {
    const head = this.#guarded(null, () => this.#pool.header());
    this.isClaimed ||= head !== null && head.claims > this.#claimsAtPoll;
    return head !== null && head.claims - this.#claimsAtPoll > head.slotCount / 4;
  }

  /** Takes up new segments, reads every header, lets go of those whose owner has ended while the root
   * lived: nothing of theirs lives. Who has gone with the root is for {@link lastPoll} to tell. */
  poll(poll: TreePoll): void {
    const claims = this.#guarded(null, () => this.#pool.header())?.claims ?? 0;
    this.isClaimed = claims > this.#claimsAtPoll;
    this.#claimsAtPoll = claims;
    for (const { watched, header, state } of this.#readSlots(poll)) {
      if (state === "replaced" || (state === "gone" && this.#goneForSure(watched, header))) {
        this.#drain(watched, header, poll);
      } else if (state === "gone") {
        watched.liveBytes = 0; // most likely, and the sum of all must not show a peak that never was
      } else {
        watched.missed = 0;
      }
    }
    poll.events.push(...this.#assembler.takeEvents());
  }

  /** The same once the root has ended. `killed`: by a signal; what ended with it then, and not by its own
   * exit, keeps its live heap for the last look, as the root does. */
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

  /** Takes up what was forked from the program and then left the tree, unseen by any poll and without a
   * segment yet: it still has the pool mapped. For the end alone: walks through /proc until one of them
   * missed nobody, for a daemon's parents end while they are looked at. */
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
    /** `replaced`: by an image that came after it; `gone`: its process. */
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

  /** An image without an agent claims no segment: whether one took over shows in what is mapped, which is
   * asked once for each exec that was seen. */
  #isOutlived(watched: Watched, tree: ProcessTree): boolean {
    const { row } = watched;
    if (row === null || !tree.lives(row) || watched.execs === tree.execs(row)) {
      return false;
    }
    const maps = isMapping(row.pid, POOL_NAME, this.#inode);
    watched.execs = maps === null ? watched.execs : tree.execs(row);
    return maps === false && !isLeaving(readStat(row.pid));
  }

  /** What lived in the image went with it. Its slot stays: an image with an agent that comes after this one
   * tells by it that it is followed. */
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

  /** The root is asked after the others: what ended before it was seen alive has not gone with it. */
  #goneForSure(watched: Watched, header: SegmentHeader | null): boolean {
    watched.missed += 1;
    const byItself = watched.row !== null && header?.state === "ended";
    return !isLeaving(readStat(this.#root)) && (byItself || watched.missed >= MISSED_TO_BE_GONE);
  }

  /** A full look at every segment. null where no process has set one up yet. */
  look(timeMs: TimeMs): TakenLook | null {
    let any = this.#assembler.totals().samples > 0;
    for (const watched of this.#watched.values()) {
      any = (watched.missed === 0 && this.#renew(watched)) || any;
    }
    const head = this.#guarded(null, () => this.#pool.header());
    const unserved = head ? poolLimits(head.unserved, head.unservedReason) : [];
    if (!any && unserved.length === 0 && this.#damaged.size === 0) {
      return null;
    }
    const { samples, lost, cpuMs, periodBytes } = this.#assembler.totals();
    return {
      ...this.#assembler.take(timeMs),
      agent: { samples, lost, cpuMs, periodBytes },
      limits: [...this.#assembler.limits(), ...this.#damaged.values(), ...unserved],
    };
  }

  /** Marks that the segments' looks found since the last call or poll, ascending by time. */
  takeEvents(): TimelineEvent[] {
    return this.#assembler.takeEvents();
  }

  /** Of each process: its sampled live allocations as of the last look. */
  liveSamples(): ReadonlyMap<Pid, LiveSamples> {
    return this.#assembler.liveSamples();
  }

  /** Of each process: who opened its descriptors, as of the last look. */
  openings(): ReadonlyMap<Pid, readonly Opening[]> {
    return this.#assembler.openings();
  }

  /** No look comes any more. */
  close(): void {
    this.#names.close();
  }

  /** null for a slot that was read to its end and could not be freed. */
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
      this.#renew(watched); // before the ring overwrites what nobody has read
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

  #lives({ slot, row }: Watched, tree: ProcessTree): boolean {
    if (row !== null) {
      return tree.lives(row);
    }
    return processLives(slot.pid, slot.processStartTicks);
  }

  /** A program that writes where it should not may hit what the agents share: that is said, and the rest
   * is read on. `watched` null: the pool's own head. */
  #guarded<Value>(watched: Watched | null, read: () => Value): Value | null {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      const pid = watched?.slot.pid ?? 0;
      const whose = watched ? `process ${pid}: its profile` : "the head of the agents' memory";
      this.#damaged.set(pid, `${whose} cannot be read: ${error.what}`);
      return null;
    }
  }

  /** False where there is nothing to read yet. */
  #renew(watched: Watched): boolean {
    const look = this.#guarded(watched, () => watched.reader.look());
    if (look === null) {
      return false;
    }
    watched.process ??= this.#assembler.begin(
      look.header,
      watched.row?.pid,
      watched.row?.parentPid,
    );
    watched.eventsTaken = look.header.sections[CONSTANTS.TM_SECTION_EVENTS]?.count ?? 0;
    this.#assembler.renew(watched.process, look);
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

/** Of the slots of one process, the one that its present image claimed. */
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
