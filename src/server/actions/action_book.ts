/**
 * Grants leases to collectors that want to act, and keeps what they report.
 *
 *     collector ──lease?──> new id, recent, service free, limits kept ──> granted: running
 *               ──evict?──> the pod of a granted lease, for the first time ──> evictions.ts
 *               ──report──> of a granted lease, about the same action ──> done, failed or refused: the service is free
 *
 * A lease lapses, so that a collector that dies blocks nothing for long. A request that is repeated gets the same answer
 * while its action runs, and is refused afterwards. Nothing here starts an action: only a collector does, by its own policy
 * and its own measurements.
 */

import { isDeepStrictEqual } from "node:util";
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { ActionJson, ActionsJson, PodJson } from "../../model/documents/action_document.js";
import { isWithin, limitText } from "../../model/settings/limit.js";
import type { LeaseAnswer } from "../../model/wire/actions.js";
import { ActionLog } from "../../recording/action_log.js";
import type { ActionLimits } from "./action_limits.js";

/** Longer than a collector takes for evidence and action. */
const LEASE_MS: Millis = 90 * 60_000;
/** An older request is a replayed one, or comes from a host whose clock is wrong. */
const MOST_SKEW_MS: Millis = 5 * 60_000;
const SAME = ["service", "version", "host", "pid", "action", "what", "timeMs", "pod"] as const;
const EVICTION = "the eviction was asked for";
const EVICTION_REFUSED = "the API server refused the eviction";

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

  /** "" if the pod may be evicted: it is the one of a granted lease, whose collector did not ask before. Otherwise why not. */
  evict(id: string, pod: PodJson, nowMs: TimeMs): string {
    const known = this.#log.find(id);
    if (known === undefined || !isActive(known, nowMs)) {
      return "no lease is granted for this action, or it is over";
    }
    if (known.action !== "evict_pod" || !isDeepStrictEqual(known.pod, pod)) {
      return "the lease was granted for another action or another pod";
    }
    if (known.outcome !== "") {
      return "this request was made before";
    }
    this.#log.put({ ...known, outcome: EVICTION });
    return "";
  }

  /** The API server refused, so nothing was evicted. */
  evictionRefused(id: string): void {
    const known = this.#log.find(id);
    if (known?.outcome === EVICTION) {
      this.#log.put({ ...known, outcome: EVICTION_REFUSED });
    }
  }

  /** "" if it is taken; otherwise why not. */
  report(action: ActionJson): string {
    const known = this.#log.find(action.id);
    if (known === undefined) {
      // What did nothing needs no lease.
      if (!didNothing(action)) {
        return "no lease was granted for this action";
      }
    } else if (!isSame(known, action)) {
      return "an earlier report of this action names another one";
    } else if (known.state !== "running" && !isLaterFigure(known, action)) {
      return JSON.stringify(known) === JSON.stringify(action) ? "" : "this action is over";
    }
    const asked = known?.outcome === EVICTION || known?.outcome === EVICTION_REFUSED;
    if (asked && action.state === "running") {
      // A report that it begins may arrive after the request.
      this.#log.put({ ...action, outcome: known.outcome });
    } else if (known?.outcome === EVICTION && didNothing(action)) {
      // The server knows better than the collector whether it evicted, and evictions count towards the limits.
      this.#log.put({ ...action, state: "failed", outcome: EVICTION });
    } else {
      this.#log.put(action);
    }
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

function didNothing({ state }: ActionJson): boolean {
  return state === "refused" || state === "would-act";
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
  return SAME.every((key) => isDeepStrictEqual(known[key], given[key]));
}

/** Memory an hour later: all else is as it was. */
function isLaterFigure(known: ActionJson, given: ActionJson): boolean {
  const { hourLaterBytes, ...rest } = given;
  return (
    known.state === "done" &&
    known.hourLaterBytes === undefined &&
    hourLaterBytes !== undefined &&
    Object.entries(rest).every(([key, value]) =>
      isDeepStrictEqual(known[key as keyof ActionJson], value),
    )
  );
}
