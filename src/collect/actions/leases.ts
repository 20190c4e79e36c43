/**
 * Asks the server before an action and for the eviction of a pod, and reports the course of actions.
 *
 *     wanted ──POST /api/v1/leases──> granted: act, then POST /api/v1/actions until the server has it
 *                                     refused, or no answer: nothing is done
 */
import type { Millis } from "../../model/base/units.js";
import type { ActionJson, PodJson } from "../../model/documents/action_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import {
  ACTIONS_PATH,
  EVICTION_PATIENCE_MS,
  EVICTIONS_PATH,
  type EvictionAnswer,
  LEASES_PATH,
  type LeaseAnswer,
} from "../../model/wire/actions.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import { ActionFailed, ActionRefused } from "./action_failed.js";

const PATIENCE_MS: Millis = 10_000;
const WRONG_TOKEN =
  "the server refuses the token: actions need one of scope act (server.action_token_file)";
/** Reports that the server has not taken yet; older ones are dropped. */
const MOST_UNSENT = 200;

export interface Lease {
  /** "": it is granted. */
  readonly why: string;
  /** The server may have granted it, even if its answer was lost. */
  readonly mayBeHeld: boolean;
}

export class Leases {
  readonly #server: Destination;
  /** By action: its newest state. */
  readonly #unsent = new Map<string, ActionJson>();
  #sending: Promise<void> | null = null;

  constructor(server: Destination) {
    this.#server = server;
  }

  /** The reason if it is not granted. */
  async ask(action: ActionJson): Promise<Lease> {
    const { status, body } = await this.#post(LEASES_PATH, action);
    const answer = body as Partial<LeaseAnswer & { error: string; why: string }>;
    if (status === 200 && answer.granted === true) {
      return { why: "", mayBeHeld: true };
    }
    if (status === 401 || status === 403) {
      return { why: WRONG_TOKEN, mayBeHeld: false };
    }
    const said = oneLine(
      String(status === 200 ? answer.why : (answer.error ?? `status ${status}`)),
    );
    return status === 200
      ? { why: `the server: ${said}`, mayBeHeld: false }
      : { why: `the server cannot be asked: ${said}`, mayBeHeld: true };
  }

  /** The pod of a granted lease. Throws ActionRefused if it is not evicted, and ActionFailed if that is unknown. */
  async evict(id: string, pod: PodJson): Promise<void> {
    const { status, body } = await this.#post(EVICTIONS_PATH, { id, pod }, EVICTION_PATIENCE_MS);
    const answer = body as Partial<EvictionAnswer & { error: string; why: string }>;
    if (status === 200 && answer.evicted === true) {
      return;
    }
    if (status === 200) {
      throw new ActionRefused(`the server: ${oneLine(String(answer.why))}`);
    }
    if (status === 401 || status === 403) {
      throw new ActionRefused(WRONG_TOKEN);
    }
    const said = oneLine(answer.error ?? `status ${status}`);
    throw new ActionFailed(`the server gave no answer about the eviction: ${said}`, false);
  }

  /** Sent by {@link next} until the server answers. */
  report(action: ActionJson): void {
    this.#unsent.delete(action.id);
    this.#unsent.set(action.id, action);
    while (this.#unsent.size > MOST_UNSENT) {
      const [oldest = ""] = this.#unsent.keys();
      this.#unsent.delete(oldest);
    }
  }

  next(): void {
    if (this.#unsent.size > 0 && this.#sending === null) {
      this.#sending = this.#send().finally(() => {
        this.#sending = null;
      });
    }
  }

  async close(): Promise<void> {
    await this.#sending;
    await this.#send();
  }

  async #send(): Promise<void> {
    for (const [id, action] of [...this.#unsent]) {
      const { status } = await this.#post(ACTIONS_PATH, action);
      // With these it would be refused again.
      const isTaken = status === 200 || status === 400 || status === 409 || status === 413;
      if (isTaken && this.#unsent.get(id) === action) {
        this.#unsent.delete(id);
      } else if (!isTaken) {
        return;
      }
    }
  }

  /** Status 0: no answer. */
  async #post(
    path: string,
    sent: object,
    patienceMs = PATIENCE_MS,
  ): Promise<{ status: number; body: object }> {
    const { url, token } = this.#server;
    try {
      const response = await fetch(`${url}${path}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(sent),
        signal: AbortSignal.timeout(patienceMs),
        redirect: "error",
      });
      const body: unknown = await response.json().catch(() => ({}));
      return {
        status: response.status,
        body: typeof body === "object" && body !== null ? body : {},
      };
    } catch (error) {
      const { cause } = error as { cause?: unknown };
      return { status: 0, body: { error: reasonOf(cause ?? error).message } };
    }
  }
}
