/** `/metrics`: what Prometheus scrapes. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { readEnvironment } from "../../scripts/environment.mjs";
import { freePort } from "../../src/model/base/free_port.fixture.js";
import { present } from "../../src/model/base/present.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { removeScratch, scratch } from "../run.js";
import { pprofOf, pushMessage } from "./profiles.js";
import { ask, post, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

const { tools } = readEnvironment();
const MIB = 2 ** 20;

let folder: string;
let server: RunningServer;
let prometheus: ChildProcess | null;
beforeEach(async () => {
  folder = scratch();
  prometheus = null;
  server = await startServer(join(folder, "data"));
  const startedMs = Date.now() - 60_000;
  for (const [service, pid] of [
    ["shop", 7],
    ['a"b\\c\nd', 8],
  ] as const) {
    const rss = [0, 30_000, 55_000].map((afterMs) => [afterMs, 50 * MIB] as const);
    const profiles = [[50_000, "main;load 1048576 variance=1"]] as const;
    const figures = {
      deviceBytes: [
        [0, 9],
        [40_000, 700 * MIB],
      ] as [number, number][],
      requestsPerSecond: [[40_000, 12.5]] as [number, number][],
    };
    const plan = { service, version: "41", pid, startedMs, rss, profiles, figures };
    expect((await post(server.url, streamBytes(plan))).status).toBe(200);
  }
  const rss = [0, 30_000, 55_000].map((afterMs) => [afterMs, 50 * MIB] as const);
  const outside = streamBytes({ service: "shop", version: "41", pid: 9, startedMs, rss });
  expect((await post(server.url, outside)).status).toBe(200);
  const pushed = await fetch(`${server.url}/push.v1.PusherService/Push`, {
    method: "POST",
    headers: { "content-type": "application/proto" },
    body: new Uint8Array(
      pushMessage({ service_name: "till" }, pprofOf({ inuse_space: 4096 }), "1"),
    ),
  });
  expect(pushed.status).toBe(200);
  await expect.poll(metrics).toContain("till");
});
afterEach(async () => {
  prometheus?.kill("SIGKILL");
  await server.kill();
});

const metrics = async () => String((await ask(`${server.url}/metrics`)).body);

test("has the newest figures of each service and version, and of the server", async () => {
  const text = await metrics();
  expect(text).toContain(`tidemark_rss_bytes{service="shop",version="41"} ${100 * MIB}\n`);
  expect(text).toContain(`tidemark_live_bytes{service="shop",version="41"} ${MIB}\n`);
  expect(text).toContain('tidemark_instances{service="shop",version="41"} 2\n');
  expect(text).toContain('tidemark_profiled_instances{service="shop",version="41"} 1\n');
  expect(text).toContain(`tidemark_device_bytes{service="shop",version="41"} ${700 * MIB}\n`);
  expect(text).not.toContain('tidemark_device_bytes{service="till"');
  expect(text).toContain('tidemark_requests_per_second{service="shop",version="41"} 12.5\n');
  expect(text).not.toContain('tidemark_requests_per_second{service="till"');
  expect(text).toContain('tidemark_live_bytes{service="till",version=""} 4096\n');
  expect(text).not.toContain('tidemark_rss_bytes{service="till"');
  expect(text).toContain('tidemark_rss_bytes{service="a\\"b\\\\c\\nd",version="41"}');
  expect(text).toMatch(/^tidemark_server_requests_total\{code="2xx"\} \d+$/m);
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m);
});

test.skipIf(tools.promtool === null)("passes promtool check metrics", async () => {
  const text = await metrics();
  const outcome = await new Promise<string>((resolve) => {
    const child = execFile(present(tools.promtool), ["check", "metrics"], (error, out, said) =>
      resolve(`${error?.code ?? 0} ${out}${said}`),
    );
    child.stdin?.end(text);
  });
  expect(outcome).toBe("0 ");
});

test.skipIf(tools.prometheus === null)("is scraped by Prometheus", async () => {
  const port = await freePort();
  const config = join(folder, "prometheus.yml");
  writeFileSync(
    config,
    `scrape_configs:
  - job_name: tidemark
    scrape_interval: 1s
    static_configs: [{targets: ["${server.url.replace("http://", "")}"]}]
`,
  );
  prometheus = spawn(
    present(tools.prometheus),
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, "tsdb")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: "ignore" },
  );
  const query = `http://127.0.0.1:${port}/api/v1/query?query=tidemark_rss_bytes`;
  const found = async () => {
    const answer = await ask(query).catch(() => null);
    const body = answer?.body as
      | { data?: { result: { metric: { service: string }; value: [number, string] }[] } }
      | undefined;
    return body?.data?.result.find(({ metric }) => metric.service === "shop")?.value[1];
  };
  await expect.poll(found).toBe(String(100 * MIB));
});
