/** The files of days, each attached as a schema of its own. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import type { TimeMs } from "../../model/base/units.js";
import { isCoarser, MERGED_TIER, TIERS, type Tier } from "../interface/tiers.js";
import { rowsOf } from "./connection.js";
import { createDay, tablesOf } from "./created_tables.js";
import { isUnbegun, removeFile } from "./database_files.js";
import { dayNamed } from "./days.js";
import type { Day } from "./row_database.js";

const DAY_FILE = /^(\d{4}-\d\d-\d\d)(?:\.(10m|1h|1d))?\.duckdb$/;
/** Days whose series are read in one query. */
const MERGED_AT_ONCE = 50;
const UNFINISHED = ".unfinished";

export class DayFiles {
  readonly #folder: string;
  readonly #connection: DuckDBConnection;
  readonly #days = new Map<Day, Tier>();
  /** Schemas of files that have been replaced; queries that began before may still read them. */
  #retired: string[] = [];

  /** `folder`: of the store. `connection` attaches them. */
  constructor(folder: string, connection: DuckDBConnection) {
    this.#folder = folder;
    this.#connection = connection;
  }

  /** Ascending. */
  get days(): Day[] {
    return [...this.#days.keys()].sort();
  }

  /** The day must have a file. */
  tierOf(day: Day): Tier {
    return this.#days.get(day) ?? "raw";
  }

  /** Name under which the file of a day is attached. */
  schemaOf(day: Day): string {
    return schemaNamed(day, this.tierOf(day));
  }

  has(day: Day): boolean {
    return this.#days.has(day);
  }

  /** The days that overlap a window. */
  daysIn(startMs: TimeMs, endMs: TimeMs): Day[] {
    const [first, last] = [dayNamed(startMs), dayNamed(endMs)];
    return this.days.filter((day) => day >= first && day <= last);
  }

  /** Its file stays attached. */
  forget(day: Day): void {
    this.#days.delete(day);
  }

  retire(schema: string): void {
    this.#retired.push(schema);
  }

  /** There may be many: what they need is looked up for all at once. */
  async attachFound(): Promise<void> {
    const found = this.#foundDays();
    for (const [day, tier] of found) {
      await this.#attachFile(day, tier);
    }
    const tables = await rowsOf(
      this.#connection,
      "SELECT database_name AS name, count(*) AS tables FROM duckdb_tables() GROUP BY ALL",
    );
    const counts = new Map(tables.map(({ name, tables: count }) => [String(name), Number(count)]));
    const merged: string[] = [];
    for (const [day, tier] of found) {
      const schema = schemaNamed(day, tier);
      // A crash may have come before the last of them.
      if (counts.get(schema) !== tablesOf(tier).length) {
        await createDay(this.#connection, schema, tier);
      }
      if (tier === MERGED_TIER) {
        merged.push(schema);
      }
      this.#days.set(day, tier);
    }
    for (let at = 0; at < merged.length; at += MERGED_AT_ONCE) {
      await this.#takeSeries(merged.slice(at, at + MERGED_AT_ONCE));
    }
  }

  /** Series of merged profiles are in the files of their days. */
  async #takeSeries(schemas: readonly string[]): Promise<void> {
    const all = schemas.map((schema) => `SELECT * FROM ${schema}.rolled_series`);
    await this.#connection.run(
      `INSERT INTO series SELECT * FROM (${all.join(" UNION ALL ")})
        WHERE series_id NOT IN (SELECT series_id FROM series)`,
    );
  }

  async #attachFile(day: Day, tier: Tier): Promise<void> {
    const path = this.fileOf(day, tier);
    if (isUnbegun(path)) {
      removeFile(path);
    }
    await this.#connection.run(
      `ATTACH IF NOT EXISTS '${quoted(path)}' AS ${schemaNamed(day, tier)}`,
    );
  }

  /** The tier of each day. A crash may leave the finer file of a day that has been rolled up, and unfinished files. */
  #foundDays(): Map<Day, Tier> {
    const found = new Map<Day, Tier>();
    const folder = join(this.#folder, "days");
    for (const name of readdirSync(folder)) {
      const [, day, tier = "raw"] = DAY_FILE.exec(name) ?? [];
      if (day !== undefined && isCoarser(tier as Tier, found.get(day) ?? "raw")) {
        found.set(day, tier as Tier);
      } else if (day !== undefined && !found.has(day)) {
        found.set(day, "raw");
      } else if (name.includes(UNFINISHED)) {
        rmSync(join(folder, name), { recursive: true, force: true });
      }
    }
    for (const [day, tier] of found) {
      for (const finer of TIERS.slice(0, TIERS.indexOf(tier))) {
        removeFile(this.fileOf(day, finer));
      }
    }
    return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  async attach(day: Day, tier: Tier): Promise<void> {
    const schema = schemaNamed(day, tier);
    await this.closeRetired((name) => name === schema);
    await this.#attachFile(day, tier);
    await createDay(this.#connection, schema, tier);
    if (tier === MERGED_TIER) {
      await this.#takeSeries([schema]);
    }
    this.#days.set(day, tier);
  }

  async closeRetired(isMeant: (schema: string) => boolean = () => true): Promise<void> {
    for (const schema of this.#retired.filter(isMeant)) {
      this.#retired = this.#retired.filter((name) => name !== schema);
      await this.#connection.run(`DETACH ${schema}`);
    }
  }

  fileOf(day: Day, tier: Tier): string {
    return join(this.#folder, "days", `${day}${tier === "raw" ? "" : `.${tier}`}.duckdb`);
  }

  unfinishedOf(day: Day, tier: Tier): string {
    return join(this.#folder, "days", `${day}.${tier}${UNFINISHED}`);
  }
}

export function quoted(text: string): string {
  return text.replaceAll("'", "''");
}

export function schemaNamed(day: Day, tier: Tier): string {
  return `day_${day.replaceAll("-", "_")}${tier === "raw" ? "" : `_${tier}`}`;
}
