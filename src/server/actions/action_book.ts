/**
 * Grants leases to collectors that want to act, and keeps what they report.
 *
 *     collector ──lease?──> new id, recent, service free, limits kept ──> granted: running
 *               ──report──> of a granted lease, about the same action ──> done, failed or refused: the service is free
 *
 * A lease lapses, so that a collector that dies blocks nothing for long. A request that is repeated gets the same answer
 * while its action runs, and is refused afterwards. Nothing here starts an action: only a collector does, by its own policy
 * and its own measurements.
 */

import type { Millis, TimeMs } from "../../model/base/units.js";
import type { ActionJson, ActionsJson } from "../../model/documents/action_document.js";
import { isWithin, limitText } from "../../model/settings/limit.js";
import type { LeaseAnswer } from "../../model/wire/actions.js";
import { ActionLog } from "../../recording/action_log.js";
import type { ActionLimits } from "./action_limits.js";

/** Longer than a collector takes for evidence and action. */
const LEASE_MS: Millis = 90 * 60_000;
/** An older request is a replayed one, or comes from a host whose clock is wrong. */
const MOST_SKEW_MS: Millis = 5 * 60_000;
const SAME = ["service", "version", "host", "pid", "action", "what", "timeMs"] as const;

export class ActionBook {
  readonly #log: ActionLog;

  constructor(folder: string, warn: (text: string) => void) {
    this.#log = new ActionLog(folder, warn);
  }

  lease(wanted: ActionJson, limits: ActionLimits, nowMs: TimeMs): LeaseAnswer {
    const refuse = (why: string): LeaseAnswer => ({ granted: false, why });
    const known = this.#log.find(wanted.id);
    if (known !== undefined) {
      return isActive(known, nowMs) && isSame(known, wanted)
        ? granted(known)
        : refuse("this request was made before");
    }
    if (Math.abs(nowMs - wanted.timeMs) > MOST_SKEW_MS) {
      return refuse("the request is old, or the clock of the host differs by more than 5 min");
    }
    const acted = this.#log.all.filter(
      ({ state }) => state === "running" || state === "done" || state === "failed",
    );
    const ofService = acted.filter(({ service }) => service === wanted.service);
    const active = ofService.find((one) => isActive(one, nowMs));
    if (active !== undefined) {
      return refuse(`${active.what} is running on process ${active.pid} of ${active.host}`);
    }
    const times = (actions: readonly ActionJson[]) => actions.map(({ timeMs }) => timeMs);
    if (!isWithin(limits.service, times(ofService), nowMs)) {
      return refuse(`the limit ${limitText(limits.service)} of a service is reached`);
    }
    if (!isWithin(limits.fleet, times(acted), nowMs)) {
      return refuse(`the limit ${limitText(limits.fleet)} of all services is reached`);
    }
    const lease = { ...wanted, state: "running" as const };
    this.#log.put(lease);
    return granted(lease);
  }

  /** "" if it is taken; otherwise why not. */
  report(action: ActionJson): string {
    const known = this.#log.find(action.id);
    if (known === undefined) {
      // What did nothing needs no lease.
      if (action.state !== "refused" && action.state !== "would-act") {
        return "no lease was granted for this action";
      }
    } else if (!isSame(known, action)) {
      return "an earlier report of this action names another one";
    } else if (known.state !== "running" && !isLaterFigure(known, action)) {
      return JSON.stringify(known) === JSON.stringify(action) ? "" : "this action is over";
    }
    this.#log.put(action);
    return "";
  }

  /** `service`: only of this one; undefined: of all. */
  document({ service, fleet }: ActionLimits, only: string | undefined, nowMs: TimeMs): ActionsJson {
    return {
      schema: "tidemark.actions/1",
      actions: this.#log.all
        .filter((action) => only === undefined || action.service === only)
        .map((action) => (isAbandoned(action, nowMs) ? abandoned(action) : action))
        .sort((a, b) => b.timeMs - a.timeMs),
      limits: { service: limitText(service), fleet: limitText(fleet) },
    };
  }
}

function granted({ timeMs }: ActionJson): LeaseAnswer {
  return { granted: true, untilMs: timeMs + LEASE_MS };
}

function isActive({ state, timeMs }: ActionJson, nowMs: TimeMs): boolean {
  return state === "running" && nowMs - timeMs < LEASE_MS;
}

function isAbandoned({ state, timeMs }: ActionJson, nowMs: TimeMs): boolean {
  return state === "running" && nowMs - timeMs >= LEASE_MS;
}

function abandoned(action: ActionJson): ActionJson {
  return { ...action, state: "failed", why: "its collector has not reported the end of it" };
}

function isSame(known: ActionJson, given: ActionJson): boolean {
  return SAME.every((key) => known[key] === given[key]);
}

/** Memory an hour later: all else is as it was. */
function isLaterFigure(known: ActionJson, given: ActionJson): boolean {
  const { hourLaterBytes, ...rest } = given;
  return (
    known.state === "done" &&
    known.hourLaterBytes === undefined &&
    hourLaterBytes !== undefined &&
    Object.entries(rest).every(([key, value]) => known[key as keyof ActionJson] === value)
  );
}
