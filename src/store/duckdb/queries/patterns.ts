/**
 * Regular expressions in selectors. DuckDB's engine is RE2, whose time is linear in the value, but a repetition such as
 * `(.*a.*){900}` makes a large program of a short text. So the total size of a query's patterns and the time that they
 * take are bounded.
 */
import type { DuckDBValue } from "@duckdb/node-api";
import type { Millis } from "../../../model/base/units.js";
import { badUsage, oneLine } from "../../../model/errors/errors.js";
import { reasonOf } from "../../../model/errors/reason.js";
import type { StoreDatabase } from "../database.js";

const MOST_SIZE = 10_000;
const LONGEST_MS: Millis = 1_000;
/** Above RE2's own limit on repetitions. */
const MOST_REPEATS = 1_001;

/** The time that one query has spent on its patterns. */
export class PatternBudget {
  #size = 0;
  #leftMs: Millis = LONGEST_MS;

  /**
   * The values that a pattern matches as a whole, as a JSON array. `values`: a query of them, column `v`. Throws
   * TidemarkError for an invalid pattern, and when a limit is reached.
   */
  async matching(
    database: StoreDatabase,
    pattern: string,
    values: { readonly sql: string; readonly values: Record<string, DuckDBValue> },
  ): Promise<string> {
    this.#size += expandedSize(pattern);
    if (this.#size > MOST_SIZE) {
      throw badUsage(
        `the regular expressions are too large: the limit pattern-size is ${MOST_SIZE} characters, repetitions written out`,
        "",
      );
    }
    const begun = performance.now();
    try {
      const rows = await database.query(
        `SELECT v FROM (${values.sql}) WHERE regexp_full_match(v, $pattern)`,
        { ...values.values, pattern },
        Math.max(1, this.#leftMs),
      );
      return JSON.stringify(rows.map(({ v }) => String(v)));
    } catch (error) {
      if (/^INTERRUPT/.test(reasonOf(error).message)) {
        throw badUsage("the regular expressions take longer than a second", "");
      }
      throw badUsage(`this is not a regular expression: ${oneLine(pattern, 60)}`, "RE2's syntax");
    } finally {
      this.#leftMs -= performance.now() - begun;
    }
  }
}

/**
 * @internal Characters of a pattern with its counted repetitions written out; an upper bound that is accurate enough.
 *
 */
export function expandedSize(pattern: string): number {
  /** Sizes of the open groups, and of the newest item of each. */
  const groups: { size: number; last: number }[] = [{ size: 0, last: 0 }];
  const tokens = /\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|[\s\S]/g;
  for (const [token, least, most] of pattern.matchAll(tokens)) {
    const group = groups.at(-1) as (typeof groups)[number];
    if (token === "(") {
      groups.push({ size: 1, last: 0 });
    } else if (token === ")" && groups.length > 1) {
      groups.pop();
      const outer = groups.at(-1) as (typeof groups)[number];
      outer.size += group.size;
      outer.last = group.size;
    } else if (least !== undefined) {
      const times = Math.min(MOST_REPEATS, Number(most || least) + (most === "" ? 1 : 0));
      group.size += group.last * Math.max(0, times - 1);
      group.last *= Math.max(1, times);
    } else {
      group.size += 1;
      group.last = 1;
    }
  }
  return groups.reduce((sum, { size }) => sum + size, 0);
}
