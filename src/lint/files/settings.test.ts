import { describe, expect, it } from "vitest";
import { settingsOf } from "./settings.js";

const read = (text: string) => settingsOf(text, "pyproject.toml", process.cwd());

describe("[tool.tidemark.lint]", () => {
  it("is read in each of the ways that TOML has to write a table", () => {
    for (const text of [
      '[tool.tidemark.lint]\nignore = ["TM-L010"]\n',
      "[tool.tidemark.lint]\nignore = 'TM-L010'\n",
      '[tool.tidemark.lint]\nignore = [\n  "TM-L010", # why\n]\n[[tool.x]]\na = 1979-05-27T07:32:00Z\n',
      '[tool]\ntidemark.lint.ignore = ["TM-L010"]\n',
      'tool = {tidemark = {lint = {ignore = ["TM-L010"]}}}\n',
      '[tool."tidemark".lint]\r\n"ignore" = ["TM-L010"]\r\n',
      'x = """\n[tool.tidemark.lint]\nignore = ["no"]\n"""\n[tool.tidemark.lint]\nignore = ["TM-L010"]\n',
    ]) {
      expect(read(text), text).toEqual({ ignore: ["TM-L010"], perFileIgnores: [] });
    }
  });

  it("has paths that start from its folder", () => {
    const folder = process.cwd();
    expect(
      read(
        '[tool.tidemark.lint]\nexclude = ["build"]\nbaseline = "ci/known.txt"\nfail-on = "error"\n' +
          '[tool.tidemark.lint.per-file-ignores]\n"scripts/*" = ["file-not-closed"]\n',
      ),
    ).toEqual({
      exclude: [{ folder, patterns: ["build"] }],
      baseline: "ci/known.txt",
      failOn: "error",
      perFileIgnores: [{ paths: { folder, patterns: ["scripts/*"] }, rules: ["file-not-closed"] }],
    });
  });

  it("is not in a file without the table", () => {
    expect(read('[project]\nname = "tidemark"\n')).toBeNull();
    expect(read("# tool.tidemark.lint\n")).toBeNull();
  });

  it.each([
    ["[tool.tidemark.lint\n", /^TM-E002 pyproject\.toml:1: this is not TOML: /],
    ["x = \n[tool.tidemark.lint]\n", /^TM-E002 pyproject\.toml:1: this is not TOML: /],
    [
      '[tool.tidemark.lint]\nignore = ["a"]\nignore = ["b"]\n',
      /^TM-E002 pyproject\.toml:3: this is not TOML: /,
    ],
    [
      "[tool.tidemark]\nlint = 5\n",
      /^TM-E002 pyproject\.toml:2: tool\.tidemark\.lint must be a table/,
    ],
    [
      "[tool.tidemark.lint]\n\nselct = []\n",
      /^TM-E002 pyproject\.toml:3: .* has no setting selct.*select/,
    ],
    [
      "[tool.tidemark.lint]\nselect = [1]\n",
      /^TM-E002 pyproject\.toml:2: select must be a string or/,
    ],
    [
      "[tool.tidemark.lint]\nbaseline = 5\n",
      /^TM-E002 pyproject\.toml:2: baseline must be a string/,
    ],
    [
      "[tool.tidemark.lint]\nper-file-ignores = []\n",
      /^TM-E002 pyproject\.toml:2: per-file-ignores must be a table/,
    ],
  ])("refuses %j in one line", (text, message) => {
    expect(() => read(text)).toThrow(message);
    try {
      read(text);
    } catch (error) {
      expect(String(error)).not.toContain("\n");
    }
  });
});
