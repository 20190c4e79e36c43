/** `serve --config`: the file decides, options come first, and SIGHUP reads it again. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { ask, type RunningServer, startServer } from "./running_server.js";

afterAll(removeScratch);

let folder: string;
let config: string;
let server: RunningServer | null;
beforeEach(() => {
  folder = scratch();
  config = join(folder, "serve.yaml");
  server = null;
});
afterEach(async () => {
  await server?.kill();
});

const write = (...lines: string[]) => writeFileSync(config, `${lines.join("\n")}\n`);
const statusWith = async (token: string) =>
  (await ask(`${server?.url}/api/v1/services`, { headers: { authorization: `Bearer ${token}` } }))
    .status;
const reloaded = async (expected: RegExp) => {
  const before = server?.said().length ?? 0;
  server?.child.kill("SIGHUP");
  await expect.poll(() => server?.said().slice(before)).toMatch(expected);
};

test("the file decides what no option does", async () => {
  write("listen: 127.0.0.1:1", "store: duckdb:stored", "log: warnings", "keep: 7d");
  server = await startServer(null, { options: ["--config", config], cwd: folder });
  expect(server.url).not.toMatch(/:1$/);
  expect(existsSync(join(folder, "stored/meta.duckdb"))).toBe(true);
  await ask(`${server.url}/healthz`);
  expect(server.said()).not.toContain('"path":"/healthz"');
});

test("SIGHUP reads tokens, limits and the log's level again; a broken file changes nothing", async () => {
  writeFileSync(join(folder, "tokens"), "read the-first-token-of-all\n");
  write("token_file: tokens", "log: warnings");
  server = await startServer(join(folder, "data"), { options: ["--config", config] });
  expect(await statusWith("the-first-token-of-all")).toBe(200);
  writeFileSync(join(folder, "tokens"), "read another-token-of-ours\n");
  write("token_file: tokens", "log: requests", "load: [more.tidemark]", "label_values: 9");
  await reloaded(/read .*serve\.yaml again; label_values, load will apply at the next start/);
  expect(await statusWith("the-first-token-of-all")).toBe(401);
  expect(await statusWith("another-token-of-ours")).toBe(200);
  await expect.poll(server.said).toContain('"path":"/api/v1/services"');
  write("token_file: tokens", "max_disk: much");
  await reloaded(/line 2: max_disk: expected a size .*; the old settings remain in force/);
  write("log: warnings");
  await reloaded(/token_file cannot be added or removed while the server runs.*the old settings/);
  writeFileSync(join(folder, "tokens"), "read short\n");
  write("token_file: tokens");
  await reloaded(/line 1 of .*tokens is not a token.*the old settings remain in force/);
  expect(await statusWith("another-token-of-ours")).toBe(200);
  expect(await statusWith("")).toBe(401);
  expect(await server.stop()).toBe(0);
  server = null;
});

test.each([
  [["keeps: 7d"], /serve\.yaml, line 1: .*no such setting: keeps/],
  [["keep: 7d", "watch: [1"], /serve\.yaml, line 3: /],
  [["listen: 0.0.0.0:7070"], /no token protects the server/],
  [["policy: p.yaml"], /--policy has no effect without --watch/],
  [["watch: true", "policy: p.yaml", "listen: 127.0.0.1:0"], /no such .*p\.yaml/],
  [["store: sqlite:x"], /this store is not known: sqlite:x/],
])("%j is refused in one line", async (lines, expected) => {
  write(...lines);
  const outcome = await execute([tidemark, "serve", "--config", config], { cwd: folder });
  expect([outcome.status, outcome.stderr]).toEqual([2, expect.stringMatching(expected)]);
  expect(outcome.stderr.trimEnd().split("\n")).toHaveLength(1);
});

test("a missing file is named", async () => {
  const { status, stderr } = await execute([tidemark, "serve", "--config", config]);
  expect([status, stderr]).toEqual([
    2,
    expect.stringMatching(/no such configuration: .*serve\.yaml/),
  ]);
});
