/** Profiles on request and policy from a real server: obeyed within the host's own policy, ended in time, limited. */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { RequestsJson } from "../../src/model/documents/request_document.js";
import { COLLECTOR_PATH } from "../../src/model/wire/requests.js";
import { REQUESTS_PATH } from "../../src/model/wire/requests_path.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { validate } from "../recorded_app.js";
import { execute, tidemark, until } from "../run.js";
import {
  ask,
  post as postFrames,
  type RunningServer,
  startServer,
} from "../server/running_server.js";
import { IDLE, LEAK, stopped, withWatchTest } from "./watched.js";

const watched = withWatchTest();
let server: RunningServer | null = null;
afterEach(async () => {
  await server?.kill();
  server = null;
});

const fleet = async (words: readonly string[], env: Record<string, string> = {}) =>
  execute([tidemark, "fleet", ...words, "--server", server?.url ?? ""], { env });

async function requests(token?: string): Promise<RequestsJson> {
  const { stdout, stderr } = await fleet(
    ["requests", "--json"],
    token === undefined ? {} : { TIDEMARK_TOKEN: token },
  );
  expect(stderr).toBe("");
  validate(stdout, "requests");
  return JSON.parse(stdout);
}

test("a profile on request: the agent at once, although the share is 0, until the request ends", async () => {
  server = await startServer(join(watched().folder, "data"));
  const { name } = watched();
  watched().python(LEAK, "asked");
  watched().python(LEAK, "outside");
  watched().python(LEAK, "kept");
  const rule = (service: string, rest: string) =>
    `{match: {service: "${name}-${service}"}, triggers: [], ${rest}}`;
  const { child, said } = watched().watch(
    "--to",
    server.url,
    "--config",
    watched().policy("{warm_up: 1h}", [
      rule("asked", "agent: {share: 0%}"),
      rule("kept", "agent: {share: 0%}, remote: false"),
    ]),
  );
  await until(() => watched().recordingOf("asked", false) !== undefined);
  expect(watched().recordingOf("asked", true)).toBeUndefined();
  for (const service of ["asked", "outside", "kept"]) {
    await until(async () => (await fleet(["service", `${name}-${service}`])).status === 0);
  }
  for (const service of ["asked", "outside", "kept"]) {
    // On a busy machine, half of this passes before the agent is in the program.
    const asked = await fleet(["profile", `${name}-${service}`, "--for", "45s"]);
    expect([asked.status, asked.stderr]).toEqual([0, ""]);
    expect(asked.stdout).toMatch(/^Requested a profile of .* until /);
  }
  const again = await fleet(["profile", `${name}-asked`]);
  expect(again.status).toBe(2);
  expect(again.stderr).toMatch(/does not accept the request: .*already requested until/);
  await until(() => watched().recordingOf("asked", true) !== undefined);
  await until(
    () => said().includes(`profile of ${name}-asked for`) && said().includes("1 program has"),
  );
  const outside =
    /-outside for \d+ s: 0 programs have the agent; the host's policy says watch: outside/;
  await until(
    () => outside.test(said()) && said().includes("the host's policy says remote: false"),
  );
  const hostOf = async (service: string) =>
    (await requests()).requests.find((one) => one.service === `${name}-${service}`)?.hosts[0];
  await until(async () => (await hostOf("asked"))?.programs === 1);
  // The collector's next call carries it, if the last one was under way when the host decided.
  await until(async () => (await hostOf("kept")) !== undefined);
  expect(await hostOf("kept")).toMatchObject({
    programs: 0,
    why: expect.stringContaining("remote"),
  });
  await until(
    () => said().includes(`${name}-asked 7 (process`) && said().includes("left as it was"),
  );
  expect(watched().recordingOf("kept", true)).toBeUndefined();
  expect(watched().recordingOf("outside", true)).toBeUndefined();
  expect(await stopped(child)).toBe(0);
});

test("a request of the diagnosis names programs, and reaches only these", async () => {
  const data = join(watched().folder, "data");
  const { name } = watched();
  const [named, other] = [watched().python(LEAK, "both"), watched().python(LEAK, "both")];
  const nowMs = Date.now();
  mkdirSync(data);
  writeFileSync(
    join(data, "requests.json"),
    JSON.stringify({
      schema: "tidemark.requests/1",
      requests: [
        {
          ...{ id: randomUUID(), service: `${name}-both`, timeMs: nowMs, untilMs: nowMs + 300_000 },
          ...{
            by: "the diagnosis",
            hosts: [],
            programs: [{ host: hostname(), pid: named.pid ?? 0 }],
          },
        },
      ],
      limits: { service: "6/h", fleet: "60/h" },
    } satisfies RequestsJson),
  );
  server = await startServer(data);
  const { child, said } = watched().watch(
    ...["--to", server.url, "--config"],
    watched().policy("{warm_up: 1h}", [
      `{match: {service: "${name}-both"}, triggers: [], agent: {share: 0%}}`,
    ]),
  );
  await until(() => said().includes("1 program has the agent"));
  await until(async () => (await requests()).requests[0]?.hosts[0]?.programs === 1);
  const agentOf = (pid: number | undefined) =>
    readFileSync(`/proc/${pid}/maps`, "utf8").includes("tidemark");
  expect([agentOf(named.pid), agentOf(other.pid)]).toEqual([true, false]);
  expect((await fleet(["requests"])).stdout).toContain("  the diagnosis  ");
  expect(await stopped(child)).toBe(0);
});

test("who may ask, what is refused, and that a restart of the server forgets nothing", async () => {
  const folder = join(watched().folder, "data");
  const tokens = join(watched().folder, "tokens");
  const of = (scope: string) => `${scope}-token-of-a-test`;
  writeFileSync(
    tokens,
    ["ingest", "read", "act", "admin"].map((scope) => `${scope} ${of(scope)}\n`).join(""),
  );
  const options = { options: ["--token-file", tokens] };
  server = await startServer(folder, options);
  const post = (path: string, scope: string, body: unknown, headers = {}) =>
    ask(`${server?.url}${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${of(scope)}`,
        ...headers,
      },
      body: JSON.stringify(body),
    });
  const rss = [[0, 2 ** 20]] as const;
  const stored = streamBytes({ service: "shop", pid: 1, startedMs: Date.now(), rss });
  const headers = { authorization: `Bearer ${of("ingest")}` };
  expect((await postFrames(server.url, stored, { headers })).status).toBe(200);
  const wanted = { service: "shop", forMs: 60_000 };
  for (const scope of ["ingest", "read", "act"]) {
    expect((await post(REQUESTS_PATH, scope, wanted)).status).toBe(401);
  }
  for (const scope of ["read", "act"]) {
    expect((await post(COLLECTOR_PATH, scope, { host: "a", answers: [] })).status).toBe(401);
  }
  const site = { origin: "https://elsewhere.example", "sec-fetch-site": "cross-site" };
  expect((await post(REQUESTS_PATH, "admin", wanted, site)).status).toBe(403);
  for (const bad of [
    { ...wanted, forMs: 9_000 },
    { ...wanted, forMs: 3_600_001 },
    { ...wanted, service: "" },
    { ...wanted, command: "rm" },
    null,
  ]) {
    expect((await post(REQUESTS_PATH, "admin", bad)).status).toBe(400);
  }
  const unknown = await post(REQUESTS_PATH, "admin", { ...wanted, service: "ship" });
  expect(unknown).toMatchObject({
    status: 404,
    body: { error: expect.stringContaining("no service is called ship; did you mean shop?") },
  });
  expect((await post(REQUESTS_PATH, "admin", wanted)).status).toBe(200);
  await server.kill();
  server = await startServer(folder, options);
  const { body } = await post(COLLECTOR_PATH, "ingest", { host: "a", answers: [] });
  const [open] = (body as RequestsJson).requests;
  expect(open).toMatchObject({ service: "shop", hosts: [] });
  const answers = [
    { id: open?.id, programs: 2, why: "" },
    { id: "00000000-0000-4000-8000-000000000000", programs: 9, why: "" },
  ];
  expect((await post(COLLECTOR_PATH, "ingest", { host: "a", answers })).status).toBe(200);
  expect((await requests(of("read"))).requests).toMatchObject([
    { service: "shop", hosts: [{ host: "a", programs: 2, why: "" }] },
  ]);
});

test("policy from the server applies where the host's sets nothing; an invalid one changes nothing", async () => {
  const { folder, name } = watched();
  const handed = join(folder, "handed.yaml");
  const config = join(folder, "serve.yaml");
  const rules = (last: string) => `defaults: {warm_up: 1s, agents: 7}
select:
  - {match: {service: "${name}-handed"}, triggers: [], actions: {mode: on, when: {rss: 1MiB}, allow: [{command: [/bin/touch, "${join(folder, "acted")}"]}]}}
  - {match: {service: "${name}-*"}, watch: never}
  - ${last}
`;
  writeFileSync(handed, rules("{match: {}, watch: never}"));
  writeFileSync(
    config,
    `store: "duckdb:${join(folder, "data")}"\ncollectors: {policy: ${handed}}\n`,
  );
  server = await startServer(null, { options: ["--config", config] });
  watched().python(LEAK, "handed");
  watched().python(IDLE, "local");
  watched().python(IDLE, "never-by-server");
  const local = join(folder, "policy.yaml");
  writeFileSync(
    local,
    `defaults: {warm_up: 1h}\nselect:\n  - {match: {service: "${name}-local"}, triggers: [], watch: outside}\n  - {match: {command: "*vitest*"}, watch: never}\n`,
  );
  const { child, said } = watched().watch("--to", server.url, "--config", local);
  await until(() => said().includes("the server handed out a policy"));
  // The host's own warm-up of an hour wins.
  await until(() => watched().recordingOf("handed", false) !== undefined);
  await until(() => watched().recordingOf("local", false) !== undefined);
  writeFileSync(local, readFileSync(local, "utf8").replace("{warm_up: 1h}", "{}"));
  await until(() => watched().recordingOf("handed", true) !== undefined);
  expect(watched().recordingOf("never-by-server", true)).toBeUndefined();
  writeFileSync(handed, rules("{match: {servce: x}}"));
  await until(() => said().includes("the server's policy is not used, because it is invalid"));
  writeFileSync(
    local,
    readFileSync(local, "utf8").replace("defaults: {}", "defaults: {remote: false}"),
  );
  await until(() => said().split("the policy was read again").length > 2);
  expect(watched().children.every(({ exitCode }) => exitCode === null)).toBe(true);
  expect(said()).not.toContain("acted");
  expect(await stopped(child)).toBe(0);
});
