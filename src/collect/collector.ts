/**
 * Watches the Python programs of a host.
 *
 *     every 3 s   /proc ──scan──> programs ──policy──> nothing | from outside | may have the agent
 *                                                                   │               │
 *                                                                   ▼               ▼ choice: room, share, turns
 *                                                  recordings, and the server   attach ... leave
 *
 * | what | outcome |
 * |---|---|
 * | a program refuses the agent | recorded from outside; tried again after a minute, then later and later |
 * | the collector is killed | its agents disarm themselves when their lease lapses, as after `attach` |
 * | the server is away | recordings are on disk, and are sent from there when it answers again |
 * | the policy file becomes invalid | the old policy stays; a line names the mistake |
 * | the disk is full | recordings end with their last whole frame; the programs are not affected |
 * | the folder of the recordings is removed | the next recording creates it again |
 *
 * All recorders share one Node process and one CPU budget (record/budget/cpu_budget.ts).
 */
import { statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { PythonScan, readStatus, type ScannedProcess } from "../linux/index.js";
import { monotonicMs } from "../linux/this_process/clock.js";
import type { Bytes, Millis } from "../model/base/units.js";
import type { DiagnosisJson } from "../model/documents/diagnosis_document.js";
import { processGone, TidemarkError } from "../model/errors/errors.js";
import { reasonOf } from "../model/errors/reason.js";
import { attachAndRecord, CpuBudget, OutsideRecording } from "../record/index.js";
import type { Destination } from "../recording/sender/post_connection.js";
import { chooseAgents } from "./choice.js";
import { KeptRecordings } from "./kept_recordings.js";
import { DEFAULT_POLICY, type Policy, readPolicy } from "./policy.js";
import { type Chosen, type Program, programsOf, ruleFor } from "./programs.js";
import { VerdictTurns } from "./verdicts.js";

export interface WatchOptions {
  /** The policy file, read again when it changes; null: the default policy. */
  readonly policyPath: string | null;
  /** Folder of the recordings. */
  readonly folder: string;
  /** The server; null: verdicts are only told to `onEvent`. */
  readonly to: Destination | null;
  readonly until: AbortSignal;
  readonly onEvent: (event: WatchEvent) => void;
}

/** Something that a person would want to read in a log. */
export type WatchEvent =
  | { readonly kind: "attached" | "left"; readonly program: Program; readonly path: string }
  /** "refused": it is recorded from outside, not with the agent. "failed": it is not recorded. Both are tried again. */
  | { readonly kind: "refused" | "failed"; readonly program: Program; readonly why: string }
  | {
      readonly kind: "verdict";
      readonly program: Program;
      readonly path: string;
      readonly verdict: DiagnosisJson["verdict"];
    }
  | { readonly kind: "policy"; readonly why: string }
  | {
      readonly kind: "watching";
      readonly withAgent: number;
      readonly outside: number;
      readonly not: number;
    };

/** Bounds that the policy may change. */
interface Bounds {
  readonly warmUpMs: Millis;
  /** Distance of the polls of a program without the agent. */
  readonly pollMs: Millis;
  readonly agents: number;
  readonly turnMs: Millis;
  readonly keepMs: Millis;
  readonly mostBytes: Bytes;
}

export function boundsOf({ defaults }: Policy): Bounds {
  return {
    warmUpMs: defaults.warm_up ?? 60_000,
    pollMs: defaults.poll ?? 20_000,
    agents: defaults.agents ?? 20,
    turnMs: defaults.turn ?? 600_000,
    keepMs: defaults.keep ?? 86_400_000,
    mostBytes: defaults.disk ?? 2 * 2 ** 30,
  };
}

const SCAN_MS: Millis = 3_000;
const TIDY_MS: Millis = 60_000;
/** Between two lines with the number of watched programs. */
const COUNT_MS: Millis = 60_000;
/** A program that ends sooner is not recorded. */
const LEAST_AGE_MS: Millis = 5_000;
/** How long a program may take to run Python code. */
const WAIT_MS: Millis = 60_000;
/** Programs that are entered at the same moment. */
const MOST_ENTERED = 2;
const FIRST_RETRY_MS: Millis = 60_000;
const LAST_RETRY_MS: Millis = 3_600_000;
/** A recording that grows. */
interface Growing {
  readonly kind: "outside" | "agent";
  readonly path: string;
  /** When the agent was loaded, or the recording from outside began. */
  readonly sinceMs: Millis;
  /** Sum of RSS then. */
  readonly rssBytes: Bytes;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

interface Watched {
  program: Program;
  rule: Chosen;
  growing: Growing | null;
  leftMs: Millis | null;
  turns: number;
  retryMs: Millis;
  retryDistanceMs: Millis;
  /** No recording could be made: nothing is tried before this. */
  brokenUntilMs: Millis;
}

export class Collector {
  readonly #options: WatchOptions;
  readonly #scan = new PythonScan();
  readonly #budget = new CpuBudget();
  readonly #kept: KeptRecordings;
  readonly #watched = new Map<string, Watched>();
  #policy: Policy;
  #policyMs = 0;
  #entering = 0;
  #tidyMs = 0;
  #counts = "";
  #countsMs = 0;
  readonly #verdicts = new VerdictTurns();

  /** Throws TidemarkError for a policy or a folder that cannot be used. */
  constructor(options: WatchOptions) {
    this.#options = options;
    const { policyPath } = options;
    this.#policy = policyPath === null ? DEFAULT_POLICY : readPolicy(policyPath);
    this.#policyMs = policyPath === null ? 0 : changedMs(policyPath);
    this.#kept = new KeptRecordings(options.folder);
  }

  /** Until `until` is aborted; every program has been left when it returns. */
  async run(): Promise<void> {
    const { until } = this.#options;
    try {
      while (!until.aborted) {
        this.#readPolicyAgain();
        this.#look();
        this.#tidy();
        await sleep(SCAN_MS, undefined, { signal: until }).catch(() => {});
      }
    } finally {
      await this.#leaveAll();
    }
  }

  async #leaveAll(): Promise<void> {
    const growing = [...this.#watched.values()].flatMap((one) => one.growing ?? []);
    for (const { stop } of growing) {
      stop.abort();
    }
    await Promise.all(growing.map(({ ended }) => ended));
    await this.#verdicts.settled();
  }

  #look(): void {
    const nowMs = monotonicMs();
    const seen = new Set<string>();
    for (const program of programsOf(this.#scan.read(nowMs))) {
      const { key } = program.root;
      seen.add(key);
      const rule = ruleFor(program, this.#policy);
      const known = this.#watched.get(key);
      if (known === undefined) {
        this.#watched.set(key, {
          program,
          rule,
          growing: null,
          leftMs: null,
          turns: 0,
          retryMs: 0,
          retryDistanceMs: FIRST_RETRY_MS,
          brokenUntilMs: 0,
        });
      } else {
        known.program = program;
        known.rule = rule;
      }
    }
    for (const [key, one] of this.#watched) {
      if (!seen.has(key) && one.growing === null) {
        this.#watched.delete(key);
      }
    }
    this.#choose(seen, nowMs);
    this.#judge(nowMs);
    this.#count(seen, nowMs);
  }

  #choose(seen: ReadonlySet<string>, nowMs: Millis): void {
    const bounds = boundsOf(this.#policy);
    const living = [...this.#watched].filter(([key]) => seen.has(key));
    const { start, stop } = chooseAgents(
      living.map(([key, { program, rule, growing, leftMs, turns, retryMs }]) => ({
        key,
        service: program.root.identity.service,
        share: rule.share,
        most: rule.most,
        isReady:
          rule.watch === "agent" &&
          program.root.attach.ok &&
          nowMs >= retryMs &&
          ageMs(program.root) >= bounds.warmUpMs,
        sinceMs: growing?.kind === "agent" ? growing.sinceMs : null,
        leftMs,
        turns,
      })),
      bounds,
      nowMs,
    );
    for (const key of stop) {
      this.#watched.get(key)?.growing?.stop.abort();
    }
    const starting = new Set(start);
    for (const [key, one] of living) {
      const { growing, rule } = one;
      const isAllowed =
        rule.watch === "agent" || (rule.watch === "outside" && growing?.kind === "outside");
      if (growing !== null && !isAllowed) {
        growing.stop.abort();
      } else if (starting.has(key) && growing?.kind !== "agent" && this.#entering < MOST_ENTERED) {
        this.#enter(one);
      } else if (
        growing === null &&
        nowMs >= one.brokenUntilMs &&
        rule.watch !== "never" &&
        ageMs(one.program.root) >= LEAST_AGE_MS
      ) {
        this.#recordOutside(one);
      }
    }
  }

  #enter(one: Watched): void {
    this.#entering += 1;
    let isEntering = true;
    const entered = () => {
      this.#entering -= isEntering ? 1 : 0;
      isEntering = false;
    };
    const before = one.growing;
    before?.stop.abort();
    this.#begin(one, "agent", async (recordingPath, until) => {
      try {
        await before?.ended;
        await this.#attach(one, recordingPath, until, entered);
        one.retryDistanceMs = FIRST_RETRY_MS;
      } catch (error) {
        one.retryMs = monotonicMs() + one.retryDistanceMs;
        one.retryDistanceMs = Math.min(LAST_RETRY_MS, one.retryDistanceMs * 2);
        if (!until.aborted) {
          this.#options.onEvent({ kind: "refused", program: one.program, why: whyOf(error) });
        }
      }
      one.leftMs = monotonicMs();
      one.turns += 1;
    }).finally(entered);
  }

  async #attach(
    one: Watched,
    recordingPath: string,
    until: AbortSignal,
    entered: () => void,
  ): Promise<void> {
    const { to, onEvent } = this.#options;
    const { program } = one;
    await attachAndRecord({
      pid: program.root.pid,
      recordingPath,
      follow: !program.hasOthersBelow,
      ...(to === null ? {} : { to }),
      budget: this.#budget,
      waitMs: WAIT_MS,
      forMs: Number.POSITIVE_INFINITY,
      until,
      onRecording: () => {
        entered();
        onEvent({ kind: "attached", program, path: recordingPath });
      },
    });
    onEvent({ kind: "left", program, path: recordingPath });
  }

  #recordOutside(one: Watched): void {
    const { to } = this.#options;
    this.#begin(one, "outside", async (recordingPath, until) => {
      const recording = new OutsideRecording({
        pid: one.program.root.pid,
        recordingPath,
        follow: !one.program.hasOthersBelow,
        ...(to === null ? {} : { to }),
      });
      while (recording.poll() && !until.aborted) {
        const { pollMs } = boundsOf(this.#policy);
        await sleep(pollMs, undefined, { signal: until }).catch(() => {});
      }
      await recording.close();
    });
  }

  #begin(
    one: Watched,
    kind: Growing["kind"],
    record: (path: string, until: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const stop = new AbortController();
    const { identity, pid } = one.program.root;
    const path = this.#kept.newPath(identity.service, pid, Date.now());
    const ended = this.#kept
      .prepare()
      .then(() => record(path, stop.signal))
      .catch((error) => {
        // It ended at this moment, or its file cannot be written.
        if (!(error instanceof TidemarkError) || error.id !== processGone(pid).id) {
          this.#options.onEvent({ kind: "failed", program: one.program, why: whyOf(error) });
        }
        one.brokenUntilMs = monotonicMs() + FIRST_RETRY_MS;
      })
      .then(() => {
        this.#kept.closed(path);
        if (one.growing?.stop === stop) {
          one.growing = null;
        }
      });
    one.growing = { kind, path, sinceMs: monotonicMs(), rssBytes: rssOf(one.program), stop, ended };
    return ended;
  }

  /** Without a server, verdicts are made here. */
  #judge(nowMs: Millis): void {
    const { to, onEvent } = this.#options;
    if (to !== null) {
      return;
    }
    const all = [...this.#watched.values()].flatMap(({ program, growing }) =>
      growing?.kind === "agent"
        ? [
            {
              path: growing.path,
              sinceMs: growing.sinceMs,
              grown: rssOf(program) - growing.rssBytes,
              report: (verdict: DiagnosisJson["verdict"]) =>
                onEvent({ kind: "verdict", program, path: growing.path, verdict }),
            },
          ]
        : [],
    );
    this.#verdicts.next(all, nowMs);
  }

  /** Short programs come and go: a line a minute is enough. */
  #count(seen: ReadonlySet<string>, nowMs: Millis): void {
    const all = [...this.#watched]
      .filter(([key, one]) => seen.has(key) && ageMs(one.program.root) >= SCAN_MS + LEAST_AGE_MS)
      .map(([, one]) => one);
    const withAgent = all.filter(({ growing }) => growing?.kind === "agent").length;
    const outside = all.filter(({ growing }) => growing?.kind === "outside").length;
    const counts = { withAgent, outside, not: all.length - withAgent - outside };
    const text = JSON.stringify(counts);
    if (text !== this.#counts && nowMs >= this.#countsMs) {
      this.#counts = text;
      this.#countsMs = nowMs + COUNT_MS;
      this.#options.onEvent({ kind: "watching", ...counts });
    }
  }

  #readPolicyAgain(): void {
    const { policyPath, onEvent } = this.#options;
    const changed = policyPath === null ? 0 : changedMs(policyPath);
    if (policyPath === null || changed === this.#policyMs) {
      return;
    }
    this.#policyMs = changed;
    try {
      this.#policy = readPolicy(policyPath);
      onEvent({ kind: "policy", why: "" });
    } catch (error) {
      onEvent({ kind: "policy", why: whyOf(error) });
    }
  }

  #tidy(): void {
    const nowMs = monotonicMs();
    if (nowMs >= this.#tidyMs) {
      this.#tidyMs = nowMs + TIDY_MS;
      this.#kept.tidy(boundsOf(this.#policy), Date.now());
    }
  }
}

function rssOf({ processes }: Program): Bytes {
  return processes.reduce((sum, { pid }) => sum + (readStatus(pid)?.rssBytes ?? 0), 0);
}

function ageMs({ startedMs }: ScannedProcess): Millis {
  return Date.now() - startedMs;
}

/** 0: it cannot be read. */
function changedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function whyOf(error: unknown): string {
  return error instanceof TidemarkError
    ? [error.what, error.why].filter((part) => part !== "").join(": ")
    : reasonOf(error).message;
}
