/** Artifacts: uploads in pieces, what is refused, quotas, downloads, and a server that is killed in the middle. */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import type { ArtifactJson, ArtifactsJson } from "../../src/model/documents/artifact_document.js";
import type { IngestJson } from "../../src/model/documents/ingest_document.js";
import { type ArtifactAnswer, MOST_PIECE_BYTES } from "../../src/model/wire/artifacts.js";
import { streamBytes } from "../../src/recording/streams.fixture.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { ask, type RunningServer, startServer } from "./running_server.js";

let server: RunningServer;
afterEach(() => server.kill());
afterAll(removeScratch);

const sum = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const recording = streamBytes({
  service: "shop",
  pid: 42,
  startedMs: Date.now() - 60_000,
  rss: [[0, 1e6]],
  profiles: [[1000, "main;load 1000000 variance=1"]],
});

function about(files: ArtifactJson["files"], some: Partial<ArtifactJson> = {}): Buffer {
  const document: ArtifactJson = {
    ...{ schema: "tidemark.artifact/1", service: "shop", version: "41", env: "", host: "here" },
    ...{ pid: 42, command: ["python", "app.py"], timeMs: Date.now(), reason: "RSS above 1 GiB" },
    ...{ lastMoment: false, files, problems: [], ...some },
  };
  return Buffer.from(JSON.stringify(document));
}
const RECORDED = [{ name: "recording.tidemark", capture: "recording", pid: 0 }] as const;

async function put(
  id: string,
  name: string,
  file: Buffer,
  { offset = 0, end = file.length, sha256 = sum(file), bytes = file.length, headers = {} } = {},
): Promise<{ status: number; answer: ArtifactAnswer }> {
  const query = `sha256=${sha256}&bytes=${bytes}&offset=${offset}`;
  const { status, body } = await ask(`${server.url}/api/v1/artifacts/${id}/${name}?${query}`, {
    method: "PUT",
    headers: { "content-type": "application/octet-stream", ...headers },
    body: new Uint8Array(file.subarray(offset, end)),
  });
  return { status, answer: body as ArtifactAnswer };
}

/** A whole artifact with one file. */
async function upload(file = recording, some: Partial<ArtifactJson> = {}): Promise<string> {
  const description = about([...RECORDED], some);
  const id = sum(description).slice(0, 32);
  expect((await put(id, "recording.tidemark", file)).answer.complete).toBe(true);
  expect((await put(id, "about.json", description)).answer.complete).toBe(true);
  return id;
}

const list = async () => (await ask(`${server.url}/api/v1/artifacts`)).body as ArtifactsJson;
const download = async (id: string, name: string) =>
  fetch(`${server.url}/api/v1/artifacts/${id}/${name}`);

test("files arrive in pieces, are listed once complete, and are downloaded as they were", async () => {
  server = await startServer(scratch());
  const file = randomBytes(1_000_000);
  const description = about([{ name: "heap-42.json", capture: "snapshot", pid: 42 }, ...RECORDED]);
  const id = sum(description).slice(0, 32);
  const piece = (offset: number, end: number) => put(id, "heap-42.json", file, { offset, end });
  expect((await piece(0, 0)).answer).toEqual({ nextOffset: 0, complete: false });
  expect((await piece(0, 400_000)).answer).toEqual({ nextOffset: 400_000, complete: false });
  // The answer was lost, or the sender guesses.
  for (const offset of [0, 100_000, 500_000]) {
    const { status, answer } = await piece(offset, 600_000);
    expect([status, answer.nextOffset]).toEqual([409, 400_000]);
  }
  expect((await piece(0, 0)).answer.nextOffset).toBe(400_000);
  expect(await put(id, "about.json", description)).toMatchObject({
    status: 409,
    answer: { missing: ["heap-42.json", "recording.tidemark"] },
  });
  expect((await piece(400_000, 1_000_000)).answer).toEqual({
    nextOffset: 1_000_000,
    complete: true,
  });
  expect((await list()).artifacts).toEqual([]);
  expect((await download(id, "heap-42.json")).status).toBe(404);
  await put(id, "recording.tidemark", recording);
  // Repeated, and at the same time.
  const same = await Promise.all([1, 2, 3].map(() => put(id, "about.json", description)));
  expect(same.map(({ answer }) => answer.complete)).toEqual([true, true, true]);
  expect((await piece(0, 1_000_000)).answer.complete).toBe(true);
  const { artifacts, bytes, limits } = await list();
  expect(artifacts).toMatchObject([
    {
      ...{ id, service: "shop", version: "41", pid: 42, reason: "RSS above 1 GiB" },
      bytes: file.length + recording.length,
      files: [
        { name: "heap-42.json", capture: "snapshot", bytes: file.length, opens: false },
        { name: "recording.tidemark", bytes: recording.length, opens: true },
      ],
    },
  ]);
  expect(bytes).toBeGreaterThan(file.length);
  expect(limits.count).toBe(1000);
  const got = await download(id, "heap-42.json");
  expect(got.headers.get("content-disposition")).toBe('attachment; filename="heap-42.json"');
  expect(got.headers.get("x-content-type-options")).toBe("nosniff");
  expect(Buffer.from(await got.arrayBuffer()).equals(file)).toBe(true);
  const report = await fetch(`${server.url}/api/v1/artifacts/${id}/recording.tidemark/report`);
  expect([report.status, report.headers.get("content-type")]).toEqual([
    200,
    "application/vnd.tidemark.columns",
  ]);
  expect((await download(id, "heap-42.json/report")).status).toBe(400);
  const address = `${server.url}/api/v1/artifacts/${id}/heap-42.json`;
  for (let n = 0; n < 5; n += 1) {
    const head = await fetch(address, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "1000000"]);
  }
  const descriptors = `/proc/${server.child.pid}/fd`;
  const open = () =>
    readdirSync(descriptors).filter((fd) => {
      try {
        return readlinkSync(join(descriptors, fd)).endsWith("heap-42.json");
      } catch {
        return false;
      }
    });
  await expect.poll(open).toEqual([]);
});

test("a server that is killed keeps what it acknowledged, and the rest can be sent", async () => {
  const folder = scratch();
  server = await startServer(folder);
  const file = randomBytes(300_000);
  const description = about([{ name: "a.bin", capture: "gpu", pid: 1 }]);
  const id = sum(description).slice(0, 32);
  await put(id, "a.bin", file, { end: 100_000 });
  const half = request(
    `${server.url}/api/v1/artifacts/${id}/a.bin?sha256=${sum(file)}&bytes=300000&offset=100000`,
    {
      method: "PUT",
      headers: { "content-type": "application/octet-stream", "content-length": 200_000 },
    },
  );
  half.on("error", () => {});
  half.write(file.subarray(100_000, 150_000));
  await new Promise((resolve) => setTimeout(resolve, 300));
  await server.kill();
  server = await startServer(folder);
  const { answer } = await put(id, "a.bin", file, { end: 0 });
  expect(answer.nextOffset).toBeGreaterThanOrEqual(100_000);
  const rest = await put(id, "a.bin", file, { offset: answer.nextOffset ?? 0 });
  expect(rest.answer.complete).toBe(true);
  await put(id, "about.json", description);
  expect(Buffer.from(await (await download(id, "a.bin")).arrayBuffer()).equals(file)).toBe(true);
});

test("what does not fit is refused in one line, and nothing of it is kept", async () => {
  const folder = scratch();
  const config = join(scratch(), "serve.yaml");
  writeFileSync(config, "artifacts: {max_size: 1MiB}\n");
  server = await startServer(folder, { options: ["--config", config] });
  const small = Buffer.from("hello");
  const id = "0123456789abcdef0123456789abcdef";
  const cases: [() => ReturnType<typeof put>, number, RegExp][] = [
    [() => put(id, "a", small, { sha256: "0".repeat(64) }), 400, /SHA-256 .* another/],
    [() => put(id, "a", small, { bytes: 3 }), 400, /beyond the 3 bytes/],
    [() => put(id, "a", small, { bytes: 2 ** 21 }), 413, /limit artifact-bytes is 1 MiB/],
    [() => put(id, "a", small, { sha256: "xyz" }), 400, /sha256 is not a SHA-256/],
    [() => put(id, "a", small, { bytes: 0 }), 400, /bytes is not a whole number/],
    [() => put(id, "about.json", small), 400, /not JSON/],
    [() => put(id, "about.json", about([...RECORDED])), 400, /does not begin with the id/],
    [() => put(id, "about.json", small, { bytes: 2 ** 21 }), 413, /limit about-bytes/],
    [() => put("x", "a", small), 400, /address is not/],
    [() => put(id, "..%2f..%2fx", small), 400, /address is not/],
    [() => put(id, ".hidden", small), 400, /address is not/],
    [() => put(id, "a", small, { headers: { "content-type": "text/html" } }), 415, /octet-stream/],
    [() => put(id, "a", small, { headers: { "content-encoding": "gzip" } }), 415, /not encoded/],
  ];
  for (const [outcome, status, line] of cases) {
    const { status: given, answer } = await outcome();
    expect([given, answer.error]).toEqual([status, expect.stringMatching(line)]);
    expect(answer.error).not.toContain("\n");
  }
  const { refused } = (await ask(`${server.url}/api/v1/ingest`)).body as IngestJson;
  expect(refused).toEqual([
    expect.objectContaining({
      path: "/api/v1/artifacts/{id}/{name}",
      requests: cases.length,
      lastError: expect.stringMatching(/not encoded/),
    }),
  ]);
  const evil = about([{ name: "../../etc/passwd", capture: "gpu", pid: 1 }]);
  expect((await put(sum(evil).slice(0, 32), "about.json", evil)).status).toBe(400);
  for (const path of [`${id}/a`, "..%2f..%2fmeta.duckdb/about.json", `${id}/.a.part`, `${id}/..`]) {
    expect((await ask(`${server.url}/api/v1/artifacts/${path}`)).status).toBe(404);
  }
  const kept = readdirSync(join(folder, "artifacts"), { recursive: true, encoding: "utf8" });
  expect(kept.filter((name) => !/^[0-9a-f]{32}$/.test(name) && !name.endsWith(".part"))).toEqual(
    [],
  );
  expect((await list()).artifacts).toEqual([]);
});

test("a piece that is too large is refused, and what was there before stays", async () => {
  server = await startServer(scratch());
  const file = Buffer.alloc(MOST_PIECE_BYTES + 10, 7);
  const id = "0".repeat(32);
  const { status, answer } = await put(id, "a", file, { bytes: file.length + 10 });
  expect([status, answer.error]).toEqual([413, expect.stringContaining("limit piece-bytes")]);
  expect((await put(id, "a", file, { end: 0 })).answer.nextOffset).toBe(0);
  expect((await put(id, "a", file, { end: MOST_PIECE_BYTES })).answer.complete).toBe(false);
  expect((await put(id, "a", file, { offset: MOST_PIECE_BYTES })).answer.complete).toBe(true);
});

test("the oldest go beyond the count, the age and the size; unfinished ones after a day", async () => {
  const folder = scratch();
  const config = join(scratch(), "serve.yaml");
  writeFileSync(config, "artifacts: {count: 2, keep: 7d}\n");
  server = await startServer(folder, { options: ["--config", config] });
  const ids: string[] = [];
  const age = (id: string, days: number) => {
    const at = new Date(Date.now() - days * 86_400_000);
    utimesSync(join(folder, "artifacts", id), at, at);
  };
  for (const [at, days] of [3, 2, 1].entries()) {
    const id = await upload(recording, { timeMs: 1.7e12 + at });
    age(id, days);
    ids.push(id);
  }
  const there = async () => (await list()).artifacts.map(({ id }) => ids.indexOf(id)).sort();
  expect(await there()).toEqual([1, 2]);
  age(ids[1] ?? "", 8);
  await put("f".repeat(32), "half", recording, { end: 100 });
  age("f".repeat(32), 2);
  await server.kill();
  server = await startServer(folder, { options: ["--config", config] });
  await expect.poll(there).toEqual([2]);
  expect(existsSync(join(folder, "artifacts", "f".repeat(32)))).toBe(false);
});

test("they are in a backup with alerts and actions; folders that were copied there are listed", async () => {
  const folder = scratch();
  const data = join(folder, "data");
  server = await startServer(data);
  const id = await upload();
  const action = {
    ...{
      schema: "tidemark.action/1",
      id: randomUUID(),
      service: "shop",
      version: "1",
      host: "h",
    },
    ...{ pid: 1, action: "gc_collect", what: "collect garbage", state: "running" },
    ...{ reason: "RSS", evidence: "", why: "", outcome: "", timeMs: Date.now() },
  };
  const lease = await ask(`${server.url}/api/v1/leases`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(action),
  });
  expect(lease.body).toMatchObject({ granted: true });
  await expect.poll(() => existsSync(join(data, "alerts.json"))).toBe(true);
  // By hand.
  mkdirSync(join(data, "artifacts/checkout-4242"));
  writeFileSync(join(data, "artifacts/checkout-4242/recording.tidemark"), recording);
  writeFileSync(join(data, "artifacts/checkout-4242/about.json"), about([...RECORDED]));
  const before = await list();
  expect(before.artifacts.map((artifact) => artifact.id).sort()).toEqual(
    [id, "checkout-4242"].sort(),
  );
  const words = ["--store", `duckdb:${data}`, "--backup", join(folder, "copy")];
  expect((await execute([tidemark, "serve", ...words])).status).toBe(0);
  const again = ["--store", `duckdb:${join(folder, "again")}`, "--restore", join(folder, "copy")];
  expect((await execute([tidemark, "serve", ...again])).status).toBe(0);
  const actions = (await ask(`${server.url}/api/v1/actions`)).body;
  await server.kill();
  expect(existsSync(join(folder, "again/alerts.json"))).toBe(true);
  server = await startServer(join(folder, "again"));
  expect((await ask(`${server.url}/api/v1/actions`)).body).toEqual(actions);
  const names = (document: ArtifactsJson) => document.artifacts.map(({ id: name }) => name).sort();
  expect(names(await list())).toEqual(names(before));
  const got = await download(id, "recording.tidemark");
  expect(Buffer.from(await got.arrayBuffer()).equals(recording)).toBe(true);
});
