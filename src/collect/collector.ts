/**
 * Watches the Python programs of a host.
 *
 *     every 3 s, sooner after a start (scan_pace.ts)
 *                 /proc ──scan──> programs ──policy──> nothing | from outside | may have the agent
 *                                                                   │               │
 *                                                                   ▼               ▼ choice: room, share, turns
 *                                                  recordings, and the server   attach ... leave
 *
 *     every 10 s   programs with triggers ──condition holds──> capture, within its budgets ──> artifact
 *                  programs with actions  ──condition holds──> evidence ──> action ──> log (actions/actions.ts)
 *
 * | what | outcome |
 * |---|---|
 * | a program refuses the agent | recorded from outside; tried again after a minute, then at growing intervals |
 * | the collector is killed | its agents disarm themselves when their lease lapses, as after `attach` |
 * | the server is unreachable | recordings are on disk, and are sent from there when it answers again |
 * | the policy file becomes invalid | the old policy stays; a line names the mistake |
 * | the disk is full | recordings end with their last whole frame; the programs are not affected |
 * | the folder of the recordings is removed | the next recording creates it again |
 *
 * All recorders share one Node process and one CPU budget (record/budget/cpu_budget.ts).
 */
import { PythonScan, RecentTexts } from "../linux/index.js";
import { processLives } from "../linux/process/process_identity.js";
import { monotonicMs } from "../linux/this_process/clock.js";
import type { Bytes, Millis } from "../model/base/units.js";
import type { FrameJson } from "../model/documents/documents.js";
import { ownFrame } from "../model/documents/own_code.js";
import { ActionLog } from "../recording/action_log.js";
import type { Destination } from "../recording/sender/post_connection.js";
import { Actions } from "./actions/actions.js";
import { Leases } from "./actions/leases.js";
import { Assignment } from "./assignment.js";
import { Captures, type WantedCapture } from "./captures/captures.js";
import { rssOf, Triggers } from "./captures/triggers.js";
import { LastMoments } from "./ends/last_moments.js";
import { ProcessEvents } from "./ends/process_events.js";
import { Artifacts } from "./kept/artifacts.js";
import { Backlog } from "./kept/backlog.js";
import { KeptRecordings } from "./kept/kept_recordings.js";
import { Uploads } from "./kept/uploads.js";
import { PodIdentities } from "./kubernetes/pod_identities.js";
import { boundsOf } from "./policy/bounds.js";
import type { Policy } from "./policy/policy.js";
import type { Chosen, Program } from "./policy/programs.js";
import { type RuledProgram, RuledPrograms } from "./policy/ruled_programs.js";
import { ShortLives } from "./policy/short_lives.js";
import { PolicyFile } from "./policy_file.js";
import {
  type Growing,
  newlyWatched,
  type ProgramEnd,
  Recorders,
  type Watched,
} from "./recordings/recorders.js";
import { type Judged, VerdictTurns } from "./recordings/verdicts.js";
import { WatchCounts } from "./recordings/watch_counts.js";
import type { WatchEvent } from "./recordings/watch_event.js";
import { Remote } from "./remote/remote.js";
import { TimedCaptures } from "./remote/timed_captures.js";
import { ScanPace } from "./scan_pace.js";

export interface WatchOptions {
  /** The policy file, read again when it changes; null: the default policy. */
  readonly policyPath: string | null;
  /** Folder of the recordings. */
  readonly folder: string;
  /** The server; null: verdicts are only reported to `onEvent`. */
  readonly to: Destination | null;
  /** The same server with the token for actions; null: there is no server. */
  readonly actionsTo: Destination | null;
  readonly until: AbortSignal;
  readonly onEvent: (event: WatchEvent) => void;
  /** Distance of scans while nothing starts; left out: 3 s. */
  readonly scanMs?: Millis;
}

/** How old a figure of a control group may be, which programs share. Less than any interval between two readings of one. */
const TEXTS_MS: Millis = 500;
/** While no program starts or ends, what each of them gets is decided this often. */
const DECIDE_MS: Millis = 9_000;
const TIDY_MS: Millis = 60_000;

export class Collector {
  readonly #ruled = new RuledPrograms();
  /** What the last decision was about, and when the next one is due if nothing changes. */
  #decided: readonly RuledProgram[] = [];
  #decideMs: Millis = 0;
  readonly #options: WatchOptions;
  readonly #scan = new PythonScan(
    () => this.#events.isComplete,
    (pid) => {
      // The kernel's event knows the moment of the end, and may still be waiting to be read.
      if (!this.#events.isComplete) {
        this.#recorders.processEnded(pid);
      }
    },
  );
  readonly #pace: ScanPace;
  readonly #kept: KeptRecordings;
  readonly #recorders: Recorders;
  readonly #texts = new RecentTexts(monotonicMs, TEXTS_MS);
  readonly #triggers = new Triggers(this.#texts);
  readonly #artifacts: Artifacts;
  readonly #captures: Captures;
  readonly #uploads: Uploads | null;
  readonly #backlog: Backlog | null;
  readonly #events: ProcessEvents;
  readonly #lastMoments: LastMoments;
  readonly #actions: Actions;
  readonly #watched = new Map<string, Watched>();
  readonly #shortLives = new ShortLives({
    exitOf: (pid, aliveMs) => this.#events.endOf(pid, aliveMs)?.atMs ?? null,
    wallClock: Date.now,
  });
  readonly #pods: PodIdentities;
  readonly #remote: Remote;
  readonly #timed: TimedCaptures;
  readonly #file: PolicyFile;
  /** Of the file, with what the server hands out. */
  #policy: Policy;
  #tidyMs = 0;
  readonly #counts: WatchCounts;
  readonly #verdicts = new VerdictTurns();
  readonly #assignment: Assignment;

  /** Throws TidemarkError for a policy or a folder that cannot be used. */
  constructor(options: WatchOptions) {
    this.#options = options;
    const { policyPath, scanMs } = options;
    this.#pace = new ScanPace({ clock: monotonicMs, ...(scanMs && { everyMs: scanMs }) });
    this.#file = new PolicyFile(policyPath, options.onEvent);
    this.#policy = this.#file.policy;
    this.#remote = new Remote(options.to, options.until, options.onEvent);
    this.#kept = new KeptRecordings(options.folder, options.to !== null);
    this.#recorders = new Recorders({
      kept: this.#kept,
      to: options.to,
      pollMs: () => boundsOf(this.#policy).pollMs,
      texts: this.#texts,
      outcomeOf: (pid, sinceMs) => this.#events.awaitedEndOf(pid, sinceMs),
      startedBelowMs: (pid) => this.#scan.startedBelowMs(pid),
      exitOf: (pid, aliveMs) => this.#events.endOf(pid, aliveMs)?.atMs ?? null,
      lastSeenOf: (pid, aliveMs) => this.#scan.lastSeenMs(pid, aliveMs),
      onEvent: options.onEvent,
      onEnded: (one, growing, end) => this.#ended(one, growing, end),
      onFree: () => {
        this.#decideMs = 0;
      },
    });
    this.#artifacts = new Artifacts(options.folder);
    this.#captures = new Captures(this.#artifacts, options.onEvent);
    const want = (wanted: WantedCapture) =>
      this.#captures.want(wanted, boundsOf(this.#policy).captures, monotonicMs());
    this.#events = new ProcessEvents({
      clock: monotonicMs,
      onUnavailable: (why) => options.onEvent({ kind: "no-events", why }),
      onLost: () => options.onEvent({ kind: "events-lost" }),
      onStarted: (pid) => {
        this.#scan.examine(pid);
        this.#pace.hasten();
      },
      onEnded: (pid) => {
        this.#scan.ended(pid);
        this.#recorders.processEnded(pid);
      },
    });
    this.#counts = new WatchCounts(this.#events, options.onEvent);
    this.#timed = new TimedCaptures({
      clock: monotonicMs,
      programs: () => [...this.#watched.values()],
      capture: (wanted) => {
        want(wanted);
        this.#captures.next(boundsOf(this.#policy).captures, monotonicMs());
      },
      answer: (request, programs, why) => this.#remote.answer(request, programs, why),
    });
    this.#lastMoments = new LastMoments({
      ...{ events: this.#events, clock: monotonicMs, capture: want },
    });
    this.#uploads =
      options.to === null ? null : new Uploads(options.to, this.#artifacts, options.onEvent);
    this.#backlog =
      options.to === null ? null : new Backlog(options.to, this.#kept, options.onEvent);
    this.#actions = new Actions({
      log: new ActionLog(options.folder, (why) => options.onEvent({ kind: "log-failed", why })),
      leases: options.actionsTo === null ? null : new Leases(options.actionsTo),
      holds: (program, condition) => this.#triggers.holds(program, condition),
      holdsNow: (program, condition) => this.#triggers.holdsNow(program, condition, monotonicMs()),
      ruleOf: ({ root }) => this.#watched.get(root.key)?.rule.actions ?? null,
      programs: () => [...this.#watched.values()].map(({ program }) => program),
      podOf: ({ root }) => this.#pods.podOf(root),
      capture: want,
      recordingOf: ({ root }) => this.#watched.get(root.key)?.growing?.path ?? null,
      onEvent: options.onEvent,
    });
    this.#pods = new PodIdentities({
      environment: process.env,
      until: options.until,
      onTrouble: (why) => options.onEvent({ kind: "pods", why }),
    });
    this.#assignment = new Assignment({
      recorders: this.#recorders,
      shortLives: this.#shortLives,
      isAsked: ({ program, rule }, nowMs) => this.#remote.isAsked(program, rule, nowMs),
      isLate: (root) => this.#pods.isLate(root),
      onEvent: options.onEvent,
    });
  }

  /** Runs until `until` is aborted; when it returns, it has detached from every program. */
  async run(): Promise<void> {
    const { until } = this.#options;
    try {
      this.#events.start();
      await this.#pods.ready();
      while (!until.aborted) {
        this.#pace.begin();
        this.#file.readAgain();
        this.#policy = this.#remote.policyWith(this.#file.policy);
        this.#pollPrograms();
        this.#captures.next(boundsOf(this.#policy).captures, monotonicMs());
        this.#backlog?.next(monotonicMs());
        this.#uploads?.next(boundsOf(this.#policy).sendBytes, monotonicMs());
        this.#tidy();
        await this.#pace.next(until);
      }
    } finally {
      await this.#leaveAll();
    }
  }

  async #leaveAll(): Promise<void> {
    this.#events.close();
    const growing = [...this.#watched.values()].flatMap((one) => one.growing ?? []);
    for (const { stop } of growing) {
      stop.abort();
    }
    this.#lastMoments.close();
    this.#timed.close();
    const captured = this.#captures.close();
    await Promise.all([
      ...growing.map(({ ended }) => ended),
      captured,
      this.#actions.close(),
      this.#pods.close(),
      this.#remote.close(),
      this.#uploads?.close(),
      this.#backlog?.close(),
    ]);
    await this.#verdicts.settled();
    this.#kept.close();
  }

  #pollPrograms(): void {
    const nowMs = monotonicMs();
    const processes = this.#pods.allIdentified(this.#scan.read(nowMs));
    const ruled = this.#ruled.of(processes, this.#policy);
    this.#remote.next(nowMs);
    if (ruled !== this.#decided || nowMs >= this.#decideMs || this.#remote.isAsking(nowMs)) {
      this.#decided = ruled;
      this.#decideMs = nowMs + DECIDE_MS;
      this.#decide(ruled, nowMs);
    } else {
      this.#lastMoments.poll(null, nowMs);
    }
    for (const request of this.#remote.takeCaptures(nowMs)) {
      this.#timed.add(request);
    }
    if (nowMs >= this.#triggers.dueMs) {
      this.#trigger(nowMs);
    }
    this.#actions.next(
      ruled.flatMap(({ program, rule: { actions } }) =>
        actions === null ? [] : { program, actions },
      ),
      boundsOf(this.#policy).actions,
      Date.now(),
    );
  }

  #decide(ruled: readonly RuledProgram[], nowMs: Millis): void {
    const seen = new Set<string>();
    for (const { program, rule } of ruled) {
      const { key } = program.root;
      seen.add(key);
      const known = this.#watched.get(key);
      if (known === undefined) {
        this.#watched.set(key, newlyWatched(program, rule));
      } else {
        known.program = program;
        known.rule = rule;
      }
    }
    const { warmUpMs } = boundsOf(this.#policy);
    this.#shortLives.observe(
      ruled.map(({ program }) => program),
      warmUpMs,
      nowMs,
    );
    for (const [key, { growing, program }] of this.#watched) {
      if (seen.has(key)) {
        continue;
      }
      if (growing === null) {
        this.#watched.delete(key);
      } else if (processLives(program.root.pid, program.root.startTicks)) {
        growing.stop.abort(); // it runs another program since an exec, or belongs to another one now
      }
    }
    const living = [...this.#watched].flatMap(([key, one]) => (seen.has(key) ? one : []));
    const leftMs = this.#assignment.assign(living, boundsOf(this.#policy), nowMs);
    if (leftMs !== null) {
      this.#decideMs = Math.min(this.#decideMs, nowMs + leftMs);
      this.#pace.hasten(leftMs);
    }
    this.#remote.report([...this.#watched.values()], nowMs);
    this.#lastMoments.poll(
      ruled.map(({ program }) => ({
        program,
        recording: this.#watched.get(program.root.key)?.growing?.path ?? null,
      })),
      nowMs,
    );
    this.#trigger(nowMs);
    this.#judge(nowMs);
    this.#counts.report(living, nowMs);
  }

  #trigger(nowMs: Millis): void {
    const fired = this.#triggers.next(
      this.#decided.map(({ program, rule }) => ({
        program,
        triggers: rule.triggers,
        also: rule.actions?.when ?? null,
      })),
      nowMs,
    );
    for (const { program, trigger, reason } of fired) {
      const recording = this.#watched.get(program.root.key)?.growing?.path ?? null;
      const { captures } = trigger;
      this.#captures.want(
        { program, reason, captures, recording, lastMoment: false },
        boundsOf(this.#policy).captures,
        nowMs,
      );
    }
  }

  /** If the program ran out of memory or crashed, its last moment is kept; otherwise its recording gets a last verdict. */
  #ended({ program, rule, isEarly }: Watched, growing: Growing, end: ProgramEnd): void {
    const { path, kind } = growing;
    const judge = () => {
      if (kind === "agent" && this.#wantsVerdicts(rule)) {
        this.#verdicts.ended(this.#judged(program, growing, 0));
      }
    };
    this.#lastMoments.ended(program, path, end.memoryEnds, isEarly ? () => {} : judge);
    if (isEarly) {
      judge(); // also where each of them crashes: the lines of several lives are compared
    }
  }

  /** Without a server, verdicts are made here; with one, only for the triggers and actions that wait for them. */
  #wantsVerdicts({ triggers, actions }: Chosen): boolean {
    return (
      this.#options.to === null ||
      actions?.when.kind === "verdict" ||
      triggers.some(({ when }) => when.kind === "verdict")
    );
  }

  #judge(nowMs: Millis): void {
    const all = [...this.#watched.values()].flatMap(({ program, rule, growing }) =>
      growing?.kind === "agent" && this.#wantsVerdicts(rule)
        ? [this.#judged(program, growing, rssOf(program.processes) - growing.rssBytes)]
        : [],
    );
    this.#verdicts.next(all, nowMs);
  }

  #judged(program: Program, { path, sinceMs }: Growing, grown: Bytes): Judged {
    return {
      path,
      sinceMs,
      grown,
      onVerdict: (verdict, isNews, isFinal) => {
        this.#triggers.judged(program, verdict.kind);
        if (isNews && this.#options.to === null) {
          this.#options.onEvent({ kind: "verdict", program, path, verdict, isFinal });
        }
      },
      onUndecided: ({ verdict, suspects: [first] }) => {
        const line = first === undefined || first.stack.length === 0 ? "" : lineOf(first.stack);
        const repeated = this.#shortLives.diagnosed(program.root, line);
        if (repeated !== null && this.#options.to === null) {
          const { summary } = verdict;
          this.#options.onEvent({ kind: "repeated-line", program, path, ...repeated, summary });
        }
      },
    };
  }

  #tidy(): void {
    const nowMs = monotonicMs();
    if (nowMs >= this.#tidyMs) {
      this.#tidyMs = nowMs + TIDY_MS;
      const bounds = boundsOf(this.#policy);
      this.#kept.renewLock();
      this.#kept.tidy(bounds, Date.now());
      this.#artifacts.tidy(bounds.artifacts, Date.now());
    }
  }
}

/** What identifies a line in several lives of a program. */
function lineOf(stack: readonly FrameJson[]): string {
  const frame = ownFrame(stack);
  return `${frame?.function} ${frame?.file}:${frame?.line}`;
}
