/** One instance that grows unlike its siblings: captures of all ranks at one moment are requested, once in six hours. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { streamName } from "../../recording/sender/stream_name.js";
import { StreamReader } from "../../recording/stream_reader.js";
import { streamBytes } from "../../recording/streams.fixture.js";
import { openStore, type Store } from "../../store/index.js";
import { Diagnoses } from "../answers/diagnoses.js";
import { BY_DIAGNOSIS } from "./looks.js";
import { requestRanks } from "./odd_ranks.js";
import { RequestBook } from "./request_book.js";

const HOUR = 3_600_000;
const MIB = 2 ** 20;
const LIMITS = { frameBytes: 64 << 20, callBytes: 128 << 20 };

let folder = "";
let store: Store;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-ranks-"));
  ({ store } = await openStore(`duckdb:${join(folder, "data")}`));
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

test("a job with an odd rank is asked, one whose ranks are alike is not", async () => {
  const nowMs = Date.now();
  const hours = Array.from({ length: 72 * 3 }, (_, step) => step / 3);
  const startedMs = nowMs - (hours.at(-1) ?? 0) * HOUR - 30_000;
  for (const [service, first] of [
    ["odd", 11],
    ["alike", 31],
  ] as const) {
    for (let pid: number = first; pid < first + 8; pid++) {
      const grows = pid === 14;
      const rss = hours.map(
        (hour) => [hour * HOUR, (1000 + (grows ? 10 * hour : Math.sin(hour))) * MIB] as const,
      );
      const bytes = streamBytes({ service, pid, startedMs: startedMs + pid * 1000, rss });
      const items = new StreamReader("it", LIMITS).take(bytes);
      await store.write([{ stream: streamName(bytes), items, endOffset: bytes.length }], 0);
    }
  }
  const warn = (text: string) => expect(text).toBe("");
  const book = new RequestBook(folder, warn);
  const said: string[] = [];
  const parts = {
    ...{ book, diagnoses: new Diagnoses(store, warn), changed: () => {} },
    info: (text: string) => said.push(text),
  };
  await requestRanks(parts, nowMs);
  await requestRanks(parts, nowMs + 60_000);
  const { requests } = book.document(undefined);
  expect(requests).toMatchObject([
    {
      ...{ service: "odd", by: BY_DIAGNOSIS },
      captures: { atMs: nowMs + 30_000, what: ["gpu", "flight_recorder"] },
    },
  ]);
  expect(said).toHaveLength(1);
  // It holds up no person's request for the agent.
  expect(book.add({ service: "odd", forMs: 60_000 }, nowMs)).toMatchObject({ service: "odd" });
  book.close();
});
