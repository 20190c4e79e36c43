/**
 * Acts on programs that are short of memory, as far as their policy allows it.
 *
 *     condition holds ──> choice: allowed, within its limits, not known to be useless
 *          ──> lease of the server, if there is one: never two actions at once in a service
 *          ──> evidence: captured before anything changes
 *          ──> the action ──> memory before, after, an hour later ──> log, server
 *
 * | what | outcome |
 * |---|---|
 * | once the evidence is there, the condition holds no longer, the program has ended or the policy forbids it | nothing is done |
 * | the program ends during an action that should not end it | a failure |
 * | no evidence can be captured, or the server does not answer or refuses | nothing is done; tried again after a while |
 * | a disruption budget or the server forbids the eviction of the pod | nothing is done; tried again after a while |
 * | memory does not fall by a twentieth | the action is not repeated on this version of the service |
 * | the collector ends | the running action is ended and is a failure; the server's lease lapses |
 * | the collector is started again | limits and failures are known from the log |
 *
 * Conditions are measured here, by the kernel's figures of the program and its control group: nothing that a server says, and no profile
 * that anyone sends, starts an action.
 */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { hostName } from "../../linux/this_process/host_name.js";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { ActionJson, ActionName, PodJson } from "../../model/documents/action_document.js";
import type { Capture } from "../../model/documents/artifact_document.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { Limit } from "../../model/settings/limit.js";
import { LONGEST_ACTION_TEXT } from "../../model/wire/action_record.js";
import type { ActionLog } from "../../recording/action_log.js";
import type { WantedCapture } from "../captures/captures.js";
import type { ActionRule, AllowedAction } from "../policy/action_form.js";
import type { Condition } from "../policy/conditions.js";
import type { Program } from "../policy/programs.js";
import { ActionFailed, ActionRefused } from "./action_failed.js";
import { chooseAction } from "./choice_of_action.js";
import { bytesOf, effectOf, isAlive } from "./effect.js";
import type { Leases } from "./leases.js";
import { lackedForEviction, perform } from "./perform.js";

export interface ActionParts {
  readonly log: ActionLog;
  /** null: there is no server to ask. */
  readonly leases: Leases | null;
  /** A sentence if the condition holds for the program now. */
  readonly holds: (program: Program, condition: Condition) => string | null;
  /** The same from a reading that is made now. */
  readonly holdsNow: (program: Program, condition: Condition) => string | null;
  /** What the policy allows now. */
  readonly ruleOf: (program: Program) => ActionRule | null;
  /** The programs that run now. */
  readonly programs: () => readonly Program[];
  /** The pod that the program runs in; undefined if it is unknown. */
  readonly podOf: (program: Program) => PodJson | undefined;
  readonly capture: (wanted: WantedCapture) => void;
  /** The program's recording; null if it has none. */
  readonly recordingOf: (program: Program) => string | null;
  readonly onEvent: (event: ActionEvent) => void;
}

export interface ActionEvent {
  readonly kind: "action";
  readonly program: Program;
  readonly action: ActionJson;
}

const HOUR: Millis = 3_600_000;
/** A program that was refused is not considered again within this time. */
const REST_MS: Millis = 60_000;
/** The same if evidence was captured and nothing was done: a condition may hold on and off. */
const RELENTED_MS: Millis = 15 * 60_000;
/** Evidence and action together; the server's lease is longer. */
const LONGEST_MS: Millis = 75 * 60_000;
const ENDED = "tidemark watch ended";
const EVIDENCE: readonly Capture[] = ["diagnose", "ledger", "census"];
/** They release no Python objects, so a census would show nothing that is lost. */
const WITHOUT_CENSUS: ReadonlySet<ActionName> = new Set(["malloc_trim", "empty_cache"]);

export class Actions {
  readonly #parts: ActionParts;
  /** Services that are acted on now. */
  readonly #busy = new Map<string, Promise<void>>();
  /** By program: why it was refused last, when that was last written to the log, and until when it is left alone. */
  readonly #said = new Map<
    string,
    { readonly why: string; readonly writtenMs: TimeMs; readonly restsUntilMs: TimeMs }
  >();
  /** Done less than an hour ago: its memory is measured once more at `dueMs`. */
  readonly #later = new Map<
    string,
    {
      readonly program: Program;
      readonly action: AllowedAction;
      readonly record: ActionJson;
      readonly dueMs: TimeMs;
    }
  >();
  readonly #stop = new AbortController();

  /** An action that was running when an earlier collector ended counts as failed. */
  constructor(parts: ActionParts) {
    this.#parts = parts;
    const { log, leases } = parts;
    for (const action of log.all.filter(({ state }) => state === "running")) {
      const why = "tidemark watch ended before its effect was measured";
      const ended: ActionJson = { ...action, state: "failed", why };
      log.put(ended);
      leases?.report(ended);
    }
  }

  /** `all`: every running program and the actions that its rule allows. */
  next(
    all: readonly { readonly program: Program; readonly actions: ActionRule | null }[],
    hostLimit: Limit,
    nowMs: TimeMs,
  ): void {
    this.#parts.leases?.next();
    this.#measureLater(nowMs);
    const running = new Set(all.map(({ program }) => program.root.key));
    for (const key of this.#said.keys()) {
      if (!running.has(key)) {
        this.#said.delete(key);
      }
    }
    for (const { program, actions } of all) {
      if (actions !== null && !this.#busy.has(program.root.identity.service)) {
        this.#consider(program, actions, hostLimit, nowMs);
      }
    }
  }

  /** Ends the running actions. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#busy.values());
    await this.#parts.leases?.close();
  }

  #consider(program: Program, rule: ActionRule, hostLimit: Limit, nowMs: TimeMs): void {
    const reason = this.#parts.holds(program, rule.when);
    const restMs = (this.#said.get(program.root.key)?.restsUntilMs ?? 0) - nowMs;
    // A longer rest than any is a clock that was set back.
    if (reason === null || (restMs > 0 && restMs <= RELENTED_MS)) {
      return;
    }
    const { identity, pid, startedMs } = program.root;
    const { service, version } = identity;
    const subject = { service, version, pid, startedMs };
    const { log, leases, podOf } = this.#parts;
    const { action, forbidden } = chooseAction(subject, rule, hostLimit, log.all, nowMs);
    if (action === null) {
      const first = rule.allow[0];
      if (forbidden !== "" && first !== undefined) {
        this.#refuse(program, begun(program, first, reason, nowMs), forbidden, REST_MS);
      }
      return;
    }
    const isEviction = action.name === "evict_pod";
    const pod = isEviction ? podOf(program) : undefined;
    const wanted = {
      ...begun(program, action, reason, nowMs),
      ...(pod === undefined ? {} : { pod }),
    };
    const lacked = isEviction ? lackedForEviction(pod, leases !== null) : "";
    if (forbidden !== "" || lacked !== "") {
      this.#refuse(program, wanted, forbidden || lacked, REST_MS);
    } else if (rule.isDryRun) {
      this.#put(program, { ...wanted, state: "would-act" });
    } else {
      const work = this.#act(program, rule, action, wanted).finally(() =>
        this.#busy.delete(service),
      );
      this.#busy.set(service, work);
    }
  }

  /** Never rejects. */
  async #act(
    program: Program,
    rule: ActionRule,
    action: AllowedAction,
    wanted: ActionJson,
  ): Promise<void> {
    let record: ActionJson = wanted;
    const { signal } = this.#stop;
    const until = AbortSignal.any([signal, AbortSignal.timeout(LONGEST_MS)]);
    try {
      const lease = await this.#parts.leases?.ask(wanted);
      if (lease !== undefined && lease.why !== "") {
        this.#refuse(program, wanted, lease.why, REST_MS);
        if (lease.mayBeHeld) {
          this.#parts.leases?.report({ ...wanted, state: "refused", why: clipped(lease.why) });
        }
        return;
      }
      const evidence = signal.aborted ? "" : await this.#evidence(program, wanted);
      record = { ...wanted, evidence };
      const now = this.#checked(program, rule, action, until);
      if (typeof now === "string") {
        this.#refuse(program, record, now, RELENTED_MS);
        return;
      }
      const { current, reason } = now;
      record = {
        ...record,
        reason,
        beforeBytes: bytesOf(current, action, this.#parts.programs()) ?? 0,
      };
      this.#put(program, record);
      const before = new Set(this.#parts.programs().map(({ root }) => root.key));
      const outcome = await perform({
        ...{ program: current, action, record, graceMs: rule.graceMs, until },
        leases: this.#parts.leases,
        did: (outcome) => {
          record = { ...record, outcome };
        },
      });
      record = { ...record, outcome };
      const effect = await effectOf({
        ...{ program: current, action, record, before, graceMs: rule.graceMs, signal },
        programs: this.#parts.programs,
      });
      record = { ...record, ...effect };
      this.#put(program, record);
      if (record.state === "done") {
        const dueMs = Date.now() + HOUR;
        this.#later.set(record.id, { program: current, action, record, dueMs });
      }
    } catch (error) {
      if (error instanceof ActionRefused) {
        this.#refuse(program, record, error.message, RELENTED_MS);
        return;
      }
      const isFinal = error instanceof ActionFailed && error.isFinal && !signal.aborted;
      const why = signal.aborted ? ENDED : reasonOf(error).message;
      const helped = isFinal ? { helped: false } : {};
      this.#put(program, { ...record, state: "failed", why, ...helped });
    }
  }

  /** The program as it is now and the reason, if the action may still be taken; otherwise why not. */
  #checked(
    { root }: Program,
    { when }: ActionRule,
    { key }: AllowedAction,
    until: AbortSignal,
  ): string | { readonly current: Program; readonly reason: string } {
    if (until.aborted) {
      return this.#stop.signal.aborted ? ENDED : "the evidence took too long";
    }
    const current = this.#parts.programs().find((one) => one.root.key === root.key);
    if (current === undefined || !isAlive(root)) {
      return "the program has ended";
    }
    const rule = this.#parts.ruleOf(current);
    if (rule === null || rule.isDryRun || !rule.allow.some((allowed) => allowed.key === key)) {
      return "the policy does not allow it any more";
    }
    const reason = isDeepStrictEqual(rule.when, when)
      ? this.#parts.holdsNow(current, rule.when)
      : null;
    return reason === null ? "the condition holds no longer" : { current, reason };
  }

  /** The folder with what was captured. Throws ActionFailed: without evidence nothing is done. */
  async #evidence(program: Program, wanted: ActionJson): Promise<string> {
    const captures = WITHOUT_CENSUS.has(wanted.action) ? EVIDENCE.slice(0, 2) : EVIDENCE;
    const outcome = await new Promise<{ path: string } | { why: string }>((resolve) => {
      this.#parts.capture({
        ...{ program, captures, lastMoment: false, onDone: resolve },
        reason: `${wanted.reason}; before the action ${wanted.what}`,
        recording: this.#parts.recordingOf(program),
      });
    });
    if ("why" in outcome) {
      throw new ActionFailed(
        `nothing was done, because no evidence could be captured: ${outcome.why}`,
        false,
      );
    }
    return outcome.path;
  }

  #measureLater(nowMs: TimeMs): void {
    for (const [id, { program, action, record, dueMs }] of this.#later) {
      if (nowMs < dueMs) {
        continue;
      }
      this.#later.delete(id);
      const hourLaterBytes = bytesOf(program, action, this.#parts.programs()) ?? 0;
      if (hourLaterBytes > 0) {
        this.#put(program, { ...record, hourLaterBytes });
      }
    }
  }

  /** The same refusal is written once an hour. `restMs`: the program is not considered again before. */
  #refuse(program: Program, action: ActionJson, why: string, restMs: Millis): void {
    const { key } = program.root;
    const said = this.#said.get(key);
    const nowMs = Date.now();
    const isNews = said?.why !== why || Math.abs(nowMs - said.writtenMs) >= HOUR;
    if (isNews || action.evidence !== "") {
      this.#put(program, { ...action, state: "refused", why });
    }
    const writtenMs = isNews ? nowMs : said.writtenMs;
    this.#said.set(key, { why, writtenMs, restsUntilMs: nowMs + restMs });
  }

  #put(program: Program, action: ActionJson): void {
    const bounded: ActionJson = {
      ...action,
      service: clipped(action.service),
      version: clipped(action.version),
      reason: clipped(action.reason),
      why: clipped(action.why),
      outcome: clipped(action.outcome),
    };
    this.#parts.log.put(bounded);
    this.#parts.leases?.report(bounded);
    this.#parts.onEvent({ kind: "action", program, action: bounded });
  }
}

function clipped(text: string): string {
  return text.slice(0, LONGEST_ACTION_TEXT);
}

function begun(
  { root }: Program,
  { name, key }: AllowedAction,
  reason: string,
  timeMs: TimeMs,
): ActionJson {
  const { service, version } = root.identity;
  return {
    schema: "tidemark.action/1",
    ...{ id: randomUUID(), timeMs, service, version, host: hostName(), pid: root.pid },
    ...{ action: name, what: key, state: "running", reason },
    ...{ why: "", outcome: "", evidence: "" },
  };
}
