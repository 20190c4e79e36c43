/** Requests to receivers reach only addresses that are allowed, and their errors are one line. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { isLocal, postJson } from "./post_json.js";

let server: Server | null = null;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = null;
});

async function listen(answer: RequestListener): Promise<number> {
  const own = createServer(answer);
  server = own;
  await new Promise<void>((resolve) => own.listen(0, "127.0.0.1", resolve));
  return (own.address() as AddressInfo).port;
}

const post = (url: string, allowsLocal = true) =>
  postJson(
    url,
    { a: 1 },
    { secret: "secret", isBearer: true, allowsLocal, signal: new AbortController().signal },
  );

test("a body and a token arrive", async () => {
  let received = "";
  const port = await listen((incoming, outgoing) => {
    received = `${incoming.headers.authorization} ${incoming.headers["content-type"]} `;
    incoming.on("data", (chunk: Buffer) => {
      received += chunk.toString();
    });
    incoming.on("end", () => outgoing.end());
  });
  await post(`http://localhost:${port}/hook`);
  expect(received).toBe('Bearer secret application/json {"a":1}');
});

test.each([
  "http://127.0.0.1",
  "http://localhost",
  "http://[::1]",
  "http://[::ffff:127.0.0.1]",
  "http://169.254.169.254",
  "http://10.1.2.3",
  "http://2130706433",
  "http://0x7f.1",
])("%s is refused without allow_local, before anything is sent", async (address) => {
  let requests = 0;
  const port = await listen((_, outgoing) => {
    requests++;
    outgoing.end();
  });
  await expect(post(`${address}:${port}/`, false)).rejects.toThrow(/allow_local: true permits it/);
  expect(requests).toBe(0);
});

test("a redirect is not followed, and is an error", async () => {
  let requests = 0;
  const port = await listen((_, outgoing) => {
    requests++;
    outgoing.writeHead(307, { location: "/elsewhere" }).end();
  });
  await expect(post(`http://127.0.0.1:${port}/`)).rejects.toThrow("it answers 307");
  expect(requests).toBe(1);
});

test("a refusal is quoted in one line and cut", async () => {
  const port = await listen((_, outgoing) => {
    outgoing.writeHead(400).end(`no\nsuch\nsecret ${"x".repeat(100_000)}`);
  });
  const error = await post(`http://127.0.0.1:${port}/`).catch(String);
  expect(error).toMatch(/^Error: it answers 400: no such \.\.\. x+$/);
  expect(String(error).length).toBeLessThan(300);
});

test("nobody listens", async () => {
  const port = await listen(() => {});
  server?.close();
  await expect(post(`http://127.0.0.1:${port}/`)).rejects.toThrow(/ECONNREFUSED/);
});

test("public addresses are not local", () => {
  expect(["93.184.216.34", "2606:2800:220:1::1", "172.32.0.1"].map(isLocal)).toEqual([
    ...[false, false, false],
  ]);
  expect(
    ["172.31.0.1", "fd00::1", "fe80::1", "0.0.0.0", "::7f00:1", "64:ff9b::a00:1"].map(isLocal),
  ).toEqual(Array(6).fill(true));
});
