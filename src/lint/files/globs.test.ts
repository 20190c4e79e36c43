import { describe, expect, it } from "vitest";
import { isMatched, matchesAny } from "./globs.js";

describe("patterns of paths", () => {
  it.each([
    ["tests", "src/tests/a.py", true],
    ["tests", "src/mytests/a.py", false],
    ["tests/", "tests/a.py", true],
    ["tests/a.py", "src/tests/a.py", false],
    ["./tests/a.py", "tests/a.py", true],
    ["/tests", "tests/a.py", true],
    ["/tests", "src/tests/a.py", false],
    ["*_pb2.py", "src/x_pb2.py", true],
    ["src/*.py", "src/a/b.py", false],
    ["src/**/b.py", "src/b.py", true],
    ["src/**/b.py", "src/a/c/b.py", true],
    ["build/**", "build/lib/a.py", true],
    ["a?.py", "src/ab.py", true],
    ["v[0-9].py", "v1.py", true],
    ["v[!0-9].py", "v1.py", false],
    ["a.py", "abpy", false],
    ["c++", "src/c++/a.py", true],
  ])("%s and %s: %s", (pattern, path, isMatch) => {
    expect(matchesAny(path, [pattern])).toBe(isMatch);
  });

  it("start from their folder", () => {
    const lists = [{ folder: "/project", patterns: ["app/old"] }];
    expect(isMatched("/project/app/old/a.py", lists)).toBe(true);
    expect(isMatched("/project/sub/app/old/a.py", lists)).toBe(false);
    expect(isMatched("/project", [{ folder: "/project", patterns: [] }])).toBe(false);
  });
});
