/** A server whose ClickHouse has two shards, one of which is down: the API, the command and the page say what is missing. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ServicesJson } from "../../src/model/documents/fleet_document.js";
import { type PartialAnswer, partialIn } from "../../src/model/wire/partial.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { ClickhouseCluster } from "../../src/store/clickhouse/cluster.fixture.js";
import { launchBrowser } from "../browser.js";
import { environment } from "../environment.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { watchedPage } from "./fleet_page.js";
import { ask, post, type RunningServer, startServer } from "./running_server.js";

const { clickhouse, zookeeper } = environment;
const START = Date.now() - 600_000;
const PROCESSES = 12;
const MISSING = /1 of 2 shards of the server's database does not answer: processes .* are missing/;

describe.skipIf(clickhouse === null || (zookeeper ?? null) === null)("a shard that is down", () => {
  let cluster: ClickhouseCluster;
  let server: RunningServer;
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
    cluster = await ClickhouseCluster.start(zookeeper ?? "", clickhouse ?? "");
    const options = ["--store", cluster.store("fleet"), "--files", scratch()];
    server = await startServer(null, { options });
    for (let pid = 1; pid <= PROCESSES; pid++) {
      const rss = Array.from({ length: 10 }, (_, n) => [n * 60_000, 1e8] as const);
      const profiles = [[1, "main 1000 allocated=1000 variance=1"]] as const;
      const bytes = streamBytes({ service: "shop", pid, startedMs: START, rss, profiles });
      expect((await post(server.url, bytes)).status).toBe(200);
    }
  });
  afterAll(async () => {
    await browser.close();
    await server.kill();
    await cluster.stop();
    removeScratch();
  });

  const services = async () => {
    const { body, headers } = await ask(`${server.url}/api/v1/services`);
    return { body: body as ServicesJson & { partial?: PartialAnswer }, headers };
  };

  test("is named by every answer, until it is back", async () => {
    await expect.poll(async () => (await services()).body.services[0]?.instances).toBe(PROCESSES);
    expect(partialIn((await services()).headers)).toBeNull();
    const { page, complaints } = await watchedPage(browser, server.url);
    await page.goto(`${server.url}/service?name=shop`);
    await page.waitForSelector("text=Instances");
    await expect.poll(() => page.locator(".fleet-partial").count()).toBe(0);

    await cluster.servers[2]?.kill();
    await cluster.servers[3]?.kill();
    const { body, headers } = await services();
    expect(partialIn(headers)).toEqual({ shards: 2, missing: 1 });
    expect(body.partial).toEqual({ shards: 2, missing: 1 });
    expect(body.services[0]?.instances).toBeLessThan(PROCESSES);
    for (const path of [
      "service?name=shop",
      "series?service=shop",
      "heatmap?service=shop",
      "profile?service=shop",
      "profile?service=shop&format=columns",
      "growing?service=shop",
    ]) {
      const answer = await fetch(`${server.url}/api/v1/${path}`);
      expect([path, answer.status, partialIn(answer.headers)]).toEqual([
        ...[path, 200],
        { shards: 2, missing: 1 },
      ]);
    }
    const printed = await execute([tidemark, "fleet", "services", "--server", server.url]);
    expect(printed.stderr).toMatch(MISSING);
    expect(printed.stdout).toContain("shop");

    await page.reload();
    await expect.poll(() => page.locator(".fleet-partial").innerText()).toMatch(MISSING);
    await cluster.servers[2]?.begin();
    await cluster.servers[3]?.begin();
    await expect.poll(async () => partialIn((await services()).headers)).toBeNull();
    expect((await services()).body.services[0]?.instances).toBe(PROCESSES);
    await page.reload();
    await page.waitForSelector("text=Instances");
    await expect.poll(() => page.locator(".fleet-partial").count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.close();
  });

  test("goes and comes back while questions are answered: no answer fails", async () => {
    let isOver = false;
    const odd: string[] = [];
    const counts = { whole: 0, partial: 0 };
    const asking = [
      "service?name=shop",
      "profile?service=shop&format=columns",
      "series?service=shop",
    ].map(async (path) => {
      while (!isOver) {
        const answer = await fetch(`${server.url}/api/v1/${path}`);
        const said = await answer.text();
        counts[partialIn(answer.headers) === null ? "whole" : "partial"]++;
        if (answer.status !== 200) {
          odd.push(`${path}: ${answer.status} ${said}`);
        }
      }
    });
    try {
      for (let round = 0; round < 3; round++) {
        await Promise.all([2, 3].map((index) => cluster.servers[index]?.kill()));
        await expect.poll(async () => partialIn((await services()).headers)).not.toBeNull();
        await Promise.all([2, 3].map((index) => cluster.servers[index]?.begin()));
        await expect.poll(async () => partialIn((await services()).headers)).toBeNull();
      }
    } finally {
      isOver = true;
      await Promise.all(asking);
    }
    expect(odd).toEqual([]);
    expect(counts.whole).toBeGreaterThan(0);
    expect(counts.partial).toBeGreaterThan(0);
  });
});
