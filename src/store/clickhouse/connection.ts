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
import {
  databaseUnusable,
  endedMidway,
  isDoneByThoseThatRun,
  lacksShard,
} from "../../model/errors/server_errors.js";
import type { PartialAnswer } from "../../model/wire/partial.js";
import { type ClickhouseAddress, placeOf } from "./address.js";
import { literal } from "./tables.js";

/** Without a byte of the request or the answer, and without ClickHouse listing the statement as one that it computes. */
const LONGEST_SILENCE_MS: Millis = 60_000;
/** A statement that is computed for longer is regarded as one that hangs. */
const LONGEST_STATEMENT_MS: Millis = 3_600_000;
/** Servers of a cluster that run change their tables within this time. */
const LONGEST_CHANGE_S = 20;
/**
 * For tables on several servers: an INSERT ends when its rows are on the server that has them, and each is stored, also if the
 * same rows were stored before and replaced meanwhile. What was just written is read from the same replica: the first one that
 * answers. A replica that has been down and still lacks rows does not answer; a machine that is busy does not count as down.
 */
const CLUSTER_SETTINGS = {
  insert_distributed_sync: "1",
  insert_deduplicate: "0",
  load_balancing: "in_order",
  connect_timeout_with_failover_ms: "1000",
  max_replica_delay_for_distributed_queries: "1",
  fallback_to_stale_replicas_for_distributed_queries: "0",
};
/**
 * A day's rows of two tiers lie in two partitions and may have the same key: FINAL compares rows within a partition. Old versions
 * read only the partitions that the condition names.
 */
const MODERN_SETTINGS = { do_not_merge_across_partitions_select_final: "1" };
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
  readonly onPartial?: ((partial: PartialAnswer) => void) | null;
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
  readonly #onPartial: ((partial: PartialAnswer) => void) | null;
  readonly #ending = new AbortController();

  /** `stopped` ends its requests. `onPartial`: answers may lack the rows of shards that do not answer, and it is called. */
  /** Whether the server knows the settings of new versions. Known once its database has been opened. */
  isModern = false;

  constructor(
    address: ClickhouseAddress,
    {
      silenceMs = LONGEST_SILENCE_MS,
      longestMs = LONGEST_STATEMENT_MS,
      stopped = null,
      onPartial = null,
    }: ConnectionLimits = {},
  ) {
    this.#address = address;
    this.#silenceMs = silenceMs;
    this.#longestMs = longestMs;
    this.#stopped = stopped;
    this.#onPartial = onPartial;
  }

  /** The same one for work that `signal` stops. {@link close} also ends its requests. */
  until(
    signal: AbortSignal,
    onPartial: ((partial: PartialAnswer) => void) | null = null,
  ): ClickhouseConnection {
    const same = new ClickhouseConnection(this.#address, {
      onPartial,
      silenceMs: this.#silenceMs,
      longestMs: this.#longestMs,
      stopped: AbortSignal.any([this.#signal, signal]),
    });
    same.isModern = this.isModern;
    return same;
  }

  get #signal(): AbortSignal {
    const own = this.#ending.signal;
    return this.#stopped === null ? own : AbortSignal.any([own, this.#stopped]);
  }

  get database(): string {
    return this.#address.database;
  }

  get cluster(): string | null {
    return this.#address.cluster;
  }

  get place(): string {
    return placeOf(this.#address);
  }

  /** The rows of an answer. Numbers of 64 bits are text. */
  async rows(sql: string, beside: Beside = {}): Promise<Record<string, unknown>[]> {
    const lines = await this.#asked(sql, beside, (answer) => text(answer));
    return lines
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Writes the rows of an answer to a file, each as one line of JSON. */
  async save(sql: string, beside: Beside, path: string): Promise<void> {
    await this.#asked(sql, beside, (answer) =>
      pipeline(answer, createWriteStream(path, { mode: 0o600 })),
    );
  }

  async #asked<Result>(
    sql: string,
    beside: Beside,
    use: (answer: IncomingMessage) => Promise<Result>,
  ): Promise<Result> {
    const ask = async (settings: Readonly<Record<string, string>> = {}) => {
      const all = { ...structuresOf(beside), ...settings };
      return this.#read(use(await this.#send(`${sql} FORMAT JSONEachRow`, bodyOf(beside), all)));
    };
    try {
      return await ask().catch((error: unknown) => {
        if (!endedMidway(error)) {
          throw error;
        }
        return ask();
      });
    } catch (error) {
      if (this.#onPartial === null || !lacksShard(error)) {
        throw error;
      }
      const result = await ask(WITHOUT_MISSING);
      this.#onPartial(await this.#missingShards());
      return result;
    }
  }

  /** At least one is missing: it did not answer a moment ago. */
  async #missingShards(): Promise<PartialAnswer> {
    const name = literal(this.cluster ?? "");
    const count = async (sql: string) => {
      const answer = await this.#send(null, { bytes: sql }, WITHOUT_MISSING);
      return Number(await this.#read(text(answer)));
    };
    const shards = await count(
      `SELECT uniq(shard_num) FROM system.clusters WHERE cluster = ${name}`,
    );
    const answering = await count(`SELECT count() FROM cluster(${name}, system, one)`);
    return { shards, missing: Math.max(1, shards - answering) };
  }

  async run(sql: string, settings: Readonly<Record<string, string>> = {}): Promise<void> {
    // A statement may be longer than an address.
    await this.#read(text(await this.#send(null, { bytes: sql }, settings)));
  }

  /** Changes tables, of a cluster on all its servers (`sql` names it). Those that are down do it when they are back. */
  async change(sql: string): Promise<void> {
    try {
      await this.run(sql, { distributed_ddl_task_timeout: String(LONGEST_CHANGE_S) });
    } catch (error) {
      if (!isDoneByThoseThatRun(error)) {
        throw error;
      }
    }
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
      ...(this.cluster === null ? {} : CLUSTER_SETTINGS),
      ...(this.isModern ? MODERN_SETTINGS : {}),
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
        await this.#said(`KILL QUERY WHERE query_id = '${id}' ASYNC`);
        stop(new Overlong());
        return;
      }
      isAsking = true;
      const isComputing =
        id !== null &&
        (await this.#said(`SELECT query_id FROM system.processes WHERE query_id = '${id}'`)) === id;
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
  async #said(sql: string): Promise<string> {
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
  ["279", "start a replica of each shard of the cluster"] as const,
  ["369", "wait until a replica of each shard has all rows, or start the others"] as const,
  ["159", "start the other servers of the cluster, and look at ZooKeeper"] as const,
]);

const WITHOUT_MISSING = {
  skip_unavailable_shards: "1",
  fallback_to_stale_replicas_for_distributed_queries: "1",
};

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
