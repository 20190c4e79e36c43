/** A recording as a DuckDB database, or as Parquet files, in the store's own tables. */
import { join } from "node:path";
import {
  BIGINT,
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBDateValue,
  DuckDBInstance,
  LIST,
  VARCHAR,
} from "@duckdb/node-api";
import { framesOf, labelPairs } from "../../model/frame_text.js";
import type { Profile } from "../../model/profile.js";
import type { LookMoment, Recording } from "../../record/index.js";
import { type ContentId, contentId, FRAME_KIND_NAMES, frameId, stackIds } from "../content_ids.js";
import { TABLE_NAMES, TABLES, type TableName } from "./schema.js";

/** Told after each look: how many of how many were written. */
export type Progress = (done: number, of: number) => void;

/** Fills a new database file with every look of the recording. */
export async function writeDuckdb(recording: Recording, path: string, tell: Progress): Promise<void> {
  await withDatabase(path, async (connection) => {
    await fill(connection, recording, tell);
    await connection.run("CHECKPOINT");
  });
}

/** Writes TABLE.parquet for each table into an existing folder. */
export async function writeParquet(
  recording: Recording,
  folder: string,
  tell: Progress,
): Promise<string[]> {
  const files: string[] = [];
  await withDatabase(":memory:", async (connection) => {
    await fill(connection, recording, tell);
    for (const table of TABLE_NAMES) {
      const file = join(folder, `${table}.parquet`);
      const quoted = file.replaceAll("'", "''");
      await connection.run(`COPY ${table} TO '${quoted}' (FORMAT parquet, COMPRESSION zstd)`);
      files.push(file);
    }
  });
  return files;
}

async function withDatabase(
  path: string,
  use: (connection: DuckDBConnection) => Promise<void>,
): Promise<void> {
  // No word to the network: what is not built in is not needed.
  const instance = await DuckDBInstance.create(path, {
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
  });
  try {
    const connection = await instance.connect();
    try {
      await use(connection);
    } finally {
      connection.closeSync();
    }
  } finally {
    instance.closeSync();
  }
}

type Appenders = Record<TableName, DuckDBAppender>;

async function fill(
  connection: DuckDBConnection,
  recording: Recording,
  tell: Progress,
): Promise<void> {
  for (const table of TABLE_NAMES) {
    await connection.run(`CREATE TABLE ${table} (${TABLES[table]})`);
  }
  const entries = await Promise.all(
    TABLE_NAMES.map(async (table) => [table, await connection.createAppender(table)] as const),
  );
  const into = Object.fromEntries(entries) as Appenders;
  const seriesOf = appendSeries(into.series, recording);
  appendMetrics(into.metrics, recording, seriesOf);
  appendEvents(into.events, recording, seriesOf);
  const written = { frames: new Set<ContentId>(), stacks: new Set<ContentId>(), labels: new Set<ContentId>() };
  for (const [index, look] of recording.looks.entries()) {
    appendLook(into, recording.profileOf(index), look, seriesOf, written);
    tell(index + 1, recording.looks.length);
  }
  for (const appender of Object.values(into)) {
    appender.closeSync();
  }
}

type SeriesOf = (pid: number) => ContentId;

function appendSeries(appender: DuckDBAppender, { meta, processes }: Recording): SeriesOf {
  const ids = new Map<number, ContentId>();
  for (const row of processes) {
    const id = contentId(meta.host, row.pid, row.startedMs);
    ids.set(row.pid, id);
    appender.appendBigInt(id);
    appender.appendVarchar(meta.command.join(" "));
    appender.appendVarchar(meta.host);
    appender.appendBigInt(BigInt(row.pid));
    appender.appendBigInt(BigInt(row.parentPid));
    appender.appendList([...row.command], LIST(VARCHAR));
    appender.appendVarchar(row.python);
    appender.appendDouble(row.startedMs);
    if (row.endedMs === null) {
      appender.appendNull();
    } else {
      appender.appendDouble(row.endedMs);
    }
    appender.appendBoolean(row.profiled);
    appender.endRow();
  }
  return (pid) => ids.get(pid) ?? contentId(meta.host, pid, "unknown");
}

function appendMetrics(appender: DuckDBAppender, recording: Recording, seriesOf: SeriesOf): void {
  for (const { pid, timesMs, values } of recording.series) {
    const id = seriesOf(pid);
    for (const [name, column] of values) {
      for (let i = 0; i < timesMs.length; i++) {
        // NaN: not read at this poll, so there is no row.
        if (!Number.isNaN(column[i]!)) {
          appender.appendBigInt(id);
          appender.appendDouble(timesMs[i]!);
          appender.appendVarchar(name);
          appender.appendDouble(column[i]!);
          appender.endRow();
        }
      }
    }
  }
}

function appendEvents(appender: DuckDBAppender, recording: Recording, seriesOf: SeriesOf): void {
  for (const event of recording.events) {
    appender.appendBigInt(seriesOf(event.pid));
    appender.appendDouble(event.timeMs);
    appender.appendVarchar(event.kind);
    appender.appendVarchar(event.detail);
    if (event.value === undefined) {
      appender.appendNull();
    } else {
      appender.appendDouble(event.value);
    }
    appender.endRow();
  }
}

interface Written {
  readonly frames: Set<ContentId>;
  readonly stacks: Set<ContentId>;
  readonly labels: Set<ContentId>;
}

const DOMAIN_NAMES = ["python", "native", "mapped"] as const;

function appendLook(
  into: Appenders,
  profile: Profile,
  look: LookMoment,
  seriesOf: SeriesOf,
  written: Written,
): void {
  const { sites, frames } = profile;
  const frameIds = Array.from({ length: frames.length }, (_, frame) => frameId(profile, frame));
  const ids = stackIds(profile, frameIds);
  const profileIds = profile.processes.map((process) => {
    const id = contentId(seriesOf(process.pid), look.timeMs);
    into.profiles.appendBigInt(id);
    into.profiles.appendBigInt(seriesOf(process.pid));
    into.profiles.appendDouble(look.timeMs);
    into.profiles.appendDouble(profile.durationMs);
    into.profiles.appendVarchar(look.kind);
    into.profiles.appendDouble(process.periodBytes);
    into.profiles.endRow();
    return id;
  });
  const day = new DuckDBDateValue(Math.floor(look.timeMs / 86_400_000));
  for (let site = 0; site < sites.length; site++) {
    const stack = sites.stack[site]!;
    appendStack(into, profile, stack, ids, frameIds, written);
    const process = sites.process[site]!;
    const row = into.samples;
    row.appendDate(day);
    row.appendBigInt(seriesOf(profile.processes[process]!.pid));
    row.appendDouble(look.timeMs);
    row.appendBigInt(profileIds[process]!);
    row.appendBigInt(ids[stack]!);
    row.appendVarchar(profile.threads[sites.thread[site]!]?.name ?? "");
    row.appendBigInt(appendLabel(into.labels, profile, sites.label[site]!, written));
    row.appendVarchar(DOMAIN_NAMES[sites.domain[site]!] ?? "");
    row.appendDouble(sites.liveObjects[site]!);
    row.appendDouble(sites.liveBytes[site]!);
    row.appendDouble(sites.liveVariance[site]!);
    row.appendDouble(sites.peakObjects[site]!);
    row.appendDouble(sites.peakBytes[site]!);
    row.appendDouble(sites.allocatedObjects[site]!);
    row.appendDouble(sites.allocatedBytes[site]!);
    row.endRow();
  }
}

function appendStack(
  into: Appenders,
  profile: Profile,
  stack: number,
  ids: readonly ContentId[],
  frameIds: readonly ContentId[],
  written: Written,
): void {
  const id = ids[stack]!;
  if (written.stacks.has(id)) {
    return;
  }
  written.stacks.add(id);
  const { frames, strings } = profile;
  const stackFrames = framesOf(profile, stack);
  for (const frame of stackFrames) {
    if (!written.frames.has(frameIds[frame]!)) {
      written.frames.add(frameIds[frame]!);
      into.frames.appendBigInt(frameIds[frame]!);
      into.frames.appendVarchar(strings[frames.function[frame]!]!);
      into.frames.appendVarchar(strings[frames.file[frame]!]!);
      into.frames.appendInteger(frames.line[frame]!);
      into.frames.appendVarchar(FRAME_KIND_NAMES[frames.kind[frame]!] ?? "");
      into.frames.endRow();
    }
  }
  into.stacks.appendBigInt(id);
  into.stacks.appendList(stackFrames.map((frame) => frameIds[frame]!), LIST(BIGINT));
  into.stacks.endRow();
}

function appendLabel(
  appender: DuckDBAppender,
  profile: Profile,
  label: number,
  written: Written,
): ContentId {
  const pairs = [...labelPairs(profile, label)].sort(([a], [b]) => (a < b ? -1 : 1));
  const id = contentId("label", ...pairs.flat());
  if (!written.labels.has(id)) {
    written.labels.add(id);
    appender.appendBigInt(id);
    appender.appendList(pairs.map(([key]) => key), LIST(VARCHAR));
    appender.appendList(pairs.map(([, value]) => value), LIST(VARCHAR));
    appender.endRow();
  }
  return id;
}
