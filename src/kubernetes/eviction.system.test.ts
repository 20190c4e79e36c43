/** Evictions at a server that speaks the API server's protocol, and each reason why a pod stays. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import {
  answerStatus,
  makeCertificate,
  startApiServer,
  type TestApiServer,
} from "./api_server.fixture.js";
import { evictPod } from "./eviction.js";

const POD = { namespace: "shop", name: "checkout-1", uid: "5e6a-1" };
const METADATA = { uid: POD.uid, ownerReferences: [{ kind: "ReplicaSet", controller: true }] };
const folder = mkdtempSync(join(tmpdir(), "tidemark-test-"));
beforeAll(() => makeCertificate(folder, "ca"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let server: TestApiServer;
/** Method, path and token of each request, and the body of an eviction. */
let asked: string[];
let bodies: unknown[];
let metadata: object;
let pod: (response: ServerResponse) => void;
let eviction: (response: ServerResponse) => void;

beforeEach(async () => {
  [asked, bodies, metadata] = [[], [], METADATA];
  pod = (response) => response.end(JSON.stringify({ kind: "Pod", metadata }));
  eviction = (response) => answerStatus(response, 201);
  writeFileSync(join(folder, "token"), "first\n");
  server = await startApiServer(folder, async (request: IncomingMessage, response) => {
    const { method = "", url = "", headers } = request;
    asked.push(`${method} ${url} ${headers.authorization}`);
    if (method === "GET") {
      pod(response);
    } else {
      const pieces = await request.toArray();
      bodies.push(JSON.parse(Buffer.concat(pieces as Buffer[]).toString()));
      eviction(response);
    }
  });
});
afterEach(() => server.close());

const evict = () => evictPod(server, POD, AbortSignal.timeout(20_000));

test("the pod of this uid, with the token that is mounted now", async () => {
  pod = (response) => {
    response.end(JSON.stringify({ metadata }));
    writeFileSync(join(folder, "token"), "second");
  };
  expect(await evict()).toBe("");
  const path = "/api/v1/namespaces/shop/pods/checkout-1";
  expect(asked).toEqual([`GET ${path} Bearer first`, `POST ${path}/eviction Bearer second`]);
  expect(bodies).toEqual([
    {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: "checkout-1", namespace: "shop" },
      deleteOptions: { preconditions: { uid: "5e6a-1" } },
    },
  ]);
});

test.each([
  ["another uid", { uid: "other" }, /is gone, and another one has its name/],
  ["being deleted", { deletionTimestamp: "2026-11-27T12:00:00Z" }, /is being deleted already/],
  ["without a controller", { ownerReferences: null }, /has no controller that would replace it/],
  ["an owner", { ownerReferences: [{ kind: "Job" }] }, /has no controller that would replace it/],
  ["static", { ownerReferences: [{ kind: "Node", controller: true }] }, /is a static pod/],
])("%s: no eviction is asked for", async (_, changes, why) => {
  metadata = { ...METADATA, ...changes };
  expect(await evict()).toMatch(why);
  expect(bodies).toEqual([]);
});

const BUDGET = {
  message: "Cannot evict pod as it would violate the pod's disruption budget.",
  causes: ["The disruption budget checkout needs 2 healthy pods and has 2 currently"],
};

test.each([
  [401, {}, /does not accept the token of its ServiceAccount/],
  [403, {}, /in namespace shop: set healing.enabled and healing.namespaces of the chart: no 403/],
  [404, {}, /^pod shop\/checkout-1 is gone$/],
  [409, {}, /^pod shop\/checkout-1 is gone, and another one has its name: no 409$/],
  [
    429,
    BUDGET,
    /^a disruption budget forbids it now: Cannot evict .* needs 2 healthy pods and has/,
  ],
  [429, {}, /^the API server is too busy now: no 429$/],
  [422, {}, /^the API server answered 422: no 422$/],
])("status %d %o: the pod stays, and it is asked for once", async (code, status, why) => {
  eviction = (response) => answerStatus(response, code, status);
  expect(await evict()).toMatch(why);
  expect(bodies).toHaveLength(1);
});

test("an answer that is lost or an error inside the API server: the outcome is unknown", async () => {
  eviction = (response) => response.destroy();
  await expect(evict()).rejects.toThrow();
  eviction = (response) => answerStatus(response, 500, { message: "more than one budget" });
  await expect(evict()).rejects.toThrow("more than one budget");
});

test("a pod that cannot be read is not evicted", async () => {
  pod = (response) => answerStatus(response, 403);
  expect(await evict()).toMatch(/may not get and evict pods in namespace shop/);
  pod = (response) => response.end("<html>");
  expect(await evict()).toBe("the API server's answer is no pod");
  pod = (response) => response.destroy();
  expect(await evict()).toMatch(/^the API server could not be asked for the pod: /);
  expect(bodies).toEqual([]);
});
