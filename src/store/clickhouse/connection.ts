/**
 * ClickHouse by HTTP, as every version since 18.16 answers it: a statement in the address, rows of an INSERT in the body.
 * Sets of ids travel beside a query as tables of its own ("external data"), because a statement's length is limited.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { Millis } from "../../model/base/units.js";
import { oneLine, TidemarkError } from "../../model/errors/errors.js";
import { databaseUnusable } from "../../model/errors/server_errors.js";
import { type ClickhouseAddress, placeOf } from "./address.js";

/** Without a byte of the request or the answer, and without ClickHouse listing the statement as one that it computes. */
const LONGEST_SILENCE_MS: Millis = 60_000;
/** A statement that is computed for longer is regarded as one that hangs. */
const LONGEST_STATEMENT_MS: Millis = 3_600_000;
/** Of a statement. */
const MOST_STATEMENT_BYTES = 64 << 20;

/** A table that travels beside a query: one line for each row, values separated by tabs. */
export interface BesideTable {
  /** As in "id UInt64". */
  readonly structure: string;
  readonly lines: readonly string[];
}

interface ConnectionLimits {
  readonly silenceMs?: Millis;
  readonly longestMs?: Millis;
  readonly stopped?: AbortSignal | null;
}

export type Beside = Readonly<Record<string, BesideTable>>;

/** The ends of a request that are no error of the network. */
class Silence extends Error {}
class Overlong extends Error {}
class Stopped extends Error {
  constructor(readonly reason: unknown) {
    super("the request was stopped");
  }
}

export class ClickhouseConnection {
  readonly #address: ClickhouseAddress;
  readonly #silenceMs: Millis;
  readonly #longestMs: Millis;
  readonly #stopped: AbortSignal | null;
  readonly #ending = new AbortController();

  /** `stopped` ends its requests. */
  constructor(
    address: ClickhouseAddress,
    {
      silenceMs = LONGEST_SILENCE_MS,
      longestMs = LONGEST_STATEMENT_MS,
      stopped = null,
    }: ConnectionLimits = {},
  ) {
    this.#address = address;
    this.#silenceMs = silenceMs;
    this.#longestMs = longestMs;
    this.#stopped = stopped;
  }

  /** The same one for work that `signal` stops. {@link close} also ends its requests. */
  until(signal: AbortSignal): ClickhouseConnection {
    return new ClickhouseConnection(this.#address, {
      silenceMs: this.#silenceMs,
      longestMs: this.#longestMs,
      stopped: AbortSignal.any([this.#signal, signal]),
    });
  }

  get #signal(): AbortSignal {
    const own = this.#ending.signal;
    return this.#stopped === null ? own : AbortSignal.any([own, this.#stopped]);
  }

  get database(): string {
    return this.#address.database;
  }

  get place(): string {
    return placeOf(this.#address);
  }

  /** The rows of an answer. Numbers of 64 bits are text. */
  async rows(sql: string, beside: Beside = {}): Promise<Record<string, unknown>[]> {
    const answer = await this.#send(
      `${sql} FORMAT JSONEachRow`,
      bodyOf(beside),
      structuresOf(beside),
    );
    return (await this.#read(text(answer)))
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Writes the rows of an answer to a file, each as one line of JSON. */
  async save(sql: string, beside: Beside, path: string): Promise<void> {
    const answer = await this.#send(
      `${sql} FORMAT JSONEachRow`,
      bodyOf(beside),
      structuresOf(beside),
    );
    await this.#read(pipeline(answer, createWriteStream(path, { mode: 0o600 })));
  }

  async run(sql: string, settings: Readonly<Record<string, string>> = {}): Promise<void> {
    // A statement may be longer than an address.
    await this.#read(text(await this.#send(null, { bytes: sql }, settings)));
  }

  /** `rows`: in the format RowBinary. */
  async insert(table: string, columns: readonly string[], rows: Uint8Array): Promise<void> {
    const sql = `INSERT INTO ${this.database}.${table} (${columns.join(", ")}) FORMAT RowBinary`;
    await this.#read(text(await this.#send(sql, { bytes: rows }, {})));
  }

  /** Ends requests that are under way. */
  close(): void {
    this.#ending.abort();
  }

  async #send(
    query: string | null,
    { bytes, type }: Body,
    settings: Readonly<Record<string, string>>,
    isWatched = true,
  ): Promise<IncomingMessage> {
    const { host, port, user, password } = this.#address;
    const id = randomUUID();
    const parameters = new URLSearchParams({
      ...(query === null ? {} : { query }),
      query_id: id,
      // An error that comes late replaces the answer, instead of following it.
      wait_end_of_query: "1",
      // The default of old versions.
      output_format_json_quote_64bit_integers: "1",
      max_query_size: String(MOST_STATEMENT_BYTES),
      ...settings,
    });
    // Unlike fetch(), it passes large answers on without a queue.
    const sending = request({
      ...{ host, port, method: "POST", path: `/?${parameters}`, auth: `${user}:${password}` },
      headers: type === undefined ? {} : { "content-type": type },
    });
    let answer: IncomingMessage | null = null;
    const stop = (reason: Error) => (answer ?? sending).destroy(reason);
    const signal = this.#signal;
    const onStop = () => stop(new Stopped(signal.reason));
    this.#watch(sending, stop, isWatched ? id : null);
    // After an answer that comes before all is sent, errors of the rest mean nothing.
    sending.on("error", () => {});
    sending.on("close", () => signal.removeEventListener("abort", onStop));
    signal.addEventListener("abort", onStop);
    try {
      if (signal.aborted) {
        onStop();
      }
      sending.end(bytes);
      [answer] = (await once(sending, "response")) as [IncomingMessage];
    } catch (error) {
      throw this.#unreachable(error);
    }
    if (answer.statusCode !== 200) {
      throw this.#refused(answer.statusCode ?? 0, await this.#read(text(answer)));
    }
    return answer;
  }

  /**
   * Ends a request on which nothing moves. ClickHouse sends no byte while it computes, because its answer comes whole: it is
   * asked whether it still does. `id`: of the statement; null: it is not asked.
   */
  #watch(sending: ClientRequest, stop: (reason: Error) => void, id: string | null): void {
    const beganMs = performance.now();
    let movedMs = beganMs;
    let bytes = -1;
    let isAsking = false;
    const look = async () => {
      const { bytesRead = 0, bytesWritten = 0 } = sending.socket ?? {};
      if (bytesRead + bytesWritten !== bytes) {
        bytes = bytesRead + bytesWritten;
        movedMs = performance.now();
      }
      if (isAsking || performance.now() - movedMs < this.#silenceMs) {
        return;
      }
      if (id !== null && performance.now() - beganMs >= this.#longestMs) {
        isAsking = true;
        await this.#asked(`KILL QUERY WHERE query_id = '${id}' ASYNC`);
        stop(new Overlong());
        return;
      }
      isAsking = true;
      const isComputing =
        id !== null &&
        (await this.#asked(`SELECT query_id FROM system.processes WHERE query_id = '${id}'`)) ===
          id;
      isAsking = false;
      if (isComputing) {
        movedMs = performance.now();
      } else {
        stop(new Silence());
      }
    };
    const timer = setInterval(() => void look(), this.#silenceMs / 4);
    sending.on("close", () => clearInterval(timer));
  }

  /** The answer's text; "": there is none. */
  async #asked(sql: string): Promise<string> {
    const answer = this.#send(null, { bytes: sql }, {}, false);
    return answer.then(text).then(
      (said) => said.trim(),
      () => "",
    );
  }

  /** An answer may be cut short. */
  async #read<Result>(answer: Promise<Result>): Promise<Result> {
    try {
      return await answer;
    } catch (error) {
      throw this.#unreachable(error);
    }
  }

  #unreachable(error: unknown): TidemarkError {
    if (error instanceof Stopped && error.reason instanceof TidemarkError) {
      return error.reason;
    }
    const { code = "", message } = error as NodeJS.ErrnoException;
    const [why, next] =
      error instanceof Silence
        ? [`no answer within ${this.#silenceMs / 1000} s`, OVERLOADED]
        : error instanceof Overlong
          ? [`a statement took longer than ${this.#longestMs / 1000} s`, SLOW]
          : code === "ECONNREFUSED"
            ? ["no server listens there", START]
            : CUT.has(code)
              ? ["the connection was cut", RESTARTED]
              : [message || code, START];
    return databaseUnusable(this.place, why ?? "", next ?? "");
  }

  #refused(status: number, said: string): TidemarkError {
    const [, code = "", reason = ""] =
      /Code: (\d+)[.,] (?:e\.displayText\(\) = )?(?:DB::Exception: )?(.*?)(?:, e\.what\(\)| \(version|$)/s.exec(
        said,
      ) ?? [];
    const next = NEXT.get(code);
    return code === ""
      ? databaseUnusable(
          this.place,
          `it answers with HTTP status ${status}`,
          "check that its HTTP port is ClickHouse's",
        )
      : databaseUnusable(
          this.place,
          oneLine(reason, 300),
          next ?? "see ClickHouse's own log",
          code,
        );
  }
}

const START = "start ClickHouse, or check host and HTTP port";
const OVERLOADED = "check that ClickHouse is not overloaded, and see its own log";
const SLOW = "see in ClickHouse's system.query_log or its own log what keeps it busy";
const RESTARTED = "see in ClickHouse's own log whether it was restarted";
/** Codes of Node. */
const CUT = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED", "ERR_STREAM_PREMATURE_CLOSE"]);
const CHECK_USER = "check the user and the password in --store";
const GRANT =
  "let the user create, alter, read and write tables of this database, or name another user";
/** By ClickHouse's number of an error. */
const NEXT = new Map([
  ...["192", "193", "194", "195", "516"].map((code) => [code, CHECK_USER] as const),
  ...["164", "291", "497"].map((code) => [code, GRANT] as const),
  ["241", "raise max_memory_usage of this user in ClickHouse, or choose a shorter time"] as const,
  ["243", "free space on the disk of ClickHouse"] as const,
]);

interface Body {
  readonly bytes: string | Uint8Array;
  /** Its content type. */
  readonly type?: string;
}

/** Each table as a file of a form. */
function bodyOf(beside: Beside): Body {
  const tables = Object.entries(beside);
  if (tables.length === 0) {
    return { bytes: "" };
  }
  // No value contains a line that begins with it: values are ids and names of partitions.
  const limit = `--tidemark-${randomUUID()}`;
  const parts = tables.map(
    ([name, { lines }]) =>
      `--${limit}\r\nContent-Disposition: form-data; name="${name}"; filename="${name}"\r\nContent-Type: text/tab-separated-values\r\n\r\n${lines.map((line) => `${line}\n`).join("")}\r\n`,
  );
  return {
    bytes: `${parts.join("")}--${limit}--\r\n`,
    type: `multipart/form-data; boundary=${limit}`,
  };
}

function structuresOf(beside: Beside): Record<string, string> {
  return Object.fromEntries(
    Object.entries(beside).map(([name, { structure }]) => [`${name}_structure`, structure]),
  );
}
