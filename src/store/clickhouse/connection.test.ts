import { expect, it } from "vitest";
import { clickhouseAddress, placeOf } from "./connection.js";
import { createStatement, dialectOf } from "./tables.js";

it("reads addresses, and shows them without the password", () => {
  const address = clickhouseAddress("clickhouse://ada:a%2Fb%3A%40c@db.internal:8124/fleet");
  expect(address).toEqual({
    ...{ host: "db.internal", port: 8124, user: "ada", password: "a/b:@c", database: "fleet" },
  });
  expect(placeOf(address)).toBe("clickhouse://ada@db.internal:8124/fleet");
  expect(clickhouseAddress("clickhouse://[::1]")).toMatchObject({
    ...{ host: "::1", port: 8123, user: "default", password: "", database: "tidemark" },
  });
  expect(clickhouseAddress("clickhouse://host:80/x").port).toBe(80);
});

it.each([
  "clickhouse://",
  "clickhouse://host/a-b",
  "clickhouse://host/x;DROP",
  "clickhouse://ada:secret@host:1x/a",
  "clickhouse://ada:secret@host/a?b=c",
  "clickhouse://ada:secret%zz@host/a",
])("refuses %s in one line without the password", (name) => {
  expect(() => clickhouseAddress(name)).toThrow(/^TM-E\d+ (?!.*(secret|\n))/);
});

it("knows old and new versions", () => {
  expect(dialectOf("1.1.54390")).toBeNull();
  expect(dialectOf("18.14.19")).toBeNull();
  expect(dialectOf("")).toBeNull();
  expect(dialectOf("18.16.1")).toEqual({ isModern: false });
  expect(dialectOf("26.9.2.1")).toEqual({ isModern: true });
  expect(createStatement("fleet", "samples", { isModern: false })).not.toMatch(/CODEC|SETTINGS/);
  expect(createStatement("fleet", "samples", { isModern: true })).toMatch(
    /CODEC.*SETTINGS fsync_after_insert/s,
  );
});
