/**
 * While a program runs: when sites of it grow, what holds their memory is looked up in its object graph, so
 * that a verdict has its holder even when the process is gone. (At its end it is too late: the locals of
 * `main` die before any exit hook.)
 *
 *   look --> histories of sites --> which grow? --> sampled addresses --> worker thread --> "holders" frame
 *                                                                            copy of the heap --> "census" frame
 *
 * The heap is copied as the program runs: it never stands still for this. A lookup takes up to seconds of a
 * core all the same. So it is rare: first when growth is suspected, then each time the run is longer by some
 * part, and never before the recorder's CPU budget has room for it: one that is delayed by that is reported. Where
 * something leaks whose holder no lookup has found yet, and that has waited in vain, the budget is overdrawn once, and
 * that is reported, too. Where
 * nothing but what fills, or little, was kept, that is later and rarer. The newest is kept. One that has its
 * copy when the program ends is waited for, a little.
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
import { float64At, uint8At, uint32At } from "../../model/base/columns.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import { isImport } from "../../model/documents/own_code.js";
import type { ProfileTables } from "../../model/profile/profile.js";
import type { Metric } from "../../model/profile/series.js";
import { heldByPython, isHeldByNobody, isTorn, LEAST_HELD } from "../../recording/holder_reader.js";
import type { CensusBatch, HolderBatch } from "../../recording/types.js";
import type { MetricRow } from "../../recording/writer.js";
import type { LiveSamples, Opening } from "../../segment/index.js";
import type { CpuBudget } from "../budget/cpu_budget.js";
import { type Born, choose, largestBlock, oldEnough, youngOf } from "./chosen_samples.js";
import { ForkedPages } from "./forked_pages.js";
import type { FoundAllocators } from "./ledger_turns.js";
import type { TakenLook } from "./pool_watch.js";
import { ANON_OTHER, UnsampledGrowth } from "./unsampled_growth.js";

/** When the first comes, and how much longer the run must be at each later one. Start-up is no growth. */
interface Pace {
  readonly firstMs: Millis;
  readonly nextAfter: number;
}
const SUSPECTED: Pace = { firstMs: 8_000, nextAfter: 2.5 };
/** The last copy was torn just above what was looked for, or nobody held that; or objects were counted for the first
 * time, and one count tells no growth. */
const AGAIN: Pace = { firstMs: 8_000, nextAfter: 1.4 };
const FILLING: Pace = { firstMs: 20_000, nextAfter: 5 };
/** What the first lookup is expected to take: a part for all, and one that grows with the program's memory. */
const EXPECTED_MS: Millis = 300;
const EXPECTED_MS_A_BYTE = 4 / 2 ** 20;
/** Shorter delays are not worth a word. */
const LEAST_DELAY_MS: Millis = 10_000;
/** Sites that rise still, and may be called a leak. */
const ACCUSED: ReadonlySet<SiteCourse> = new Set([
  "keeps",
  "accumulates",
  "hints",
  "swells",
  "doubles",
]);
const MOST_SITES = 8;
/** What a program that has ended waits for a lookup. */
const LONGEST_MS: Millis = 15_000;
const LONGEST_FIRST_MS: Millis = 30_000;
/** Of what a site kept. */
const MOST_IMPORTED = 0.5;
/** Too little to look up. */
const SMALLEST_KEPT_BYTES = 200_000;
const SMALLEST_SHARED_BYTES = 1_000_000;
const MOST_SHARED = 3;
/** The recorded program's own series. */
const ROOT_SERIES = 0;

/** What the agents know of each process, beside the profile. */
interface AgentsKnow {
  liveSamples(): ReadonlyMap<Pid, LiveSamples>;
  openings(): ReadonlyMap<Pid, readonly Opening[]>;
}

export interface SuspectWatchOptions {
  /** The recorded program. */
  readonly root: Pid;
  readonly startMs: TimeMs;
  readonly budget: CpuBudget;
  /** Called with sentences for the recording. */
  readonly tell: (timeMs: TimeMs, sentences: readonly string[]) => void;
  /** Called with each lookup that found holders, and with each census. */
  readonly found: (timeMs: TimeMs, batch: HolderBatch) => void;
  readonly counted: (timeMs: TimeMs, census: CensusBatch) => void;
}

export class SuspectWatch {
  readonly #builder = new SiteHistoryBuilder();
  #worker: Worker | null = null;
  /** Of the newest lookup: how long the run was, and whether the next should come soon. */
  #askedMs: Millis = 0;
  #again = false;
  /** Sites whose holder a lookup has found. */
  readonly #held = new Set<string>();
  /** CPU time of the newest lookup; null: none has ended yet. */
  #costMs: Millis | null = null;
  /** Of the recorded program, by the newest poll. */
  #anonymousBytes: Bytes = 0;
  /** Since when a lookup is due that the budget has no room for; null: none is. */
  #delayedMs: Millis | null = null;
  /** Memory for this process and for the growth of the program, as last read. */
  roomBytes: Bytes = Number.POSITIVE_INFINITY;
  readonly #unsampled: UnsampledGrowth;
  readonly #forked = new ForkedPages();
  #sharedLooked = false;
  /** Of the recorded program: files of libraries with an allocator past malloc. */
  #libraries: readonly string[] = [];
  #objectsCounted = false;

  readonly #options: SuspectWatchOptions;

  /** `found` is told of every lookup that came to something, `counted` of its census; both of when it was asked
   * for. */
  constructor(options: SuspectWatchOptions) {
    this.#options = options;

    this.#unsampled = new UnsampledGrowth(options.startMs, SUSPECTED.firstMs);
  }

  polled(rows: readonly MetricRow[]): void {
    this.#unsampled.polled(rows);
    this.#forked.polled(rows);
    for (const { series, metric, value } of rows) {
      if (series === ROOT_SERIES && metric === "anonRssBytes") {
        this.#anonymousBytes = value;
      }
    }
  }

  /** Allocators that libraries of a process carry. */
  allocatorsFound({ pid, libraries }: FoundAllocators): void {
    if (pid === this.#options.root) {
      this.#libraries = libraries;
    }
  }

  /** Pages of children began to turn private: a look tells what they share, be the next one far. */
  wantsLook(elapsedMs: Millis): boolean {
    return !this.#sharedLooked && this.#tellsShared(elapsedMs);
  }

  #tellsShared(elapsedMs: Millis): boolean {
    return elapsedMs >= SUSPECTED.firstMs && this.#forked.turnPrivate;
  }

  looked(taken: TakenLook, agents: AgentsKnow, elapsedMs: Millis): void {
    this.#builder.add({ ...taken.tables, ...taken.look });
    this.#sharedLooked ||= this.#tellsShared(elapsedMs);
    if (!this.#isDue(elapsedMs, true) || this.#worker !== null) {
      return;
    }
    const judged = judgeSites(this.#builder.build(), this.#options.startMs);
    const keeping = judged
      .filter(({ course, keptBytes }) => course !== "churns" && keptBytes >= SMALLEST_KEPT_BYTES)
      .slice(0, MOST_SITES);
    const growing = this.#growing;
    const shared = keeping.some(isSuspect) ? [] : this.#sharedAtFork(judged);
    const sites = shared.length > 0 ? shared : keeping;
    const suspected = growing.size > 0 || shared.length > 0 || keeping.some(isSuspect);
    const pid = sites[0]?.site.pid ?? (growing.size > 0 ? this.#options.root : null);
    if (pid === null || !this.#isDue(elapsedMs, suspected)) {
      return;
    }
    const isKnown =
      growing.size + shared.length === 0 && sites.every(({ site }) => this.#held.has(site.key));
    const mostMs = this.#affordedMs(elapsedMs, suspected && !isKnown);
    if (mostMs !== null) {
      const live = agents.liveSamples().get(pid);
      const found = this.#addressesBySite(pid, taken.tables, live);
      const opened = agents.openings().get(pid) ?? [];
      const unsampled =
        growing.size > 0 && pid === this.#options.root
          ? {
              growing,
              opened: growing.has("openFiles") ? this.#kept(opened, taken.look.timeMs) : [],
              libraries: growing.has(ANON_OTHER) ? this.#libraries : [],
              sampled: youngOf(live),
            }
          : null;
      this.#ask(
        { pid, unsampled, sites: this.#sitesOf(found, sites, taken.look.timeMs), mostMs },
        elapsedMs,
        taken.look.timeMs,
      );
    }
  }

  /** A lookup is under way: its thread's CPU time is this process's. */
  get isBusy(): boolean {
    return this.#worker !== null;
  }

  /** The lookup that is under way, if any, or the time is over; the first of all may take longer. */
  settled(): Promise<void> {
    const worker = this.#worker;
    const longestMs = this.#costMs === null ? LONGEST_FIRST_MS : LONGEST_MS;
    if (worker === null) {
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, longestMs);
      worker.once("exit", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Nothing is looked up any more, and nothing told but what was left undone. */
  close(elapsedMs: Millis, timeMs: TimeMs): void {
    this.#tellDelay(elapsedMs, timeMs, false);
    void this.#worker?.terminate();
    this.#worker = null;
  }

  /** Where children's pages turn private: what the recorded program holds most of, for they read that. */
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

  /** Of memory past malloc only where it is known whose it is. */
  get #growing(): ReadonlySet<Metric> {
    const known = this.#libraries.length > 0;
    return new Set([...this.#unsampled.growing].filter((metric) => known || metric !== ANON_OTHER));
  }

  #isDue(elapsedMs: Millis, suspected: boolean): boolean {
    const { firstMs, nextAfter } = suspected ? (this.#again ? AGAIN : SUSPECTED) : FILLING;
    return elapsedMs >= Math.max(firstMs, this.#askedMs * nextAfter);
  }

  /** CPU time that a lookup which is due may use; null if the budget has no room for it yet. `isUrgent`: something may
   * leak, and nobody knows yet what holds it. */
  #affordedMs(elapsedMs: Millis, isUrgent: boolean): Millis | null {
    const { budget } = this.#options;
    const expected = this.#costMs ?? EXPECTED_MS + EXPECTED_MS_A_BYTE * this.#anonymousBytes;
    if (budget.spareMs() >= expected) {
      return budget.spareMs();
    }
    this.#delayedMs ??= elapsedMs;
    const isInVain = elapsedMs - this.#delayedMs >= LEAST_DELAY_MS;
    return isUrgent && isInVain && budget.withCreditMs() >= expected ? budget.withCreditMs() : null;
  }

  /** What the newest lookup has overdrawn, as a sentence. */
  #tellOverdrawn(cpuMs: Millis, timeMs: TimeMs): void {
    const owedMs = this.#options.budget.paidBackInMs();
    if (owedMs > 0) {
      const took = (cpuMs / 1000).toFixed(1);
      this.#options.tell(timeMs, [
        `A lookup of holders took ${took} s of CPU, more than the recorder's budget had left: the next waits until that is paid back, in about ${Math.ceil(owedMs / 60_000)} min.`,
      ]);
    }
  }

  /** What the budget delayed, as a sentence; `elapsedMs`: until a lookup was made, or the end. */
  #tellDelay(elapsedMs: Millis, timeMs: TimeMs, isMade: boolean): void {
    const delayedMs = this.#delayedMs;
    this.#delayedMs = null;
    if (delayedMs !== null && elapsedMs - delayedMs >= LEAST_DELAY_MS) {
      const waited = `${Math.round((elapsedMs - delayedMs) / 1000)} s`;
      this.#options.tell(timeMs, [
        isMade
          ? `A lookup of holders was delayed by ${waited} to keep the recorder in its CPU budget.`
          : `A lookup of holders was due for ${waited} and not made: the recorder's CPU budget had no room for it.`,
      ]);
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

  /** What lives from before belongs to the start. */
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
    this.#tellDelay(elapsedMs, timeMs, true);
    this.#askedMs = elapsedMs;
    const worker = startLookup(request);
    this.#worker = worker;
    worker.on("message", ({ batch, census, cpuMs }: LookupAnswer) => {
      this.#costMs = cpuMs;
      // What nobody seems to hold may be C's: it is soon looked up again once, and no more.
      const rows = batch?.rows ?? [];
      const unheld =
        heldByPython(rows, request.sites) < LEAST_HELD || rows.some((row) => isHeldByNobody(row));
      const first = (request.unsampled?.libraries.length ?? 0) > 0 && !this.#objectsCounted;
      for (const { site, path } of rows) {
        if (path.length > 0) {
          this.#held.add(site);
        }
      }
      this.#again = rows.some(isTorn) || (unheld && !this.#again) || first;
      this.#objectsCounted ||= first;
      if (this.#worker !== worker) {
        return; // closed meanwhile
      }
      if (census) {
        this.#options.counted(timeMs, census);
      }
      if (batch) {
        this.#options.found(timeMs, batch);
      }
      this.#tellOverdrawn(cpuMs, timeMs);
    });
    // A lookup that fails is one that found nothing.
    worker.on("error", () => undefined);
    worker.on("exit", () => {
      if (this.#worker === worker) {
        this.#worker = null;
      }
    });
  }
}

/** A program that imports for long is not at work yet; modules that it makes all the time are looked up later. */
function isSuspect({ course, site }: SiteJudgement): boolean {
  const imported = site.keptStacks.reduce(
    (sum, { frames, share }) => sum + (isImport(frames) ? share : 0),
    0,
  );
  return ACCUSED.has(course) && imported < MOST_IMPORTED;
}
