/** A stop of the server while the rules of alerts are evaluated. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { streamName } from "../../recording/sender/stream_name.js";
import { StreamReader } from "../../recording/stream_reader.js";
import { streamBytes } from "../../recording/streams.fixture.js";
import { openStore, type Store } from "../../store/index.js";
import { Diagnoses } from "../answers/diagnoses.js";
import { ForecastBook } from "../forecasts/forecast_book.js";
import { Alerting, USUAL_ALERTS } from "./alerting.js";

const MINUTE = 60_000;
const MIB = 2 ** 20;
const LIMITS = { frameBytes: 64 << 20, callBytes: 128 << 20 };

let folder = "";
let store: Store;
let warned: string[] = [];
beforeEach(async () => {
  warned = [];
  folder = mkdtempSync(join(tmpdir(), "tidemark-alerting-"));
  ({ store } = await openStore(`duckdb:${join(folder, "data")}`));
  const startedMs = Date.now() - 30 * MINUTE;
  const parts = [1, 2, 3, 4, 5].map((pid) => {
    const rss = [0, 10, 29].map((minute) => [minute * MINUTE, 50 * MIB] as const);
    const bytes = streamBytes({ service: `service-${pid}`, pid, startedMs, rss });
    const items = new StreamReader("it", LIMITS).take(bytes);
    return { stream: streamName(bytes), items, endOffset: bytes.length };
  });
  await store.write(parts, 0);
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

function started(): { diagnoses: Diagnoses; alerting: Alerting } {
  const warn = (text: string) => warned.push(text);
  const diagnoses = new Diagnoses(store, () => null, warn);
  const alerting = new Alerting({
    ...{ store, diagnoses, folder, warn },
    forecasts: new ForecastBook(folder, warn),
    settings: () => USUAL_ALERTS,
    url: () => "http://127.0.0.1:7070",
    changed: () => {},
  });
  alerting.start();
  return { diagnoses, alerting };
}

test("an evaluation that nothing stops takes in all services", async () => {
  const { diagnoses, alerting } = started();
  await expect.poll(() => alerting.document().evaluatedMs).toBeGreaterThan(0);
  await alerting.stop();
  const window = { startMs: Date.now() - 60 * MINUTE, endMs: Date.now() };
  expect((await diagnoses.in(window, undefined)).diagnoses).toHaveLength(5);
});

test("a stop ends an evaluation before its next service, without a warning and with the alerts as they were", async () => {
  const { diagnoses, alerting } = started();
  const asked = diagnoses.in({ startMs: 0, endMs: Date.now() }, undefined);
  diagnoses.stop();
  await expect(asked).rejects.toThrow(/abort/);
  await alerting.stop();
  expect(alerting.document().evaluatedMs).toBe(0);
  expect(warned).toEqual([]);
});
