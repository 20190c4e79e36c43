import { describe, expect, it } from "vitest";
import { didYouMean, nearNames } from "./near_miss.js";

const commands = ["run", "attach", "detach", "summary", "diagnose", "report", "diff", "lines"];

describe("nearNames", () => {
  it.each([
    ["sumary", "summary"],
    ["summray", "summary"],
    ["SUMMARY", "summary"],
    ["diag", "diagnose"],
    ["rnu", "run"],
    ["dettach", "detach"],
    ["atach", "attach"],
  ])("%s may have meant %s", (word, name) => {
    expect(nearNames(word, commands)[0]).toBe(name);
  });

  it.each(["", "x", "frobnicate", "ran-out", "di"])("'%s' is near no command", (word) => {
    expect(nearNames(word, commands)).toEqual([]);
  });

  it("puts the most similar first", () => {
    expect(nearNames("scirpt.py", ["strict.py", "script.py", "scripts.py"])).toEqual([
      "script.py",
      "scripts.py",
      "strict.py",
    ]);
  });
});

it("didYouMean asks a question, or returns nothing", () => {
  expect(didYouMean("sumary", commands)).toBe("did you mean summary?");
  expect(didYouMean("frobnicate", commands)).toBe("");
});
