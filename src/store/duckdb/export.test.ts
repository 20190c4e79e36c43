import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FIXTURE_TIME_MS, profileOf } from "../../model/profile/profile.fixture.js";
import { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import { FileSink } from "../../recording/frames/file_sink.js";
import { openRecording } from "../../recording/reader.js";
import type { Recording } from "../../recording/types.js";
import { RecordingWriter } from "../../recording/writer.js";
import { writeDuckdb, writeParquet } from "./export.js";

let directory: string;
let recording: Recording;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-export-"));
  const path = join(directory, "run.tidemark");
  const writer = new RecordingWriter(FileSink.open(path));
  const startedMs = FIXTURE_TIME_MS - 1500;
  writer.begin({
    tidemarkVersion: "0",
    command: ["python", "app.py"],
    pid: 42,
    startedMs,
    host: "here",
    kernel: "6",
    runId: "ab",
    periodBytes: 65536,
    keeper: null,
    recorder: { pid: 1, startTicks: 1 },
  });
  const process = {
    parentPid: 1,
    command: ["python", "app.py"],
    python: "3.11.7",
    profiled: true,
    endedMs: null,
  };
  writer.processes(startedMs, [
    { ...process, series: 0, pid: 42, startedMs },
    { ...process, series: 1, pid: 43, startedMs: startedMs + 100 },
  ]);
  writer.metrics(startedMs, [
    { timeMs: startedMs, series: 0, metric: "rssBytes", value: 1000 },
    { timeMs: startedMs + 250, series: 0, metric: "rssBytes", value: 3000 },
    { timeMs: startedMs + 250, series: 1, metric: "rssBytes", value: 500 },
  ]);
  writer.events(startedMs, [
    { timeMs: startedMs + 10, pid: 42, kind: "step-begin", detail: "it's" },
  ]);
  const builder = new ProfileTablesBuilder();
  const agent = { samples: 4, lost: 0, cpuMs: 1, periodBytes: 65536 };
  const snapshots = [
    `main;load 1000 allocated=5000 label=endpoint:/x
     main;work 10 pid=43`,
    `main;load 1500 allocated=9000 label=endpoint:/x objects=3
     main;load;libx.so+1f0 64 domain=native
     main;work 0 allocated=30 pid=43`,
  ];
  snapshots.forEach((text, index) => {
    const profile = profileOf(text, builder);
    const timeMs = FIXTURE_TIME_MS + index * 1000;
    const cohorts = [timeMs - 500, timeMs];
    writer.snapshot(
      profile,
      { ...profile, timeMs, cohorts },
      { kind: index === 0 ? "poll" : "end", agent },
    );
  });
  writer.end({
    timeMs: FIXTURE_TIME_MS + 1000,
    exitCode: 0,
    signal: null,
    maxRssBytes: 0,
    userMs: 0,
    systemMs: 0,
  });
  writer.close();
  recording = openRecording(path);
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Rows of a query on the exported tables; `from` makes them visible. */
async function query(file: string, from: readonly string[], sql: string): Promise<unknown[]> {
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  try {
    for (const statement of from) {
      await connection.run(statement);
    }
    return (await connection.runAndReadAll(sql)).getRowObjectsJson();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

const QUESTIONS = {
  live: `SELECT sum(live_bytes) AS bytes, sum(live_objects) AS objects FROM samples
         WHERE ts_ms = (SELECT max(ts_ms) FROM samples)`,
  allocated: "SELECT sum(allocated_bytes) AS bytes FROM samples",
  stacks: `SELECT list(function ORDER BY place) AS names
           FROM (SELECT stack_id, unnest(frame_ids) AS frame_id, generate_subscripts(frame_ids, 1) AS place
                 FROM stacks) JOIN frames USING (frame_id) GROUP BY stack_id ORDER BY names`,
  joined: `SELECT pid, thread, domain, keys, vals, sum(allocated_bytes) AS bytes
           FROM samples JOIN series USING (series_id) JOIN labels USING (label_id)
           GROUP BY ALL ORDER BY bytes DESC`,
  metrics:
    "SELECT pid, name, max(value) AS most FROM metrics JOIN series USING (series_id) GROUP BY ALL ORDER BY pid",
  events: "SELECT pid, kind, severity, body FROM events JOIN series USING (series_id)",
  profiles: "SELECT count(*) AS n, count(DISTINCT profile_id) AS ids FROM profiles",
  series: "SELECT count(*) AS n FROM series",
};

async function checkAnswers(ask: (sql: string) => Promise<unknown[]>): Promise<void> {
  expect(await ask(QUESTIONS.live)).toEqual([{ bytes: 1564, objects: 4 }]);
  expect(await ask(QUESTIONS.allocated)).toEqual([{ bytes: 9000 + 64 + 30 }]);
  expect(await ask(QUESTIONS.stacks)).toEqual([
    { names: ["libx.so+0x1f0", "load", "main"] },
    { names: ["load", "main"] },
    { names: ["work", "main"] },
  ]);
  expect(await ask(QUESTIONS.joined)).toEqual([
    { pid: 42, thread: "main", domain: "python", keys: ["endpoint"], vals: ["/x"], bytes: 9000 },
    { pid: 42, thread: "main", domain: "native", keys: [], vals: [], bytes: 64 },
    { pid: 43, thread: "main", domain: "python", keys: [], vals: [], bytes: 30 },
  ]);
  expect(await ask(QUESTIONS.metrics)).toEqual([
    { pid: 42, name: "rssBytes", most: 3000 },
    { pid: 43, name: "rssBytes", most: 500 },
  ]);
  expect(await ask(QUESTIONS.events)).toEqual([
    { pid: 42, kind: "step-begin", severity: "info", body: "it's" },
  ]);
  expect(await ask(QUESTIONS.profiles)).toEqual([{ n: "4", ids: "4" }]);
  expect(await ask(QUESTIONS.series)).toEqual([{ n: "2" }]);
}

describe("a recording", () => {
  it("becomes a DuckDB file", async () => {
    const path = join(directory, "it's.duckdb");
    const progressCalls: [number, number][] = [];
    await writeDuckdb(recording, path, async (...progress) => void progressCalls.push(progress));
    expect(progressCalls).toEqual([
      [1, 2],
      [2, 2],
    ]);
    await checkAnswers((sql) => query(path, [], sql));
    expect(readdirSync(directory).sort()).toEqual(["it's.duckdb", "run.tidemark"]);
  });

  it("becomes Parquet files", async () => {
    const path = join(directory, "it's parquet");
    mkdirSync(path);
    const files = await writeParquet(recording, path, async () => {});
    expect(files.sort()).toEqual(readdirSync(path).sort());
    const views = readdirSync(path).map(
      (name) =>
        `CREATE VIEW ${name.replace(".parquet", "")} AS FROM '${join(path, name).replaceAll("'", "''")}'`,
    );
    expect(views).toHaveLength(9);
    await checkAnswers((sql) => query(":memory:", views, sql));
  });

  it("reports in one line if it cannot be written", async () => {
    const nowhere = join(directory, "missing", "x.duckdb");
    await expect(writeDuckdb(recording, nowhere, async () => {})).rejects.toThrow("TM-E004");
    const file = join(directory, "run.tidemark");
    await expect(writeParquet(recording, file, async () => {})).rejects.toThrow("TM-E004");
  });
});
