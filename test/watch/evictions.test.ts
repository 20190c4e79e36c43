/**
 * A collector's request for an eviction, from the condition to the end of the process: a real collector, server and
 * program, and a server that speaks the API server's protocol.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test, vi } from "vitest";
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
import { makeMemoryGroup, removeMemoryGroup } from "../memory_group.js";
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
/** Pods of the node, for a collector that watches them. */
let listing: { readonly metadata: object; readonly [part: string]: object }[];
let onEviction: (pod: string, response: ServerResponse) => void;

beforeEach(async () => {
  const { folder } = watched();
  [evicted, listing] = [[], []];
  makeCertificate(folder, "ca");
  writeFileSync(join(folder, "token"), "of the server");
  api = await startApiServer(folder, (request, response) => {
    const [, name = "", isEviction] =
      /^\/api\/v1\/namespaces\/shop\/pods\/([\w-]+)(\/eviction)?$/.exec(request.url ?? "") ?? [];
    if (isEviction !== undefined) {
      evicted.push(name);
      onEviction(name, response);
    } else if (request.url?.includes("watch=1") === true) {
      response.writeHead(200).flushHeaders();
    } else if (name === "") {
      response.end(JSON.stringify({ metadata: { resourceVersion: "1" }, items: listing }));
    } else {
      const ownerReferences = [{ kind: "ReplicaSet", controller: true }];
      const [{ metadata = { uid: `uid-${name}` } } = {}] = listing;
      response.end(JSON.stringify({ metadata: { ...metadata, ownerReferences } }));
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
    env: inCluster(),
  });
});
afterEach(async () => {
  await server.kill();
  await api.close();
});

function inCluster(): Record<string, string> {
  return {
    KUBERNETES_SERVICE_HOST: api.host,
    KUBERNETES_SERVICE_PORT: String(api.port),
    TIDEMARK_SERVICE_ACCOUNT: watched().folder,
  };
}

function sidecarOf({ namespace, name, uid }: PodJson): Record<string, string> {
  return {
    ...{ TIDEMARK_POD_NAME: name, TIDEMARK_POD_NAMESPACE: namespace, TIDEMARK_POD_UID: uid },
  };
}

/** By default a collector in the pod of the program, as a sidecar is. */
function watch(service: string, actions: string, environment = sidecarOf(podOf(service))) {
  const { folder, name } = watched();
  watched().environment = environment;
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
  await vi.waitUntil(isOver, { timeout: 200_000, interval: 500 });
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
  const unknown = watch(
    "unknown",
    "mode: on, allow: [evict_pod]",
    sidecarOf({ ...podOf("unknown"), uid: "" }),
  );
  await until(() => dry.said().includes("evict_pod (pod shop/dry) would be tried"));
  await until(() => /evict_pod was not tried: its pod is unknown: .*POD_UID/.test(unknown.said()));
  const check = [tidemark, "watch", "--check", "--config", unknown.path];
  expect((await execute(check)).stdout).toMatch(/evict_pod \(never: its pod is unknown/);
  expect(evicted).toEqual([]);
  for (const { child } of [dry, unknown]) {
    expect(await stopped(child)).toBe(0);
  }
});

const group = makeMemoryGroup(2 ** 30);
afterAll(() => removeMemoryGroup(group));

test.skipIf(group === null)(
  "a collector of a node: the pod is the one of the control group, not of the environment; it is gone",
  async () => {
    const [uid, id] = [randomUUID(), "c".repeat(64)];
    const container = join(present(group), `pod${uid}`, id);
    mkdirSync(container, { recursive: true });
    const metadata = { name: "real", namespace: "shop", uid, resourceVersion: "1" };
    const containerStatuses = [{ name: "app", containerID: `containerd://${id}` }];
    const spec = { containers: [{ name: "app", image: "shop:7" }] };
    listing = [{ metadata, spec, status: { containerStatuses } }];
    onEviction = (_, response) => answerStatus(response, 404);
    const enter = `echo $$ > "${container}/cgroup.procs"; exec "$@"`;
    const lie = "OTEL_RESOURCE_ATTRIBUTES=k8s.pod.name=victim,k8s.namespace.name=kube-system";
    const program = watched().python(LARGE, "real", ["env", lie, "sh", "-c", enter, "sh"]);
    const actions = "mode: on, allow: [evict_pod]";
    const { child, said } = watch("real", actions, {
      ...inCluster(),
      TIDEMARK_NODE_NAME: "node-1",
    });
    try {
      await until(() => /was not tried: the server: pod shop\/real is gone/.test(said()));
      expect(await listed("real")).toMatchObject([{ pod: { ...podOf("real"), uid } }]);
      expect(evicted).toEqual(["real"]);
      expect([program.exitCode, program.signalCode]).toEqual([null, null]);
      expect(await stopped(child)).toBe(0);
    } finally {
      const exit = once(program, "exit");
      program.kill("SIGKILL");
      await exit;
      rmdirSync(container);
      rmdirSync(dirname(container));
    }
  },
);

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
