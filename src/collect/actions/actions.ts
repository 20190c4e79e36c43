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
 * | the condition holds no longer once the evidence is there, or the program has ended | nothing is done |
 * | no evidence can be captured, or the server does not answer or refuses | nothing is done; tried again after a while |
 * | memory does not fall by a twentieth | the action is not repeated on this version of the service |
 * | the collector ends | the running action is ended and is a failure; the server's lease lapses |
 * | the collector is started again | limits and failures are known from the log |
 *
 * Conditions are measured here, by the kernel's figures of the program itself: nothing that a server says, and no profile
 * that anyone sends, starts an action.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { descendantsOf } from "../../linux/index.js";
import { hostName } from "../../linux/this_process/host_name.js";
import { formatDuration } from "../../model/base/numbers.js";
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type { ActionJson, ActionName } from "../../model/documents/action_document.js";
import type { Capture } from "../../model/documents/artifact_document.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { Limit } from "../../model/settings/limit.js";
import type { ActionLog } from "../../recording/action_log.js";
import type { WantedCapture } from "../captures/captures.js";
import { rssOf, rssOfProcess } from "../captures/triggers.js";
import type { ActionRule, AllowedAction } from "../policy/action_form.js";
import type { Condition } from "../policy/conditions.js";
import type { Program } from "../policy/programs.js";
import { ActionFailed } from "./action_failed.js";
import { chooseAction } from "./choice_of_action.js";
import type { Leases } from "./leases.js";
import { perform } from "./perform.js";
import { comesTrue } from "./server_workers.js";

export interface ActionParts {
  readonly log: ActionLog;
  /** null: there is no server to ask. */
  readonly leases: Leases | null;
  /** A sentence if the condition holds for the program now. */
  readonly holds: (program: Program, condition: Condition) => string | null;
  /** The programs that run now. */
  readonly programs: () => readonly Program[];
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

/** Pages that are given back are no longer resident at once; a new worker needs time to load. */
const SETTLE_MS: Millis = 5_000;
const HOUR: Millis = 3_600_000;
/** A program that was refused is not considered again within this time. */
const REST_MS: Millis = 60_000;
/** The share of its memory that a program must release for an action to have helped. */
const HELP = 0.05;
const EVIDENCE: readonly Capture[] = ["diagnose", "ledger", "census"];
/** They release no Python objects, so a census would show nothing that is lost. */
const WITHOUT_CENSUS: ReadonlySet<ActionName> = new Set(["malloc_trim", "empty_cache"]);

export class Actions {
  readonly #parts: ActionParts;
  /** Services that are acted on now. */
  readonly #busy = new Map<string, Promise<void>>();
  /** By program: why it was refused last, when, and when that was last written to the log. */
  readonly #said = new Map<
    string,
    { readonly why: string; readonly timeMs: TimeMs; readonly writtenMs: TimeMs }
  >();
  /** Done less than an hour ago, with the figure that is measured then. */
  readonly #later = new Map<string, { readonly program: Program; readonly action: ActionJson }>();
  readonly #stop = new AbortController();

  /** What was running when an earlier collector ended is a failure. */
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
    const said = this.#said.get(program.root.key);
    if (reason === null || (said !== undefined && nowMs - said.timeMs < REST_MS)) {
      return;
    }
    const { identity, pid, startedMs } = program.root;
    const { service, version } = identity;
    const subject = { service, version, pid, startedMs };
    const { action, forbidden } = chooseAction(
      subject,
      rule,
      hostLimit,
      this.#parts.log.all,
      nowMs,
    );
    if (action === null) {
      const first = rule.allow[0];
      if (forbidden !== "" && first !== undefined) {
        this.#refuse(program, begun(program, first, reason, nowMs), forbidden);
      }
      return;
    }
    const wanted = begun(program, action, reason, nowMs);
    if (forbidden !== "") {
      this.#refuse(program, wanted, forbidden);
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
    try {
      const denied = (await this.#parts.leases?.ask(wanted)) ?? "";
      if (denied !== "") {
        this.#refuse(program, wanted, denied);
        return;
      }
      const evidence = await this.#evidence(program, wanted);
      record = { ...wanted, evidence };
      const reason = this.#parts.holds(program, rule.when);
      if (reason === null || this.#stop.signal.aborted) {
        const why = reason === null ? "the condition holds no longer" : "tidemark watch ended";
        this.#put(program, { ...record, state: "refused", why });
        return;
      }
      record = { ...record, reason, beforeBytes: this.#bytesOf(program, action) };
      this.#put(program, record);
      const before = new Set(this.#parts.programs().map(({ root }) => root.key));
      const outcome = await perform({
        ...{ program, action, record, graceMs: rule.graceMs },
        until: this.#stop.signal,
      });
      record = { ...record, outcome };
      const effect = await this.#effect(program, action, { record, before, graceMs: rule.graceMs });
      record = { ...record, ...effect };
      this.#put(program, record);
      if (record.state === "done") {
        this.#later.set(record.id, { program, action: record });
      }
    } catch (error) {
      const isAction = error instanceof ActionFailed;
      const why = isAction ? error.message : reasonOf(error).message;
      const isFinal = isAction && error.isFinal;
      this.#put(program, {
        ...record,
        state: "failed",
        why,
        ...(isFinal ? { helped: false } : {}),
      });
    }
  }

  async #effect(
    program: Program,
    action: AllowedAction,
    {
      record: { beforeBytes = 0, outcome },
      before,
      graceMs,
    }: {
      readonly record: ActionJson;
      /** Keys of the programs that ran before. */
      readonly before: ReadonlySet<string>;
      readonly graceMs: Millis;
    },
  ): Promise<Partial<ActionJson>> {
    const { signal } = this.#stop;
    if (action.name === "restart") {
      const started = () => this.#startedSince(program, before);
      if (!(await comesTrue(() => started() !== undefined, graceMs, signal))) {
        const why = `${outcome}, and nothing has started it again on this host within ${formatDuration(graceMs)}`;
        return { state: "failed", why, helped: false };
      }
    }
    await sleep(SETTLE_MS, undefined, { signal });
    const afterBytes = this.#bytesOf(program, action);
    return { state: "done", afterBytes, helped: beforeBytes - afterBytes >= HELP * beforeBytes };
  }

  #startedSince({ root }: Program, before: ReadonlySet<string>): Program | undefined {
    return this.#parts
      .programs()
      .find(
        (one) => !before.has(one.root.key) && one.root.identity.service === root.identity.service,
      );
  }

  /** Of its processes now; of a program that another one takes the place of, of its service here. */
  #bytesOf({ root }: Program, action: AllowedAction): Bytes {
    if (action.name !== "restart") {
      return descendantsOf(root.pid).reduce((sum, pid) => sum + rssOfProcess(pid), 0);
    }
    return this.#parts
      .programs()
      .filter((one) => one.root.identity.service === root.identity.service)
      .reduce((sum, { processes }) => sum + rssOf(processes), 0);
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
    for (const [id, { program, action }] of this.#later) {
      if (nowMs - action.timeMs < HOUR) {
        continue;
      }
      this.#later.delete(id);
      const hourLaterBytes = this.#bytesOf(program, {
        name: action.action,
        key: "",
      } as AllowedAction);
      if (hourLaterBytes > 0) {
        this.#put(program, { ...action, hourLaterBytes });
      }
    }
  }

  /** The same refusal is written once an hour. */
  #refuse(program: Program, action: ActionJson, why: string): void {
    const { key } = program.root;
    const said = this.#said.get(key);
    const isNews = said?.why !== why || action.timeMs - said.writtenMs >= HOUR;
    if (isNews) {
      this.#put(program, { ...action, state: "refused", why });
    }
    this.#said.set(key, {
      why,
      timeMs: action.timeMs,
      writtenMs: isNews ? action.timeMs : said.writtenMs,
    });
  }

  #put(program: Program, action: ActionJson): void {
    this.#parts.log.put(action);
    this.#parts.leases?.report(action);
    this.#parts.onEvent({ kind: "action", program, action });
  }
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
