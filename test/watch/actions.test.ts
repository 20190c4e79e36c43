/** What the collector does for real programs that are short of memory, what it keeps from doing, and what it writes down. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test, vi } from "vitest";
import { present } from "../../src/model/base/present.js";
import type { ActionJson, ActionsJson } from "../../src/model/documents/action_document.js";
import { LEASES_PATH } from "../../src/model/wire/actions.js";
import { environment } from "../environment.js";
import { validate } from "../recorded_app.js";
import { execute, tidemark, until } from "../run.js";
import { ask, type RunningServer, startServer } from "../server/running_server.js";
import { LEAK, stopped, type WatchTest, withWatchTest } from "./watched.js";

const MIB = 2 ** 20;
const watched = withWatchTest();
let server: RunningServer | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
});

/** 60 MiB of cycles that nobody collects, and 60 MiB in a cache that the program offers. */
const SHORT = `import gc, os, time, tidemark
gc.disable()
class Node: pass
for _ in range(60):
    node = Node()
    node.own, node.pad = node, os.urandom(${MIB})
del node
cache = [os.urandom(${MIB}) for _ in range(60)]
tidemark.on_pressure(cache.clear)
while True: time.sleep(0.1)
`;
const WITH_PACKAGE = [
  "env",
  `PYTHONPATH=${fileURLToPath(new URL("../../python", import.meta.url))}`,
];
const LARGE = `import os, time\nkept = os.urandom(${60 * MIB})\nwhile True: time.sleep(0.1)\n`;

/** The newest state of each action, oldest action first. */
function actions(test: WatchTest): ActionJson[] {
  const path = join(test.recordingsFolder, "actions.jsonl");
  // Without a line that is being written.
  const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
  const byId = new Map<string, ActionJson>();
  for (const line of lines) {
    validate(line, "action");
    const action: ActionJson = JSON.parse(line);
    byId.set(action.id, action);
  }
  return [...byId.values()];
}

function rule(service: string, settings: string): string {
  return `{match: {service: "${watched().name}-${service}*"}, triggers: [], actions: {${settings}}}`;
}

function watch(rules: readonly string[], serverSettings = "") {
  const path = watched().policy("{warm_up: 1h}", rules);
  writeFileSync(path, `${serverSettings}${readFileSync(path, "utf8")}`);
  return watched().watch("--config", path);
}

test("gentle actions are tried in their order, after evidence; each effect is measured", async () => {
  const { pid } = watched().python(SHORT, "short", WITH_PACKAGE);
  const allow = "[malloc_trim, on_pressure, gc_collect, {command: [/bin/true]}]";
  const { child, said } = watch([
    rule("short", `mode: on, when: {rss: 5MiB}, limit: 3/h, allow: ${allow}`),
  ]);
  await until(() => actions(watched()).at(-1)?.state === "refused");
  const [trimmed, relieved, collected, refused] = actions(watched());
  expect([trimmed, relieved, collected].map((action) => action?.what)).toEqual([
    "malloc_trim",
    "on_pressure",
    "gc_collect",
  ]);
  for (const action of [trimmed, relieved, collected]) {
    expect(action).toMatchObject({ state: "done", pid, version: "7" });
    expect(action?.reason).toMatch(/^its RSS is \d+/);
    const { reason } = JSON.parse(
      readFileSync(join(present(action).evidence, "about.json"), "utf8"),
    );
    expect(reason).toContain(`before the action ${action?.what}`);
  }
  expect(trimmed?.helped).toBe(false);
  for (const action of [relieved, collected]) {
    const { beforeBytes = 0, afterBytes = 0, helped } = present(action);
    expect(helped).toBe(true);
    expect(beforeBytes - afterBytes).toBeGreaterThan(50 * MIB);
  }
  expect(relieved?.outcome).toContain("called 1 function of tidemark.on_pressure");
  expect(refused?.why).toBe("the limit 3/h of this instance is reached");
  expect(said()).toMatch(/gc_collect: process \d+: \d+ objects collected\. RSS fell by/);
  expect(await stopped(child)).toBe(0);
});

test("off by default; a dry run says what it would do, and touches nothing", async () => {
  watched().python(SHORT, "short", WITH_PACKAGE);
  watched().python(LARGE, "off");
  const { child, said } = watch([
    rule("short", "mode: dry-run, when: {rss: 30MiB}, allow: [on_pressure, restart]"),
    rule("off", "when: {rss: 30MiB}, allow: [restart]"),
  ]);
  await until(() => said().includes("on_pressure would be tried"));
  expect(actions(watched())).toMatchObject([
    { state: "would-act", what: "on_pressure", evidence: "" },
  ]);
  expect(watched().artifacts()).toEqual([]);
  expect(watched().children.filter(({ exitCode }) => exitCode !== null)).toEqual([]);
  expect(await stopped(child)).toBe(0);
});

test("a restart: evidence first, then SIGTERM; whether something starts it again is observed", async () => {
  const python = `${watched().folder}/program.py`;
  writeFileSync(python, LARGE);
  const loop = ["sh", "-c", `while :; do "$0" "${python}"; sleep 1; done`];
  watched().python("", "supervised", loop);
  watched().python(LARGE, "alone");
  const { child } = watch([
    rule("", "mode: on, when: {rss: 50MiB}, limit: 1/h, grace: 15s, allow: [restart]"),
  ]);
  const found = (service: string) =>
    actions(watched()).find(
      (action) => action.service.endsWith(service) && /^(done|failed)$/.test(action.state),
    );
  await until(() => found("supervised") !== undefined && found("alone") !== undefined);
  expect(found("supervised")).toMatchObject({
    state: "done",
    outcome: expect.stringContaining("ended"),
  });
  expect(present(found("supervised")).afterBytes).toBeGreaterThan(0);
  expect(found("alone")).toMatchObject({
    state: "failed",
    helped: false,
    why: expect.stringContaining("nothing has started it again on this host within 15.0 s"),
  });
  for (const service of ["supervised", "alone"]) {
    expect(existsSync(join(present(found(service)).evidence, "about.json"))).toBe(true);
  }
  expect(await stopped(child)).toBe(0);
});

describe.skipIf(environment.packagesPython === null)("workers of servers", () => {
  const bin = dirname(environment.packagesPython ?? "");
  const kept = `import os\nkept = []\n`;
  const APPS: Record<string, readonly [string, string]> = {
    gunicorn: [
      `${kept}def app(environ, start):\n    start("200 OK", [])\n    return [b""]\nkept.append(os.urandom(${60 * MIB}))\n`,
      `${bin}/gunicorn -w 2 --bind unix:gunicorn.sock app_gunicorn:app`,
    ],
    uvicorn: [
      `${kept}async def app(scope, receive, send): pass\nkept.append(os.urandom(${60 * MIB}))\n`,
      `${bin}/uvicorn --workers 2 --lifespan off --uds uvicorn.sock app_uvicorn:app`,
    ],
    celery: [
      `from celery import Celery\nimport os\napp = Celery("app_celery", broker="memory://")\nkept = os.urandom(${60 * MIB})\n`,
      `${bin}/celery -A app_celery worker -c 1`,
    ],
  };

  test("the largest worker of gunicorn and uvicorn is replaced, and celery starts itself again", async () => {
    const { folder } = watched();
    for (const [name, [app, command]] of Object.entries(APPS)) {
      writeFileSync(join(folder, `app_${name}.py`), app);
      watched().python("", name, ["sh", "-c", `cd "${folder}"; exec ${command}`]);
    }
    const { child } = watch([
      rule("", "mode: on, when: {rss: 80MiB}, limit: 1/h, allow: [recycle_worker]"),
    ]);
    const done = () => actions(watched()).filter(({ state }) => state === "done");
    await until(() => done().length === 3);
    const outcomes = new Map(
      done().map(({ service, outcome }) => [service.split("-").at(-1), outcome]),
    );
    expect(outcomes.get("gunicorn")).toMatch(
      /^gunicorn's largest worker \d+ .* ended after .*; worker \d+ replaced it$/,
    );
    expect(outcomes.get("uvicorn")).toMatch(
      /^uvicorn's largest worker \d+ .* ended after .*; worker \d+ replaced it$/,
    );
    expect(outcomes.get("celery")).toMatch(/^celery ended its tasks and started again/);
    expect(await stopped(child)).toBe(0);
  });
});

test("a command and a webhook get the program's names as data; local addresses need a permission", async () => {
  const bodies: string[] = [];
  const receiver = createServer((incoming, outgoing) => {
    incoming.on("data", (chunk: Buffer) => bodies.push(chunk.toString()));
    incoming.on("end", () => outgoing.end());
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const { folder, name } = watched();
  watched().python(LARGE, "$(touch planted)", ["sh", "-c", `cd "${folder}"; exec "$@"`, "sh"]);
  const command = `{command: [sh, -c, 'printf %s "$TIDEMARK_SERVICE" > ${folder}/told; exit 3']}`;
  const allow = `[${command}, {webhook: "${url}first"}, {webhook: "${url}second", allow_local: true}]`;
  const { child } = watch([
    `{match: {service: "${name}-*"}, triggers: [], actions: {mode: on, when: {rss: 50MiB}, allow: ${allow}}}`,
  ]);
  await until(() => bodies.length > 0);
  expect(readFileSync(join(folder, "told"), "utf8")).toBe(`${name}-$(touch planted)`);
  expect(existsSync(join(folder, "planted"))).toBe(false);
  expect(actions(watched())).toMatchObject([
    { action: "command", state: "failed", why: "sh exited with 3" },
    { action: "webhook", state: "failed", why: expect.stringContaining("allow_local") },
    { action: "webhook" },
  ]);
  expect(JSON.parse(present(bodies[0]))).toMatchObject({
    schema: "tidemark.action/1",
    service: `${name}-$(touch planted)`,
  });
  expect(await stopped(child)).toBe(0);
  receiver.close();
});

describe("with a server", () => {
  const TOKENS = { ingest: "i".repeat(20), read: "r".repeat(20), act: "a".repeat(20) };
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  async function startWithTokens(): Promise<RunningServer> {
    const { folder } = watched();
    const lines = Object.entries(TOKENS).map(([scope, token]) => `${scope} ${token}\n`);
    writeFileSync(join(folder, "tokens"), lines.join(""));
    for (const [scope, token] of Object.entries(TOKENS)) {
      writeFileSync(join(folder, `${scope}.token`), token);
    }
    return await startServer(join(folder, "store"), {
      options: ["--token-file", join(folder, "tokens")],
    });
  }

  function settings(url: string, scope: string): string {
    const { folder } = watched();
    return `server: {url: "${url}", token_file: ${folder}/ingest.token, action_token_file: ${folder}/${scope}.token}\n`;
  }

  async function listed({ url }: RunningServer): Promise<ActionsJson> {
    const { status, body } = await ask(`${url}/api/v1/actions`, { headers: bearer(TOKENS.read) });
    expect(status).toBe(200);
    return body as ActionsJson;
  }

  test("an action needs a lease and a token of scope act, and is listed with its effect", async () => {
    server = await startWithTokens();
    watched().python(SHORT, "short", WITH_PACKAGE);
    const rules = [rule("short", "mode: on, when: {rss: 30MiB}, allow: [gc_collect]")];
    const first = watch(rules, settings(server.url, "ingest"));
    await until(() => first.said().includes("actions need one of scope act"));
    expect(await stopped(first.child)).toBe(0);
    expect(watched().artifacts()).toEqual([]);
    expect((await listed(server)).actions).toEqual([]);

    const second = watch(rules, settings(server.url, "act"));
    // The report is sent at the next look at the programs.
    const isListed = async () =>
      (await listed(present(server))).actions.find(({ state }) => state === "done");
    const done = await vi.waitUntil(isListed, { timeout: 120_000 });
    expect(done).toMatchObject({ what: "gc_collect", helped: true });
    expect(server.said()).toContain('"did":"lease"');
    const { stdout } = await execute([
      tidemark,
      "fleet",
      "actions",
      "--server",
      server.url,
      "--token-file",
      join(watched().folder, "read.token"),
    ]);
    expect(stdout).toMatch(/done .*-short .*gc_collect: process \d+: \d+ objects collected/);

    // The same request once more, and requests by tokens of other scopes, get no lease.
    const again = async (token: string, changes: Partial<ActionJson> = {}) =>
      await ask(`${present(server).url}${LEASES_PATH}`, {
        method: "POST",
        headers: { ...bearer(token), "content-type": "application/json" },
        body: JSON.stringify({ ...done, ...changes }),
      });
    expect((await again(TOKENS.act)).body).toMatchObject({ granted: false });
    for (const token of [TOKENS.ingest, TOKENS.read, "x".repeat(20)]) {
      expect((await again(token)).status).toBe(401);
    }
    expect((await again(TOKENS.act, { what: "x".repeat(70_000) })).status).toBe(413);
    expect((await again(TOKENS.act, { id: "../../etc" })).status).toBe(400);
    await until(
      () => second.said().includes("every allowed action has been tried already") || true,
    );
    expect(await stopped(second.child)).toBe(0);
  });

  test("a server that does not answer grants nothing; what others send about a service starts nothing", async () => {
    server = await startWithTokens();
    const { url } = server;
    const small = watched().python(LEAK.replace("200_000", "20"), "small");
    const { child, said } = watch(
      [
        rule("small", "mode: on, when: {rss: 500MiB}, allow: [restart]"),
        rule("large", "mode: on, when: {rss: 50MiB}, allow: [restart]"),
      ],
      settings(url, "act"),
    );
    await until(() => said().includes("watching"));
    // A forged profile says that the small service holds 64 GiB.
    const forged = `${url}/ingest?name=${watched().name}-small.inuse_space&format=folded&from=${Date.now() - 60_000}&until=${Date.now()}`;
    const { status } = await ask(forged, {
      method: "POST",
      headers: { ...bearer(TOKENS.ingest), "content-type": "text/plain" },
      body: `main;leak ${64 * 2 ** 30}\n`,
    });
    expect(status).toBe(200);
    await server.stop();
    const large = watched().python(LARGE, "large");
    await until(() => said().includes("the server cannot be asked"));
    expect(actions(watched())).toMatchObject([
      { service: `${watched().name}-large`, state: "refused" },
    ]);
    expect([small.exitCode, large.exitCode]).toEqual([null, null]);
    expect(await stopped(child)).toBe(0);
  });
});
