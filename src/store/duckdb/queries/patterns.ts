/**
 * Regular expressions in selectors. DuckDB's engine is RE2, whose time is linear in the value, but a repetition such as
 * `(.*a.*){900}` makes a large program of a short text, which takes microseconds for each character of a value. So three
 * things are bounded: the size of a query's patterns, how much of that size comes from repetitions, and the time. A
 * running call of the engine cannot be interrupted, so each call gets only as many values as take a fraction of a second.
 */
import type { DuckDBValue } from "@duckdb/node-api";
import type { Millis } from "../../../model/base/units.js";
import { badUsage, oneLine, type TidemarkError } from "../../../model/errors/errors.js";
import type { RowReader } from "../row_database.js";

const MOST_SIZE = 10_000;
/** More than people write: a repetition's bound is rarely above 100. */
const MOST_REPEATED_SIZE = 1_000;
const LONGEST_MS: Millis = 1_000;
/** Above RE2's own limit on repetitions. */
const MOST_REPEATS = 1_001;
/** A class such as `\pL` is hundreds of ranges of bytes. */
const UNICODE_CLASS_SIZE = 100;
/** Size of the patterns times bytes of the values, for one call of the engine: 0.2 s where it is slowest. */
const MOST_WORK = 16_000_000;

/** The time that one query has spent on its patterns. */
export class PatternBudget {
  #size = 0;
  #repeated = 0;
  #leftMs: Millis = LONGEST_MS;

  /**
   * The values that a pattern matches as a whole, as a JSON array. `values`: a query of them, column `v`. Throws
   * TidemarkError for an invalid pattern, and when a limit is reached.
   */
  async matching(
    database: RowReader,
    pattern: string,
    values: { readonly sql: string; readonly values: Record<string, DuckDBValue> },
  ): Promise<string> {
    const size = expandedSize(pattern);
    this.#size += size;
    this.#repeated += Math.max(0, size - expandedSize(pattern.replaceAll(/\{\d*,?\d*\}/g, "")));
    if (this.#size > MOST_SIZE || this.#repeated > MOST_REPEATED_SIZE) {
      throw badUsage(
        `the regular expressions are too large: the limit pattern-size is ${MOST_SIZE} characters with repetitions written out, of which repetitions may add ${MOST_REPEATED_SIZE}`,
        "use fewer or smaller repetitions, or = with the value",
      );
    }
    const rows = await database.query(values.sql, values.values);
    const matched: string[] = [];
    for (const batch of batchesOf(
      rows.map(({ v }) => String(v)),
      MOST_WORK / (size + 1),
    )) {
      const begun = performance.now();
      const found = await database
        .query(
          `SELECT v FROM (SELECT unnest(from_json($batch, '["VARCHAR"]')) AS v)
            WHERE regexp_full_match(v, $pattern)`,
          { batch: JSON.stringify(batch), pattern },
        )
        .catch(() => {
          throw broken(pattern);
        });
      for (const { v } of found) {
        matched.push(String(v));
      }
      this.#leftMs -= performance.now() - begun;
      if (this.#leftMs < 0) {
        throw badUsage(
          "the regular expressions take longer than a second",
          "use fewer or smaller repetitions, or = with the value",
        );
      }
    }
    return JSON.stringify(matched);
  }
}

function broken(pattern: string): TidemarkError {
  return badUsage(`this is not a regular expression: ${oneLine(pattern, 60)}`, "RE2's syntax");
}

/** At least one batch, even an empty one, so that a pattern is always compiled. @internal */
export function batchesOf(values: readonly string[], mostBytes: number): string[][] {
  const batches: string[][] = [[]];
  let bytes = 0;
  for (const value of values) {
    const size = value.length + 1;
    if (bytes > 0 && bytes + size > mostBytes) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)?.push(value);
    bytes += size;
  }
  return batches;
}

/**
 * @internal Characters of a pattern with its counted repetitions written out; an upper bound that is accurate enough.
 */
export function expandedSize(pattern: string): number {
  /** Sizes of the open groups, and of the newest item of each. */
  const groups: { size: number; last: number }[] = [{ size: 0, last: 0 }];
  const tokens =
    /\\[pP](?:\{[^}]*\}|[\s\S])|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|[\s\S]/g;
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
      const size = /\\[pP]/.test(token) ? UNICODE_CLASS_SIZE : 1;
      group.size += size;
      group.last = size;
    }
  }
  return groups.reduce((sum, { size }) => sum + size, 0);
}
