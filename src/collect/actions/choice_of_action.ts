/**
 * Which action is tried next for a program, and what forbids it. Pure: everything is known from the log.
 *
 *     allow: [gc_collect, malloc_trim, recycle_worker]
 *              │ did not help    │ helped
 *              └──> skipped      └──> tried, if its limits allow that
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { ActionJson } from "../../model/documents/action_document.js";
import { isWithin, type Limit, limitText } from "../../model/settings/limit.js";
import type { ActionRule, AllowedAction } from "../policy/action_form.js";

interface Subject {
  readonly service: string;
  readonly version: string;
  readonly pid: number;
  readonly startedMs: TimeMs;
}

/** An action that never helped a version is not tried again on it for that long. */
const USELESS_MS: Millis = 7 * 86_400_000;
/** The same where the version is unknown, and a deploy cannot be noticed. */
const USELESS_UNKNOWN_MS: Millis = 86_400_000;
/** They interrupt a service, so they are repeated on none of its instances within {@link AGAIN_MS}. */
const INTERRUPTING: ReadonlySet<string> = new Set(["restart", "recycle_worker", "evict_pod"]);
/** One that helped before, or could not be carried out. */
const REST_MS: Millis = 3_600_000;
/** One that helped: the others get their turn first. */
const AGAIN_MS: Millis = 15 * 60_000;

/** No action and nothing forbidden: there is nothing to do or to say. */
export type Choice =
  | { readonly action: AllowedAction; readonly forbidden: string }
  | { readonly action: null; readonly forbidden: string };

/** `hostLimit`: of all programs. `forbidden`: "" if the action may be taken now. */
export function chooseAction(
  subject: Subject,
  rule: ActionRule,
  hostLimit: Limit,
  log: readonly ActionJson[],
  nowMs: TimeMs,
): Choice {
  const action = rule.allow.find((allowed) => !isSkipped(allowed, subject, log, nowMs)) ?? null;
  const hasJustBeenSaid = log.some(
    (one) => one.state === "would-act" && isOfProgram(one, subject) && nowMs - one.timeMs < REST_MS,
  );
  if (rule.isDryRun && hasJustBeenSaid) {
    return { action: null, forbidden: "" };
  }
  if (action === null) {
    return {
      action,
      forbidden: "every allowed action has been tried already",
    };
  }
  // For a dry run those before count as if they had been carried out.
  const acted = log.filter(
    ({ state }) => state !== "refused" && (rule.isDryRun || state !== "would-act"),
  );
  const ofService = acted.filter(({ service }) => service === subject.service);
  const ofProgram = ofService.filter((one) => isOfProgram(one, subject));
  const limits: readonly [Limit, readonly ActionJson[], string][] = [
    [rule.limit, ofProgram, "of this instance"],
    [rule.serviceLimit, ofService, "of this service on this host"],
    [hostLimit, acted, "of this host"],
  ];
  const exceeded = limits.find(
    ([limit, actions]) =>
      !isWithin(
        limit,
        actions.map(({ timeMs }) => timeMs),
        nowMs,
      ),
  );
  return {
    action,
    forbidden:
      exceeded === undefined ? "" : `the limit ${limitText(exceeded[0])} ${exceeded[2]} is reached`,
  };
}

function isSkipped(
  { key }: AllowedAction,
  subject: Subject,
  log: readonly ActionJson[],
  nowMs: TimeMs,
): boolean {
  const same = log.filter(({ service, what }) => service === subject.service && what === key);
  const tried = same.filter(
    ({ version, state }) => version === subject.version && (state === "done" || state === "failed"),
  );
  const last = tried.at(-1);
  if (last === undefined) {
    return false;
  }
  const hasHelped = tried.some(({ helped }) => helped === true);
  const restMs =
    last.helped === true
      ? isOfProgram(last, subject) || INTERRUPTING.has(last.action)
        ? AGAIN_MS
        : 0
      : last.helped === false && !hasHelped
        ? subject.version === ""
          ? USELESS_UNKNOWN_MS
          : USELESS_MS
        : REST_MS;
  return Math.abs(nowMs - last.timeMs) < restMs;
}

function isOfProgram({ service, pid, timeMs }: ActionJson, subject: Subject): boolean {
  return service === subject.service && pid === subject.pid && timeMs >= subject.startedMs;
}
