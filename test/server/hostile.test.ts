/** Invalid and hostile requests: each is refused with one line, nothing is stored, and the server keeps running. */
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { crc32 } from "../../src/recording/frames/checksum.js";
import { FRAME_HEAD_BYTES, FrameKind } from "../../src/recording/frames/frames.js";
import { namedBytes, streamName } from "../../src/recording/sender/stream_name.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { removeScratch, scratch } from "../run.js";
import { ask, post, type RunningServer, startServer } from "./running_server.js";

let folder: string;
let server: RunningServer;
beforeAll(async () => {
  folder = scratch();
  server = await startServer(folder);
});
afterAll(async () => {
  await server.kill();
  removeScratch();
});

const plan = { service: "shop", pid: 1, startedMs: Date.now() - 60_000, rss: [[0, 1e6]] } as const;
const good = streamBytes(plan);
const beginning = good.subarray(0, namedBytes(good));

function frame(kind: number, plain: Buffer): Buffer {
  const payload = deflateSync(plain);
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt32LE(payload.length, 0);
  head.writeUInt16LE(kind, 4);
  head.writeUInt16LE(1, 6);
  head.writeDoubleLE(Date.now(), 8);
  head.writeUInt32LE(crc32(head.subarray(0, 16), payload), 16);
  return Buffer.concat([head, payload]);
}

const bomb = frame(FrameKind.metrics, Buffer.alloc(200 << 20));
const ancient = streamBytes({ ...plan, startedMs: 1000 });
const future = streamBytes({ ...plan, startedMs: Date.UTC(2200, 0, 1) });

test.each([
  ["garbage", Buffer.from("hello"), 400, /name does not fit|not a Tidemark recording/],
  ["a bomb", Buffer.concat([beginning, bomb]), 400, /does not inflate/],
  [
    "an unknown kind of frame",
    Buffer.concat([beginning, frame(99, Buffer.from([0x80]))]),
    400,
    /kind 99/,
  ],
  [
    "nested beyond reason",
    Buffer.concat([beginning, frame(3, Buffer.alloc(100_000, 0x91))]),
    400,
    /damaged/,
  ],
  ["a frame cut off", good.subarray(0, good.length - 3), 400, /cut off/],
  ["a time in 1970", ancient, 400, /dated before 2000/],
  ["a time in 2200", future, 400, /more than a day ahead/],
] as const)("%s is refused, and nothing is stored", async (_, bytes, status, line) => {
  const { status: given, answer } = await post(server.url, bytes);
  expect([given, answer.error]).toEqual([status, expect.stringMatching(line)]);
  expect(answer.error).not.toContain("\n");
  expect(readdirSync(join(folder, "streams"))).toEqual([]);
});

test("stream names cannot reach other files", async () => {
  for (const stream of ["../../../etc/passwd", "..%2f..%2fx", "A".repeat(32), "", "0".repeat(33)]) {
    const { status, body } = await ask(
      `${server.url}/api/v1/frames?stream=${encodeURIComponent(stream)}&offset=0`,
      {
        method: "POST",
        headers: { "content-type": "application/octet-stream" },
        body: new Uint8Array(good),
      },
    );
    expect([status, (body as { error: string }).error]).toEqual([
      400,
      expect.stringMatching(/stream is/),
    ]);
    const report = await ask(
      `${server.url}/api/v1/instance/report?id=${encodeURIComponent(stream)}`,
    );
    expect(report.status).toBe(400);
  }
  for (const path of [
    "/assets/..%2f..%2findex.html",
    "/assets/%2e%2e/%2e%2e/package.json",
    "/etc/passwd",
  ]) {
    expect((await ask(`${server.url}${path}`)).status).toBe(404);
  }
});

test.each([
  "/api/v1/services?from=abc",
  "/api/v1/services?from=5&to=1",
  "/api/v1/services?from=0&to=4102444800000",
  "/api/v1/services?steps=0",
  "/api/v1/services?steps=99999999",
  "/api/v1/services?other=1",
  "/api/v1/services?from=1&from=2",
  "/api/v1/service",
  "/api/v1/series?service=x&by=nothing",
  "/api/v1/series?service=x&name=ledger%27--",
  `/api/v1/service?name=${"x".repeat(5000)}`,
])("%s is a bad request", async (path) => {
  const { status, body } = await ask(`${server.url}${path}`);
  expect(status).toBe(400);
  expect((body as { error: string }).error).toMatch(/^TM-E002 [^\n]+$/);
});

test("SQL in a parameter is text", async () => {
  const text = encodeURIComponent("x' OR ''='' ; DROP TABLE series; --");
  for (const path of [
    `service?name=${text}`,
    `series?service=${text}`,
    `profile?service=${text}`,
  ]) {
    const { status, body } = await ask(`${server.url}/api/v1/${path}`);
    expect([status, body]).toMatchObject([
      404,
      { error: expect.stringMatching(/^TM-E\d{3} no service is called x' OR [^\n]+$/) },
    ]);
  }
  // The version is asked for before the service is looked up.
  const ofVersion = await ask(`${server.url}/api/v1/profile?service=shop&version=${text}`);
  expect(ofVersion.body).toMatchObject({ what: "no service is called shop" });
  expect((await ask(`${server.url}/api/v1/services`)).status).toBe(200);
});

test("long selectors fit into an address, and what cannot be read as a request is refused in one line", async () => {
  const selector = `{service_name="shop", pod!="${"é".repeat(8_000)}"}`;
  const long = await ask(
    `${server.url}/api/v1/diff?${new URLSearchParams({ left: selector, right: selector })}`,
  );
  expect(long.status).toBe(200);
  const endless = await ask(`${server.url}/api/v1/diff?left=${"x".repeat(200_000)}`);
  expect([endless.status, endless.body]).toMatchObject([
    431,
    { error: "the address and the headers are longer than 128 KiB together" },
  ]);
  expect(await raw("\x16\x03\x01 a TLS hello\r\n\r\n")).toMatch(
    /^HTTP\/1\.1 400 [\s\S]*"error":"this is not HTTP"/,
  );
});

test("other hosts, types, encodings and sizes are refused", async () => {
  const other = { "content-type": "text/plain" };
  expect((await post(server.url, good, { headers: other })).status).toBe(415);
  expect((await post(server.url, good, { headers: { "content-encoding": "gzip" } })).status).toBe(
    415,
  );
  const large = await post(server.url, Buffer.alloc(33 << 20), { stream: streamName(good) });
  expect([large.status, large.answer.error]).toEqual([
    413,
    expect.stringContaining("frames-bytes"),
  ]);
  const answer = await raw(
    `GET /api/v1/services HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 403 [\s\S]*loopback host name/);
});

test("bytes that differ from the stored ones are refused, and the stream continues from its offset", async () => {
  expect((await post(server.url, beginning)).status).toBe(200);
  const changed = Buffer.from(good);
  changed.writeUInt8(changed.readUInt8(40) ^ 1, 40);
  const stream = streamName(good);
  const differing = await post(server.url, changed, { stream });
  expect(differing).toEqual({
    status: 409,
    answer: { error: expect.stringContaining("other bytes") },
  });
  const ahead = await post(server.url, good, { stream, offset: 1_000_000 });
  expect(ahead).toEqual({ status: 409, answer: { nextOffset: beginning.length } });
  expect(await post(server.url, good)).toEqual({
    status: 200,
    answer: { nextOffset: good.length },
  });
});

test("a thousand idle connections do not block other clients", async () => {
  const { hostname, port } = new URL(server.url);
  const idle = Array.from({ length: 1000 }, () => connect(Number(port), hostname));
  await Promise.all(
    idle.map((socket) => new Promise((resolve) => socket.once("connect", resolve))),
  );
  expect((await ask(`${server.url}/healthz`)).status).toBe(200);
  for (const socket of idle) {
    socket.destroy();
  }
});

/** The complete answer to a request that no client would make. */
function raw(text: string): Promise<string> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.on("data", (chunk) => {
      answer += chunk.toString();
    });
    socket.on("close", () => resolve(answer));
  });
}
