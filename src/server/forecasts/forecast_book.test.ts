import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { killsText } from "../../diagnose/index.js";
import type { FleetDiagnosisJson } from "../../model/documents/fleet_diagnosis_document.js";
import type { ProcessLife } from "../../store/index.js";
import { FORECAST_FILE, ForecastBook } from "./forecast_book.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = Date.UTC(2026, 2, 25, 9);
const noWarning = (text: string) => expect(text).toBe("");
let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "forecasts-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What the diagnosis of shop says at a time about a process: hours until its limit, and the ends of the interval. */
function said(atMs: number, process: string, [due, low, high]: readonly [number, number, number]) {
  const forecast = [
    {
      ...{ process, instance: process, version: "1" },
      ...{ msToLimit: due * HOUR, earliestMs: low * HOUR, latestMs: high * HOUR },
    },
  ];
  return [
    { service: "shop", window: { startMs: atMs - DAY, endMs: atMs }, forecast },
  ] as unknown as FleetDiagnosisJson[];
}

function lives(kills: Record<string, number>): ProcessLife[] {
  return Object.entries(kills).map(([process, atMs]) => ({
    ...{ process, service: "shop", version: "1", host: "h", pod: process, startedMs: NOW - DAY },
    ...{ endedMs: atMs, exitCode: null, lastMs: atMs, killsMs: [atMs], fragmentation: null },
  }));
}

test("kills are counted against the first forecast about each process", () => {
  const book = new ForecastBook(folder, noWarning);
  book.advance([], lives({ earlier: NOW - HOUR }), NOW);
  expect(book.recordOf("shop")).toBeNull();
  book.advance(said(NOW, "a", [6, 5, 8]), [], NOW);
  book.advance(said(NOW, "b", [6, 5, 0]), [], NOW);
  // A later forecast does not count: it is easier.
  book.advance(said(NOW + 3 * HOUR, "a", [0.5, 0.4, 0.6]), [], NOW + 3 * HOUR);
  // Too late to warn anybody.
  book.advance(said(NOW + 4 * HOUR, "c", [0.01, 0.01, 0.02]), [], NOW + 4 * HOUR);
  const kills = {
    a: NOW + 4 * HOUR,
    b: NOW + 9 * HOUR,
    c: NOW + 4 * HOUR + 60_000,
    d: NOW + 5 * HOUR,
  };
  book.advance([], lives(kills), NOW + 9 * HOUR);
  const record = {
    ...{ sinceMs: NOW, count: 4, forecast: 2, withinInterval: 1 },
    medianLeadMs: 9 * HOUR,
  };
  expect(book.recordOf("shop")).toEqual(record);
  // The same kills are seen again, also after a restart.
  const again = new ForecastBook(folder, noWarning);
  again.advance([], lives(kills), NOW + 10 * HOUR);
  expect(again.recordOf("shop")).toEqual(record);
  expect(killsText(record)).toBe(
    "The kernel killed 4 processes for memory since 2026-03-25 09:00:00 UTC. 2 of these kills were forecast, 9 h 00 min ahead at the median; 1 fell within the interval.",
  );
  again.advance([], [], NOW + 15 * DAY);
  expect(again.recordOf("shop")).toBeNull();
});

test("a forecast counts once, for as long as its process lives, and never after a clock that was ahead", () => {
  const book = new ForecastBook(folder, noWarning);
  // Ahead by a month.
  book.advance(said(NOW + 30 * DAY, "a", [6, 5, 8]), [], NOW + 30 * DAY);
  book.advance([], [], NOW);
  book.advance(said(NOW, "a", [400, 300, 9e15 / HOUR]), [], NOW);
  for (let day = 1; day < 20; day++) {
    book.advance(said(NOW + day * DAY, "a", [6, 5, 8]), lives({ a: Number.NaN }), NOW + day * DAY);
  }
  const again = new ForecastBook(folder, noWarning);
  const atMs = NOW + 20 * DAY;
  const [life] = lives({ a: atMs });
  again.advance([], [{ ...(life as ProcessLife), killsMs: [atMs, atMs + HOUR] }], atMs + HOUR);
  expect(again.recordOf("shop")).toEqual({
    ...{ sinceMs: atMs + HOUR - 14 * DAY, count: 2, forecast: 1, withinInterval: 1 },
    medianLeadMs: 20 * DAY,
  });
});

test("a file that is damaged is put aside", () => {
  writeFileSync(join(folder, FORECAST_FILE), '{"form": 7');
  const warnings: string[] = [];
  const book = new ForecastBook(folder, (text) => warnings.push(text));
  expect(warnings.join()).toContain("they are kept in");
  expect(readdirSync(folder)).toEqual([`${FORECAST_FILE}.unreadable`]);
  book.advance(said(NOW, "a", [6, 5, 8]), [], NOW);
  expect(readdirSync(folder)).toContain(FORECAST_FILE);
});
