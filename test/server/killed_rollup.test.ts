/** SIGKILL of a server that moves days to coarser tiers: the answers afterwards are those of before, with nothing lost or
 * doubled. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, expect, test } from "vitest";
import type { ServiceJson } from "../../src/model/documents/fleet_document.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { removeScratch, scratch, until } from "../run.js";
import { ask, post, type RunningServer, startServer } from "./running_server.js";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const DAYS = 6;
const KILLS = 5;
const MIDNIGHT = Math.floor(Date.now() / DAY) * DAY - (DAYS + 2) * DAY;

let running: RunningServer | null = null;
afterEach(() => running?.kill());
afterAll(removeScratch);

const given = Array.from({ length: DAYS }, (_, day) => {
  const stacks = Array.from({ length: 300 }, (_, at) => at);
  return streamBytes({
    service: "shop",
    version: String(day % 2),
    pid: day + 1,
    // Across midnight.
    startedMs: MIDNIGHT + day * DAY + 1430 * MINUTE,
    rss: Array.from({ length: 120 }, (_, n) => [n * MINUTE, 1e8 + n * 1e5] as const),
    profiles: Array.from(
      { length: 40 },
      (_, n) =>
        [
          n * 3 * MINUTE,
          stacks
            .map(
              (at) =>
                `main;f${at} ${1000 * (1 + ((at + n) % 90))} allocated=${2e5 + 500 * n} variance=1`,
            )
            .join("\n"),
        ] as const,
    ),
    endedAfterMs: 121 * MINUTE,
  });
});

const window = `from=${MIDNIGHT}&to=${MIDNIGHT + (DAYS + 1) * DAY}`;

/** Totals that no tier changes. */
async function totals({ url }: RunningServer) {
  const body = async (path: string) => (await ask(`${url}/api/v1/${path}`)).body as never;
  const profile = (await body(`profile?service=shop&${window}`)) as {
    liveBytes: number;
    allocatedBytes: number;
  };
  const series = (await body(`series?service=shop&by=version&steps=${DAYS + 1}&${window}`)) as {
    groups: { group: string; values: (number | null)[] }[];
  };
  return {
    live: Math.round(profile.liveBytes),
    allocated: Math.round(profile.allocatedBytes),
    rss: series.groups.map(({ group, values }) => [
      group,
      values.map((value) => (value === null ? null : Math.round(value))),
    ]),
  };
}

const tiersIn = (folder: string) =>
  readdirSync(join(folder, "days"))
    .filter((name) => name.endsWith(".duckdb"))
    .map((name) => /\.(\w+)\.duckdb$/.exec(name)?.[1] ?? "raw")
    .join(" ");

test("a server that is killed while it rolls days up loses and doubles nothing", async () => {
  const folder = join(scratch(), "data");
  const config = join(scratch(), "serve.yaml");
  const tiers = (raw: string, ten: string, hour: string) =>
    writeFileSync(config, `tiers: {raw: ${raw}, 10m: ${ten}, 1h: ${hour}}\n`);
  tiers("100d", "100d", "100d");
  const start = async () => {
    running = await startServer(folder, { options: ["--config", config] });
    return running;
  };
  let server = await start();
  for (const bytes of given) {
    expect((await post(server.url, bytes)).status).toBe(200);
  }
  // What is acknowledged reaches the database a moment later.
  const isStored = async () => {
    const { body } = await ask(`${server.url}/api/v1/service?name=shop&${window}`);
    const { instances = [] } = body as Partial<ServiceJson>;
    return instances.length === DAYS && instances.every(({ endedMs }) => endedMs !== undefined);
  };
  await until(isStored);
  const before = await totals(server);
  expect(before.live).toBeGreaterThan(0);
  await server.stop();
  const seen = new Set([tiersIn(folder)]);
  for (const [at, ages] of [
    ["1h", "100d", "100d"],
    ["1h", "1h", "100d"],
    ["1h", "1h", "1h"],
  ].entries()) {
    tiers(...(ages as [string, string, string]));
    const begin = tiersIn(folder);
    for (let kill = 0; kill < KILLS; kill++) {
      server = await start();
      // The last time as soon as a day has been moved; how soon that is depends on the machine.
      await (kill === KILLS - 1
        ? until(() => tiersIn(folder) !== begin)
        : sleep(20 + (((kill * 7 + at) * 131) % 500)));
      await server.kill();
      seen.add(tiersIn(folder));
    }
    server = await start();
    expect(await totals(server)).toEqual(before);
    const tier = ["10m", "1h", "1d"][at] as string;
    await expect
      .poll(() => tiersIn(folder), { interval: 200 })
      .toBe(Array.from({ length: DAYS + 1 }, () => tier).join(" "));
    expect(await totals(server)).toEqual(before);
    await server.stop();
  }
  // It was killed in the middle, not only before or after.
  expect([...seen].some((tiersThen) => new Set(tiersThen.split(" ")).size > 1)).toBe(true);
});
