/** What is particular to a store in ClickHouse: what it refuses, and connections that are cut between two inserts. */
import { mkdtempSync, rmSync } from "node:fs";
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { environment } from "../../../test/environment.js";
import { streamName } from "../../recording/sender/stream_name.js";
import { StreamReader } from "../../recording/stream_reader.js";
import { type StreamPlan, streamBytes } from "../../recording/streams.fixture.js";
import { openStore, type Retention, type Store } from "../index.js";
import { clickhouseAddress } from "./address.js";
import { ClickhouseConnection } from "./connection.js";
import { ClickhouseServer, READER } from "./server.fixture.js";

const root = environment.clickhouse ?? null;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Midnight. */
const START = Date.UTC(2026, 8, 10);
const LIMITS = { frameBytes: 64 << 20, callBytes: 128 << 20 };

describe.skipIf(root === null)("a store in ClickHouse", () => {
  let server: ClickhouseServer;
  let folder: string;
  beforeAll(async () => {
    server = await ClickhouseServer.start(root ?? "");
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tidemark-clickhouse-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const opening = async (name: string) => {
    const { store } = await openStore(name, { files: folder });
    await store.close();
  };

  it("is refused in one line if it cannot be used", async () => {
    await server.query("CREATE DATABASE others");
    await server.query("CREATE TABLE others.orders (id UInt64) ENGINE = Memory");
    await server.query("CREATE DATABASE mixed");
    await opening(server.store("mixed"));
    await server.query("CREATE TABLE mixed.orders (id UInt64) ENGINE = Memory");
    await opening(server.store("newer"));
    await server.query("INSERT INTO newer.about VALUES (99)");
    await opening(server.store("changed"));
    await server.query("DROP TABLE changed.streams");
    await server.query("CREATE TABLE changed.streams (stream String, at Int64) ENGINE = Memory");
    await opening(server.store("fewer"));
    await server.query("ALTER TABLE fewer.verdicts DROP COLUMN limit_bytes");
    for (const [name, line] of [
      [server.store("fewer"), /its tables have other columns/],
      [server.store("others"), /the database has other tables: orders; name another database/],
      [server.store("mixed"), /the database has other tables: orders; name another database/],
      [server.store("newer"), /has format version 99, this Tidemark reads version 1/],
      [server.store("changed"), /its tables have other columns/],
      [server.store("any", { password: "wrong" }), /Wrong password.*; check the user/],
      [server.store("any", { user: READER, password: "" }), /readonly mode.*; let the user create/],
      ["clickhouse://127.0.0.1:1/any", /no server listens there; .*start ClickHouse/],
      ["clickhouse://127.0.0.1/any-name", /this is not a name of a database: any-name/],
    ] as const) {
      const error = await opening(name).catch((reason: unknown) => reason as Error);
      expect(error).toMatchObject({ message: expect.stringMatching(line), exitCode: 2 });
      expect((error as Error).message).not.toMatch(/\n|s\/e:c@ret|s%2Fe/);
    }
    // They are as before.
    expect(await server.query("SHOW TABLES FROM others")).toBe("orders");
  });

  it("writes the format version that a first start did not write", async () => {
    const proxy = await Cutting.start(server);
    proxy.cut(/^INSERT INTO \w+\.about/, 1, "before");
    await expect(opening(proxy.store("first"))).rejects.toThrow(/the connection was cut/);
    await proxy.stop();
    await opening(server.store("first"));
    expect(await server.query("SELECT version FROM first.about")).toBe("1");
  });

  it("waits while ClickHouse computes, and ends a statement that hangs in one line", async () => {
    const address = clickhouseAddress(server.store("default"));
    const slow =
      "SELECT sleepEachRow(0.9) AS slept FROM (SELECT number FROM system.numbers LIMIT 3)";
    // Shorter than the statement, and longer than a busy machine needs to say that it is computed.
    const patient = new ClickhouseConnection(address, { silenceMs: 2_000 });
    expect(await patient.rows(slow)).toHaveLength(3);
    const hasty = new ClickhouseConnection(address, { silenceMs: 1_200, longestMs: 1_500 });
    await expect(hasty.rows(slow)).rejects.toThrow(/a statement took longer than 1.5 s; see in/);
    const running =
      "SELECT count() FROM system.processes WHERE query LIKE '%sleepEachRow(0.9)%LIMIT 3)%'";
    // This question is one of them.
    await expect.poll(() => server.query(running)).toBe("1");
    await server.whileStopped(async () => {
      const answer = patient.rows("SELECT 1 AS one");
      await expect(answer).rejects.toThrow(/no answer within 2(?:\.0)? s; check/);
    });
    expect(await patient.rows("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    patient.close();
    hasty.close();
  });

  it("refuses what is no ClickHouse", async () => {
    const other = createServer((_asked, answer) => answer.writeHead(404).end("<html>"));
    const port = await listening(other);
    await expect(opening(`clickhouse://127.0.0.1:${port}/any`)).rejects.toThrow(
      /answers with HTTP status 404; check that its HTTP port/,
    );
    other.close();
  });

  const plan: StreamPlan = {
    ...{ service: "shop", pid: 1, startedMs: START, labels: { team: "a" } },
    rss: Array.from({ length: 30 }, (_, n) => [n * MINUTE, (n + 1) * 1e6] as const),
    profiles: Array.from(
      { length: 4 },
      (_, n) =>
        [
          n * 11 * HOUR,
          `main;keep ${(n + 1) * 1e7} allocated=${(n + 1) * 3e7} variance=1 label=user:u\nmain;f${n} 1000 allocated=${n * 1000 + 1000} variance=1`,
        ] as const,
    ),
    endedAfterMs: 40 * HOUR,
  };
  const bytes = streamBytes(plan);
  const part = () => ({
    stream: streamName(bytes),
    items: new StreamReader("it", LIMITS).take(bytes),
    endOffset: bytes.length,
  });
  const coarse: Retention = {
    ...{ keepMs: 4000 * DAY, mostBytes: Number.MAX_SAFE_INTEGER },
    tiers: { raw: DAY, "10m": 4000 * DAY, "1h": 4000 * DAY },
  };

  /** Sums of whole days, which do not depend on the tier. */
  const answers = async (store: Store) => {
    const window = { startMs: START - DAY, endMs: START + 3 * DAY };
    const { snapshot } = await store.profile({ ...window, of: { service: "shop" }, mostStacks: 9 });
    const query = { ...window, service: "shop", name: "rssBytes", by: "none" } as const;
    const { groups } = await store.series({ ...query, stepMs: DAY });
    return {
      live: Array.from(snapshot.sites.liveBytes, Math.round),
      allocated: Array.from(snapshot.sites.allocatedBytes, Math.round),
      rss: groups[0]?.values.map((value) => Math.round(value ?? 0)),
      rows: (await store.storage()).services.map(({ service }) => service),
      labels: (await store.labelUse()).map(({ label }) => label).sort(),
      peak: (await store.service("shop", window, 4))?.instances.map((row) => row.peakRssBytes),
    };
  };

  it("neither loses nor doubles rows, wherever the connection is cut, also if days are rolled up meanwhile", async () => {
    const whole = await openStore(server.store("whole"), { files: folder });
    await whole.store.write([part()], 0);
    const expected = await answers(whole.store);
    expect(expected.allocated.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(1.2e8);
    await whole.store.close();
    let cuts = 0;
    for (let at = 1; ; at++) {
      const isDone = at % 2 === 0;
      const name = `cut_${at}`;
      const proxy = await Cutting.start(server);
      const cut = await openStore(proxy.store(name), { files: folder });
      proxy.cut(/^INSERT/, at, isDone ? "after" : "before");
      const outcome = await cut.store.write([part()], 0).catch((error: unknown) => error as Error);
      await cut.store.close();
      await proxy.stop();
      if (outcome === undefined) {
        break;
      }
      expect(outcome).toMatchObject({ message: expect.stringMatching(/^TM-E084 cannot use/) });
      cuts += 1;
      const { store } = await openStore(server.store(name), { files: folder });
      if (at % 4 >= 2) {
        await store.retain(coarse, START + 10 * DAY);
      }
      await store.write([part()], 0);
      expect({ at, ...(await answers(store)) }).toEqual({ at, ...expected });
      await store.close();
    }
    // Dictionaries, rows of both days, and how far they are written.
    expect(cuts).toBeGreaterThan(10);
  });

  it("keeps every day, wherever the connection is cut while days are rolled up and dropped", async () => {
    let expected: unknown = null;
    const hourly = { ...coarse, tiers: { ...coarse.tiers, "10m": DAY } };
    const named = /^INSERT INTO \w+\.days/;
    const dropped = /^ALTER TABLE \w+\.(metrics|samples) DROP/;
    const cuts = [
      ...(["before", "after", "for good"] as const).map((kind) => [named, 1, kind] as const),
      ...[[named, 4, "after"] as const, [named, 2, "for good"] as const],
      ...[[dropped, 1, "before"] as const, [dropped, 4, "for good"] as const],
    ];
    for (const [n, [statement, at, kind]] of cuts.entries()) {
      const name = `retained_${n}`;
      const proxy = await Cutting.start(server);
      const { store } = await openStore(proxy.store(name), { files: folder });
      await store.write([part()], 0);
      expected ??= await answers(store);
      proxy.cut(statement, at, kind);
      const failed: string[] = [];
      for (const retention of [coarse, hourly, hourly]) {
        const outcome = await store
          .retain(retention, START + 10 * DAY)
          .catch((error: unknown) => ({ failed: [{ reason: (error as Error).message }] }));
        failed.push(...outcome.failed.map(({ reason }) => reason));
        if (proxy.wasCut) {
          break;
        }
      }
      expect(proxy.wasCut).toBe(true);
      if (kind === "for good") {
        expect(failed.length).toBeGreaterThan(0);
        proxy.heal();
      }
      store.forget(part().stream);
      await store.write([part()], 0);
      expect({ at, kind, ...(await answers(store)) }).toEqual({
        at,
        kind,
        ...(expected as object),
      });
      await store.close();
      await proxy.stop();
      const again = await openStore(server.store(name), { files: folder });
      const found = await answers(again.store);
      expect({ at, kind, ...found }).toEqual({ at, kind, ...(expected as object) });
      await again.store.close();
      expect(await partitions(name)).toEqual([2, 2]);
    }
  });

  it("drops what is left of a day that was removed while ClickHouse could not be reached", async () => {
    const proxy = await Cutting.start(server);
    const { store } = await openStore(proxy.store("removed"), { files: folder });
    await store.write([part()], 0);
    const tiers = { raw: 4000 * DAY, "10m": 4000 * DAY, "1h": 4000 * DAY };
    const least: Retention = { ...coarse, tiers, keepMs: 10 * DAY - 1 };
    proxy.cut(/^ALTER TABLE \w+\.metrics DROP/, 1, "for good");
    await expect(store.retain(least, START + 11 * DAY)).rejects.toThrow(/TM-E084/);
    proxy.heal();
    const window = { startMs: START, endMs: START + DAY - 1 };
    const query = { ...window, service: "shop", name: "rssBytes", by: "none" } as const;
    expect((await store.series({ ...query, stepMs: DAY })).groups).toEqual([]);
    await store.retain(least, START + 11 * DAY);
    expect(await partitions("removed")).toEqual([1, 1]);
    await store.close();
    await proxy.stop();
  });

  it("removes no day for its size because ClickHouse did not answer", async () => {
    const proxy = await Cutting.start(server);
    const { store } = await openStore(proxy.store("full"), { files: folder });
    await store.write([part()], 0);
    const expected = await answers(store);
    const tiers = { raw: 4000 * DAY, "10m": 4000 * DAY, "1h": 4000 * DAY };
    proxy.cut(/FROM \w+\.metrics FINAL/, 1, "before");
    const retained = await store.retain({ ...coarse, tiers, mostBytes: 1 }, START + 10 * DAY);
    expect(retained).toMatchObject({
      removed: [],
      failed: [{ reason: expect.stringMatching(/cut/) }],
    });
    expect(await answers(store)).toEqual(expected);
    await store.close();
    await proxy.stop();
  });

  it.each([/FROM \w+\.metrics FINAL/, /^INSERT INTO \w+\.metrics/, /^ALTER/])(
    "closes while a roll or sweep waits for %s",
    async (statement) => {
      const proxy = await Cutting.start(server);
      const { store } = await openStore(proxy.store("waiting"), { files: folder });
      await store.write([part()], 0);
      const held = proxy.hold(statement);
      const retained = store.retain(coarse, START + 10 * DAY).catch(() => {});
      await held;
      await store.close();
      await retained;
      await proxy.stop();
      await server.query("DROP DATABASE waiting");
    },
  );

  /** That have rows, and that days name. */
  const partitions = async (database: string) => {
    const [parts, days] = await Promise.all([
      server.query(
        `SELECT uniq(partition) FROM system.parts WHERE active AND database = '${database}' AND table IN ('profiles', 'samples', 'metrics')`,
      ),
      server.query(`SELECT count() FROM ${database}.days FINAL WHERE part <> ''`),
    ]);
    return [Number(parts), Number(days)];
  };
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Where a connection is cut: at a statement before it arrives, or after it is done; or there and at all later ones. */
type Cut = "before" | "after" | "for good";

/** Between the store and ClickHouse. */
class Cutting {
  readonly #proxy: Server;
  #port = 0;
  #cut: { readonly statement: RegExp; at: number; readonly kind: Cut } | null = null;
  #isDown = false;
  #held: { readonly statement: RegExp; readonly resolve: () => void } | null = null;
  readonly #target: ClickhouseServer;

  private constructor(target: ClickhouseServer) {
    this.#target = target;
    this.#proxy = createServer((asked, answer) => this.#pass(asked, answer));
  }

  static async start(target: ClickhouseServer): Promise<Cutting> {
    const cutting = new Cutting(target);
    cutting.#port = await listening(cutting.#proxy);
    return cutting;
  }

  /** At the statement number `at` that fits, from now on. */
  cut(statement: RegExp, at: number, kind: Cut): void {
    this.#cut = { statement, at, kind };
  }

  /** Never answers the next statement that fits. @returns when it has come */
  hold(statement: RegExp): Promise<void> {
    return new Promise((resolve) => {
      this.#held = { statement, resolve };
    });
  }

  get wasCut(): boolean {
    return this.#cut !== null && this.#cut.at <= 0;
  }

  heal(): void {
    this.#isDown = false;
  }

  async #pass(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const body = await buffer(asked);
    const { method, url = "", headers } = asked;
    const sql = new URL(url, "http://x").searchParams.get("query") ?? String(body);
    if (this.#held?.statement.test(sql) === true) {
      this.#held.resolve();
      return;
    }
    let isCut = false;
    if (this.#cut?.statement.test(sql) === true) {
      this.#cut.at -= 1;
      isCut = this.#cut.at === 0;
    }
    if (this.#isDown || (isCut && this.#cut?.kind === "before")) {
      asked.socket.destroy();
      return;
    }
    this.#isDown = isCut && this.#cut?.kind === "for good";
    const { port } = this.#target;
    const passed = request({ host: "127.0.0.1", port, method, path: url, headers }, async (got) => {
      const said = await buffer(got);
      if (isCut) {
        asked.socket.destroy();
        return;
      }
      answer.writeHead(got.statusCode ?? 500).end(said);
    });
    passed.end(body);
  }

  store(database: string): string {
    return this.#target.store(database).replace(/:\d+\//, `:${this.#port}/`);
  }

  async stop(): Promise<void> {
    this.#proxy.closeAllConnections();
    await new Promise((resolve) => this.#proxy.close(resolve));
  }
}
