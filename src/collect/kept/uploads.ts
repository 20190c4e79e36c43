/**
 * Sends finished artifacts to the server: the files in pieces, then `about.json`, which completes the artifact.
 *
 *     artifact without the mark ──file: ask for the offset, send pieces──> every file there ──about.json──> mark `.sent`
 *
 * | what | outcome |
 * |---|---|
 * | the server is away, or its disk is full | tried again, at growing intervals; the artifact stays within its own bounds |
 * | the collector or the server is killed | the server names the offset from which it continues |
 * | the server refuses the artifact (too large, another form) | a line gives the reason; it is not sent again |
 * | a file was damaged on the way | it is sent again from the beginning |
 * | a proxy refuses a request (larger than its limit) | a line reports that; tried again, at growing intervals |
 * | the collector is killed before the mark | the server answers that it has everything |
 *
 * One piece is on its way at a time, and after each there is a pause as long as it took, so that frames are not held up.
 */
import { createHash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { open, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { monotonicMs } from "../../linux/this_process/clock.js";
import { withDeadline } from "../../model/base/deadline.js";
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import type { ArtifactJson } from "../../model/documents/artifact_document.js";
import { oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { ARTIFACT_ABOUT, ARTIFACTS_PATH, type ArtifactAnswer } from "../../model/wire/artifacts.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import type { Artifacts } from "./artifacts.js";

/** In an artifact's folder: it is on the server, or the server does not want it. */
export const SENT_MARK = ".sent";
const PIECE_BYTES: Bytes = 4 << 20;
/** With room for a proxy that counts headers. */
const MOST_PIECE_TEXT = "8 MiB";
const PATIENCE_MS: Millis = 60_000;
const FIRST_RETRY_MS: Millis = 2_000;
const LAST_RETRY_MS: Millis = 300_000;
/** Interval of the searches for new artifacts. */
const IDLE_MS: Millis = 10_000;
/** Answers to one file that do not bring it further, and attempts after damage. */
const MOST_STANDSTILLS = 3;

export type UploadEvent =
  | { readonly kind: "uploaded"; readonly path: string; readonly bytes: Bytes }
  | { readonly kind: "not-uploaded"; readonly path: string; readonly why: string };

/** The server will not accept it later either. */
class Refused extends Error {}
/** The server could not use the body: it is damaged, or what it describes is of another form. */
class BadBody extends Refused {}

interface Place {
  readonly id: string;
  readonly name: string;
  readonly sha256: string;
  readonly bytes: Bytes;
}

export class Uploads {
  readonly #server: Destination;
  readonly #artifacts: Artifacts;
  readonly #onEvent: (event: UploadEvent) => void;
  readonly #stop = new AbortController();
  #working: Promise<void> | null = null;
  #nextMs: Millis = 0;
  #retryMs = FIRST_RETRY_MS;
  /** The last reason, so that a server that is away for a day is one line. */
  #said = "";
  /** The artifact that failed last. */
  #failing = "";

  constructor(server: Destination, artifacts: Artifacts, onEvent: (event: UploadEvent) => void) {
    this.#server = server;
    this.#artifacts = artifacts;
    this.#onEvent = onEvent;
  }

  /** Starts sending if there is something to send. `most`: larger artifacts are not sent. */
  next(most: Bytes, nowMs: Millis): void {
    if (this.#working !== null || nowMs < this.#nextMs || this.#stop.signal.aborted) {
      return;
    }
    const unsent = this.#artifacts.unsent(SENT_MARK);
    // One that fails does not hold up the others.
    const next = unsent.find(({ path }) => path !== this.#failing) ?? unsent[0];
    if (next === undefined) {
      this.#nextMs = nowMs + IDLE_MS;
      return;
    }
    this.#working = this.#send(next, most).finally(() => {
      this.#working = null;
    });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#working;
  }

  /** Never rejects. */
  async #send({ path, bytes }: { path: string; bytes: Bytes }, most: Bytes): Promise<void> {
    try {
      if (bytes > most) {
        throw new Refused(
          `it has ${formatBytesBriefly(bytes)}, and artifacts.send allows ${formatBytesBriefly(most)}`,
        );
      }
      const about = await readFile(join(path, ARTIFACT_ABOUT));
      const { files } = JSON.parse(about.toString()) as ArtifactJson;
      const sha256 = createHash("sha256").update(about).digest("hex");
      const id = sha256.slice(0, 32);
      for (const { name } of files) {
        await this.#sendFile(path, id, name);
      }
      const place = { id, name: ARTIFACT_ABOUT, sha256, bytes: about.length };
      const answer = await again(() => this.#put(place, null, about));
      if (answer.complete !== true) {
        // It lost files in the meantime: they are sent again.
        throw new Error(answer.error ?? "the server has not all of its files");
      }
      await writeFile(join(path, SENT_MARK), `${id}\n`);
      this.#retryMs = FIRST_RETRY_MS;
      this.#said = "";
      this.#onEvent({ kind: "uploaded", path, bytes });
    } catch (error) {
      await this.#failed(path, error);
    }
  }

  async #failed(path: string, error: unknown): Promise<void> {
    const why = oneLine(reasonOf(error).message);
    // A file that is gone does not come back; the whole artifact may be gone, too.
    if (error instanceof Refused || reasonOf(error).code === "ENOENT") {
      await writeFile(join(path, SENT_MARK), `not sent: ${why}\n`).catch(() => {});
      this.#onEvent({ kind: "not-uploaded", path, why });
      return;
    }
    this.#failing = path;
    this.#nextMs = monotonicMs() + this.#retryMs * (0.5 + Math.random());
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2);
    if (why !== this.#said && !this.#stop.signal.aborted) {
      this.#said = why;
      this.#onEvent({ kind: "not-uploaded", path, why: `${why}; tried again` });
    }
  }

  async #sendFile(path: string, id: string, name: string): Promise<void> {
    const file = await open(join(path, basename(name)), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const { size } = await file.stat();
      const place = { id, name, bytes: size, sha256: await hashOf(join(path, basename(name))) };
      const ask = () => this.#put(place, 0, Buffer.alloc(0));
      let answer = await ask();
      const piece = Buffer.alloc(Math.min(PIECE_BYTES, size));
      for (let [standstills, damages] = [0, 0]; answer.complete !== true; ) {
        const offset = answer.nextOffset ?? 0;
        const { bytesRead } = await file.read(piece, 0, piece.length, offset);
        const begunMs = monotonicMs();
        let why = `the server does not accept ${name}`;
        answer = await this.#put(place, offset, piece.subarray(0, bytesRead)).catch((error) => {
          if (!(error instanceof BadBody)) {
            throw error;
          }
          // It accepted the file, so its bytes were damaged on the way: it names the offset from which it wants them again.
          why = error.message;
          damages += 1;
          return ask();
        });
        standstills = (answer.nextOffset ?? 0) > offset ? 0 : standstills + 1;
        if (answer.complete !== true && Math.max(standstills, damages) >= MOST_STANDSTILLS) {
          throw new Error(answer.error ?? why);
        }
        await sleep(monotonicMs() - begunMs, undefined, { signal: this.#stop.signal });
      }
    } finally {
      await file.close();
    }
  }

  /** Throws {@link Refused}, or an Error if it may be accepted later. `offset`: null for about.json. */
  async #put(
    { id, name, sha256, bytes }: Place,
    offset: number | null,
    body: Buffer,
  ): Promise<ArtifactAnswer> {
    const { url, token } = this.#server;
    const query = new URLSearchParams({ sha256, bytes: String(bytes) });
    if (offset !== null) {
      query.set("offset", String(offset));
    }
    const { status, answer } = await withDeadline(
      this.#stop.signal,
      PATIENCE_MS,
      async (signal) => {
        const response = await fetch(
          `${url}${ARTIFACTS_PATH}/${id}/${encodeURIComponent(name)}?${query}`,
          {
            method: "PUT",
            headers: {
              "content-type": "application/octet-stream",
              ...(token === null ? {} : { authorization: `Bearer ${token}` }),
            },
            body: new Uint8Array(body),
            ...{ signal, redirect: "error" },
          },
        ).catch((error: { cause?: unknown }) => {
          throw new Error(`the server does not answer: ${reasonOf(error.cause ?? error).message}`);
        });
        return {
          status: response.status,
          answer: answerOf(await response.json().catch(() => null)),
        };
      },
    );
    if (status === 200 || status === 409) {
      return answer;
    }
    if (status === 400 || status === 413 || status === 415) {
      if (answer.error === undefined) {
        throw new Error(notOfServer(status));
      }
      const why = `the server refuses it: ${answer.error}`;
      throw status === 400 ? new BadBody(why) : new Refused(why);
    }
    throw new Error(
      status === 404
        ? "the server takes no artifacts; a newer version of it does"
        : `the server: ${answer.error ?? `it answers with status ${status}`}`,
    );
  }
}

/** Tries again if the body was damaged on the way. */
async function again<Value>(put: () => Promise<Value>): Promise<Value> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await put();
    } catch (error) {
      if (!(error instanceof BadBody) || attempt >= MOST_STANDSTILLS) {
        throw error;
      }
    }
  }
}

/** The server gives its reasons as JSON. */
function notOfServer(status: number): string {
  const remedy =
    status === 413
      ? `limits the size of a request; allow ${MOST_PIECE_TEXT} there (nginx: client_max_body_size)`
      : "refuses the request";
  return `status ${status} is not an answer of the server: probably a proxy before it ${remedy}`;
}

/** Without the fields that are not as expected. */
function answerOf(body: unknown): ArtifactAnswer {
  const { nextOffset, complete, error } = (body ?? {}) as Record<string, unknown>;
  return {
    ...(Number.isSafeInteger(nextOffset) && Number(nextOffset) >= 0
      ? { nextOffset: Number(nextOffset) }
      : {}),
    ...(complete === true ? { complete } : {}),
    ...(typeof error === "string" ? { error } : {}),
  };
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) {
    hash.update(chunk as Buffer);
  }
  return hash.digest("hex");
}
