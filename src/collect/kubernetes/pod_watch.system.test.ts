/** The pods of a node from a server that speaks the API's protocol: chunks, bookmarks, expired versions, failures. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import {
  answerStatus,
  makeCertificate,
  startApiServer,
  type TestApiServer,
} from "../../kubernetes/api_server.fixture.js";
import { PodWatch } from "./pod_watch.js";
import { Pods } from "./pods.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => {
  makeCertificate(folder, "ca");
  makeCertificate(folder, "other");
});

interface Asked {
  readonly query: URLSearchParams;
  readonly token: string;
  readonly response: ServerResponse;
}

let server: TestApiServer;
let asked: Asked[];
/** Answers a request; the default is an empty list, and a watch that stays open. */
let answer: (one: Asked) => void;
let until: AbortController;
let troubles: string[];
let pods: Pods;

beforeEach(async () => {
  asked = [];
  troubles = [];
  until = new AbortController();
  pods = new Pods();
  answer = usual;
  writeFileSync(join(folder, "token"), "first\n");
  writeFileSync(join(folder, "ca.crt"), readFileSync(join(folder, "ca.crt")));
  server = await startApiServer(folder, (request, response) => {
    const { searchParams, pathname } = new URL(request.url ?? "", "https://x");
    expect(pathname).toBe("/api/v1/pods");
    expect(searchParams.get("fieldSelector")).toBe("spec.nodeName=node-1");
    const token = (request.headers.authorization ?? "").replace("Bearer ", "");
    const one = { query: searchParams, token, response };
    asked.push(one);
    answer(one);
  });
});

afterEach(async () => {
  until.abort();
  await server.close();
});

function start(place = folder): PodWatch {
  return new PodWatch({
    server: { ...server, folder: place },
    node: "node-1",
    pods,
    until: until.signal,
    onTrouble: (why) => troubles.push(why),
    retryMs: 20,
  });
}

function usual(one: Asked): void {
  if (one.query.get("watch") === "1") {
    one.response.writeHead(200).flushHeaders();
  } else {
    list(one, "10", []);
  }
}

function list({ response }: Asked, version: string, items: object[], more = ""): void {
  const metadata = { resourceVersion: version, ...(more === "" ? {} : { continue: more }) };
  response.end(JSON.stringify({ kind: "PodList", metadata, items }));
}

function status({ response }: Asked, code: number, headers: Record<string, string> = {}): void {
  answerStatus(response, code, { headers });
}

function pod(name: string, version: string) {
  const metadata = { name, namespace: "shop", uid: name, resourceVersion: version };
  return { metadata, spec: { containers: [] }, status: {} };
}

const change = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;
const watches = () => asked.filter(({ query }) => query.get("watch") === "1");
const lists = () => asked.filter(({ query }) => query.get("watch") === null);
const isKnown = (name: string) => pods.factsOf([{ id: "", pod: name }]) !== null;

test("a list, then its changes, whatever the pieces in which they arrive", async () => {
  answer = (one) =>
    one.query.get("watch") === "1" ? usual(one) : list(one, "10", [pod("a", "9")]);
  const watch = start();
  await watch.tried;
  expect([watch.isSynced, isKnown("a")]).toEqual([true, true]);
  await vi.waitFor(() => expect(watches()).toHaveLength(1), { timeout: 60_000 });
  const { query, response } = watches()[0] as Asked;
  expect(query.get("resourceVersion")).toBe("10");
  expect(query.get("allowWatchBookmarks")).toBe("true");
  const text = change("ADDED", pod("b-ü", "11")) + change("MODIFIED", pod("a", "12"));
  for (const byte of Buffer.from(text)) {
    response.write(Buffer.from([byte]));
  }
  await vi.waitFor(() => expect(isKnown("b-ü")).toBe(true), { timeout: 60_000 });
  response.write(change("DELETED", pod("a", "13")));
  response.write(change("BOOKMARK", { metadata: { resourceVersion: "77" } }));
  response.end(`\n${change("ADDED", pod("c", "78"))}`);
  await vi.waitFor(() => expect(watches()).toHaveLength(2), { timeout: 60_000 });
  expect(watches()[1]?.query.get("resourceVersion")).toBe("78");
  expect(isKnown("c")).toBe(true);
  expect(lists()).toHaveLength(1);
  expect(troubles).toEqual([]);
});

test("a bookmark alone moves the version on", async () => {
  start();
  await vi.waitFor(() => expect(watches()).toHaveLength(1), { timeout: 60_000 });
  watches()[0]?.response.end(change("BOOKMARK", { metadata: { resourceVersion: "500" } }));
  await vi.waitFor(() => expect(watches()).toHaveLength(2), { timeout: 60_000 });
  expect(watches()[1]?.query.get("resourceVersion")).toBe("500");
});

test.each([
  ["an event", (one: Asked) => one.response.end(change("ERROR", { kind: "Status", code: 410 }))],
  ["an answer", (one: Asked) => status(one, 410)],
])(
  "a version that has expired, as %s: the newest list, and what it lacks was deleted",
  async (_, expire) => {
    let n = 0;
    answer = (one) => {
      if (one.query.get("watch") === null) {
        list(one, String(10 + n), [pod(n === 0 ? "old" : "new", "1")]);
      } else if (n++ === 0) {
        expire(one);
      } else {
        usual(one);
      }
    };
    start();
    await vi.waitFor(() => expect(watches()).toHaveLength(2), { timeout: 60_000 });
    expect(lists().map(({ query }) => query.get("resourceVersion"))).toEqual(["0", null]);
    expect(isKnown("new")).toBe(true);
    expect(troubles).toEqual([]);
  },
);

test("a long list comes in pages, and begins again if a page has expired", async () => {
  let expired = 0;
  answer = (one) => {
    const from = one.query.get("continue");
    if (one.query.get("watch") === "1") {
      usual(one);
    } else if (from === null) {
      list(one, "10", [pod("a", "1")], "next");
    } else if (expired++ === 0) {
      status(one, 410);
    } else {
      list(one, "11", [pod("b", "1")]);
    }
  };
  await start().tried;
  await vi.waitFor(() => expect(watches()).toHaveLength(1), { timeout: 60_000 });
  expect([isKnown("a"), isKnown("b")]).toEqual([true, true]);
  expect(watches()[0]?.query.get("resourceVersion")).toBe("11");
});

test("the token and the certificate are read again for each request", async () => {
  start();
  await vi.waitFor(() => expect(watches()).toHaveLength(1), { timeout: 60_000 });
  writeFileSync(join(folder, "token"), "second");
  watches()[0]?.response.end();
  await vi.waitFor(() => expect(watches()).toHaveLength(2), { timeout: 60_000 });
  expect(asked.map(({ token }) => token)).toEqual(["first", "first", "second"]);
});

test.each([
  [401, /does not accept this pod's token/],
  [403, /may not list and watch pods: grant it get, list and watch/],
  [500, /answered 500: no 500/],
  [429, /answered 429/],
])("status %d is reported once, and tried again", async (code, why) => {
  let n = 0;
  answer = (one) => (n++ < 3 ? status(one, code, { "retry-after": "0" }) : usual(one));
  const watch = start();
  await watch.tried;
  expect(watch.isSynced).toBe(false);
  await vi.waitFor(() => expect(watches()).toHaveLength(1), { timeout: 60_000 });
  expect(troubles).toEqual([expect.stringMatching(why), ""]);
});

test.each([
  ["no JSON", "<html>"],
  ["no list", "{}"],
  ["a truncated list", '{"metadata":{"resourceVersion":"1"},"items":['],
])("%s is reported, and tried again", async (_, text) => {
  let n = 0;
  answer = (one) => (n++ === 0 ? one.response.end(text) : usual(one));
  start();
  await vi.waitFor(() => expect(watches()).toHaveLength(1), { timeout: 60_000 });
  expect(troubles).toEqual(["the API server's answer is no list of pods", ""]);
});

test("objects that are no pods are left out, and a watch with rubbish is made again", async () => {
  let n = 0;
  answer = (one) => {
    if (one.query.get("watch") === null) {
      list(one, "10", [{ metadata: { name: 7 } }, pod("a", "1")]);
    } else if (n++ === 0) {
      one.response.end(`${change("ADDED", pod("b", "11"))}rubbish\n`);
    } else {
      usual(one);
    }
  };
  start();
  await vi.waitFor(() => expect(watches()).toHaveLength(2), { timeout: 60_000 });
  expect([isKnown("a"), isKnown("b")]).toEqual([true, true]);
  expect(watches()[1]?.query.get("resourceVersion")).toBe("11");
});

test("a connection that is cut in the middle of a change loses nothing", async () => {
  let n = 0;
  answer = (one) => {
    if (one.query.get("watch") === null) {
      usual(one);
    } else if (n++ === 0) {
      one.response.write(
        change("ADDED", pod("a", "11")) + change("ADDED", pod("b", "12")).slice(0, 20),
      );
      setTimeout(() => one.response.destroy(), 50);
    } else {
      usual(one);
    }
  };
  start();
  await vi.waitFor(() => expect(watches()).toHaveLength(2), { timeout: 60_000 });
  expect([isKnown("a"), isKnown("b")]).toEqual([true, false]);
  expect(watches()[1]?.query.get("resourceVersion")).toBe("11");
  expect(troubles).toEqual([]);
});

test("another certificate is refused, and nothing is sent to that server", async () => {
  const place = mkdtempSync(join(folder, "other-"));
  writeFileSync(join(place, "token"), "secret");
  writeFileSync(join(place, "ca.crt"), readFileSync(join(folder, "other.crt")));
  const watch = start(place);
  await watch.tried;
  expect(asked).toEqual([]);
  expect(troubles).toEqual([
    expect.stringMatching(/cannot be reached: .*(?:certificate|signature)/),
  ]);
});

test("no server, and no token: one line, and an end that does not hang", async () => {
  const watch = start(join(folder, "missing"));
  await watch.tried;
  expect(troubles).toEqual([expect.stringContaining("ENOENT")]);
  until.abort();
  await watch.ended;
});

test("an end during a watch", async () => {
  const watch = start();
  await vi.waitFor(() => expect(watches()).toHaveLength(1), { timeout: 60_000 });
  until.abort();
  await watch.ended;
  expect(troubles).toEqual([]);
});
