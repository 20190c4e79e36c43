/**
 * Asks the server before an action, and reports its course.
 *
 *     wanted ──POST /api/v1/leases──> granted: act, then POST /api/v1/actions until the server has it
 *                                     refused, or no answer: nothing is done
 */
import type { Millis } from "../../model/base/units.js";
import type { ActionJson } from "../../model/documents/action_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { ACTIONS_PATH, LEASES_PATH, type LeaseAnswer } from "../../model/wire/actions.js";
import type { Destination } from "../../recording/sender/post_connection.js";

const PATIENCE_MS: Millis = 10_000;
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
      const why =
        "the server refuses the token: actions need one of scope act (server.action_token_file)";
      return { why, mayBeHeld: false };
    }
    const said = oneLine(
      String(status === 200 ? answer.why : (answer.error ?? `status ${status}`)),
    );
    return status === 200
      ? { why: `the server: ${said}`, mayBeHeld: false }
      : { why: `the server cannot be asked: ${said}`, mayBeHeld: true };
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
  async #post(path: string, action: ActionJson): Promise<{ status: number; body: object }> {
    const { url, token } = this.#server;
    try {
      const response = await fetch(`${url}${path}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(action),
        signal: AbortSignal.timeout(PATIENCE_MS),
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
