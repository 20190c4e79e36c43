/** The collector with real programs. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { ServicesJson } from "../../src/model/documents/fleet_document.js";
import type { WatchJson } from "../../src/model/documents/watch_document.js";
import type { SeriesAnswer } from "../../src/model/wire/services.js";
import { validate } from "../recorded_app.js";
import { execute, open, repository, summaryOf, tidemark, until } from "../run.js";
import { ask, startServer } from "../server/running_server.js";
import { IDLE, LEAK, MASTER, stopped, withWatchTest } from "./watched.js";

const watched = withWatchTest();

test("each program is recorded as its rule says, and is left as it was", async () => {
  const leak = watched().python(LEAK, "leak");
  const outside = watched().python(IDLE, "outside");
  watched().python(IDLE, "never");
  const { child, said } = watched().watch("--config", watched().policy());
  await until(() =>
    said().includes(`${watched().name}-leak 7 (process ${leak.pid}): recording it with the agent`),
  );
  await until(() => watched().recordingOf("leak", true) !== undefined);
  await until(() => open(present(watched().recordingOf("leak", true))).snapshots.length > 3);
  await until(() => watched().recordingOf("outside", false) !== undefined);
  expect(await stopped(child)).toBe(0);
  expect(said()).toContain(`${watched().name}-leak 7 (process ${leak.pid}): left as it was`);

  const { sites } = await summaryOf(present(watched().recordingOf("leak", true)));
  expect(sites[0]?.stack.map((frame) => frame.function)).toContain("remember");
  expect(watched().recordingOf("outside", true)).toBeUndefined();
  const { meta, series } = open(present(watched().recordingOf("outside", false)));
  expect(meta).toMatchObject({ pid: outside.pid, identity: { version: "7" } });
  expect(series[0]?.timesMs.length).toBeGreaterThan(0);
  expect(
    watched()
      .recordings()
      .filter((file) => file.includes("-never-")),
  ).toEqual([]);

  expect(leak.exitCode).toBeNull();
  const detached = await execute([tidemark, "detach", String(leak.pid), "--json"]);
  expect(JSON.parse(detached.stdout)).toMatchObject({ recorded: false, inert: true });
});

/** A master with two workers, each of which serves about 50 requests a second of a WSGI application. */
const SERVING = `import os, sys, time
sys.path.insert(0, ${JSON.stringify(join(repository, "python"))})
import tidemark.traffic
app = tidemark.traffic.wsgi(lambda environ, start: [])
workers = [os.fork()]
if 0 not in workers: workers.append(os.fork())
if 0 in workers:
    while True:
        app({"PATH_INFO": "/"}, None)
        time.sleep(0.02)
while True: time.sleep(1)
`;

test("requests that a program's workers count arrive at the server", async () => {
  watched().python(SERVING, "shop");
  const server = await startServer(join(watched().folder, "store"));
  try {
    const policy = watched().policy("{warm_up: 1s, turn: 1h}");
    watched().watch("--config", policy, "--to", server.url);
    const service = `${watched().name}-shop`;
    const row = new RegExp(
      `^tidemark_requests_per_second\\{service="${service}",version="7"\\} (.*)$`,
      "m",
    );
    const measured = async () =>
      Number(row.exec(String((await ask(`${server.url}/metrics`)).body))?.[1] ?? 0);
    // The first measured interval may be one in which the workers began.
    await until(async () => (await measured()) > 20);
    // Both workers once: the count may be read a moment later than the poll's time.
    expect(await measured()).toBeLessThan(150);
    const { body } = await ask(
      `${server.url}/api/v1/series?service=${service}&name=requestsPerSecond`,
    );
    const [group] = (body as SeriesAnswer).groups;
    expect(group?.values.some((value) => (value ?? 0) > 0)).toBe(true);
  } finally {
    await server.kill();
  }
});

test("a master and its workers have one recording, and a verdict names the line", async () => {
  const master = watched().python(MASTER, "shop");
  const { child, said } = watched().watch("--config", watched().policy("{warm_up: 1s, turn: 1h}"));
  await until(() => said().includes("recording it with the agent"));
  await until(() => said().includes(" sure)."));
  expect(said()).toMatch(
    new RegExp(`${watched().name}-shop 7 \\(process ${master.pid}\\): child-growth`),
  );
  expect(await stopped(child)).toBe(0);
  const pids = new Set(
    open(present(watched().recordingOf("shop", true))).processes.map(({ pid }) => pid),
  );
  expect(pids.size).toBe(3);
});

test("--once prints how each program would be recorded, and records none", async () => {
  const leak = watched().python(LEAK, "leak");
  watched().python(IDLE, "never");
  const path = watched().policy();
  let text = "";
  const ours = () =>
    (JSON.parse(text) as WatchJson).programs.filter((row) => watched().isOurs(row));
  do {
    text = (await execute([tidemark, "watch", "--once", "--config", path, "--json"])).stdout;
  } while (ours().length < 2); // Python is still starting
  validate(text, "watch");
  const gets = ours().map((row) => [row.service, row.gets, row.rule]);
  expect(gets.sort()).toEqual([
    [`${watched().name}-leak`, "agent", 3],
    [`${watched().name}-never`, "never", 2],
  ]);
  const table = await execute([tidemark, "watch", "--once", "--config", path]);
  expect(table.stdout).toMatch(new RegExp(`${leak.pid} +${watched().name}-leak +7 .* agent +3 `));
  expect((await execute([tidemark, "detach", String(leak.pid)])).stderr).toContain("TM-E039");
});

test("--once beside a running collector shows what that collector does, and names it", async () => {
  const leak = watched().python(LEAK, "leak");
  const path = watched().policy();
  const { child } = watched().watch("--config", path);
  await until(() => watched().recordingOf("leak", true) !== undefined);
  const { stdout } = await execute([tidemark, "watch", "--once", "--config", path, "--json"]);
  validate(stdout, "watch");
  const row = (JSON.parse(stdout) as WatchJson).programs.find((one) => watched().isOurs(one));
  expect(row).toMatchObject({ pid: leak.pid, gets: "agent", reason: "", collector: child.pid });
  const table = await execute([tidemark, "watch", "--once", "--config", path]);
  expect(table.stdout).toContain(
    `(${leak.pid}) has the agent now, and is recorded by tidemark watch (process ${child.pid})`,
  );
  expect(await stopped(child)).toBe(0);
});

/** Becomes itself repeatedly. */
const EXECS = `import os, sys, time
kept = bytearray(1_000_000)
time.sleep(10)
os.execv(sys.executable, open("/proc/self/cmdline").read().split("\\0")[:-1])`;

test.each(["agent", "outside"])(
  "a recording (%s) ends when its process runs another program",
  async (watch) => {
    watched().python(EXECS, "execs");
    const path = watched().policy("{warm_up: 1s}", [
      `{match: {service: "${watched().name}-execs"}, watch: ${watch}}`,
    ]);
    const { child } = watched().watch("--config", path);
    const recordings = () =>
      watched()
        .recordings()
        .map((file) => join(watched().recordingsFolder, file));
    await until(() => recordings().length > 3);
    const before = recordings().slice(0, -1);
    await until(() => before.every((path) => open(path).complete));
    expect(await stopped(child)).toBe(0);
  },
);

test("a folder of recordings that someone removed is created again for the next recording", async () => {
  watched().python(IDLE, "outside");
  const { child, said } = watched().watch("--config", watched().policy());
  await until(() => watched().recordings().length > 0);
  rmSync(join(watched().folder, "recordings"), { recursive: true });
  watched().python(LEAK, "leak");
  await until(() => said().includes(`recording it with the agent to ${watched().folder}`));
  await until(() => watched().recordingOf("leak", true) !== undefined);
  expect(said()).not.toContain("TM-E001");
  expect(await stopped(child)).toBe(0);
});

test("a policy is read again when it changes, and an invalid one changes nothing", async () => {
  watched().python(LEAK, "leak");
  const path = watched().policy("{warm_up: 1h}");
  const { child, said } = watched().watch("--config", path);
  await until(() => watched().recordings().length > 0);
  writeFileSync(path, "defaults: {agents: -1}\n");
  await until(() => said().includes("the policy was not changed"));
  expect(said()).toMatch(/line 1: defaults\.agents: expected at least 0$/m);
  watched().policy("{warm_up: 1s}");
  await until(() => said().includes("recording it with the agent"));
  expect(said()).toContain("the policy was read again");
  expect(await stopped(child)).toBe(0);
});

test.each([
  [["--config", "missing.yaml"], /no such policy: missing\.yaml/],
  [["--json"], /--json needs --once/],
  [["--folder", "/proc/nowhere"], /\/proc\/nowhere/],
  [["--to", "ftp://server"], /TM-E002/],
])("%j ends in one line", async (options, expected) => {
  const { stderr, status } = await execute([tidemark, "watch", ...options], {
    cwd: watched().folder,
  });
  expect(status).toBe(2);
  expect(stderr).toMatch(expected);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});

test("serve --watch: a service that nobody changed is on the server with its line", async () => {
  watched().python(LEAK, "leak");
  const server = await startServer(join(watched().folder, "data"), {
    options: ["--watch", "--policy", watched().policy()],
  });
  watched().children.push(server.child);
  let row: ServicesJson["services"][number] | undefined;
  await until(() => server.said().includes("recording it with the agent"));
  await until(async () => {
    const { body } = await ask(`${server.url}/api/v1/services`);
    row = (body as ServicesJson).services.find((row) => watched().isOurs(row));
    return row?.verdict.kind === "python-leak";
  });
  expect(row).toMatchObject({ versions: ["7"], verdict: { kind: "python-leak" } });
  expect(row?.verdict.summary).toContain("remember");
  expect(await server.stop()).toBe(0);
  expect(server.said()).toContain("left as it was");
});

test("serve --watch: if the server is killed, its collector leaves the programs and ends too", async () => {
  watched().python(LEAK, "leak");
  const server = await startServer(join(watched().folder, "data"), {
    options: ["--watch", "--policy", watched().policy()],
  });
  watched().children.push(server.child);
  await until(() => server.said().includes("recording it with the agent"));
  const collector = Number(
    readFileSync(`/proc/${server.child.pid}/task/${server.child.pid}/children`, "utf8").trim(),
  );
  expect(readFileSync(`/proc/${collector}/cmdline`, "utf8")).toContain("\0watch\0");
  server.child.kill("SIGKILL");
  await until(() => !existsSync(`/proc/${collector}`));
  await until(() => server.said().includes("left as it was"));
});
