import { describe, expect, test } from "vitest";
import type { CodeUses } from "../cpython/heap/objects/code_uses.js";
import { isOwnFile, puttersInto } from "./container_putters.js";

/** Each line, from 7 on, lists the names that it loads, with "=" if it stores under a key. */
const uses = (name: string, ...lines: string[]): CodeUses => ({
  function: name,
  file: "/srv/app.py",
  firstLine: 6,
  names: new Set(lines.flatMap((line) => line.split(" "))),
  lines: lines.map((text, n) => ({
    line: 7 + n,
    names: text.split(" "),
    storesItems: / =$/.test(text),
  })),
});

const PROGRAM = [
  uses("Stats.__init__", "self by_route", "self total"),
  uses("Stats.observe", "self by_route get key", "record self by_route key ="),
  uses("Gateway.handle", "self stats observe record"),
  uses("Stats.slowest", "self by_route values", "report max ="),
  uses("hook", "self captured append output"),
  uses("drift", "self captured items", "self reference setdefault mean"),
  uses("<module>", "SEEN json"),
  uses("main", "gateway time", "SEEN add gateway"),
  uses("merge", "self waiting", "queue put job"),
];

const into = (...path: string[]) => puttersInto(path, PROGRAM).map((frame) => frame.function);

describe("functions that add to", () => {
  test("an attribute: stores under its keys, or calls an adding method; not functions that only read or create it", () => {
    expect(
      into("thread T", "frame main (app.py:9)", "local gateway", ".stats", ".by_route"),
    ).toEqual(["Stats.observe"]);
    expect(into("module app", "probe", ".captured", "dict[...]")).toEqual(["hook"]);
    expect(puttersInto(["module app", "x", ".captured"], PROGRAM)).toEqual([
      { function: "hook", file: "/srv/app.py", line: 7, callers: [] },
    ]);
  });

  test("with the line that adds, and under another name with the first line that names it", () => {
    const lineOf = (...path: string[]) => puttersInto(path, PROGRAM)[0]?.line;
    expect(lineOf("module app", "SEEN")).toBe(8);
    expect(lineOf("module app", "x", ".waiting")).toBe(7);
  });

  test("a calling function is found by its plain name", () => {
    const [putter] = puttersInto(["module app", "stats", ".by_route"], PROGRAM);
    expect(putter?.callers).toEqual(["Gateway.handle"]);
  });

  test("a global variable, after its module", () => {
    expect(into("module app", "SEEN")).toEqual(["main"]);
    expect(into("module app", "SEEN", "set[...]")).toEqual(["main"]);
  });

  test("growing containers inside it: lines that add by its name, not those that insert them", () => {
    const nested = [
      uses("Table.series", "self readings get key", "self readings key ="),
      uses("Table.of", "self readings setdefault key"),
      uses("ingest", "table series key append value"),
      uses("hook", "self captured name append output"),
    ];
    const within = (name: string) =>
      puttersInto(["module app", "table", name], nested, true).map((putter) => putter.function);
    expect(within(".readings")).toEqual([]);
    expect(within(".captured")).toEqual(["hook"]);
  });

  test("passed on under another name", () => {
    expect(into("module app", "x", ".waiting")).toEqual(["merge"]);
  });

  test("not an unnamed container, or one that too many functions add to", () => {
    expect(into("module app", "get", "field of functools._lru_cache_wrapper")).toEqual([]);
    expect(into("sys.modules", "json.Decoder")).toEqual([]);
    expect(into()).toEqual([]);
    const many = ["a", "b", "c", "d"].map((name) => uses(name, "self items append"));
    expect(puttersInto(["module app", "x", ".items"], many)).toEqual([]);
  });

  test("of the program's own files", () => {
    expect(isOwnFile("/srv/app.py")).toBe(true);
    expect(isOwnFile("/srv/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py")).toBe(
      false,
    );
  });
});
