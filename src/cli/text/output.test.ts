import { describe, expect, it } from "vitest";
import {
  bar,
  cutEnd,
  cutMiddle,
  formatBytes,
  formatChange,
  formatCount,
  formatDuration,
  formatShare,
  formatTable,
  paintFor,
  type Screen,
  sparkline,
  widthOf,
  wrap,
} from "./output.js";

function screen(columns: number): Screen {
  return { columns, paint: paintFor(false), line: () => undefined };
}

describe("figures", () => {
  it.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [10.5 * 1024, "10.5 KiB"],
    [999.4 * 1024, "999 KiB"],
    [999.6 * 1024, "0.98 MiB"],
    [312 * 2 ** 20, "312 MiB"],
    [1.21 * 2 ** 30, "1.21 GiB"],
    [-12 * 2 ** 20, "-12.0 MiB"],
    [-0.2, "0 B"],
    [3 * 2 ** 60, "3072 PiB"],
  ])("%d bytes are %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it("signs a change, and no change not at all", () => {
    expect([formatChange(2 ** 20), formatChange(-(2 ** 20)), formatChange(0.3)]).toEqual([
      "+1.00 MiB",
      "-1.00 MiB",
      "0 B",
    ]);
  });

  it.each([
    [0, "0"],
    [1204.4, "1,204"],
    [99_999, "99,999"],
    [99_999.6, "100 k"],
    [3_400_000, "3.40 M"],
    [999_999, "1.00 M"],
  ])("%d of something are %s", (count, text) => {
    expect(formatCount(count)).toBe(text);
  });

  it.each([
    [0, "0 %"],
    [0.001, "<1 %"],
    [0.384, "38 %"],
    [Number.NaN, "0 %"],
  ])("a share of %d is %s", (share, text) => {
    expect(formatShare(share)).toBe(text);
  });

  it.each([
    [850, "850 ms"],
    [999.7, "1.0 s"],
    [59_960, "1 min 00 s"],
    [185_000, "3 min 05 s"],
    [3_599_800, "1 h 00 min"],
    [3_720_000, "1 h 02 min"],
    [51 * 3_600_000, "2 d 03 h"],
  ])("%d ms are %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});

describe("text", () => {
  it("keeps a path's file and as many directories as fit", () => {
    expect(cutMiddle("/srv/service/models/vision/loader.py:41", 24)).toBe("…/vision/loader.py:41");
    expect(cutMiddle("src/service/models/vision/loader.py:41", 30)).toBe(
      "…/models/vision/loader.py:41",
    );
    expect(cutMiddle("src/service/models/vision/loader.py:41", 32)).toBe(
      "src/…/models/vision/loader.py:41",
    );
    expect(cutMiddle("short.py:1", 30)).toBe("short.py:1");
  });

  it.each([1, 2, 3, 5, 8, 13, 21])("never exceeds %d columns", (width) => {
    for (const text of [
      "/a/very/long/path/to/some_module_name.py:123",
      "漢字漢字漢字漢字漢字漢字",
      "no_slash_in_here_at_all",
    ]) {
      expect(widthOf(cutMiddle(text, width))).toBeLessThanOrEqual(width);
      expect(widthOf(cutEnd(text, width))).toBeLessThanOrEqual(width);
    }
  });

  it("wraps at words and cuts what no line holds", () => {
    const lines = wrap("one two three abcdefghijklmnopqrstuvwxyz four", 10);
    expect(lines.every((line) => widthOf(line) <= 10)).toBe(true);
    expect(lines[0]).toBe("one two");
    expect(lines.at(-1)).toBe("four");
  });
});

describe("pictures", () => {
  it("draws a bar in eighths, and something never as nothing", () => {
    expect(bar(1, 4)).toBe("████");
    expect(bar(0.5, 4)).toBe("██");
    expect(bar(0.0001, 4)).toBe("▏");
    expect(bar(0, 4)).toBe("");
    expect(bar(7, 4)).toBe("████");
  });

  it("keeps a short peak, and bridges gaps", () => {
    const values = [1, 1, 8, 1, Number.NaN, Number.NaN, 1, 4];
    const drawn = sparkline([0, 1, 2, 3, 4, 5, 6, 7], values, 4);
    expect(drawn).toHaveLength(4);
    expect(drawn).toContain("█");
    expect(sparkline([], [], 10)).toBe("");
    expect(sparkline([5], [3], 10)).toBe("█");
  });
});

describe("tables", () => {
  const columns = [
    { title: "SIZE", align: "right" as const },
    { title: "SITE", flexible: "cutMiddle" as const },
  ];

  it("fits the screen and lines up", () => {
    const rows = [
      ["1 B", "a/rather/long/path/that/does/not/fit/at/all/file.py:10"],
      ["100 MiB", "漢字.py:1"],
    ];
    const lines = formatTable(screen(40), columns, rows);
    expect(lines.every((line) => widthOf(line) <= 40)).toBe(true);
    expect(lines[1]?.indexOf("a/")).toBe(lines[2]?.indexOf("漢"));
  });

  it("lets no control character of a name through", () => {
    const lines = formatTable(screen(80), columns, [["1 B", "evil\x1b[2Jname\n.py"]]);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(lines.join("")).not.toMatch(/[\x00-\x1f]/);
  });
});
