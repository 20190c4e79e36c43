/**
 * Looks up the holders of growing sites in the object graph while the program runs, so that a verdict has a
 * holder even after the process has ended. (At its end it is too late: the locals of `main` are freed before
 * any exit hook.)
 *
 *   snapshot --> histories of sites --> which grow? --> sampled addresses --> worker thread --> "holders" frame
 *                                                                            copy of the heap --> "census" frame
 *
 * The heap is copied while the program runs, without a pause. When a lookup is made is decided by {@link LookupTiming}.
 * The newest result is kept. A lookup that has its copy when the program ends may finish within a short time.
 */

import type { Worker } from "node:worker_threads";
import {
  judgeSites,
  type SiteCourse,
  SiteHistoryBuilder,
  type SiteJudgement,
} from "../../diagnose/index.js";
import {
  type LookupAnswer,
  type LookupRequest,
  type LookupSite,
  startLookup,
} from "../../holders/lookup_request.js";
import { hasEnded, readStat } from "../../linux/index.js";
import { float64At, uint8At, uint32At } from "../../model/base/columns.js";
import type { Bytes, Millis, Objects, Pid, TimeMs } from "../../model/base/units.js";
import { isImport } from "../../model/documents/own_code.js";
import type { ProfileTables } from "../../model/profile/profile.js";
import type { Metric } from "../../model/profile/series.js";
import { heldByPython, isHeldByNobody, isTorn, LEAST_HELD } from "../../recording/holder_reader.js";
import type { CensusBatch, HolderBatch, HolderRow } from "../../recording/types.js";
import type { MetricRow } from "../../recording/writer.js";
import type { LiveSamples, Opening } from "../../segment/index.js";
import type { CpuBudget } from "../budget/cpu_budget.js";
import { type Born, choose, largestBlock, oldEnough, youngOf } from "./chosen_samples.js";
import { ForkedPages } from "./forked_pages.js";
import type { FoundAllocators } from "./ledger_turns.js";
import { tooLarge } from "./lookup_sentences.js";
import { FIRST_LOOKUP_MS, LookupTiming } from "./lookup_timing.js";
import type { TakenSnapshot } from "./pool_watch.js";
import { ANON_OTHER, UnsampledGrowth } from "./unsampled_growth.js";

/** Sites that still rise and may be leaks. */
const ACCUSED: ReadonlySet<SiteCourse> = new Set([
  "keeps",
  "accumulates",
  "hints",
  "swells",
  "doubles",
]);
const MOST_SITES = 8;
/** A heap with more objects is looked up once, so that its cost stays within the budget. */
const MOST_OBJECTS: Objects = 2_000_000;
const NO_METRICS: ReadonlySet<Metric> = new Set();
/** While no lookup has an answer, a snapshot is taken by each of these times. Otherwise a program may end after half a minute without a lookup. */
const SNAPSHOTS_BY_MS: readonly Millis[] = [FIRST_LOOKUP_MS + 4_000, FIRST_LOOKUP_MS + 12_000];
const LEAST_GROWTH: Bytes = 2 ** 20;
/** How long to wait for a lookup after the program has ended. */
const LONGEST_MS: Millis = 15_000;
const LONGEST_FIRST_MS: Millis = 30_000;
/** A program that was left runs on, and the user may interrupt; on a busy machine the lookup has little CPU time. */
const LONGEST_LEFT_MS: Millis = 60_000;
/** Share of a site's kept bytes. */
const MOST_IMPORTED = 0.5;
/** Too little to look up. */
const SMALLEST_KEPT_BYTES = 200_000;
const SMALLEST_SHARED_BYTES = 1_000_000;
const MOST_SHARED = 3;
/** The recorded program's own series. */
const ROOT_SERIES = 0;

/** What the agents know about each process, in addition to the profile. */
interface AgentsKnow {
  liveSamples(): ReadonlyMap<Pid, LiveSamples>;
  openings(): ReadonlyMap<Pid, readonly Opening[]>;
}

export interface SuspectWatchOptions {
  /** The recorded program. */
  readonly root: Pid;
  readonly startMs: TimeMs;
  readonly budget: CpuBudget;
  /** As for {@link LookupTiming}; left out: no lookup is made at the end. */
  readonly endsMs?: Millis | undefined;
  /** Called with sentences for the recording. */
  readonly addLimits: (timeMs: TimeMs, sentences: readonly string[]) => void;
  /** Called with each lookup that found holders, and with each census. */
  readonly found: (timeMs: TimeMs, batch: HolderBatch) => void;
  readonly counted: (timeMs: TimeMs, census: CensusBatch) => void;
}

export class SuspectWatch {
  readonly #builder = new SiteHistoryBuilder();
  #worker: Worker | null = null;
  /** Sites for which a lookup has found a holder, or has shown that they have none. */
  readonly #explained = new Set<string>();
  readonly #timing: LookupTiming;
  readonly #unsampled: UnsampledGrowth;
  readonly #forked = new ForkedPages();
  #sharedLookedUp = false;
  /** The newest snapshot, and the tree's live bytes at the first poll after it; null: none has been made. */
  #snapshotMs: Millis = 0;
  #snapshotBytes: Bytes | null = null;
  /** Libraries of the recorded program with their own allocator. */
  #libraries: readonly string[] = [];
  #objectsCounted = false;
  /** Their heaps are so large that they are not looked up again. */
  readonly #tooLarge = new Set<Pid>();
  /** A lookup has found holders in them. */
  readonly #lookedUp = new Set<Pid>();

  readonly #options: SuspectWatchOptions;

  /**
   * `found` is called with every lookup that found something, `counted` with its census; both with the time of
   * the request.
   */
  constructor(options: SuspectWatchOptions) {
    this.#options = options;
    this.#timing = new LookupTiming(options.budget, options.endsMs);
    this.#unsampled = new UnsampledGrowth(options.startMs, FIRST_LOOKUP_MS);
  }

  /** Memory available for this process and the program's growth, as last read. */
  set roomBytes(bytes: Bytes) {
    this.#timing.roomBytes = bytes;
  }

  polled(rows: readonly MetricRow[]): void {
    this.#unsampled.polled(rows);
    this.#forked.polled(rows);
    for (const { series, metric, value } of rows) {
      if (series === ROOT_SERIES && metric === "anonRssBytes") {
        this.#timing.anonymousBytes = value;
      }
    }
  }

  /** Allocators in the libraries of a process. */
  allocatorsFound({ pid, libraries }: FoundAllocators): void {
    if (pid === this.#options.root) {
      this.#libraries = libraries;
    }
  }

  /**
   * Whether to take a snapshot even if the next one is not due: pages of children began to become private, and it shows
   * what they share; a lookup of a leak has waited long enough, and needs addresses; or what is live has grown, and
   * snapshots are so expensive that none has shown yet whether anything is to be looked up. `liveBytes`: of the tree.
   */
  wantsSnapshot(elapsedMs: Millis, liveBytes: Bytes): boolean {
    this.#snapshotBytes ??= liveBytes;
    return (
      this.#timing.mayOverdraw(elapsedMs) ||
      (!this.#sharedLookedUp && this.#showsSharing(elapsedMs)) ||
      (this.#lookedUp.size === 0 &&
        !this.isBusy &&
        SNAPSHOTS_BY_MS.some((byMs) => elapsedMs >= byMs && this.#snapshotMs < byMs) &&
        liveBytes - this.#snapshotBytes > LEAST_GROWTH)
    );
  }

  #showsSharing(elapsedMs: Millis): boolean {
    return elapsedMs >= FIRST_LOOKUP_MS && this.#forked.turnPrivate;
  }

  /**
   * `isLast`: the program runs on, but is left after this snapshot. Then a lookup is made only if a site may leak. If its
   * holder is unknown, the budget does not matter, because a verdict cannot distinguish kinds of leaks without it. If the holder is
   * known, but was looked up long ago, it is looked up again if the budget allows it: the container may have had only its first entries.
   */
  snapshotTaken(taken: TakenSnapshot, agents: AgentsKnow, elapsedMs: Millis, isLast = false): void {
    this.#builder.add({ ...taken.tables, ...taken.snapshot });
    this.#sharedLookedUp ||= this.#showsSharing(elapsedMs);
    this.#snapshotMs = elapsedMs;
    this.#snapshotBytes = null;
    if (!this.#timing.isDue(elapsedMs, true) || this.#worker !== null) {
      return;
    }
    const judged = judgeSites(this.#builder.build(), this.#options.startMs).filter(
      ({ site }) => !this.#tooLarge.has(site.pid),
    );
    const keeping = judged
      .filter(({ course, keptBytes }) => course !== "churns" && keptBytes >= SMALLEST_KEPT_BYTES)
      .slice(0, MOST_SITES);
    const { root } = this.#options;
    const growing = this.#tooLarge.has(root) ? NO_METRICS : this.#growing;
    const shared = keeping.some(isSuspect) ? [] : this.#sharedAtFork(judged);
    const sites = shared.length > 0 ? shared : keeping;
    const suspected = growing.size > 0 || shared.length > 0 || keeping.some(isSuspect);
    const pid = sites[0]?.site.pid ?? (growing.size > 0 ? root : null);
    this.#timing.forgetSuspects();
    const isKnown =
      growing.size + shared.length === 0 &&
      sites.filter(isSuspect).every(({ site }) => this.#explained.has(site.key));
    // What is known only has to be kept up to date.
    const isOpen = suspected && (!isKnown || this.#timing.isAgain);
    const isRenewed = isLast && isKnown;
    if (pid === null || !(isRenewed || this.#timing.isDue(elapsedMs, isOpen))) {
      return;
    }
    if (isLast && !suspected) {
      return;
    }
    const isUrgent = suspected && !isKnown;
    const mostMs = this.#timing.affordedMs(elapsedMs, { isUrgent, isLast: isLast && !isKnown });
    if (mostMs !== null) {
      const live = agents.liveSamples().get(pid);
      const found = this.#addressesBySite(pid, taken.tables, live);
      const opened = agents.openings().get(pid) ?? [];
      const unsampled =
        growing.size > 0 && pid === root
          ? {
              growing,
              opened: growing.has("openFiles") ? this.#kept(opened, taken.snapshot.timeMs) : [],
              libraries: growing.has(ANON_OTHER) ? this.#libraries : [],
              sampled: youngOf(live),
            }
          : null;
      this.#ask(
        { pid, unsampled, sites: this.#sitesOf(found, sites, taken.snapshot.timeMs), mostMs },
        elapsedMs,
        taken.snapshot.timeMs,
      );
    }
  }

  /** Whether a lookup is running; its thread's CPU time counts for this process. */
  get isBusy(): boolean {
    return this.#worker !== null;
  }

  /** Waits for a running lookup or until the time is over; the very first may take longer, unless `until` aborts. */
  settled(until?: AbortSignal): Promise<void> {
    const worker = this.#worker;
    const firstMs = until === undefined ? LONGEST_FIRST_MS : LONGEST_LEFT_MS;
    const longestMs = this.#timing.costMs === null ? firstMs : LONGEST_MS;
    if (worker === null) {
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, longestMs);
      const end = () => {
        clearTimeout(timer);
        resolve();
      };
      worker.once("exit", end);
      until?.addEventListener("abort", end, { once: true });
    });
  }

  /** Stops lookups; only unfinished ones are reported. */
  close(elapsedMs: Millis, timeMs: TimeMs): void {
    const lookedUp = this.#lookedUp.size > 0;
    const sentence = this.#timing.delay(elapsedMs, { lookedUp, isBusy: this.isBusy });
    if (sentence !== null) {
      this.#options.addLimits(timeMs, [sentence]);
    }
    void this.#worker?.terminate();
    this.#worker = null;
  }

  /**
   * If children's pages become private: the largest objects of the recorded program, because the children read
   * those.
   */
  #sharedAtFork(judged: readonly SiteJudgement[]): SiteJudgement[] {
    const live = ({ site }: SiteJudgement) => site.liveBytes.at(-1) ?? 0;
    return this.#forked.turnPrivate
      ? judged
          .filter(({ site }) => site.pid === this.#options.root && site.domain === "python")
          .filter((judgement) => judgement.site.own && !judgement.site.imports)
          .filter((judgement) => live(judgement) >= SMALLEST_SHARED_BYTES)
          .sort((a, b) => live(b) - live(a))
          .slice(0, MOST_SHARED)
      : [];
  }

  /** For memory outside malloc, only if its library is known. */
  get #growing(): ReadonlySet<Metric> {
    const known = this.#libraries.length > 0;
    return new Set([...this.#unsampled.growing].filter((metric) => known || metric !== ANON_OTHER));
  }

  /** Notes that the heap is too large for another lookup. */
  #tellSize(answer: LookupAnswer, pid: Pid, timeMs: TimeMs): void {
    if (answer.refusal !== null || answer.objects > MOST_OBJECTS) {
      this.#tooLarge.add(pid);
      const isFirst = !this.#lookedUp.has(pid);
      this.#options.addLimits(timeMs, [tooLarge(answer, pid, { most: MOST_OBJECTS, isFirst })]);
    }
  }

  #sitesOf(
    found: ReadonlyMap<string, Born[]>,
    growing: readonly SiteJudgement[],
    timeMs: TimeMs,
  ): LookupSite[] {
    const wanted = new Map(growing.map((judgement) => [judgement.site.key, judgement]));
    const settledMs = this.#settledMs(timeMs);
    return [...found].flatMap(([site, rows]) => {
      const judgement = wanted.get(site);
      return judgement === undefined
        ? []
        : [
            {
              site,
              python: judgement.site.domain === "python",
              addresses: choose(rows, settledMs, timeMs),
              swelling: judgement.course === "swells" ? largestBlock(rows, judgement) : null,
            },
          ];
    });
  }

  /** Older live memory belongs to start-up. */
  #settledMs(timeMs: TimeMs): TimeMs {
    return this.#options.startMs + (timeMs - this.#options.startMs) / 3;
  }

  #kept(openings: readonly Opening[], timeMs: TimeMs): Opening[] {
    const settledMs = this.#settledMs(timeMs);
    const oldMs = oldEnough(settledMs, timeMs);
    return openings.filter(({ openedMs }) => openedMs >= settledMs && openedMs <= oldMs);
  }

  #addressesBySite(
    pid: Pid,
    tables: ProfileTables,
    samples: LiveSamples | undefined,
  ): Map<string, Born[]> {
    const bySite = new Map<string, Born[]>();
    if (samples === undefined) {
      return bySite;
    }
    const { address, bytes, bornMs, domain, stack } = samples;
    for (let row = 0; row < samples.length; row++) {
      const key = this.#builder.keyOf(tables, pid, uint8At(domain, row), uint32At(stack, row));
      const rows = bySite.get(key) ?? [];
      bySite.set(key, rows);
      rows.push({
        address: float64At(address, row),
        bytes: float64At(bytes, row),
        bornMs: float64At(bornMs, row),
      });
    }
    return bySite;
  }

  #ask(request: LookupRequest, elapsedMs: Millis, timeMs: TimeMs): void {
    this.#timing.asked(elapsedMs);
    const worker = startLookup(request);
    this.#worker = worker;
    worker.on("message", (answer: LookupAnswer) => {
      const { batch, census, cpuMs } = answer;
      // Memory without a holder may belong to C code; it is looked up once more soon, and not again.
      const rows = batch?.rows ?? [];
      const unheld =
        heldByPython(rows, request.sites) < LEAST_HELD || rows.some((row) => isHeldByNobody(row));
      const first = (request.unsampled?.libraries.length ?? 0) > 0 && !this.#objectsCounted;
      for (const row of rows.filter(isExplained)) {
        this.#explained.add(row.site);
      }
      const cutOff = batch === null && hasEnded(readStat(request.pid));
      const again = rows.some(isTorn) || (unheld && !this.#timing.isAgain) || first;
      this.#timing.answered({ cpuMs, cutOff, again });
      this.#objectsCounted ||= first;
      if (this.#worker !== worker) {
        return; // closed in the meantime
      }
      if (census) {
        this.#options.counted(timeMs, census);
      }
      if (batch) {
        this.#options.found(timeMs, batch);
      }
      this.#tellSize(answer, request.pid, timeMs);
      if (batch) {
        this.#lookedUp.add(request.pid);
      }
    });
    // A failed lookup counts as one that found nothing.
    worker.on("error", () => undefined);
    worker.on("exit", () => {
      if (this.#worker === worker) {
        this.#worker = null;
      }
    });
  }
}

/** Whether a lookup answers what keeps a site's memory: a holder, garbage, or nothing in Python. */
function isExplained({ path, looked, garbage, unreferenced = 0 }: HolderRow): boolean {
  return path.length > 0 || (looked > 0 && 2 * (garbage + unreferenced) >= looked);
}

/**
 * A program that imports for a long time is not at work yet; if it creates modules all the time, they are
 * looked up later.
 */
function isSuspect({ course, site }: SiteJudgement): boolean {
  const imported = site.keptStacks.reduce(
    (sum, { frames, share }) => sum + (isImport(frames) ? share : 0),
    0,
  );
  return ACCUSED.has(course) && imported < MOST_IMPORTED;
}
