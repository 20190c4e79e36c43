/** What the diagnosis asks collectors for, from recordings in a real store. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { streamName } from "../../recording/sender/stream_name.js";
import { StreamReader } from "../../recording/stream_reader.js";
import { type StreamPlan, streamBytes } from "../../recording/streams.fixture.js";
import { openStore, type Store } from "../../store/index.js";
import { Diagnoses } from "../answers/diagnoses.js";
import { BY_DIAGNOSIS, requestLooks } from "./looks.js";
import { RequestBook } from "./request_book.js";

const HOUR = 3_600_000;
const MIB = 2 ** 20;
const LIMITS = { frameBytes: 64 << 20, callBytes: 128 << 20 };

let folder = "";
let store: Store;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-looks-"));
  ({ store } = await openStore(`duckdb:${join(folder, "data")}`));
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

async function give(plan: StreamPlan): Promise<void> {
  const bytes = streamBytes(plan);
  const items = new StreamReader("it", LIMITS).take(bytes);
  await store.write([{ stream: streamName(bytes), items, endOffset: bytes.length }], 0);
}

test("two processes of a service that leaks in an unknown line, once in six hours; none where the line is known", async () => {
  const nowMs = Date.now();
  const hours = Array.from({ length: 72 * 3 }, (_, step) => step / 3);
  const leak = hours.map((hour) => [hour * HOUR, (100 + 2 * hour) * MIB] as const);
  const flat = hours.map((hour) => [hour * HOUR, 100 * MIB] as const);
  const startedMs = nowMs - (hours.at(-1) ?? 0) * HOUR - 30_000;
  for (const pid of [11, 12, 13]) {
    const own = { pid, startedMs: startedMs + pid * 1000 };
    await give({ ...own, service: "shop", rss: leak });
    await give({ ...own, service: "calm", pid: 10 + pid, rss: flat });
    await give({
      ...{ ...own, service: "known", pid: 20 + pid, rss: leak },
      profiles: hours
        .filter((hour) => Number.isInteger(hour))
        .map((hour) => [hour * HOUR, `main;keep ${(1 + 2 * hour) * MIB} variance=1`] as const),
    });
  }
  const warn = (text: string) => expect(text).toBe("");
  const book = new RequestBook(folder, warn);
  const said: string[] = [];
  let changes = 0;
  const parts = {
    ...{ store, book, diagnoses: new Diagnoses(store, () => null, warn) },
    info: (text: string) => said.push(text),
    changed: () => {
      changes++;
    },
  };
  await requestLooks(parts, nowMs);
  await requestLooks(parts, nowMs + 60_000);
  const { requests } = book.document(undefined);
  expect(requests).toMatchObject([
    {
      ...{ service: "shop", by: BY_DIAGNOSIS, untilMs: nowMs + HOUR },
      programs: [
        { host: "here", pid: 11 },
        { host: "here", pid: 12 },
      ],
    },
  ]);
  expect(said).toEqual([
    "shop leaks in an unknown line: the agent is requested on 2 of its processes",
  ]);
  expect(changes).toBe(1);
  expect(
    (await parts.diagnoses.in({ startMs: nowMs - HOUR, endMs: nowMs }, "known")).diagnoses,
  ).toMatchObject([{ suspects: [{ line: { function: "keep" } }] }]);
  book.close();
});
