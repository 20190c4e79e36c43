import { type DuckDBValue, listValue } from "@duckdb/node-api";
import type { ColumnValue } from "./schema.js";

/** Converts a value to the form that DuckDB's appender needs for a column of that type. */
export function storedValue(value: ColumnValue, type: string): DuckDBValue {
  if (typeof value === "object") {
    return listValue(value);
  }
  return type === "BIGINT" ? BigInt(value) : value;
}
