/** Makes a data folder larger: further services with the same rows under other ids, which is faster than recording them. */
import { createHash } from "node:crypto";
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { bytesBelow } from "./served.mjs";

/** Columns that are ids, and how a copy's differ. */
const REPLACED = {
  service: "concat(service, '-', copy)",
  stream: "md5(concat(stream, copy))",
  ...Object.fromEntries(
    ["series_id", "root_id", "profile_id", "samples_id", "stack_id"].map((id) => [
      id,
      `CASE WHEN ${id} = 0 THEN 0 ELSE xor(${id}, hash(copy)) END`,
    ]),
  ),
};
/** Rows that all services share, or that are about the whole store. */
const SHARED = ["about", "frames", "labels", "label_values", "swept"];
const SUFFIX = ".tidemark";

/** Adds copies until the folder has about so many bytes. @param {string} data @param {number} bytes */
export async function enlarge(data, bytes) {
  const before = bytesBelow(data);
  if (before > 0.9 * bytes) {
    return;
  }
  await addCopies(data, 1, 1);
  // A copy has another size than the rows that it was made from.
  const doubled = bytesBelow(data);
  await addCopies(data, 2, Math.round((bytes - doubled) / (2 * (doubled - before))));
}

/** @param {string} data @param {number} first its number @param {number} count */
async function addCopies(data, first, count) {
  const copies = Array.from({ length: Math.max(0, count) }, (_, at) => first + at);
  const days = readdirSync(join(data, "days")).map((name) => join(data, "days", name));
  for (const path of [join(data, "meta.duckdb"), ...days]) {
    await copyRows(path, copies);
  }
  const streams = readdirSync(join(data, "streams"));
  for (const copy of copies) {
    for (const name of streams) {
      const renamed = createHash("md5").update(`${name.slice(0, -SUFFIX.length)}${copy}`);
      copyFileSync(
        join(data, "streams", name),
        join(data, "streams", `${renamed.digest("hex")}${SUFFIX}`),
      );
    }
  }
}

/** @param {string} path @param {readonly number[]} copies their numbers */
async function copyRows(path, copies) {
  if (copies.length === 0) {
    return;
  }
  const instance = await DuckDBInstance.create(path, { memory_limit: "2GB", threads: "2" });
  const connection = await instance.connect();
  const found = await connection.runAndReadAll(
    "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() WHERE NOT internal GROUP BY table_name",
  );
  for (const [table, columns] of found.getRows()) {
    const names = /** @type {{items: string[]}} */ (columns).items;
    if (SHARED.includes(String(table))) {
      continue;
    }
    const values = names.map(
      (name) => REPLACED[/** @type {keyof typeof REPLACED} */ (name)] ?? name,
    );
    await connection.run(
      `INSERT INTO ${table} SELECT ${values.join(", ")}
        FROM (SELECT unnest([${copies.join(", ")}]) AS copy), (SELECT * FROM ${table})`,
    );
  }
  await connection.run("CHECKPOINT");
  connection.closeSync();
  instance.closeSync();
}
