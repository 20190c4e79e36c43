/**
 * Keeps the pods of this node up to date: lists them, then watches the changes since the list.
 *
 *     list ──resourceVersion──> watch: a line of JSON per change ──server ends it──> watch from the last version
 *       ▲                                                         ──410 Gone──────┐
 *       └─────────────────────────────────────────────────────────────────────────┘
 *
 * Bookmarks move the version forward while no pod changes. Any failure is tried again, at growing intervals.
 * Source: https://kubernetes.io/docs/reference/using-api/api-concepts/ (efficient detection of changes)
 */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import {
  ApiError,
  type ApiServer,
  get,
  LARGEST_ANSWER,
  readAll,
} from "../../kubernetes/api_server.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { Millis } from "../../model/base/units.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { Pods } from "./pods.js";

export interface PodWatchOptions {
  readonly server: ApiServer;
  readonly node: string;
  readonly pods: Pods;
  readonly until: AbortSignal;
  /** Called when requests begin to fail, with the reason, and with "" when they succeed again. */
  readonly onTrouble: (why: string) => void;
  /** First interval after a failure; it doubles up to {@link LAST_RETRY_MS}. */
  readonly retryMs?: Millis;
}

const FIRST_RETRY_MS: Millis = 1_000;
const LAST_RETRY_MS: Millis = 60_000;
const LIST_IDLE_MS: Millis = 30_000;
/** The server ends a watch after this time; spread, so that the collectors of a cluster do not return together. */
const WATCH_SECONDS = 240;
const GONE = 410;

const LIST = z.object({
  metadata: z.object({ resourceVersion: z.string().min(1), continue: z.string().nullish() }),
  items: z.array(z.unknown()).nullish(),
});
const CHANGE = z.object({
  type: z.string(),
  object: z.looseObject({
    metadata: z.looseObject({ resourceVersion: z.string().nullish() }).nullish(),
    code: z.number().nullish(),
    message: z.string().nullish(),
  }),
});

export class PodWatch {
  readonly #options: PodWatchOptions;
  /** Version that the next watch starts at; null: list first. */
  #version: string | null = null;
  /** The version that a list may be as old as; "": the newest, read from the database. */
  #atLeast = "0";
  #trouble = "";
  /** Whether pods were listed. */
  isSynced = false;
  /** Resolves after the first attempt. */
  readonly tried: Promise<void>;
  readonly ended: Promise<void>;

  constructor(options: PodWatchOptions) {
    this.#options = options;
    let tried = () => {};
    this.tried = new Promise((resolve) => {
      tried = resolve;
    });
    this.ended = this.#run(tried);
  }

  async #run(tried: () => void): Promise<void> {
    const { until, retryMs = FIRST_RETRY_MS } = this.#options;
    let waitMs = retryMs;
    let failures = 0;
    while (!until.aborted) {
      let asked = 0;
      try {
        if (this.#version === null) {
          this.#version = await this.#list();
          this.isSynced = true;
          this.#report("");
          tried();
        }
        await this.#watch(this.#version, () => {
          failures = 0;
          this.#report("");
        });
        waitMs = retryMs;
      } catch (error) {
        if (until.aborted) {
          break;
        }
        if (error instanceof ApiError && error.status === GONE) {
          this.#version = null;
          this.#atLeast = ""; // a list from the server's memory may be as old again
        } else {
          // A connection that ends in the middle of a watch is usual; only if it cannot be made again, that is trouble.
          if (error instanceof ApiError || !this.isSynced || ++failures > 1) {
            this.#report(whyOf(error));
          }
          asked = error instanceof ApiError ? error.retryAfterMs : 0;
        }
        tried();
        waitMs = Math.min(LAST_RETRY_MS, waitMs * 2);
      }
      // A server that ends each watch at once must not be asked in a loop either.
      const pause = Math.max(asked, waitMs * (0.5 + Math.random() / 2));
      await sleep(pause, undefined, { signal: until }).catch(() => {});
    }
    tried();
  }

  #report(why: string): void {
    if (why !== this.#trouble) {
      this.#trouble = why;
      this.#options.onTrouble(why);
    }
  }

  /** @returns the version of the list */
  async #list(): Promise<string> {
    const { pods } = this.#options;
    const items: unknown[] = [];
    let next: string | null = "";
    let version = "";
    while (next !== null) {
      const words: Record<string, string> =
        this.#atLeast === "" ? { limit: "500" } : { resourceVersion: this.#atLeast };
      const response = await this.#get(
        { ...words, ...(next === "" ? {} : { continue: next }) },
        LIST_IDLE_MS,
      );
      const page = LIST.parse(JSON.parse(await readAll(response, LARGEST_ANSWER)));
      items.push(...(page.items ?? []));
      version = page.metadata.resourceVersion;
      next = page.metadata.continue || null;
    }
    pods.replace(items, monotonicMs());
    return version;
  }

  /** Ends when the server ends it. Rejects with ApiError 410 if the version is too old. */
  async #watch(version: string, onAnswer: () => void): Promise<void> {
    const seconds = Math.round(WATCH_SECONDS * (1 + Math.random() / 4));
    const response = await this.#get(
      {
        ...{ watch: "1", allowWatchBookmarks: "true", resourceVersion: version },
        timeoutSeconds: String(seconds),
      },
      (seconds + 30) * 1000,
    );
    onAnswer();
    for await (const line of linesOf(response)) {
      this.#apply(CHANGE.parse(JSON.parse(line)));
    }
  }

  #apply({ type, object }: z.infer<typeof CHANGE>): void {
    const { pods } = this.#options;
    if (type === "ERROR") {
      this.#version = null;
      throw new ApiError(object.code ?? 0, object.message ?? "");
    }
    if (type === "DELETED") {
      pods.delete(object, monotonicMs());
    } else if (type === "ADDED" || type === "MODIFIED") {
      pods.put(object);
    }
    this.#version = object.metadata?.resourceVersion || this.#version;
  }

  #get(words: Readonly<Record<string, string>>, idleMs: Millis): Promise<IncomingMessage> {
    const { server, node, until } = this.#options;
    const query = new URLSearchParams({ fieldSelector: `spec.nodeName=${node}`, ...words });
    return get(server, `/api/v1/pods?${query}`, { idleMs, until });
  }
}

/** Lines of a body that arrives in pieces. Rejects if one is too long, or the body is truncated. */
async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  let length = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    let from = 0;
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, from)) {
      const line = Buffer.concat([...rest, piece.subarray(from, at)]).toString("utf8");
      [rest, length, from] = [[], 0, at + 1];
      if (line.trim() !== "") {
        yield line;
      }
    }
    rest.push(piece.subarray(from));
    length += piece.length - from;
    if (length > LARGEST_ANSWER) {
      throw new Error(`a change is longer than ${LARGEST_ANSWER} bytes`);
    }
  }
}

function whyOf(error: unknown): string {
  if (error instanceof ApiError) {
    const { status, message } = error;
    if (status === 401) {
      return "the API server does not accept this pod's token";
    }
    if (status === 403) {
      return "this pod's ServiceAccount may not list and watch pods: grant it get, list and watch";
    }
    return `the API server answered ${status}${message === "" ? "" : `: ${message}`}`;
  }
  return error instanceof SyntaxError || error instanceof z.ZodError
    ? "the API server's answer is no list of pods"
    : `the API server cannot be reached: ${reasonOf(error).message}`;
}
