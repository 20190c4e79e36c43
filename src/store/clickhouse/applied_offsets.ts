/** How far the rows of each stream are written, by day: the table `applied`. */
import type { Day } from "../duckdb/row_database.js";
import type { ClickhouseConnection } from "./connection.js";

export class AppliedOffsets {
  readonly #days = new Map<Day, Map<string, number>>();

  static async read(clickhouse: ClickhouseConnection): Promise<AppliedOffsets> {
    const offsets = new AppliedOffsets();
    const rows = await clickhouse.rows(
      `SELECT day, stream, end_offset FROM ${clickhouse.database}.applied FINAL`,
    );
    for (const { day, stream, end_offset: end } of rows) {
      offsets.of(String(day)).set(String(stream), Number(end));
    }
    return offsets;
  }

  /** By stream. */
  of(day: Day): Map<string, number> {
    let applied = this.#days.get(day);
    if (applied === undefined) {
      applied = new Map();
      this.#days.set(day, applied);
    }
    return applied;
  }

  forget(day: Day): void {
    this.#days.delete(day);
  }

  /** Changes with every write to the day. */
  textOf(day: Day): string {
    const ends = [...this.of(day).values()];
    return `${ends.length} ${ends.reduce((sum, end) => sum + end, 0)}`;
  }
}
