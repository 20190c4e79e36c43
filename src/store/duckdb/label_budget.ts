/**
 * Bounds the values of labels: a label with a value for each request or user would make as many rows as there are requests.
 * A service's label keeps its first values; further ones become {@link OVERFLOW}, so their figures stay in every sum.
 */
import { createHash } from "node:crypto";
import type { DuckDBConnection } from "@duckdb/node-api";
import { LONGEST_LABEL_VALUE } from "../../model/wire/identity.js";
import type { LabelUse } from "../interface/store.js";
import { rowsOf } from "./connection.js";
import type { RowDatabase, Rows } from "./row_database.js";

export const OVERFLOW = "__overflow__";
/** Values beyond the budget that are counted, of a label and of all labels. */
const MOST_COUNTED = 10_000;
const MOST_COUNTED_OF_ALL = 200_000;
const HASH_LENGTH = 16;

/** Rows `r` of the parameter. */
const ROWS_SQL = `SELECT unnest(from_json($rows, '[{"service": "VARCHAR", "label": "VARCHAR", "value": "VARCHAR"}]')) AS r`;

interface Known {
  readonly service: string;
  readonly label: string;
  readonly values: Set<string>;
  /** Their hashes: a value may be long. */
  readonly overflowed: Set<string>;
}

export class LabelBudget {
  readonly #most: number;
  readonly #known = new Map<string, Known>();
  /** Values beyond the budget, of all labels. */
  #counted = 0;
  /** Values that were accepted since {@link noteAccepted}, as they are in {@link keyOf}. */
  #noted: Set<string> | null = null;
  /** Accepted values that are not in the table yet. */
  #added: { service: string; label: string; value: string }[] = [];

  private constructor(most: number) {
    this.#most = most;
  }

  /** `most`: values of each label of a service. Values that were accepted before stay accepted. */
  static async open(database: RowDatabase, most: number): Promise<LabelBudget> {
    const budget = new LabelBudget(most);
    const { metaWriter } = database;
    await metaWriter.run(
      `CREATE TABLE IF NOT EXISTS label_values (service VARCHAR, label VARCHAR, value VARCHAR,
        PRIMARY KEY (service, label, value))`,
    );
    const rows: Rows = await rowsOf(metaWriter, "SELECT service, label, value FROM label_values");
    for (const { service, label, value } of rows) {
      budget.#of(String(service), String(label)).values.add(String(value));
    }
    return budget;
  }

  /** The value, cut to {@link LONGEST_LABEL_VALUE}, or {@link OVERFLOW}. Half characters (lone surrogates), which no database
   * stores, become U+FFFD. */
  accepted(service: string, label: string, value: string): string {
    const bounded = value.slice(0, LONGEST_LABEL_VALUE).toWellFormed();
    return this.#accepted(service.toWellFormed(), label.toWellFormed(), bounded);
  }

  #accepted(service: string, label: string, value: string): string {
    const { values, overflowed } = this.#of(service, label);
    if (values.has(value)) {
      this.#noted?.add(keyOf(service, label, value));
      return value;
    }
    if (values.size >= this.#most) {
      if (overflowed.size < MOST_COUNTED && this.#counted < MOST_COUNTED_OF_ALL) {
        const before = overflowed.size;
        overflowed.add(createHash("sha256").update(value).digest("base64").slice(0, HASH_LENGTH));
        this.#counted += overflowed.size - before;
      }
      return OVERFLOW;
    }
    values.add(value);
    this.#noted?.add(keyOf(service, label, value));
    this.#added.push({ service, label, value });
    return value;
  }

  /** Writes accepted values, which must be stored before rows that use them: a restart accepts the same ones. */
  async commit(database: RowDatabase): Promise<void> {
    if (this.#added.length === 0) {
      return;
    }
    const added = this.#added;
    this.#added = [];
    try {
      await database.keep(
        "label_values",
        added.map(({ service, label, value }) => [service, label, value]),
      );
      await database.metaWriter.run(
        `INSERT OR IGNORE INTO label_values SELECT r.service, r.label, r.value FROM (${ROWS_SQL})`,
        { rows: JSON.stringify(added) },
      );
    } catch (error) {
      this.#added = [...added, ...this.#added];
      throw error;
    }
  }

  /** Notes the values that are accepted from now on, until {@link endNotes}. */
  noteAccepted(): void {
    this.#noted = new Set();
  }

  endNotes(): void {
    this.#noted = null;
  }

  /** Removes the values of the connection's table `unused_values` that have not been noted, in one transaction with `more`. */
  async remove(connection: DuckDBConnection, more: () => Promise<void>): Promise<void> {
    const unused = (await rowsOf(connection, "SELECT service, label, value FROM unused_values"))
      .map((row) => ({
        service: String(row.service),
        label: String(row.label),
        value: String(row.value),
      }))
      .filter(({ service, label, value }) => !this.#noted?.has(keyOf(service, label, value)));
    await connection.run("BEGIN");
    try {
      await connection.run(
        `DELETE FROM label_values WHERE (service, label, value) IN (SELECT (r.service, r.label, r.value) FROM (${ROWS_SQL}))`,
        { rows: JSON.stringify(unused) },
      );
      await more();
      await connection.run("COMMIT");
    } catch (error) {
      await connection.run("ROLLBACK").catch(() => {}); // the first error is more informative
      throw error;
    }
    for (const { service, label, value } of unused) {
      const { values } = this.#of(service, label);
      values.delete(value);
      if (values.size === 0) {
        this.#forget(service, label);
      }
    }
  }

  #forget(service: string, label: string): void {
    const key = keyOf(service, label);
    this.#counted -= this.#known.get(key)?.overflowed.size ?? 0;
    this.#known.delete(key);
  }

  uses(): LabelUse[] {
    return [...this.#known.values()].map(({ service, label, values, overflowed }) => ({
      ...{ service, label, values: values.size, overflowed: overflowed.size },
    }));
  }

  #of(service: string, label: string): Known {
    const key = keyOf(service, label);
    let known = this.#known.get(key);
    if (known === undefined) {
      known = { service, label, values: new Set(), overflowed: new Set() };
      this.#known.set(key, known);
    }
    return known;
  }
}

function keyOf(...parts: string[]): string {
  return JSON.stringify(parts);
}
