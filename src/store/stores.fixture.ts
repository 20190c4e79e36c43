/** The stores that the conformance suites test. A new one is added here. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { streamName } from "../recording/sender/stream_name.js";
import { StreamReader } from "../recording/stream_reader.js";
import { type StreamPlan, streamBytes } from "../recording/streams.fixture.js";
import { ClickhouseCluster } from "./clickhouse/cluster.fixture.js";
import { ChdbServer, ClickhouseServer } from "./clickhouse/server.fixture.js";
import { openStore, type Store, type StreamPart } from "./index.js";
import type { StoreSettings } from "./interface/store.js";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const MIB = 2 ** 20;

/** What the set-up of the tests found (scripts/environment.mjs). */
interface Environment {
  readonly clickhouse: string | null;
  readonly zookeeper?: string | null;
  readonly chdbPython: string | null;
  readonly skipped: readonly { readonly what: string; readonly why: string }[];
}

/** Tables of metadata. */
const COUNTED = ["series", "streams", "stacks", "frames", "labels", "label_values"] as const;
type Counts = Record<(typeof COUNTED)[number], number>;

export interface TestedStore {
  readonly name: string;
  /** Why it cannot be tested here; null: it can. */
  readonly whyNot: string | null;
  open(folder: string, settings?: Partial<StoreSettings>): Promise<Store>;
  /** Deletes all data of the folder's store, which must be closed. */
  remove(folder: string): Promise<void>;
  /** Days and their tiers, as in "2026-09-10" and "2026-09-11.10m", ascending. */
  days(folder: string): Promise<string[]>;
  /** Whether a day is being rolled up. */
  isRolling(folder: string): boolean;
  /** Rows of metadata; the store must be closed. */
  counts(folder: string): Promise<Counts>;
  /** Ends what `open` started. */
  stop(): Promise<void>;
}

const duckdb: TestedStore = {
  name: "duckdb",
  whyNot: null,
  open: async (folder, settings = {}) => (await openStore(`duckdb:${folder}`, settings)).store,
  remove: async (folder) => rmSync(folder, { recursive: true, force: true }),
  days: async (folder) =>
    readdirSync(join(folder, "days"))
      .filter((name) => !name.endsWith(".wal"))
      .map((name) => name.replace(/\.duckdb$/, "")),
  isRolling: (folder) =>
    readdirSync(join(folder, "days")).some((name) => name.endsWith(".unfinished")),
  async counts(folder) {
    const instance = await DuckDBInstance.create(join(folder, "meta.duckdb"));
    const connection = await instance.connect();
    const counts: Partial<Counts> = {};
    for (const table of COUNTED) {
      const rows = await connection.runAndReadAll(`SELECT count(*) FROM ${table}`);
      counts[table] = Number(rows.getRows()[0]?.[0]);
    }
    connection.closeSync();
    instance.closeSync();
    return counts as Counts;
  },
  stop: async () => {},
};

type AnyServer = ClickhouseServer | ChdbServer | ClickhouseCluster;

function databaseOf(folder: string): string {
  return basename(folder).replaceAll(/\W/g, "_");
}

function clickhouseStore(
  name: string,
  whyNot: string | null,
  start: () => Promise<AnyServer>,
): TestedStore {
  let server: Promise<AnyServer> | null = null;
  return {
    name,
    whyNot,
    async open(folder, settings = {}) {
      server ??= start();
      const name = (await server).store(databaseOf(folder));
      return (await openStore(name, { ...settings, files: folder })).store;
    },
    async remove(folder) {
      const database = databaseOf(folder);
      const running = await server;
      await (running instanceof ClickhouseCluster
        ? running.drop(database)
        : running?.query(`DROP DATABASE IF EXISTS ${database}`));
      rmSync(folder, { recursive: true, force: true });
    },
    async days(folder) {
      const rows = await (await server)?.query(
        `SELECT day, tier FROM ${databaseOf(folder)}.days FINAL WHERE part <> '' ORDER BY day`,
      );
      return (rows ?? "")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => line.replace("\traw", "").replace("\t", "."));
    },
    isRolling: (folder) =>
      readdirSync(folder, { recursive: true }).some((name) =>
        String(name).endsWith("roll_from.duckdb"),
      ),
    async counts(folder) {
      const database = databaseOf(folder);
      const counts: Partial<Counts> = {};
      const left = `SELECT count() FROM system.mutations WHERE database = '${database}' AND NOT is_done`;
      await expect.poll(async () => (await server)?.query(left)).toBe("0");
      for (const table of COUNTED) {
        const sql = `SELECT count() FROM (SELECT * FROM ${database}.${table} FINAL)`;
        counts[table] = Number(await (await server)?.query(sql));
      }
      return counts as Counts;
    },
    async stop() {
      await (await server)?.stop();
      server = null;
    },
  };
}

const LIMITS = { frameBytes: 64 << 20, callBytes: 128 << 20 };

/** The frames of a stream, as they are written to a store. */
export function partOf(plan: StreamPlan): StreamPart {
  const bytes = streamBytes(plan);
  const items = new StreamReader("it", LIMITS).take(bytes);
  return { stream: streamName(bytes), items, endOffset: bytes.length };
}

/**
 * For each test of a suite: a store in a folder of its own, which `opened` gets. `usual`: its settings.
 * @returns opens the folder's store again, which must be closed
 */
export function withStore(
  tested: TestedStore,
  opened: (store: Store, folder: string) => void,
  usual: Partial<StoreSettings> = {},
): (settings?: Partial<StoreSettings>) => Promise<void> {
  let folder = "";
  let store: Store;
  const open = async (settings = usual) => {
    store = await tested.open(folder, settings);
    opened(store, folder);
  };
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "tidemark-store-"));
    await open();
  });
  afterEach(async () => {
    await store.close();
    await tested.remove(folder);
  });
  afterAll(tested.stop);
  return open;
}

/** A suite of each store. Those that cannot be tested here are reported as skipped. */
export function describeStores(
  environment: Environment,
  suite: (tested: TestedStore) => void,
): void {
  const stores = testedStores(environment);
  const missing = stores.filter(({ whyNot }) => whyNot !== null);
  it.skipIf(true).each(missing)("the store $name: $whyNot", () => {});
  describe.each(stores.filter(({ whyNot }) => whyNot === null))("the store $name", suite);
}

function testedStores({ clickhouse, zookeeper, chdbPython, skipped }: Environment): TestedStore[] {
  const why = (found: string | null | undefined, name: string) =>
    typeof found === "string"
      ? null
      : (skipped.find(({ what }) => what === name)?.why ?? "it is not installed");
  return [
    duckdb,
    clickhouseStore("clickhouse", why(clickhouse, "ClickHouse"), () =>
      ClickhouseServer.start(clickhouse ?? ""),
    ),
    clickhouseStore(
      "clickhouse (2 shards with 2 replicas)",
      why(clickhouse, "ClickHouse") ?? why(zookeeper, "ZooKeeper"),
      () => ClickhouseCluster.start(zookeeper ?? "", clickhouse ?? ""),
    ),
    clickhouseStore("clickhouse (chdb)", why(chdbPython, "chdb"), () =>
      ChdbServer.start(chdbPython ?? ""),
    ),
  ];
}
