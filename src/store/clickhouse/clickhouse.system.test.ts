/** What is particular to a store in ClickHouse: what it refuses, and connections that are cut between two inserts. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
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
    for (const [name, line] of [
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
      const proxy = await Cutting.start(server, at, isDone);
      const cut = await openStore(proxy.store(name), { files: folder });
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
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Between the store and ClickHouse: cuts the connection at an INSERT, before it arrives or after it is done. */
class Cutting {
  readonly #proxy: Server;
  readonly #target: ClickhouseServer;
  #port = 0;

  private constructor(proxy: Server, target: ClickhouseServer) {
    this.#proxy = proxy;
    this.#target = target;
  }

  static async start(target: ClickhouseServer, at: number, isDone: boolean): Promise<Cutting> {
    let inserts = 0;
    // From the moment when the store has been opened.
    let isOpen = false;
    const proxy = createServer(async (asked, answer) => {
      const body = await buffer(asked);
      const isInsert = /query=INSERT/.test(asked.url ?? "");
      isOpen ||= /_offset.*applied/.test(asked.url ?? "");
      inserts += isOpen && isInsert ? 1 : 0;
      const isCut = isOpen && isInsert && inserts === at;
      if (isCut && !isDone) {
        asked.socket.destroy();
        return;
      }
      const { method, url, headers } = asked;
      const passed = request(
        { host: "127.0.0.1", port: target.port, method, path: url, headers },
        async (got) => {
          const said = await buffer(got);
          if (isCut) {
            asked.socket.destroy();
            return;
          }
          answer.writeHead(got.statusCode ?? 500).end(said);
        },
      );
      passed.end(body);
    });
    const cutting = new Cutting(proxy, target);
    cutting.#port = await listening(proxy);
    return cutting;
  }

  store(database: string): string {
    return this.#target.store(database).replace(/:\d+\//, `:${this.#port}/`);
  }

  async stop(): Promise<void> {
    this.#proxy.closeAllConnections();
    await new Promise((resolve) => this.#proxy.close(resolve));
  }
}
