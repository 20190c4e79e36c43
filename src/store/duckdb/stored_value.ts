import { type DuckDBValue, listValue } from "@duckdb/node-api";
import type { ColumnValue } from "./schema.js";

/** A value as DuckDB's appender wants it for a column of that type. */
export function storedValue(value: ColumnValue, type: string): DuckDBValue {
  if (typeof value === "object") {
    return listValue(value);
  }
  return type === "BIGINT" ? BigInt(value) : value;
}
