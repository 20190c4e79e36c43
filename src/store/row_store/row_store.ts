import { Turns } from "../../model/base/turns.js";
import type { TimeMs } from "../../model/base/units.js";
import { fileUnusable, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { dayNamed } from "../duckdb/days.js";
import { LabelBudget } from "../duckdb/label_budget.js";
import { isMeta, MetaStaging } from "../duckdb/meta_staging.js";
import { fleetEvidence, fleetServices, fleetSites } from "../duckdb/queries/fleet_evidence.js";
import { fleetPeaks } from "../duckdb/queries/fleet_peaks.js";
import { figureSeries, labelNames, labelSets, labelValues } from "../duckdb/queries/labels.js";
import { processLives } from "../duckdb/queries/lives.js";
import { conditionOf, windowProfile } from "../duckdb/queries/profile.js";
import { runningInstances, seriesAnswer } from "../duckdb/queries/series.js";
import {
  instanceRow,
  serviceDocument,
  serviceInstances,
  servicesDocument,
  serviceVersions,
  verdictsDocument,
} from "../duckdb/queries/services.js";
import { storageUse, streamsAbout } from "../duckdb/queries/storage.js";
import { versionGauges } from "../duckdb/queries/version_gauges.js";
import type { Day, RowDatabase } from "../duckdb/row_database.js";
import { NO_SAMPLES } from "../duckdb/sample_chunks.js";
import type { AcceptLabel } from "../duckdb/series_rows.js";
import { writeEnds } from "../duckdb/stream_ends.js";
import { type RowSink, StreamRows } from "../duckdb/stream_rows.js";
import { WrittenIds } from "../duckdb/written_ids.js";
import type { FigureSeriesQuery, LabelQuery } from "../interface/labels.js";
import type {
  LabelUse,
  ProfileQuery,
  Retained,
  Retention,
  SeriesQuery,
  StorageUse,
  Store,
  StoreSettings,
  StoreUse,
  StreamPart,
  VerdictRow,
} from "../interface/store.js";
import type { Window } from "../interface/window.js";
import { partsByDay } from "./parts_by_day.js";
import { bytesOf, retainDays } from "./retention.js";
import { SumChanges } from "./sum_changes.js";
import type { SweepDatabase } from "./sweep_database.js";

const MS_PER_DAY = 86_400_000;

/** A store over a database of rows. */
export class RowStore<Database extends RowDatabase> implements Store {
  readonly #database: Database;
  readonly #sweepDatabase: SweepDatabase<Database>;
  readonly #meta: MetaStaging;
  readonly #labels: LabelBudget;
  readonly #streams = new Map<string, StreamRows>();
  readonly #writtenIds = new WrittenIds();
  #lastWrite: Promise<unknown> = Promise.resolve();
  #lastRetain: Promise<unknown> = Promise.resolve();
  /** For rows of a day that are already in the database. Rows that they refer to are staged: retention may have removed
   * them. */
  readonly #written: RowSink;
  /** When names were swept last, and the most recordings since then. */
  #swept = { atMs: Number.NEGATIVE_INFINITY, recordings: 0 };

  private constructor(database: Database, sweep: SweepDatabase<Database>, labels: LabelBudget) {
    this.#database = database;
    this.#sweepDatabase = sweep;
    this.#labels = labels;
    this.#meta = new MetaStaging(database);
    this.#written = {
      add: (table, ...values) => {
        if (isMeta(table)) {
          this.#meta.add(table, ...values);
        }
      },
      samples: NO_SAMPLES,
    };
  }

  /** Throws TidemarkError. */
  static async open<Database extends RowDatabase>(
    database: Database,
    sweep: SweepDatabase<Database>,
    { labelValues }: StoreSettings,
  ): Promise<RowStore<Database>> {
    try {
      return new RowStore(database, sweep, await LabelBudget.open(database, labelValues));
    } catch (error) {
      database.close();
      throw error instanceof TidemarkError
        ? error
        : fileUnusable(database.place, "write", reasonOf(error).message);
    }
  }

  knows(stream: string): boolean {
    return this.#streams.has(stream);
  }

  forget(stream: string): void {
    this.#streams.delete(stream);
  }

  write(parts: readonly StreamPart[], oldestMs: TimeMs): Promise<void> {
    return this.#oneByOne(async () => {
      const changes = new SumChanges();
      try {
        await this.#write(parts, dayNamed(oldestMs), changes);
      } catch (error) {
        this.#meta.clear();
        this.#writtenIds.clear();
        for (const { stream } of parts) {
          this.#streams.delete(stream);
        }
        throw error instanceof TidemarkError
          ? error
          : fileUnusable(this.#database.place, "write", reasonOf(error).message);
      } finally {
        // Also after an error: a part may be written.
        changes.dropFrom(this.#database.sums);
      }
    });
  }

  async #write(parts: readonly StreamPart[], oldest: Day, changes: SumChanges): Promise<void> {
    const turns = new Turns();
    const isReopened = parts.some(({ stream }) => !this.#streams.has(stream));
    const written = isReopened ? await this.writtenOffsets() : new Map<string, number>();
    // A stream may be forgotten while it is written.
    const rowsByStream = new Map<string, StreamRows>();
    for (const part of parts) {
      const done = this.#streams.has(part.stream) ? 0 : (written.get(part.stream) ?? 0);
      const rows = this.#rowsOf(part);
      rowsByStream.set(part.stream, rows);
      for (const item of part.items) {
        rows.describe(item, { add: this.#meta.add, samples: NO_SAMPLES });
        if (item.kind !== "profile" && item.endOffset > done) {
          changes.add(rows.service, item);
        }
        await turns.next();
      }
    }
    for (const [day, partsOfDay] of partsByDay(parts)) {
      if (day >= oldest) {
        await this.#database.attach(day);
        await this.#writeDay(day, partsOfDay, rowsByStream, changes);
      }
    }
    await this.#labels.commit(this.#database);
    await this.#meta.commit();
    await this.#database.keep(
      "streams",
      parts.map(({ stream, endOffset }) => [stream, endOffset]),
    );
    const ends = parts.map(({ stream, endOffset }) => [stream, endOffset] as const);
    await writeEnds(this.#database.metaWriter, "streams", new Map(ends));
  }

  #rowsOf({ stream, items }: StreamPart): StreamRows {
    let rows = this.#streams.get(stream);
    if (rows === undefined) {
      if (items[0]?.kind !== "meta") {
        throw new Error(`stream ${stream} is not given from its start`);
      }
      const accepted: AcceptLabel = (...label) => this.#labels.accepted(...label);
      rows = new StreamRows(stream, this.#written, accepted, this.#writtenIds);
      this.#streams.set(stream, rows);
    }
    return rows;
  }

  async #writeDay(
    day: Day,
    parts: readonly StreamPart[],
    rowsByStream: ReadonlyMap<string, StreamRows>,
    changes: SumChanges,
  ): Promise<void> {
    const names = parts.map(({ stream }) => stream);
    const applied = await this.#database.appliedTo(day, names);
    const newer = parts.filter(({ stream, endOffset }) => endOffset > (applied.get(stream) ?? 0));
    await this.#database.writeDay(day, this.#meta.add, {
      ends: new Map(newer.map(({ stream, endOffset }) => [stream, endOffset])),
      fill: async (sink) => {
        const turns = new Turns();
        for (const { stream, items } of parts) {
          const rows = rowsByStream.get(stream) as StreamRows;
          const done = applied.get(stream) ?? 0;
          for (const item of items) {
            sink.begin(stream, item.endOffset);
            const isNew = item.endOffset > done;
            if (isNew && item.kind === "profile") {
              changes.add(rows.service, item);
            }
            rows.write(item, day, isNew ? sink : this.#written);
            await turns.next();
          }
        }
      },
      refer: async () => {
        await this.#labels.commit(this.#database);
        await this.#meta.commit();
      },
    });
  }

  async writtenOffsets(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.query("SELECT stream, end_offset FROM streams");
    return new Map(rows.map((row) => [String(row.stream), Number(row.end_offset)]));
  }

  serviceVersions() {
    return serviceVersions(this.#database);
  }

  services(window: Window, steps: number) {
    return servicesDocument(this.#database, window, steps);
  }

  service(name: string, window: Window, steps: number) {
    return serviceDocument(this.#database, name, window, steps);
  }

  instances(service: string, window: Window) {
    return serviceInstances(this.#database, service, window);
  }

  instance(stream: string) {
    return instanceRow(this.#database, stream);
  }

  verdicts(window: Window, kind: string | undefined) {
    return verdictsDocument(this.#database, window, kind);
  }

  fleetServices(window: Window) {
    return fleetServices(this.#database, window);
  }

  fleetEvidence(services: readonly string[], window: Window) {
    return fleetEvidence(this.#database, services, window);
  }

  fleetPeaks(services: readonly string[], window: Window) {
    return fleetPeaks(this.#database, services, window);
  }

  fleetSites(streams: readonly string[], window: Window) {
    return fleetSites(this.#database, streams, window);
  }

  lives(window: Window) {
    return processLives(this.#database, window);
  }

  series(query: SeriesQuery) {
    return seriesAnswer(this.#database, query);
  }

  profile(query: ProfileQuery) {
    return windowProfile(this.#database, query);
  }

  async running(query: Pick<ProfileQuery, "of" | "startMs" | "endMs">): Promise<number> {
    const condition = await conditionOf(this.#database, query.of);
    return runningInstances(this.#database, query, condition);
  }

  labelNames(query: LabelQuery) {
    return labelNames(this.#database, query);
  }

  labelValues(name: string, query: LabelQuery) {
    return labelValues(this.#database, name, query);
  }

  labelSets(names: readonly string[], query: LabelQuery) {
    return labelSets(this.#database, names, query);
  }

  figureSeries(query: FigureSeriesQuery) {
    return figureSeries(this.#database, query);
  }

  versionGauges(nowMs: TimeMs) {
    return versionGauges(this.#database, nowMs);
  }

  putVerdict(verdict: VerdictRow): Promise<void> {
    return this.#oneByOne(async () => {
      const holders = JSON.stringify(verdict.holders);
      const timeMs = Math.round(verdict.timeMs);
      await this.#database.keep("verdict_holders", [[verdict.stream, holders]]);
      await this.#database.keep("verdicts", [
        [
          ...[verdict.stream, timeMs, verdict.kind, verdict.confidence, verdict.summary],
          ...[verdict.growthBytesPerHour, verdict.limitBytes, verdict.msToLimit],
        ],
      ]);
      await this.#database.metaWriter.run(
        `INSERT OR REPLACE INTO verdicts
          VALUES ($stream, $time, $kind, $confidence, $summary, $growth, $limit, $left)`,
        {
          stream: verdict.stream,
          time: BigInt(timeMs),
          kind: verdict.kind,
          confidence: verdict.confidence,
          summary: verdict.summary,
          growth: verdict.growthBytesPerHour,
          limit: verdict.limitBytes,
          left: verdict.msToLimit,
        },
      );
      await this.#database.metaWriter.run(
        "INSERT OR REPLACE INTO verdict_holders VALUES ($stream, $holders)",
        { stream: verdict.stream, holders },
      );
    });
  }

  retain(
    retention: Retention,
    nowMs: TimeMs,
    recordings: readonly string[] = [],
  ): Promise<Retained> {
    const result = this.#lastRetain.then(async () => {
      const alone = <Result>(work: () => Promise<Result>) => this.#oneByOne(work);
      const retained = await retainDays(this.#database, alone, retention, nowMs);
      const notSwept = await this.#sweep(recordings, nowMs).then(
        () => null,
        (error: unknown) => reasonOf(error).message,
      );
      return { ...retained, notSwept };
    });
    this.#lastRetain = result.catch(() => {});
    return result;
  }

  /** If days were removed since the last time, or recordings, once a day at most: it reads which stacks all days have. */
  async #sweep(recordings: readonly string[], nowMs: TimeMs): Promise<void> {
    const oldest = this.#database.days[0] ?? "";
    this.#swept.recordings = Math.max(this.#swept.recordings, recordings.length);
    const wereRemoved =
      recordings.length < this.#swept.recordings && nowMs - this.#swept.atMs >= MS_PER_DAY;
    const [swept] = await this.#database.query("SELECT day FROM swept");
    if ((swept?.day === oldest && !wereRemoved) || this.#database.isEnding) {
      return;
    }
    try {
      await this.#sweepDatabase({
        database: this.#database,
        alone: (work) => this.#oneByOne(work),
        meta: this.#meta,
        labels: this.#labels,
        streams: this.#streams,
        writtenIds: this.#writtenIds,
        recordings,
      });
      await this.#oneByOne(() => this.#database.setSwept(oldest));
      this.#swept = { recordings: recordings.length, atMs: nowMs };
    } catch (error) {
      if (!this.#database.isEnding) {
        throw error;
      }
    }
  }

  async use(): Promise<StoreUse> {
    await this.#database.measure();
    const [first] = this.#database.days;
    return {
      bytes: bytesOf(this.#database),
      oldestMs: first === undefined ? null : Date.parse(first),
    };
  }

  async storage(): Promise<StorageUse> {
    await this.#database.measure();
    return storageUse(this.#database);
  }

  about(streams: readonly string[]) {
    return streamsAbout(this.#database, streams);
  }

  async labelUse(): Promise<LabelUse[]> {
    return this.#labels.uses();
  }

  copyTo(folder: string): Promise<void> {
    return this.#oneByOne(() => this.#database.copyTo(folder));
  }

  async close(): Promise<void> {
    this.#database.endBuilds();
    await this.#lastRetain;
    await this.#oneByOne(async () => this.#database.close());
  }

  #oneByOne<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#lastWrite.then(work);
    this.#lastWrite = result.catch(() => {});
    return result;
  }
}
