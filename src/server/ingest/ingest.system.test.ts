/** More streams than fit into memory: each is read again from its file when it goes on, and nothing is lost or doubled. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { streamName } from "../../recording/sender/stream_name.js";
import { StreamReader } from "../../recording/stream_reader.js";
import { streamBytes } from "../../recording/streams.fixture.js";
import { openStore, StreamFiles } from "../../store/index.js";
import { Ingest } from "./ingest.js";

const MINUTE = 60_000;
const STREAMS = 12;
const PROFILES = 5;
const LIMITS = { frameBytes: 64 << 20, callBytes: 128 << 20 };
const START = Date.UTC(2026, 10, 27, 9);

/** A stream in pieces that end after each profile. */
function piecesOf(pid: number): { stream: string; pieces: Buffer[] } {
  const bytes = streamBytes({
    ...{ service: "shop", pid, startedMs: START },
    profiles: Array.from({ length: PROFILES }, (_, minute) => [
      minute * MINUTE,
      `main;load;step${minute} ${(minute + 1) * 1_000_000} allocated=${(minute + 1) * 2_000_000} variance=1`,
    ]),
  });
  const ends = new StreamReader("it", LIMITS)
    .take(bytes)
    .flatMap(({ kind, endOffset }) => (kind === "profile" ? endOffset : []));
  ends[ends.length - 1] = bytes.length;
  const pieces = ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end));
  return { stream: streamName(bytes), pieces };
}

async function opened(openBytes?: number) {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-ingest-"));
  const { store } = await openStore(`duckdb:${join(folder, "data")}`);
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  const warnings: string[] = [];
  const ingest = new Ingest({
    store,
    ...(openBytes === undefined ? {} : { openBytes }),
    files: new StreamFiles(join(folder, "streams")),
    clock: { latestMs: () => START + 60 * MINUTE },
    oldestMs: () => 0,
    warn: (text) => warnings.push(text),
    received: () => {},
    written: () => {},
  });
  return { store, ingest, warnings };
}

async function answersWith(openBytes: number): Promise<unknown> {
  const { store, ingest, warnings } = await opened(openBytes);
  const streams = Array.from({ length: STREAMS }, (_, at) => piecesOf(at + 1));
  for (let round = 0; round < PROFILES; round++) {
    for (const { stream, pieces } of streams) {
      const offset = pieces.slice(0, round).reduce((sum, { length }) => sum + length, 0);
      const { status } = await ingest.accept(stream, offset, pieces[round] as Buffer);
      expect(status).toBe(200);
    }
    // Written while the next round arrives.
    void ingest.flush();
  }
  await ingest.flush();
  expect(warnings).toEqual([]);
  const window = { startMs: START, endMs: START + PROFILES * MINUTE };
  const { snapshot, instances } = await store.profile({
    ...window,
    of: { service: "shop" },
    mostStacks: 100,
  });
  const sum = (column: Float64Array) => column.reduce((all, value) => all + value, 0);
  return {
    instances,
    live: sum(snapshot.sites.liveBytes),
    allocated: sum(snapshot.sites.allocatedBytes),
    offsets: [...(await store.writtenOffsets())].sort(),
  };
}

test("the answers are the same if only a few of the streams fit into memory", async () => {
  const all = await answersWith(1 << 30);
  expect(all).toMatchObject({ instances: STREAMS });
  expect(await answersWith(100_000)).toEqual(all);
});

test("a sender whose stream was removed is asked for its start, and sends it again", async () => {
  const { stream, pieces } = piecesOf(1);
  const [first = Buffer.alloc(0), ...rest] = pieces;
  const held = async ({ store, ingest }: Awaited<ReturnType<typeof opened>>) => {
    expect((await ingest.accept(stream, 0, Buffer.concat(pieces))).status).toBe(200);
    await ingest.flush();
    const window = { startMs: START, endMs: START + PROFILES * MINUTE };
    const of = { service: "shop" };
    return (await store.profile({ ...window, of, mostStacks: 100 })).snapshot.sites;
  };
  const removed = await opened();
  const { ingest, warnings } = removed;
  expect((await ingest.accept(stream, 0, first)).status).toBe(200);
  await ingest.flush();
  await ingest.remove(stream);
  expect(await ingest.accept(stream, first.length, Buffer.concat(rest))).toEqual({
    status: 409,
    answer: { nextOffset: 0 },
  });
  expect(await held(removed)).toEqual(await held(await opened()));
  expect(warnings).toEqual([]);
});
