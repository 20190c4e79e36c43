import { describe, expect, it } from "vitest";
import { inOrderOf, parseBytes, parseCount, parseDuration, selectRows } from "./options.js";

describe("parseBytes", () => {
  it.each([
    ["0", 0],
    ["4096", 4096],
    ["64K", 65_536],
    ["64KiB", 65_536],
    ["10mb", 10_000_000],
    ["1.5 GB", 1_500_000_000],
    ["24B", 24],
    ["1.5 GiB", 1.5 * 2 ** 30],
    ["2t", 2 ** 41],
  ])("reads %s", (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });

  it.each(["", "-1", "1e9", "ten", "5X", "99999999999T", "1.2.3K", "0x10"])(
    "refuses '%s'",
    (text) => {
      expect(() => parseBytes(text)).toThrow(/a size such as/);
    },
  );
});

describe("parseDuration", () => {
  it.each([
    ["60s", 60_000],
    ["60", 60_000],
    ["500ms", 500],
    ["1.5 h", 5_400_000],
    ["10min", 600_000],
  ])("reads %s", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(["", "0", "0s", "-1s", "soon", "1e3s", "4000d", "9".repeat(30)])(
    "refuses '%s'",
    (text) => {
      expect(() => parseDuration(text)).toThrow(/a duration such as/);
    },
  );
});

describe("parseCount", () => {
  it("accepts only whole numbers up to 2^53", () => {
    expect(parseCount("0")).toBe(0);
    expect(() => parseCount("99999999999999999999")).toThrow("a whole number such as 20");
    for (const text of ["", "-1", "1.5", "1e9", "x"]) {
      expect(() => parseCount(text)).toThrow(/whole number/);
    }
  });
});

describe("selectRows", () => {
  const rows = [
    { size: 10, text: "Alpha" },
    { size: -8, text: "beta" },
    { size: 1, text: "alphabet" },
  ];
  const select = (options: object, defaultTop = 0) =>
    selectRows(
      rows,
      options,
      defaultTop,
      (row) => row.size,
      (row) => row.text,
    );

  it("selects the first, large and matching rows, and counts the rest", () => {
    expect(select({}, 2)).toEqual({ rows: rows.slice(0, 2), leftOut: 1 });
    expect(select({ top: 0 }, 2).rows).toHaveLength(3);
    expect(select({ min: 8 }).rows.map((row) => row.size)).toEqual([10, -8]);
    expect(select({ filter: "ALPHA", top: 1 })).toEqual({ rows: [rows[0]], leftOut: 1 });
  });

  it("names the options that exclude every row", () => {
    expect(select({ filter: "z z" }).unmatched).toBe("nothing matches --filter 'z z'");
    expect(select({ filter: "zzz", min: 1 << 20 }).unmatched).toBe(
      "nothing matches --filter zzz and --min 1.00 MiB",
    );
    expect(select({ filter: "beta" }).unmatched).toBeUndefined();
    expect(selectRows([], { filter: "zzz" }, 0, Number, String).unmatched).toBeUndefined();
  });

  it("chosen rows keep the order of the list", () => {
    const [first, second, third] = rows;
    expect(inOrderOf(rows, [third, first] as typeof rows)).toEqual([first, third]);
    expect(inOrderOf(rows, [second] as typeof rows)).toEqual([second]);
  });
});
