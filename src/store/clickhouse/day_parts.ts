/** Which partition is valid for each day, and its size. The table `days` names them; others are left from a crash. */
import { randomBytes } from "node:crypto";
import type { Bytes } from "../../model/base/units.js";
import type { Day } from "../duckdb/row_database.js";
import type { Tier } from "../interface/tiers.js";
import type { ClickhouseConnection } from "./connection.js";
import { RowBinary } from "./row_binary.js";
import { columnNames, columnTypes, literal, PART_TABLES } from "./tables.js";

interface DayPart {
  readonly part: string;
  readonly tier: Tier;
}

export class DayParts {
  readonly #clickhouse: ClickhouseConnection;
  readonly #days = new Map<Day, DayPart>();
  /** Partitions that have been replaced; queries that began before may still read them. */
  #retired: string[] = [];
  #change = 0;
  #bytes = new Map<string, Bytes>();
  #metaBytes: Bytes = 0;

  private constructor(clickhouse: ClickhouseConnection) {
    this.#clickhouse = clickhouse;
  }

  static async open(clickhouse: ClickhouseConnection): Promise<DayParts> {
    const parts = new DayParts(clickhouse);
    const rows = await clickhouse.rows(
      `SELECT day, part, tier, change FROM ${clickhouse.database}.days FINAL`,
    );
    for (const { day, part, tier, change } of rows) {
      parts.#change = Math.max(parts.#change, Number(change));
      if (part !== "") {
        parts.#days.set(String(day), { part: String(part), tier: tier as Tier });
      }
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
    if (!this.#days.has(day)) {
      await this.#set(day, { part: this.newPart(day, "raw"), tier: "raw" });
    }
  }

  async replace(day: Day, part: string, tier: Tier): Promise<void> {
    const before = this.partOf(day);
    await this.#set(day, { part, tier });
    this.#retired.push(before);
  }

  async remove(day: Day): Promise<void> {
    const before = this.partOf(day);
    await this.#set(day, null);
    const retired = this.#retired.filter((part) => part.startsWith(day));
    for (const part of [before, ...retired]) {
      await this.drop(part);
    }
    this.#retired = this.#retired.filter((part) => !retired.includes(part));
    await this.#clickhouse.run(
      `ALTER TABLE ${this.#clickhouse.database}.applied DROP PARTITION ${literal(day)}`,
    );
  }

  async #set(day: Day, found: DayPart | null): Promise<void> {
    const row = new RowBinary();
    const { part, tier } = found ?? { part: "", tier: "" };
    row.addRow(columnTypes("days"), [day, part, tier, this.#change + 1]);
    await this.#clickhouse.insert("days", columnNames("days"), row.bytes);
    this.#change += 1;
    if (found === null) {
      this.#days.delete(day);
    } else {
      this.#days.set(day, found);
    }
  }

  async drop(part: string): Promise<void> {
    for (const table of PART_TABLES) {
      await this.#clickhouse.run(
        `ALTER TABLE ${this.#clickhouse.database}.${table} DROP PARTITION ${literal(part)}`,
      );
    }
  }

  async dropRetired(): Promise<void> {
    for (const part of this.#retired) {
      await this.drop(part);
    }
    this.#retired = [];
  }

  async #dropUnnamed(): Promise<void> {
    const named = new Set([...this.#days.values()].map(({ part }) => part));
    const found = await this.#sizes();
    const unnamed = new Set(
      found.flatMap(({ table, partition }) =>
        (PART_TABLES as readonly string[]).includes(table) && !named.has(partition)
          ? [partition]
          : [],
      ),
    );
    for (const part of unnamed) {
      await this.drop(part);
    }
  }

  async measure(): Promise<void> {
    const bytes = new Map<string, Bytes>();
    let metaBytes = 0;
    for (const { table, partition, size } of await this.#sizes()) {
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

  async #sizes(): Promise<{ table: string; partition: string; size: Bytes }[]> {
    const rows = await this.#clickhouse.rows(
      `SELECT table, partition, sum(bytes_on_disk) AS size FROM system.parts
        WHERE active AND database = ${literal(this.#clickhouse.database)} GROUP BY table, partition`,
    );
    return rows.map(({ table, partition, size }) => ({
      table: String(table),
      // 18.16 shows the literal.
      partition: String(partition).replace(/^'(.*)'$/, "$1"),
      size: Number(size),
    }));
  }
}
