import { DuckDBInstance } from "@duckdb/node-api";
import { expect, it } from "vitest";
import { rowsOf } from "./connection.js";

it("binds whole numbers with the types of columns", async () => {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  const parameters = { ms: 1_800_000_000_000n, before: -1n, id: 2n ** 64n - 1n };
  const types = Object.keys(parameters).map((name) => `typeof($${name}) AS ${name}`);
  expect(await rowsOf(connection, `SELECT ${types.join(", ")}, $id AS same`, parameters)).toEqual([
    { ms: "BIGINT", before: "BIGINT", id: "UBIGINT", same: 2n ** 64n - 1n },
  ]);
  connection.closeSync();
  instance.closeSync();
});
