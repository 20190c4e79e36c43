/** What the server asks for, within the host's own policy: which policy applies, and which programs are asked for. */
import type { Millis } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import type { Policy } from "../policy/policy.js";
import type { Chosen, Program } from "../policy/programs.js";
import type { Growing } from "../recordings/recorders.js";
import type { WatchEvent } from "../recordings/watch_event.js";
import { mergedPolicy } from "./merged_policy.js";
import { type OpenRequest, ServerRequests } from "./server_requests.js";

interface Instance {
  readonly program: Program;
  readonly rule: Chosen;
  readonly growing: Growing | null;
}

/** More than a server has open at the same time. */
const MOST_TAKEN = 500;

export class Remote {
  readonly #requests: ServerRequests | null;
  readonly #onEvent: (event: WatchEvent) => void;
  #local: Policy | null = null;
  #text: string | null = null;
  #merged: Policy | null = null;
  readonly #taken = new Set<string>();
  /** What was reported last about each open request. */
  readonly #said = new Map<string, string>();

  /** `to`: null if there is no server. */
  constructor(to: Destination | null, until: AbortSignal, onEvent: (event: WatchEvent) => void) {
    this.#requests = to === null ? null : new ServerRequests(to, until);
    this.#onEvent = onEvent;
  }

  next(nowMs: Millis): void {
    this.#requests?.next(nowMs);
  }

  async close(): Promise<void> {
    await this.#requests?.close();
  }

  /** The policy in force. */
  policyWith(local: Policy): Policy {
    const isAllowed = local.defaults.remote !== false;
    const text = isAllowed ? (this.#requests?.policy ?? null) : null;
    if (local !== this.#local || text !== this.#text) {
      const isNew = text !== this.#text;
      this.#local = local;
      this.#text = text;
      try {
        this.#merged = text === null ? local : mergedPolicy(local, text);
        if (isNew && text !== null) {
          this.#onEvent({ kind: "server-policy", why: "" });
        }
      } catch (error) {
        this.#merged = local;
        this.#onEvent({ kind: "server-policy", why: oneLine(reasonOf(error).message) });
      }
    }
    return this.#merged ?? local;
  }

  /** Whether the server asks for a profile of the program, and the host's policy allows that. */
  isAsked({ root }: Program, { watch, remote }: Chosen, nowMs: Millis): boolean {
    return watch === "agent" && remote && this.#open(nowMs).some((one) => isFor(one, root));
  }

  /** Whether any request for the agent is open. */
  isAsking(nowMs: Millis): boolean {
    return this.#open(nowMs).length > 0;
  }

  /** Open requests for captures that have not been taken, each once. */
  takeCaptures(nowMs: Millis): OpenRequest[] {
    const fresh = (this.#requests?.open(nowMs) ?? []).filter(
      ({ id, captures }) => captures !== null && !this.#taken.has(id),
    );
    for (const { id } of fresh) {
      this.#taken.add(id);
      const [oldest = ""] = this.#taken;
      if (this.#taken.size > MOST_TAKEN) {
        this.#taken.delete(oldest);
      }
    }
    return fresh;
  }

  /** The outcome of a request for captures on this host. */
  answer({ id }: OpenRequest, programs: number, why: string): void {
    this.#requests?.answer(id, programs, why);
  }

  /** Reports to the server and the log which programs a request reached. `living`: all programs. */
  report(living: readonly Instance[], nowMs: Millis): void {
    for (const request of this.#open(nowMs)) {
      const ofService = living.filter(({ program }) => isFor(request, program.root));
      if (ofService.length > 0) {
        const programs = ofService.filter(({ growing }) => growing?.kind === "agent").length;
        const why = [...new Set(ofService.flatMap(whyNot))].join("; ");
        this.#say(request, programs, why);
      }
    }
  }

  #open(nowMs: Millis): OpenRequest[] {
    return (this.#requests?.open(nowMs) ?? []).filter(({ captures }) => captures === null);
  }

  #say({ id, service, forMs }: OpenRequest, programs: number, why: string): void {
    const text = `${programs} ${why}`;
    if (this.#said.get(id) !== text) {
      this.#said.delete(id);
      this.#said.set(id, text);
      this.#onEvent({ kind: "request", service, forMs, programs, why });
      const [oldest = ""] = this.#said.keys();
      if (this.#said.size > 100) {
        this.#said.delete(oldest);
      }
    }
    this.#requests?.answer(id, programs, why);
  }
}

function isFor({ service, pids }: OpenRequest, { identity, pid }: Program["root"]): boolean {
  return service === identity.service && (pids === null || pids.includes(pid));
}

/** Why a program does not have the agent. */
function whyNot({ program: { root }, rule, growing }: Instance): string[] {
  if (growing?.kind === "agent") {
    return [];
  }
  if (rule.watch !== "agent") {
    return [`the host's policy says watch: ${rule.watch}`];
  }
  if (!rule.remote) {
    return ["the host's policy says remote: false"];
  }
  return [root.attach.ok ? "waiting for a place, or for the program" : root.attach.reason];
}
