/**
 * A collector's request for an eviction, from the condition to the end of the process: a real collector, server and
 * program, and a server that speaks the API server's protocol.
 */
import { existsSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  answerStatus,
  makeCertificate,
  startApiServer,
  type TestApiServer,
} from "../../src/kubernetes/api_server.fixture.js";
import { present } from "../../src/model/base/present.js";
import type {
  ActionJson,
  ActionsJson,
  PodJson,
} from "../../src/model/documents/action_document.js";
import { ACTIONS_PATH, EVICTIONS_PATH, LEASES_PATH } from "../../src/model/wire/actions.js";
import { execute, tidemark, until } from "../run.js";
import { ask, type RunningServer, startServer } from "../server/running_server.js";
import { stopped, withWatchTest } from "./watched.js";

const LARGE = `import os, time\nkept = os.urandom(${60 * 2 ** 20})\nwhile True: time.sleep(0.1)\n`;
const TOKENS = { ingest: "i".repeat(20), read: "r".repeat(20), act: "a".repeat(20) };
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const podOf = (name: string): PodJson => ({ namespace: "shop", name, uid: `uid-${name}` });

const watched = withWatchTest();
let api: TestApiServer;
let server: RunningServer;
/** Names of pods whose eviction was asked for. */
let evicted: string[];
let onEviction: (pod: string, response: ServerResponse) => void;

beforeEach(async () => {
  const { folder } = watched();
  evicted = [];
  makeCertificate(folder, "ca");
  writeFileSync(join(folder, "token"), "of the server");
  api = await startApiServer(folder, (request, response) => {
    const [, name = "", isEviction] =
      /^\/api\/v1\/namespaces\/shop\/pods\/([\w-]+)(\/eviction)?$/.exec(request.url ?? "") ?? [];
    if (isEviction !== undefined) {
      evicted.push(name);
      onEviction(name, response);
    } else {
      const ownerReferences = [{ kind: "ReplicaSet", controller: true }];
      response.end(JSON.stringify({ metadata: { uid: `uid-${name}`, ownerReferences } }));
    }
  });
  for (const [scope, token] of Object.entries(TOKENS)) {
    writeFileSync(join(folder, `${scope}.token`), token);
  }
  const lines = Object.entries(TOKENS).map(([scope, token]) => `${scope} ${token}\n`);
  writeFileSync(join(folder, "tokens"), lines.join(""));
  writeFileSync(join(folder, "serve.yaml"), "actions: {evict_namespaces: [shop]}\n");
  server = await startServer(join(folder, "store"), {
    options: ["--token-file", join(folder, "tokens"), "--config", join(folder, "serve.yaml")],
    env: {
      KUBERNETES_SERVICE_HOST: api.host,
      KUBERNETES_SERVICE_PORT: String(api.port),
      TIDEMARK_SERVICE_ACCOUNT: folder,
    },
  });
});
afterEach(async () => {
  await server.kill();
  await api.close();
});

/** A collector in the pod of a program, as a sidecar is. */
function watch(service: string, actions: string, uid = `uid-${service}`) {
  const { folder, name } = watched();
  watched().environment = {
    ...{ TIDEMARK_POD_NAME: service, TIDEMARK_POD_NAMESPACE: "shop", TIDEMARK_POD_UID: uid },
  };
  const path = join(folder, `${service}.yaml`);
  writeFileSync(
    path,
    `server: {url: "${server.url}", token_file: ${folder}/ingest.token, action_token_file: ${folder}/act.token}
select:
  - {match: {service: "${name}-${service}"}, watch: outside, triggers: [], actions: {when: {rss: 50MiB}, ${actions}}}
  - {match: {}, watch: never}\n`,
  );
  return { path, ...watched().watch("--config", path, "--folder", join(folder, service)) };
}

async function listed(service: string): Promise<ActionJson[]> {
  const { body } = await ask(`${server.url}${ACTIONS_PATH}`, { headers: bearer(TOKENS.read) });
  return (body as ActionsJson).actions.filter((one) => one.service.endsWith(`-${service}`));
}

test("evidence, the eviction, and the end of the process; a disruption budget keeps the pod", async () => {
  const free = watched().python(LARGE, "free");
  const budgeted = watched().python(LARGE, "budgeted");
  onEviction = (pod, response) => {
    if (pod === "free") {
      free.kill("SIGTERM");
      answerStatus(response, 201);
    } else {
      const message = "Cannot evict pod as it would violate the pod's disruption budget.";
      const causes = ["The disruption budget shop needs 2 healthy pods and has 2 currently"];
      answerStatus(response, 429, { message, causes });
    }
  };
  const collectors = ["free", "budgeted"].map((name) =>
    watch(name, "mode: on, allow: [evict_pod]"),
  );
  const isOver = async () =>
    (await listed("free")).some(({ state }) => state === "done") &&
    (await listed("budgeted")).some(({ state }) => state === "refused");
  await vi.waitUntil(isOver, { timeout: 100_000, interval: 500 });
  expect(await listed("free")).toMatchObject([
    {
      ...{ action: "evict_pod", pod: podOf("free"), helped: true, afterBytes: 0 },
      outcome: expect.stringMatching(/^process \d+ ended .* after the eviction of its pod$/),
    },
  ]);
  const [refused] = await listed("budgeted");
  expect(refused?.why).toBe(
    "the server: a disruption budget forbids it now: Cannot evict pod as it would violate the pod's disruption budget. The disruption budget shop needs 2 healthy pods and has 2 currently",
  );
  for (const [action] of [await listed("free"), await listed("budgeted")]) {
    expect(existsSync(join(present(action).evidence, "about.json"))).toBe(true);
  }
  expect(evicted.sort()).toEqual(["budgeted", "free"]);
  expect([free.signalCode, budgeted.exitCode, budgeted.signalCode]).toEqual([
    "SIGTERM",
    null,
    null,
  ]);
  expect(server.said()).toMatch(
    /"did":"evict",.*"namespace":"shop","name":"free",.*"evicted":true/,
  );
  for (const { child } of collectors) {
    expect(await stopped(child)).toBe(0);
  }
});

test("a dry run names the pod; without its uid, one sentence says what is missing", async () => {
  watched().python(LARGE, "dry");
  watched().python(LARGE, "unknown");
  const dry = watch("dry", "mode: dry-run, allow: [evict_pod]");
  const unknown = watch("unknown", "mode: on, allow: [evict_pod]", "");
  await until(() => dry.said().includes("evict_pod (pod shop/dry) would be tried"));
  await until(() => /evict_pod was not tried: its pod is unknown: .*POD_UID/.test(unknown.said()));
  const check = [tidemark, "watch", "--check", "--config", unknown.path];
  expect((await execute(check)).stdout).toMatch(/evict_pod \(never: its pod is unknown/);
  expect(evicted).toEqual([]);
  for (const { child } of [dry, unknown]) {
    expect(await stopped(child)).toBe(0);
  }
});

test("replayed, foreign and forged requests evict nothing", async () => {
  onEviction = (_, response) => answerStatus(response, 201);
  const post = async (path: string, body: object, token = TOKENS.act) =>
    await ask(`${server.url}${path}`, {
      method: "POST",
      headers: { ...bearer(token), "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  let count = 0;
  const wanted = (service: string, changes: Partial<ActionJson> = {}): ActionJson => ({
    schema: "tidemark.action/1",
    id: `00000000-0000-4000-8000-${String(++count).padStart(12, "0")}`,
    ...{ timeMs: Date.now(), service, version: "7", host: "a", pid: 7, state: "running" },
    ...{ action: "evict_pod", what: "evict_pod", pod: podOf("mine"), reason: "it is full" },
    ...{ why: "", outcome: "", evidence: "" },
    ...changes,
  });
  const lease = async (action: ActionJson) => (await post(LEASES_PATH, action)).body;
  const mine = wanted("mine");
  expect(await lease(mine)).toMatchObject({ granted: true });
  const theirs = wanted("theirs", { pod: podOf("theirs") });
  expect(await lease(theirs)).toMatchObject({ granted: true });
  const { pod: _, ...gentle } = wanted("gentle", { action: "gc_collect", what: "gc_collect" });
  expect(await lease(gentle)).toMatchObject({ granted: true });
  // The pod of a lease cannot be swapped.
  expect(await lease({ ...mine, pod: podOf("theirs") })).toMatchObject({ granted: false });
  const { pod: __, ...without } = wanted("without");
  expect(await lease(without)).toEqual({ granted: false, why: "the request names no pod" });
  const system = { ...podOf("mine"), namespace: "kube-system" };
  for (const body of [
    await lease(wanted("system", { pod: system })),
    (await post(EVICTIONS_PATH, { id: mine.id, pod: system })).body,
  ]) {
    expect(body).toMatchObject({ why: expect.stringContaining("pods in namespace kube-system") });
  }

  const evict = async (id: string, pod: PodJson, token?: string) =>
    await post(EVICTIONS_PATH, { id, pod }, token);
  const refused = async (id: string, pod: PodJson) => {
    const { body } = await evict(id, pod);
    expect(body).toMatchObject({ evicted: false });
    return (body as { why: string }).why;
  };
  for (const token of [TOKENS.ingest, TOKENS.read, "x".repeat(20)]) {
    expect((await evict(mine.id, podOf("mine"), token)).status).toBe(401);
  }
  const another = "the lease was granted for another action or another pod";
  expect(await refused(theirs.id, podOf("mine"))).toBe(another);
  expect(await refused(gentle.id, podOf("mine"))).toBe(another);
  expect(await refused(mine.id, { ...podOf("mine"), uid: "another" })).toBe(another);
  expect(await refused(wanted("none").id, podOf("mine"))).toContain("no lease is granted");
  for (const name of ["../../nodes/a", "a/b", "a%2fb", "..", ""]) {
    expect((await evict(mine.id, podOf(name))).status).toBe(400);
  }
  const about = `from=${Date.now() - 60_000}&until=${Date.now()}&format=folded`;
  const forged = await ask(`${server.url}/ingest?name=mine.inuse_space&${about}`, {
    method: "POST",
    headers: { ...bearer(TOKENS.ingest), "content-type": "text/plain" },
    body: `main;leak ${64 * 2 ** 30}\n`,
  });
  expect(forged.status).toBe(200);
  expect(evicted).toEqual([]);

  expect((await evict(mine.id, podOf("mine"))).body).toEqual({ evicted: true });
  await post(ACTIONS_PATH, mine); // the report that it begins arrives late
  expect(await refused(mine.id, podOf("mine"))).toBe("this request was made before");
  await post(ACTIONS_PATH, { ...mine, state: "done", outcome: "it ended" });
  expect(await refused(mine.id, podOf("mine"))).toContain("it is over");
  expect(evicted).toEqual(["mine"]);
});
