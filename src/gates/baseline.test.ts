import { expect, test } from "vitest";
import { TidemarkError } from "../model/errors/errors.js";
import { formatBaseline, isBaseline, parseBaseline } from "./baseline.js";
import { group, MIB, measured } from "./measured.fixture.js";

test("a baseline is a few lines of text with the measured figures", () => {
  const text = formatBaseline(measured());
  expect(isBaseline(text)).toBe(true);
  expect(text.split("\n").slice(1)).toEqual([
    "# command: python app.py",
    "peak         100.0 MiB  from 97.0 MiB to 103.0 MiB",
    "live          80.0 MiB  from 73.6 MiB to 86.4 MiB",
    "growth       0.0 MiB/h  from -1.0 MiB/h to 1.0 MiB/h",
    "site          80.0 MiB  from 77.6 MiB to 82.4 MiB    load app.py",
    "",
  ]);
});

test("is read back; what was not measured is left out", () => {
  const baseline = parseBaseline(formatBaseline(measured({ growth: null })), "memory.txt");
  expect(baseline.peak).toEqual({ low: 97 * MIB, high: 103 * MIB });
  expect(baseline.growth).toBeUndefined();
  const short = formatBaseline(measured({ durationMs: 4000 }));
  expect(parseBaseline(short, "memory.txt").growth).toBeUndefined();
  expect([...baseline.sites.keys()]).toEqual(["load app.py"]);
});

test("lines of one function are one site; names that could break the file are kept to a line", () => {
  const groups = [group("load", 1, MIB), group("load", 2, MIB), group("a\nb\u2028c", 3, 4 * MIB)];
  const text = formatBaseline(measured({ groups }));
  expect(parseBaseline(text, "memory.txt").sites.size).toBe(2);
  expect(text.split("\n")).toHaveLength(8);
});

const GOOD = formatBaseline(measured());

test.each([
  ["an empty file", "", /is not a baseline/],
  ["another file", "peak 1\n", /is not a baseline/],
  ["a newer one", "# Tidemark baseline 2: x\n", /another version/],
  ["no figure", `${GOOD.split("\n")[0]}\n`, /holds no figure/],
  ["a word", `${GOOD}peek 1 MiB\n`, /line 7: 'peek 1 MiB' is not a figure/],
  ["another unit", GOOD.replace(/100\.0 MiB /, "100.0 GiB "), /line 3: .* is not a figure/],
  ["a rate as a size", GOOD.replaceAll("MiB/h", "MiB"), /line 5: .* is not a figure/],
  ["a range that ends below its start", GOOD.replace("to 103.0", "to 1.0"), /ends below its start/],
  ["a figure twice", `${GOOD}${GOOD.split("\n")[2]}\n`, /'peak' occurs twice/],
  ["a site without a name", `${GOOD}site 1.0 MiB from 1.0 MiB to 2.0 MiB\n`, /is not a figure/],
])("%s ends in one line", (_name, text, message) => {
  const read = () => parseBaseline(text, "memory.txt");
  expect(read).toThrow(TidemarkError);
  expect(read).toThrow(message);
  expect(read).toThrow(/^TM-E002 [^\n]+$/);
});
