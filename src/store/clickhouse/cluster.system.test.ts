/** Two shards with two replicas each, of which some are down (the suites for all stores run with all of them). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { environment } from "../../../test/environment.js";
import type { PartialAnswer } from "../../model/wire/partial.js";
import { allowingPartial, openStore, type Store } from "../index.js";
import { partOf } from "../stores.fixture.js";
import { ClickhouseCluster } from "./cluster.fixture.js";
import type { ClickhouseServer } from "./server.fixture.js";

const { clickhouse, zookeeper } = environment;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MIB = 2 ** 20;
const START = Date.UTC(2026, 8, 10, 12);
const PROCESSES = 12;
const window = { startMs: START, endMs: START + 10 * MINUTE };

describe.skipIf(clickhouse === null || (zookeeper ?? null) === null)("a cluster", () => {
  let cluster: ClickhouseCluster;
  let folder: string;
  let store: Store;
  beforeAll(async () => {
    cluster = await ClickhouseCluster.start(zookeeper ?? "", clickhouse ?? "");
    folder = mkdtempSync(join(tmpdir(), "tidemark-cluster-"));
    await open();
  });
  afterAll(async () => {
    await store.close();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const open = async () => {
    ({ store } = await openStore(cluster.store("tidemark"), { files: folder }));
  };
  const server = (at: number) => cluster.servers[at] as ClickhouseServer;
  const give = (pid: number, startedMs = START) => {
    const part = partOf({
      ...{ service: "shop", version: "1", pid, startedMs },
      rss: Array.from({ length: 11 }, (_, n) => [n * MINUTE, 100 * MIB] as const),
      profiles: [[0, `main;f${pid} ${pid * MIB} variance=1`]],
    });
    return store.write([part], 0);
  };
  const instances = async () => (await store.instances("shop", window))?.length;
  const live = async () => {
    const query = { ...window, of: { service: "shop" }, mostStacks: 1000 };
    const { snapshot } = await store.profile(query);
    return snapshot.sites.liveBytes.reduce((sum, bytes) => sum + bytes, 0) / MIB;
  };
  /** An answer, and what it lacks. */
  const partly = async <Answer>(
    ask: () => Promise<Answer>,
  ): Promise<[Answer | undefined, PartialAnswer | null]> => {
    let answer: Answer | undefined;
    const partial = await allowingPartial(async () => {
      answer = await ask();
    });
    return [answer, partial];
  };
  const whole = (PROCESSES * (PROCESSES + 1)) / 2;

  it("divides processes among shards, and stores each row twice", async () => {
    for (let pid = 1; pid <= PROCESSES; pid++) {
      await give(pid);
    }
    expect(await instances()).toBe(PROCESSES);
    expect(await partly(live)).toEqual([expect.closeTo(whole), null]);
    const rows = async (at: number) =>
      Number(await server(at).query("SELECT count() FROM tidemark.profiles_shard"));
    for (const [first, second] of [
      [0, 1],
      [2, 3],
    ] as const) {
      const count = await rows(first);
      expect(count).toBeGreaterThan(0);
      expect(count).toBeLessThan(PROCESSES);
      await expect.poll(() => rows(second)).toBe(count);
    }
  });

  it("answers and writes as before while a replica of each shard is down", async () => {
    await server(1).kill();
    await server(2).kill();
    expect(await partly(live)).toEqual([expect.closeTo(whole), null]);
    await give(PROCESSES + 1);
    expect(await partly(instances)).toEqual([PROCESSES + 1, null]);
  });

  it("marks what lacks a shard, keeps none of it, and refuses it to work that expects a complete one", async () => {
    // Sums of whole hours are kept in memory; these are not there yet.
    const long = { startMs: START - 2 * DAY, endMs: START + 2 * DAY };
    const stacks = async () => {
      const of = { service: "shop" };
      const { snapshot } = await store.profile({ ...long, of, mostStacks: 1000 });
      return snapshot.sites.length;
    };
    await server(3).kill();
    const [found, partial] = await partly(instances);
    expect(partial).toEqual({ shards: 2, missing: 1 });
    expect(found).toBeGreaterThan(0);
    expect(found).toBeLessThan(PROCESSES);
    const [some, lacking] = await partly(stacks);
    expect(lacking).toEqual({ shards: 2, missing: 1 });
    expect(some).toBeLessThan(PROCESSES);
    await expect(instances()).rejects.toThrow(/start a replica of each shard/);
    // A process of either shard: what cannot be written is given again, later.
    const written = await Promise.allSettled(
      Array.from({ length: 6 }, (_, n) => give(PROCESSES + 2 + n)),
    );
    expect(written.some(({ status }) => status === "rejected")).toBe(true);
    await server(3).begin();
    await server(2).begin();
    await server(1).begin();
    await expect.poll(async () => (await partly(instances))[1], { interval: 500 }).toBeNull();
    for (let pid = PROCESSES + 2; pid < PROCESSES + 8; pid++) {
      await expect.poll(() => give(pid).then(() => true, String)).toBe(true);
    }
    expect(await partly(instances)).toEqual([PROCESSES + 7, null]);
    expect(await partly(stacks)).toEqual([PROCESSES + 7, null]);
  });

  it("starts while a shard is down, and has all of it later", async () => {
    await store.close();
    await server(2).kill();
    await server(3).kill();
    await open();
    const [, partial] = await partly(instances);
    expect(partial).toEqual({ shards: 2, missing: 1 });
    await server(3).begin();
    await expect.poll(() => partly(instances), { interval: 500 }).toEqual([PROCESSES + 7, null]);
  });

  it("marks what lacks the rows that only a replica has that is down", async () => {
    await server(2).kill();
    for (let pid = PROCESSES + 8; pid < PROCESSES + 14; pid++) {
      await give(pid);
    }
    await server(3).kill();
    await server(2).begin();
    await expect
      .poll(() => partly(instances), { interval: 500 })
      .toEqual([expect.any(Number), { shards: 2, missing: 1 }]);
    await server(3).begin();
    await expect.poll(() => partly(instances), { interval: 500 }).toEqual([PROCESSES + 13, null]);
  });

  it("is refused in one line where it is named in another way", async () => {
    const name = cluster.store("tidemark");
    for (const [other, line] of [
      [name.replace("?cluster=fleet", ""), /divided among the shards of a cluster/],
      [name.replace("cluster=fleet", "cluster=none"), /knows no cluster none; name one of these/],
    ] as const) {
      await expect(openStore(other, { files: join(folder, "other") })).rejects.toThrow(line);
    }
  });
});
