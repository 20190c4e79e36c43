import { describe, expect, it } from "vitest";
import {
  bar,
  cutEnd,
  cutMiddle,
  formatTable,
  makeScreen,
  type Screen,
  sparkline,
  widthOf,
} from "./output.js";

function screen(columns: number, cuts = true): Screen {
  return makeScreen({ columns, cuts, colour: false }, () => undefined);
}

const LONG = "abcdefghijklmnopqrstuvwxyz";

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

  it("wraps at words and cuts words longer than a line", () => {
    const lines = screen(50).wrap(`one two three ${LONG} four`, 40);
    expect(lines.every((line) => widthOf(line) <= 10)).toBe(true);
    expect(lines[0]).toBe("one two");
    expect(lines.at(-1)).toBe("four");
  });
});

describe("without a terminal", () => {
  it("a sentence is one line, and wraps only at a requested width", () => {
    const sentence = `one two three ${LONG} four`;
    expect(screen(Number.POSITIVE_INFINITY, false).wrap(sentence, 10)).toEqual([sentence]);
    expect(screen(10, false).wrap(sentence, 0)).toEqual(["one two", "three", LONG, "four"]);
  });

  it("nothing is truncated", () => {
    const wide = screen(40, false);
    const path = `/srv/${LONG}/${LONG}/${LONG}.py:41`;
    const columns = [{ title: "SITE", flexible: "cutMiddle" as const }, { title: "SIZE" }];
    expect(formatTable(wide, columns, [[path, "1 B"]])[1]).toBe(`  ${path}  1 B `);
    expect([wide.cutEnd(path, 5), wide.cutMiddle(path, 5)]).toEqual([path, path]);
  });
});

describe("pictures", () => {
  it("draws a bar in eighths, and a small value is always visible", () => {
    expect(bar(1, 4)).toBe("████");
    expect(bar(0.5, 4)).toBe("██");
    expect(bar(0.0001, 4)).toBe("▏");
    expect(bar(0, 4)).toBe("");
    expect(bar(7, 4)).toBe("████");
  });

  it("keeps a short peak, bridges times without a reading, and leaves missing readings blank", () => {
    const times = [0, 1, 2, 3, 4, 5, 6, 7];
    const values = [1, 1, 8, 1, Number.NaN, Number.NaN, 1, 4];
    expect(sparkline(times, values, 4)).toBe("▁█ ▄");
    expect(sparkline([0, 1, 6, 7], [1, 8, 1, 4], 4)).toBe("███▄");
    expect(sparkline([0, 1, 2, 3], [Number.NaN, Number.NaN, 4, 8], 4)).toBe("  ▄█");
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

  it("removes control characters from names", () => {
    const lines = formatTable(screen(80), columns, [["1 B", "evil\x1b[2Jname\n.py"]]);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    expect(lines.join("")).not.toMatch(/[\x00-\x1f]/);
  });
});
