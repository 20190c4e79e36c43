/**
 * The collector with real programs. Every policy here ends with a rule for all others, because other tests
 * record programs on the same machine.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { ServicesJson } from "../../src/model/documents/fleet_document.js";
import type { WatchJson } from "../../src/model/documents/watch_document.js";
import { anyInterpreter } from "../environment.js";
import { validate } from "../recorded_app.js";
import {
  execute,
  open,
  plainEnvironment,
  removeScratch,
  scratch,
  summaryOf,
  tidemark,
  until,
} from "../run.js";
import { ask, startServer } from "../server/running_server.js";

const LEAK = `import os, time
kept = []
def remember():
    kept.append(os.urandom(200_000))
while True:
    remember()
    time.sleep(0.02)
`;
const IDLE = "import time\nwhile True: time.sleep(0.1)\n";
/** A master that only waits for its workers, as gunicorn's does. */
const MASTER = `import os, time
for _ in range(2):
    if os.fork() == 0:
        kept = []
        while True:
            kept.append(os.urandom(100_000))
            time.sleep(0.05)
while True: time.sleep(0.1)
`;

let folder: string;
let children: ChildProcess[];
/** Unique, so that the rules match the programs of this test alone. */
let name: string;

beforeEach(() => {
  folder = scratch();
  children = [];
  name = `watched-${process.pid}-${Math.trunc(performance.now())}`;
});
afterEach(async () => {
  await Promise.all(
    children.map(async (child) => {
      const exit =
        child.exitCode === null && child.signalCode === null ? once(child, "exit") : null;
      // The group: a master's workers outlive it.
      killGroup(present(child.pid));
      child.kill("SIGKILL");
      await exit;
    }),
  );
});
afterAll(removeScratch);

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
  }
}

function python(program: string, service: string): ChildProcess {
  const child = spawn(anyInterpreter().path, ["-c", program], {
    env: { ...process.env, TIDEMARK_SERVICE: `${name}-${service}`, TIDEMARK_VERSION: "7" },
    stdio: "ignore",
    detached: true,
  });
  children.push(child);
  return child;
}

function policy(defaults = "{warm_up: 1s}"): string {
  const path = join(folder, "policy.yaml");
  writeFileSync(
    path,
    `defaults: ${defaults}
select:
  - {match: {service: "${name}-outside"}, watch: outside}
  - {match: {service: "${name}-never"}, watch: never}
  - {match: {service: "${name}-*"}}
  - {match: {}, watch: never}
`,
  );
  return path;
}

function watch(...options: string[]): { child: ChildProcess; said: () => string } {
  const words = ["watch", "--folder", join(folder, "recordings"), ...options];
  const child = spawn(tidemark, words, {
    env: plainEnvironment(folder),
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  children.push(child);
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  return { child, said: () => said };
}

async function stopped(child: ChildProcess): Promise<number | null> {
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  await exit;
  return child.exitCode;
}

const recordings = () =>
  existsSync(join(folder, "recordings")) ? readdirSync(join(folder, "recordings")).sort() : [];
const recordingOf = (service: string, agent: boolean) =>
  recordings()
    .filter((file) => file.startsWith(`${name}-${service}-`))
    .map((file) => join(folder, "recordings", file))
    .find((path) => open(path).looks.length > 0 === agent);

test("each program is recorded as its rule says, and is left as it was", async () => {
  const leak = python(LEAK, "leak");
  const outside = python(IDLE, "outside");
  python(IDLE, "never");
  const { child, said } = watch("--policy", policy());
  await until(() =>
    said().includes(`${name}-leak 7 (process ${leak.pid}): recording it with the agent`),
  );
  await until(() => recordingOf("leak", true) !== undefined);
  await until(() => open(present(recordingOf("leak", true))).looks.length > 3);
  await until(() => recordingOf("outside", false) !== undefined);
  expect(await stopped(child)).toBe(0);
  expect(said()).toContain(`${name}-leak 7 (process ${leak.pid}): left as it was`);

  const { sites } = await summaryOf(present(recordingOf("leak", true)));
  expect(sites[0]?.stack.map((frame) => frame.function)).toContain("remember");
  expect(recordingOf("outside", true)).toBeUndefined();
  const { meta, series } = open(present(recordingOf("outside", false)));
  expect(meta).toMatchObject({ pid: outside.pid, identity: { version: "7" } });
  expect(series[0]?.timesMs.length).toBeGreaterThan(0);
  expect(recordings().filter((file) => file.includes("-never-"))).toEqual([]);

  expect(leak.exitCode).toBeNull();
  const detached = await execute([tidemark, "detach", String(leak.pid), "--json"]);
  expect(JSON.parse(detached.stdout)).toMatchObject({ recorded: false, inert: true });
});

test("a master and its workers have one recording, and a verdict names the line", async () => {
  const master = python(MASTER, "shop");
  const { child, said } = watch("--policy", policy("{warm_up: 1s, turn: 1h}"));
  await until(() => said().includes("recording it with the agent"));
  await until(() => said().includes(" sure)."));
  expect(said()).toMatch(new RegExp(`${name}-shop 7 \\(process ${master.pid}\\): child-growth`));
  expect(await stopped(child)).toBe(0);
  const pids = new Set(open(present(recordingOf("shop", true))).processes.map(({ pid }) => pid));
  expect(pids.size).toBe(3);
});

test("--once prints how each program would be recorded, and records none", async () => {
  const leak = python(LEAK, "leak");
  python(IDLE, "never");
  const path = policy();
  let text = "";
  const ours = () => (JSON.parse(text) as WatchJson).programs.filter(isOurs);
  do {
    text = (await execute([tidemark, "watch", "--once", "--policy", path, "--json"])).stdout;
  } while (ours().length < 2); // Python is still starting
  validate(text, "watch");
  const gets = ours().map((row) => [row.service, row.gets, row.rule]);
  expect(gets.sort()).toEqual([
    [`${name}-leak`, "agent", 3],
    [`${name}-never`, "never", 2],
  ]);
  const table = await execute([tidemark, "watch", "--once", "--policy", path]);
  expect(table.stdout).toMatch(new RegExp(`${leak.pid} +${name}-leak +7 .* agent +3 `));
  expect((await execute([tidemark, "detach", String(leak.pid)])).stderr).toContain("TM-E039");
});

function isOurs({ service }: { readonly service: string }): boolean {
  return service.startsWith(`${name}-`);
}

test("a folder of recordings that someone removed is created again for the next recording", async () => {
  python(IDLE, "outside");
  const { child, said } = watch("--policy", policy());
  await until(() => recordings().length > 0);
  rmSync(join(folder, "recordings"), { recursive: true });
  python(LEAK, "leak");
  await until(() => said().includes(`recording it with the agent to ${folder}`));
  await until(() => recordingOf("leak", true) !== undefined);
  expect(said()).not.toContain("TM-E001");
  expect(await stopped(child)).toBe(0);
});

test("a policy is read again when it changes, and an invalid one changes nothing", async () => {
  python(LEAK, "leak");
  const path = policy("{warm_up: 1h}");
  const { child, said } = watch("--policy", path);
  await until(() => recordings().length > 0);
  writeFileSync(path, "defaults: {agents: -1}\n");
  await until(() => said().includes("the policy was not changed"));
  expect(said()).toMatch(/line 1: defaults\.agents: expected at least 0$/m);
  policy("{warm_up: 1s}");
  await until(() => said().includes("recording it with the agent"));
  expect(said()).toContain("the policy was read again");
  expect(await stopped(child)).toBe(0);
});

test.each([
  [["--policy", "missing.yaml"], /no such policy: missing\.yaml/],
  [["--json"], /--json needs --once/],
  [["--folder", "/proc/nowhere"], /\/proc\/nowhere/],
  [["--to", "ftp://server"], /TM-E002/],
])("%j ends in one line", async (options, expected) => {
  const { stderr, status } = await execute([tidemark, "watch", ...options], { cwd: folder });
  expect(status).toBe(2);
  expect(stderr).toMatch(expected);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});

test("serve --watch: a service that nobody changed is on the server with its line", async () => {
  python(LEAK, "leak");
  const server = await startServer(join(folder, "data"), {
    options: ["--watch", "--policy", policy()],
  });
  children.push(server.child);
  let row: ServicesJson["services"][number] | undefined;
  await until(() => server.said().includes("recording it with the agent"));
  for (let n = 0; n < 300 && row?.verdict.kind !== "python-leak"; n++) {
    const { body } = await ask(`${server.url}/api/v1/services`);
    row = (body as ServicesJson).services.find(isOurs);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  expect(row).toMatchObject({ versions: ["7"], verdict: { kind: "python-leak" } });
  expect(row?.verdict.summary).toContain("remember");
  expect(await server.stop()).toBe(0);
  expect(server.said()).toContain("left as it was");
});
