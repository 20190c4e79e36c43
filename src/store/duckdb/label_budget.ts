/**
 * Bounds the values of labels: a label with a value for each request or user would make as many rows as there are requests.
 * A service's label keeps its first values; further ones become {@link OVERFLOW}, so their figures stay in every sum.
 */
import { createHash } from "node:crypto";
import type { LabelUse } from "../interface/store.js";
import { type Rows, rowsOf, type StoreDatabase } from "./database.js";

export const OVERFLOW = "__overflow__";
/** Values beyond the budget that are counted, of a label and of all labels. */
const MOST_COUNTED = 10_000;
const MOST_COUNTED_OF_ALL = 200_000;
const HASH_LENGTH = 16;

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
  /** Accepted values that are not in the table yet. */
  #added: { service: string; label: string; value: string }[] = [];

  private constructor(most: number) {
    this.#most = most;
  }

  /** `most`: values of each label of a service. Values that were accepted before stay accepted. */
  static async open(database: StoreDatabase, most: number): Promise<LabelBudget> {
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

  /** The value, or {@link OVERFLOW}. */
  accepted(service: string, label: string, value: string): string {
    const { values, overflowed } = this.#of(service, label);
    if (values.has(value)) {
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
    this.#added.push({ service, label, value });
    return value;
  }

  /** Writes accepted values, which must be stored before rows that use them: a restart accepts the same ones. */
  async commit({ metaWriter }: StoreDatabase): Promise<void> {
    if (this.#added.length === 0) {
      return;
    }
    const added = this.#added;
    this.#added = [];
    try {
      await metaWriter.run(
        `INSERT OR IGNORE INTO label_values SELECT r.service, r.label, r.value FROM (
          SELECT unnest(from_json($rows, '[{"service": "VARCHAR", "label": "VARCHAR", "value": "VARCHAR"}]')) AS r)`,
        { rows: JSON.stringify(added) },
      );
    } catch (error) {
      this.#added = [...added, ...this.#added];
      throw error;
    }
  }

  uses(): LabelUse[] {
    return [...this.#known.values()].map(({ service, label, values, overflowed }) => ({
      ...{ service, label, values: values.size, overflowed: overflowed.size },
    }));
  }

  #of(service: string, label: string): Known {
    const key = JSON.stringify([service, label]);
    let known = this.#known.get(key);
    if (known === undefined) {
      known = { service, label, values: new Set(), overflowed: new Set() };
      this.#known.set(key, known);
    }
    return known;
  }
}
