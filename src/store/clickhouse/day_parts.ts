/** Which partition is valid for each day, and its size. The table `days` names them; others are left from a crash. */
import { randomBytes } from "node:crypto";
import type { Bytes } from "../../model/base/units.js";
import { databaseUnusable } from "../../model/errors/server_errors.js";
import type { Day } from "../duckdb/row_database.js";
import type { Tier } from "../interface/tiers.js";
import type { ClickhouseConnection } from "./connection.js";
import { RowBinary } from "./row_binary.js";
import {
  columnNames,
  columnTypes,
  literal,
  PART_TABLES,
  partTable,
  SHARD_SUFFIX,
} from "./tables.js";

/** Of "2026-11-25". */
const DAY_LENGTH = 10;

interface DayPart {
  readonly part: string;
  readonly tier: Tier;
}

/** A change of `days` whose outcome is not known: ClickHouse did not answer. */
interface OpenChange {
  readonly before: DayPart | null;
  readonly after: DayPart | null;
}

export class DayParts {
  readonly #clickhouse: ClickhouseConnection;
  /** For work that can be done later, which the end of the store stops. */
  readonly #background: ClickhouseConnection;
  readonly #days = new Map<Day, DayPart>();
  /** Days that are read as before the change, and not written, until `days` has been read again. */
  readonly #open = new Map<Day, OpenChange>();
  /** Partitions that no day names; queries that began before may still read them. */
  readonly #retired = new Set<string>();
  /** Days that were removed, and whose rows of `applied` are still there. */
  readonly #removed = new Set<Day>();
  #change = 0;
  #bytes = new Map<string, Bytes>();
  #metaBytes: Bytes = 0;

  private constructor(clickhouse: ClickhouseConnection, background: ClickhouseConnection) {
    this.#clickhouse = clickhouse;
    this.#background = background;
  }

  static async open(
    clickhouse: ClickhouseConnection,
    background: ClickhouseConnection,
  ): Promise<DayParts> {
    const parts = new DayParts(clickhouse, background);
    const rows = await clickhouse.rows(
      `SELECT day, part, tier, change FROM ${clickhouse.database}.days FINAL`,
    );
    for (const { day, change, ...row } of rows) {
      parts.#change = Math.max(parts.#change, Number(change));
      parts.#note(String(day), partIn(row));
    }
    await parts.#dropUnnamed();
    await parts.measure();
    return parts;
  }

  /** Ascending. */
  get days(): Day[] {
    return [...this.#days.keys()].sort();
  }

  tierOf(day: Day): Tier {
    return this.#days.get(day)?.tier ?? "raw";
  }

  partOf(day: Day): string {
    return this.#days.get(day)?.part ?? "";
  }

  of(days: readonly Day[]): string[] {
    return days.flatMap((day) => this.#days.get(day)?.part ?? []);
  }

  /** A name that no partition has had. */
  newPart(day: Day, tier: Tier): string {
    return `${day}.${tier}.${randomBytes(4).toString("hex")}`;
  }

  /** Creates the partition of a day if there is none. */
  async attach(day: Day): Promise<void> {
    if (this.#removed.has(day)) {
      await this.dropRemoved(day);
    }
    if (!this.#days.has(day)) {
      await this.#set(day, { part: this.newPart(day, "raw"), tier: "raw" });
    }
  }

  /** After an error, `part` is not the day's own, or {@link settle} finds it out later. */
  async replace(day: Day, part: string, tier: Tier): Promise<void> {
    await this.#set(day, { part, tier });
  }

  /** {@link dropRemoved} frees its space. */
  async remove(day: Day): Promise<void> {
    await this.#set(day, null);
  }

  /** Drops the partitions of a day that has been removed. */
  async dropRemoved(day: Day): Promise<void> {
    for (const part of this.#retired) {
      if (part.startsWith(day)) {
        await this.drop(part);
      }
    }
    await this.#background.run(
      `ALTER TABLE ${this.#clickhouse.database}.applied DROP PARTITION ${literal(day)}`,
    );
    this.#removed.delete(day);
  }

  /** Days that a change, whose answer was lost, may have changed. */
  get open(): Day[] {
    return [...this.#open.keys()];
  }

  async #set(day: Day, after: DayPart | null): Promise<void> {
    if (this.#open.has(day)) {
      throw databaseUnusable(
        this.#clickhouse.place,
        `the answer to a change of ${day} was lost, and nothing is written to that day until ClickHouse answers`,
        "check that ClickHouse runs; the server tries again",
      );
    }
    const change = { before: this.#days.get(day) ?? null, after };
    try {
      await this.#insert(day, after);
    } catch (error) {
      this.#open.set(day, change);
      await this.settle(day).catch(() => {}); // the first error is more informative
      if (this.#open.has(day) || this.partOf(day) !== (after?.part ?? "")) {
        throw error;
      }
      return;
    }
    this.#end(day, change, after);
  }

  /** Finds out whether ClickHouse made a change whose answer was lost. After an error, it is still unknown. */
  async settle(day: Day): Promise<void> {
    const change = this.#open.get(day);
    if (change === undefined) {
      return;
    }
    const [row] = await this.#clickhouse.rows(
      `SELECT part, tier FROM ${this.#clickhouse.database}.days FINAL WHERE day = ${literal(day)}`,
    );
    let named = partIn(row ?? {});
    if (named?.part !== change.after?.part) {
      // The change may still come: a later one overrules it.
      named = change.before;
      await this.#insert(day, named);
    }
    this.#open.delete(day);
    this.#end(day, change, named);
  }

  /** Each row has a larger number than all that were sent before, whether they arrived or not. */
  async #insert(day: Day, found: DayPart | null): Promise<void> {
    this.#change += 1;
    const row = new RowBinary();
    const { part, tier } = found ?? { part: "", tier: "" };
    row.addRow(columnTypes("days"), [day, part, tier, this.#change]);
    await this.#clickhouse.insert("days", columnNames("days"), row.bytes);
  }

  #end(day: Day, { before, after }: OpenChange, named: DayPart | null): void {
    this.#note(day, named);
    for (const { part } of [before, after].flatMap((found) => found ?? [])) {
      if (part !== named?.part) {
        this.#retired.add(part);
      }
    }
    if (named === null && before !== null) {
      this.#removed.add(day);
    }
  }

  #note(day: Day, found: DayPart | null): void {
    if (found === null) {
      this.#days.delete(day);
    } else {
      this.#days.set(day, found);
    }
  }

  /** After an error, {@link dropRetired} tries again. */
  async drop(part: string): Promise<void> {
    this.#retired.add(part);
    for (const table of PART_TABLES) {
      await this.#background.change(
        `ALTER TABLE ${partTable(this.#clickhouse, table)} DROP PARTITION ${literal(part)}`,
      );
    }
    this.#retired.delete(part);
  }

  async dropRetired(): Promise<void> {
    for (const part of this.#retired) {
      await this.drop(part);
    }
    for (const day of this.#removed) {
      await this.dropRemoved(day);
    }
  }

  /** A day's other partition stays if the named one has no rows: it may be all that is left of the day. */
  async #dropUnnamed(): Promise<void> {
    const { found, isWhole } = await this.#sizes();
    if (!isWhole) {
      return;
    }
    const parts = new Set(
      found.flatMap(({ table, partition }) =>
        (PART_TABLES as readonly string[]).includes(table) ? [partition] : [],
      ),
    );
    for (const part of parts) {
      const named = this.partOf(part.slice(0, DAY_LENGTH));
      if (named === "" || (part !== named && parts.has(named))) {
        await this.drop(part);
      }
    }
    for (const { table, partition } of found) {
      if (table === "applied" && !this.#days.has(partition)) {
        await this.dropRemoved(partition);
      }
    }
  }

  async measure(): Promise<void> {
    const bytes = new Map<string, Bytes>();
    let metaBytes = 0;
    for (const { table, partition, size } of (await this.#sizes()).found) {
      if ((PART_TABLES as readonly string[]).includes(table)) {
        bytes.set(partition, (bytes.get(partition) ?? 0) + size);
      } else {
        metaBytes += size;
      }
    }
    this.#bytes = bytes;
    this.#metaBytes = metaBytes;
  }

  bytesOf(day: Day): Bytes {
    return this.#bytes.get(this.partOf(day)) ?? 0;
  }

  get metaBytes(): Bytes {
    return this.#metaBytes;
  }

  /** Of one replica of each shard. `isWhole`: all shards answered. */
  async #sizes(): Promise<{
    found: { table: string; partition: string; size: Bytes }[];
    isWhole: boolean;
  }> {
    const { database, cluster } = this.#clickhouse;
    let isWhole = true;
    const tolerant = this.#background.until(new AbortController().signal, () => {
      isWhole = false;
    });
    const parts = cluster === null ? "system.parts" : `cluster(${literal(cluster)}, system, parts)`;
    const rows = await tolerant.rows(
      `SELECT table, partition, sum(bytes_on_disk) AS size FROM ${parts}
        WHERE active AND database = ${literal(database)} GROUP BY table, partition`,
    );
    const found = rows.map(({ table, partition, size }) => ({
      table: String(table).replace(new RegExp(`${SHARD_SUFFIX}$`), ""),
      // 18.16 shows the literal.
      partition: String(partition).replace(/^'(.*)'$/, "$1"),
      size: Number(size),
    }));
    return { found, isWhole };
  }
}

/** null: the day has been removed. */
function partIn({ part = "", tier }: Record<string, unknown>): DayPart | null {
  return part === "" ? null : { part: String(part), tier: tier as Tier };
}
