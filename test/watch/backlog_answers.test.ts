/** Answers of a server, of a proxy before it and of another program, and a disk that runs short while a recording is sent. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { Backlog, type BacklogEvent } from "../../src/collect/kept/backlog.js";
import { KeptRecordings } from "../../src/collect/kept/kept_recordings.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { open } from "../run.js";
import { type RunningServer, startServer } from "../server/running_server.js";
import { withWatchTest } from "./watched.js";

const FULL = { keepMs: Number.POSITIVE_INFINITY, mostBytes: 1 };
const watched = withWatchTest();
let server: RunningServer | null = null;
let proxy: Server | null = null;
afterEach(async () => {
  proxy?.closeAllConnections();
  proxy?.close();
  proxy = null;
  await server?.kill();
  server = null;
});

/** Three requests: names differ, so that they do not compress. */
function largeRecording(startedMs: number): Buffer {
  let state = 7;
  const word = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state.toString(36);
  };
  const profile = () =>
    Array.from({ length: 2500 }, () => `main;f${Array.from({ length: 12 }, word).join("")} 10`);
  return streamBytes({
    ...{ service: "shop", pid: 7, startedMs, endedAfterMs: 3_000_000 },
    rss: [[0, 2 ** 20]],
    profiles: Array.from({ length: 16 }, (_, at) => [at * 60_000 + 1, profile().join("\n")]),
  });
}

function keptWith(...recordings: readonly Buffer[]): { kept: KeptRecordings; paths: string[] } {
  const kept = new KeptRecordings(join(watched().folder, "kept"), true);
  const paths = recordings.map((bytes, pid) => {
    const path = kept.newPath("shop", pid, Date.now());
    writeFileSync(path, bytes);
    kept.markUnsent(path, 0);
    kept.closed(path);
    return path;
  });
  return { kept, paths };
}

const small = (pid: number) =>
  streamBytes({
    ...{ service: "shop", pid, startedMs: Date.now() - 60_000, endedAfterMs: 50_000 },
    rss: [[0, 2 ** 20]],
  });
const markOf = (path: string) => readFileSync(`${path}.unsent`, "utf8");
const bytesOf = (path: string) => readFileSync(path).length;

/** A round ends after its last event. */
async function round(backlog: Backlog, events: readonly BacklogEvent[], expected: number) {
  backlog.next(Number.POSITIVE_INFINITY);
  await expect.poll(() => events.length).toBe(expected);
  await new Promise((resolve) => setImmediate(resolve));
}

async function sentOnce(url: string, kept: KeptRecordings) {
  const events: BacklogEvent[] = [];
  const backlog = new Backlog({ url, token: null }, kept, (event) => events.push(event));
  await round(backlog, events, 1);
  await backlog.close();
  return events;
}

/** Before the server; `answerOf`: an answer of its own, or null for that of the server. */
async function startProxy(answerOf: (request: number) => [number, string] | null): Promise<string> {
  let requests = 0;
  const own = createServer(async (incoming, outgoing) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) {
      pieces.push(piece);
    }
    requests += 1;
    let [status, text] = answerOf(requests) ?? [0, ""];
    if (status === 0) {
      const forwarded = await fetch(`${server?.url}${incoming.url}`, {
        method: "POST",
        headers: { "content-type": "application/octet-stream" },
        body: new Uint8Array(Buffer.concat(pieces)),
      });
      status = forwarded.status;
      text = await forwarded.text();
    }
    outgoing.writeHead(status).end(text);
  });
  proxy = own;
  await new Promise<void>((resolve) => own.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(own.address() as AddressInfo).port}`;
}

test.each([
  [401, "<html>"],
  [403, '{"error":"no"}'],
  [404, "<html>"],
  [405, ""],
  [302, ""],
  [200, "<html>"],
  [200, '{"nextOffset":0}'],
  [400, "<html>"],
  [413, "<html>"],
  [409, "{}"],
])("status %i with %j is no refusal of the recording", async (status, text) => {
  const { kept, paths } = keptWith(small(1));
  const url = await startProxy(() => [status, text]);
  const said = await sentOnce(url, kept);
  expect(said).toMatchObject([{ kind: "backlog-waits", recordings: 1 }]);
  expect(JSON.stringify(said)).toMatch(/token|address|limits the size/);
  expect(kept.unsent()).toEqual(paths);
  kept.close();
});

test.each([
  [400, '{"error":"damaged"}', "damaged"],
  [413, '{"error":"the stream is too large"}', "too large"],
  [409, '{"error":"other bytes are stored"}', "other bytes"],
  [409, '{"nextOffset":123456789}', "an offset, 123456789,"],
])(
  "status %i with %j is final, and later failures are reported again",
  async (status, text, why) => {
    const { kept, paths } = keptWith(small(1));
    const answers: ([number, string] | null)[] = [
      [503, "{}"],
      [status, text],
      [503, "{}"],
    ];
    const url = await startProxy((request) => answers[request - 1] ?? null);
    const events: BacklogEvent[] = [];
    const backlog = new Backlog({ url, token: null }, kept, (event) => events.push(event));
    for (const expected of [1, 2, 3]) {
      if (expected === 3) {
        kept.markUnsent(paths[0] ?? "", 0);
      }
      await round(backlog, events, expected);
    }
    await backlog.close();
    expect(events.map(({ kind }) => kind)).toEqual(["backlog-waits", "not-sent", "backlog-waits"]);
    expect(events[1]).toMatchObject({ why: expect.stringContaining(why) });
    kept.close();
  },
);

test("a recording that a proxy refuses for its size does not hold up the others", async () => {
  const { kept, paths } = keptWith(small(1), small(2));
  server = await startServer(join(watched().folder, "data"));
  const url = await startProxy((request) => (request === 1 ? [413, "<html>"] : null));
  const events: BacklogEvent[] = [];
  const backlog = new Backlog({ url, token: null }, kept, (event) => events.push(event));
  await round(backlog, events, 1);
  const [failed = ""] = paths.filter((path) => markOf(path) !== "0\n");
  const order: string[] = [];
  const sending = kept.sending.bind(kept);
  kept.sending = (path) => {
    order.push(path);
    return sending(path);
  };
  await round(backlog, events, 2);
  await backlog.close();
  expect(order).toHaveLength(2);
  expect(order.at(-1)).toBe(failed);
  expect(events.at(-1)).toEqual({ kind: "backlog-sent", recordings: 2 });
  kept.close();
});

test("a recording is neither thinned nor removed while it is sent, and its number is written after that", async () => {
  const whole = largeRecording(Date.now() - 3_600_000);
  expect(whole.length).toBeGreaterThan(2 << 20);
  const { kept, paths } = keptWith(whole);
  const [path = ""] = paths;
  server = await startServer(join(watched().folder, "data"));
  const marks: string[] = [];
  const url = await startProxy((request) => {
    marks.push(markOf(path));
    kept.tidy(FULL, Date.now());
    expect(bytesOf(path)).toBe(whole.length);
    return request > 1 ? [503, "{}"] : null;
  });
  expect(await sentOnce(url, kept)).toMatchObject([{ kind: "backlog-waits" }]);
  expect(marks).toEqual(["", ""]);
  const mayHave = Number(markOf(path));
  expect(mayHave).toBeGreaterThan(1 << 20);
  kept.tidy({ ...FULL, mostBytes: whole.length - 1 }, Date.now());
  expect(bytesOf(path)).toBeLessThan(whole.length);
  expect(readFileSync(path).subarray(0, mayHave).equals(whole.subarray(0, mayHave))).toBe(true);
  expect(await sentOnce(server.url, kept)).toEqual([{ kind: "backlog-sent", recordings: 1 }]);
  expect(open(path).snapshots.length).toBeLessThan(16);
  kept.close();
});

test.each([
  ["", ""],
  ["12", ""],
  ["9000000\n", "9000000\n"],
])("a server that is away does not change what it may have: %j", async (mark, after) => {
  const { kept, paths } = keptWith(small(1));
  const [path = ""] = paths;
  writeFileSync(`${path}.unsent`, mark);
  await sentOnce("http://127.0.0.1:9", kept);
  expect(markOf(path)).toBe(after);
  kept.close();
});

test("a recording that someone removes while it is sent leaves no mark, and one that tidy removes neither", async () => {
  const { kept, paths } = keptWith(small(1), small(2));
  const [first = "", second = ""] = paths;
  kept.markSent(second);
  const url = await startProxy(() => {
    rmSync(first);
    return [503, "{}"];
  });
  await sentOnce(url, kept);
  kept.markUnsent(second, 0);
  expect(kept.tidy(FULL, Date.now())).toBe(1);
  expect(readdirSync(kept.folder)).toEqual(["watch.lock"]);
  kept.close();
});

test("a start removes what a collector that was killed left", () => {
  const folder = join(watched().folder, "kept");
  mkdirSync(folder, { recursive: true });
  const own = ["shop.tidemark.thinned", "gone.tidemark.unsent"];
  const others = ["shop.tidemark", "shop.tidemark.unsent", "notes.thinned", "notes.unsent"];
  for (const name of [...own, ...others]) {
    writeFileSync(join(folder, name), "x");
  }
  const kept = new KeptRecordings(folder, true);
  expect(own.filter((name) => existsSync(join(folder, name)))).toEqual([]);
  expect(others.filter((name) => existsSync(join(folder, name)))).toEqual(others);
  kept.close();
});
