/**
 * A real API server (kube-apiserver with etcd): Helm installs the chart into it, and a collector with the chart's own
 * ServiceAccount names pods by it. No kubelet and no controllers run, so no pod starts.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { get as httpGet } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PodWatch } from "../../src/collect/kubernetes/pod_watch.js";
import { Pods } from "../../src/collect/kubernetes/pods.js";
import { evictPod } from "../../src/kubernetes/eviction.js";
import { freePort } from "../../src/model/base/free_port.fixture.js";
import { present } from "../../src/model/base/present.js";
import { environment } from "../environment.js";
import { removeScratch, scratch, until } from "../run.js";
import { CHART, helm, NAMESPACE, type Rendered, render, SWITCHES, theOne } from "./chart.js";

const children: ChildProcess[] = [];
let folder = "";
let port = 0;

function startProgram(name: string, ...words: string[]): void {
  const program = join(present(environment.kubernetes), name);
  children.push(spawn(program, words, { cwd: folder, stdio: "ignore" }));
}

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: any object of the API
  readonly body: any;
}

function ask(method: string, path: string, body?: object, token = "admin-token"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        ...{ host: "127.0.0.1", port, method, path, rejectUnauthorized: false },
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece: string) => {
          text += piece;
        });
        response.on("end", () => {
          const isJson = text.startsWith("{");
          resolve({ status: response.statusCode ?? 0, body: isJson ? JSON.parse(text) : text });
        });
      },
    );
    sent.on("error", reject);
    sent.end(body === undefined ? "" : JSON.stringify(body));
  });
}

const pod = (name: string, node: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels: { "app.kubernetes.io/name": name } },
  spec: { nodeName: node, containers: [{ name: "app", image: "shop:42" }] },
});

describe.skipIf(environment.kubernetes === null || environment.helm === null)("a cluster", () => {
  beforeAll(async () => {
    folder = scratch();
    execFileSync("openssl", ["genrsa", "-out", "sa.key", "2048"], { cwd: folder, stdio: "ignore" });
    writeFileSync(join(folder, "tokens.csv"), "admin-token,admin,1,system:masters\n");
    const [etcd, peer] = [await freePort(), await freePort()];
    port = await freePort();
    const at = (number: number) => `http://127.0.0.1:${number}`;
    startProgram(
      "etcd",
      ...[
        "--data-dir=etcd",
        `--listen-client-urls=${at(etcd)}`,
        `--advertise-client-urls=${at(etcd)}`,
      ],
      ...[`--listen-peer-urls=${at(peer)}`, `--initial-advertise-peer-urls=${at(peer)}`],
      `--initial-cluster=default=${at(peer)}`,
    );
    // It gives up if it is faster than etcd.
    await until(
      () =>
        new Promise((resolve) => {
          httpGet(`${at(etcd)}/health`, (response) => resolve(response.statusCode === 200)).on(
            "error",
            () => resolve(false),
          );
        }),
    );
    startProgram(
      "kube-apiserver",
      ...[`--etcd-servers=${at(etcd)}`, `--secure-port=${port}`, "--bind-address=127.0.0.1"],
      ...["--cert-dir=certificates", "--service-cluster-ip-range=10.0.0.0/24"],
      ...["--service-account-issuer=https://tidemark.test", "--service-account-key-file=sa.key"],
      ...["--service-account-signing-key-file=sa.key", "--token-auth-file=tokens.csv"],
      ...["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"],
    );
    await until(async () => {
      const answer = await ask("GET", "/readyz").catch(() => null);
      return answer?.status === 200;
    });
    const config = join(folder, "kubeconfig");
    writeFileSync(
      config,
      JSON.stringify({
        ...{ apiVersion: "v1", kind: "Config", "current-context": "test" },
        clusters: [
          {
            name: "test",
            cluster: { server: `https://127.0.0.1:${port}`, "insecure-skip-tls-verify": true },
          },
        ],
        users: [{ name: "admin", user: { token: "admin-token" } }],
        contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
      }),
    );
    process.env.KUBECONFIG = config;
  }, 300_000);

  afterAll(async () => {
    for (const child of children.reverse()) {
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    }
    removeScratch();
  });

  test("Helm installs the chart, upgrades it through every switch, and removes it", async () => {
    for (const name of ["shop", "search"]) {
      await ask("POST", "/api/v1/namespaces", { metadata: { name } });
    }
    const words = ["tidemark", CHART, "--namespace", NAMESPACE];
    expect(helm("install", ...words, "--create-namespace")).toMatchObject({ status: 0 });
    for (const [name, values] of Object.entries(SWITCHES)) {
      // A StatefulSet's volumes cannot be changed, and neither can the labels that select pods.
      const isFixed = /volume|storage class|all that pods/.test(name);
      const { status, output } = isFixed
        ? helm("install", `other-${Date.now()}`, ...words.slice(1), ...values)
        : helm("upgrade", ...words, "--reset-values", ...values);
      expect([name, status, status === 0 ? "" : output]).toEqual([name, 0, ""]);
    }
    const { body } = await ask("GET", `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`);
    expect(body.items.length).toBeGreaterThan(0);
    expect(helm("uninstall", "tidemark", "--namespace", NAMESPACE)).toMatchObject({ status: 0 });
  });

  test("the pods of the chart are admitted in a privileged namespace, the server's in any", async () => {
    const admitted = async (level: string, { spec }: Rendered) => {
      const name = `level-${level}`;
      const labels = { "pod-security.kubernetes.io/enforce": level };
      await ask("POST", "/api/v1/namespaces", { metadata: { name, labels } });
      const path = `/api/v1/namespaces/${name}/pods?dryRun=All`;
      // The StatefulSet's controller would add the volume.
      const volumes = [...spec.template.spec.volumes, { name: "data", emptyDir: {} }];
      const body = { metadata: { name: "p" }, spec: { ...spec.template.spec, volumes } };
      return (await ask("POST", path, body)).status;
    };
    const [collector, server] = ["DaemonSet", "StatefulSet"].map((kind) => theOne(render(), kind));
    expect(await admitted("privileged", present(collector))).toBe(201);
    expect(await admitted("baseline", present(collector))).toBe(403);
    expect(await admitted("restricted", present(server))).toBe(201);
  });

  test("the collector's account names the pods of its node, and may do nothing else", async () => {
    const install = ["install", "own", CHART, "--namespace", NAMESPACE, "--create-namespace"];
    expect(helm(...install)).toMatchObject({ status: 0 });
    const account = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/own-tidemark-collector/token`;
    const { body } = await ask("POST", account, { spec: { expirationSeconds: 3600 } });
    const token: string = body.status.token;
    const place = join(folder, "account");
    mkdirSync(place);
    writeFileSync(join(place, "token"), token);
    // The certificate that the server made for itself is its own authority.
    writeFileSync(join(place, "ca.crt"), readFileSync(join(folder, "certificates/apiserver.crt")));

    await ask("POST", "/api/v1/namespaces", { metadata: { name: "web" } });
    const path = "/api/v1/namespaces/web/pods";
    expect((await ask("POST", path, pod("before", "node-1"))).status).toBe(201);
    expect((await ask("POST", path, pod("elsewhere", "node-2"))).status).toBe(201);
    const stop = new AbortController();
    const pods = new Pods();
    const troubles: string[] = [];
    const server = { host: "127.0.0.1", port, folder: place };
    const onTrouble = (why: string) => troubles.push(why);
    const watch = new PodWatch({ server, node: "node-1", pods, until: stop.signal, onTrouble });
    const uidOf = async (name: string) => (await ask("GET", `${path}/${name}`)).body.metadata.uid;
    const nameOf = (uid: string) => pods.factsOf([{ id: "", pod: uid }])?.place.pod;
    try {
      await watch.tried;
      expect([troubles, watch.isSynced]).toEqual([[], true]);
      expect(nameOf(await uidOf("before"))).toBe("before");
      expect(nameOf(await uidOf("elsewhere"))).toBeUndefined();
      await ask("POST", path, pod("after", "node-1"));
      const after = await uidOf("after");
      await until(() => nameOf(after) === "after");
      const id = "a".repeat(64);
      const status = {
        status: {
          containerStatuses: [
            {
              ...{ name: "app", image: "shop:42", imageID: "", ready: true, restartCount: 0 },
              containerID: `containerd://${id}`,
            },
          ],
        },
      };
      const stored = (await ask("GET", `${path}/after`)).body;
      expect((await ask("PUT", `${path}/after/status`, { ...stored, ...status })).status).toBe(200);
      await until(() => pods.factsOf([{ id, pod: "" }]) !== null);
      expect(pods.factsOf([{ id, pod: "" }])).toMatchObject({
        place: { namespace: "web", pod: "after", container: "app" },
        names: { service: "after", version: "42" },
      });
    } finally {
      stop.abort();
      await watch.ended;
    }
    const refused = [
      await ask("POST", path, pod("made", "node-1"), token),
      await ask("DELETE", `${path}/before`, undefined, token),
      await ask("POST", `${path}/before/eviction`, { metadata: { name: "before" } }, token),
      await ask("GET", "/api/v1/secrets", undefined, token),
      await ask("GET", "/api/v1/nodes", undefined, token),
    ];
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
  });

  test("with healing, the server's account may evict pods in the named namespaces", async () => {
    const install = ["install", "heal", CHART, "--namespace", NAMESPACE, "--create-namespace"];
    const values = ["--set", "healing.enabled=true,healing.namespaces={web}"];
    await ask("POST", "/api/v1/namespaces", { metadata: { name: "web" } });
    expect(helm(...install, ...values)).toMatchObject({ status: 0 });
    const account = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/heal-tidemark-healing/token`;
    const { body } = await ask("POST", account, { spec: { expirationSeconds: 3600 } });
    const { token } = body.status;
    const place = join(folder, "healing");
    mkdirSync(place);
    writeFileSync(join(place, "token"), token);
    writeFileSync(join(place, "ca.crt"), readFileSync(join(folder, "certificates/apiserver.crt")));
    const server = { host: "127.0.0.1", port, folder: place };
    const controller = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "v", uid: "1" };
    const victim = pod("victim", "node-1");
    const ownerReferences = [{ ...controller, controller: true }];
    for (const namespace of ["web", "default"]) {
      const metadata = { ...victim.metadata, ownerReferences };
      await ask("POST", `/api/v1/namespaces/${namespace}/pods`, { ...victim, metadata });
    }
    const path = "/api/v1/namespaces/web/pods/victim";
    const stored = (await ask("GET", path)).body;
    const running = { ...stored, status: { phase: "Running" } };
    expect((await ask("PUT", `${path}/status`, running)).status).toBe(200);
    const { uid } = stored.metadata;
    const evict = (namespace: string) =>
      evictPod(server, { namespace, name: "victim", uid }, AbortSignal.timeout(20_000));

    expect(await evict("default")).toMatch(/may not get and evict pods in namespace default/);
    const another = {
      ...{ apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "victim" } },
      deleteOptions: { preconditions: { uid: "another" } },
    };
    expect((await ask("POST", `${path}/eviction`, another, token)).status).toBe(409);
    const budgets = "/apis/policy/v1/namespaces/web/poddisruptionbudgets";
    const selector = { matchLabels: victim.metadata.labels };
    const budget = { metadata: { name: "budget" }, spec: { minAvailable: 1, selector } };
    expect((await ask("POST", budgets, budget)).status).toBe(201);
    expect(await evict("web")).toMatch(/^a disruption budget forbids it now: Cannot evict pod/);
    expect((await ask("GET", path)).body.metadata.deletionTimestamp).toBeUndefined();
    await ask("DELETE", `${budgets}/budget`);
    expect(await evict("web")).toBe("");
    expect(await evict("web")).toBe("pod web/victim is being deleted already");
    expect((await ask("DELETE", path, undefined, token)).status).toBe(403);
  });
});
