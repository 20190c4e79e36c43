/**
 * What the server asks this collector for: profiles of services for a while, and a policy.
 *
 *     every 10 s   POST /api/v1/collector: outcome of the open requests ──> open requests, policy
 *
 * A request only makes programs eligible that the host's own policy lets have the agent at all. It ends when its time is
 * over by the clock of its first arrival, so that an answer that is repeated later starts nothing again. A server that does
 * not answer changes nothing.
 */
import { monotonicMs } from "../../linux/this_process/clock.js";
import { hostName } from "../../linux/this_process/host_name.js";
import { withDeadline } from "../../model/base/deadline.js";
import type { Millis, Pid } from "../../model/base/units.js";
import type { Capture } from "../../model/documents/artifact_document.js";
import { COLLECTOR_ANSWER, COLLECTOR_PATH, type CollectorCall } from "../../model/wire/requests.js";
import { LONGEST_REQUEST_MS } from "../../model/wire/requests_path.js";
import type { Destination } from "../../recording/sender/post_connection.js";

const EVERY_MS: Millis = 10_000;
const PATIENCE_MS: Millis = 10_000;
/** The outcome of a request is still sent for this long after its end: a short one ends before the next question. */
const LATE_MS: Millis = 30_000;
/** Requests that are remembered after their end. */
const MOST_KNOWN = 500;

export interface OpenRequest {
  readonly id: string;
  readonly service: string;
  /** Of its programs on this host, the first processes; null: all. */
  readonly pids: readonly Pid[] | null;
  /** Of this host's monotonic clock. */
  readonly endsMs: Millis;
  /** Its length, as it arrived. */
  readonly forMs: Millis;
  /** null: it asks for the agent. `atMs`: of this host's monotonic clock. */
  readonly captures: { readonly atMs: Millis; readonly what: readonly Capture[] } | null;
}

export class ServerRequests {
  readonly #server: Destination;
  readonly #until: AbortSignal;
  /** By id, also those that have ended. */
  readonly #known = new Map<string, OpenRequest>();
  /** By id of the request. */
  readonly #answers = new Map<string, CollectorCall["answers"][number]>();
  #policy: string | null = null;
  #nextMs: Millis = 0;
  #asking: Promise<void> | null = null;

  constructor(server: Destination, until: AbortSignal) {
    this.#server = server;
    this.#until = until;
  }

  /** The policy that the server hands out, in YAML; null: none. */
  get policy(): string | null {
    return this.#policy;
  }

  open(nowMs: Millis): OpenRequest[] {
    return [...this.#known.values()].filter(({ endsMs }) => nowMs < endsMs);
  }

  /** The outcome of a request on this host; sent with the next question. */
  answer(id: string, programs: number, why: string): void {
    this.#answers.set(id, { id, programs, why: why.slice(0, 500) });
  }

  next(nowMs: Millis): void {
    if (nowMs >= this.#nextMs && this.#asking === null) {
      // Collectors that started together do not ask together.
      this.#nextMs = nowMs + EVERY_MS * (0.75 + Math.random() / 2);
      this.#asking = this.#ask(nowMs).finally(() => {
        this.#asking = null;
      });
    }
  }

  async close(): Promise<void> {
    await this.#asking;
  }

  async #ask(nowMs: Millis): Promise<void> {
    const open = new Set(this.open(nowMs - LATE_MS).map(({ id }) => id));
    for (const id of this.#answers.keys()) {
      if (!open.has(id)) {
        this.#answers.delete(id);
      }
    }
    const call: CollectorCall = { host: hostName(), answers: [...this.#answers.values()] };
    const { url, token } = this.#server;
    try {
      const { ok, body } = await withDeadline(this.#until, PATIENCE_MS, async (signal) => {
        const response = await fetch(`${url}${COLLECTOR_PATH}`, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          },
          body: JSON.stringify(call),
          ...{ signal, redirect: "error" },
        });
        return { ok: response.ok, body: (await response.json()) as unknown };
      });
      const answer = COLLECTOR_ANSWER.safeParse(body);
      if (ok && answer.success) {
        this.#take(answer.data);
      }
    } catch {
      // No answer, or one of an older server; asked again.
    }
  }

  #take({ nowMs, policy, ...asked }: ReturnType<typeof COLLECTOR_ANSWER.parse>): void {
    const whole = { programs: undefined, captures: undefined };
    const requests = [
      ...asked.requests.map((one) => ({ ...one, ...whole })),
      ...asked.named.map((one) => ({ ...whole, ...one })),
      ...asked.captures.map((one) => ({ ...whole, ...one })),
    ];
    // Absent: the server cannot read it at the moment.
    this.#policy = policy === undefined ? this.#policy : policy;
    const host = hostName();
    for (const { id, service, untilMs, programs, captures } of requests) {
      const forMs = Math.min(untilMs - nowMs, LONGEST_REQUEST_MS);
      if (!this.#known.has(id) && forMs > 0) {
        const here = programs?.filter((program) => program.host === host);
        const pids = here?.map(({ pid }) => pid) ?? null;
        const hereMs = monotonicMs();
        this.#known.set(id, {
          ...{ id, service, pids, forMs, endsMs: hereMs + forMs },
          captures: captures ? { what: captures.what, atMs: hereMs + captures.atMs - nowMs } : null,
        });
      }
    }
    const given = new Set(requests.map(({ id }) => id));
    const now = monotonicMs();
    for (const [id, { endsMs }] of this.#known) {
      if (this.#known.size > MOST_KNOWN && !given.has(id) && endsMs < now) {
        this.#known.delete(id);
      }
    }
  }
}
