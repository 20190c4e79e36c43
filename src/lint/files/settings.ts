/** `[tool.tidemark.lint]` of pyproject.toml. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { badUsage } from "../../model/errors/errors.js";
import { type TomlValue, tableOf } from "./toml_table.js";

export interface LintSettings {
  readonly select?: readonly string[];
  readonly ignore?: readonly string[];
  readonly exclude?: readonly string[];
  readonly failOn?: string;
  /** Path of the baseline, from the working folder. */
  readonly baseline?: string;
  /** Rules that are off for the files of a pattern. */
  readonly perFileIgnores?: readonly { pattern: string; rules: readonly string[] }[];
}

const TABLE = "tool.tidemark.lint";
const KEYS = new Set(["select", "ignore", "exclude", "fail-on", "baseline", "per-file-ignores"]);

/** Settings of the nearest pyproject.toml above `start` that has the table. Throws TM-E002 for what it does not know. */
export function settingsAbove(start: string): LintSettings {
  for (let folder = resolve(start); ; folder = dirname(folder)) {
    const path = join(folder, "pyproject.toml");
    if (existsSync(path)) {
      const text = readFileSync(path, "utf8");
      if (text.includes(TABLE)) {
        return settingsOf(text, relative(process.cwd(), path), folder);
      }
    }
    if (folder === dirname(folder)) {
      return {};
    }
  }
}

/** @internal */
export function settingsOf(text: string, path: string, folder: string): LintSettings {
  const fail = (line: number, what: string) =>
    badUsage(`${path}:${line}: ${what}`, "see docs/lint.md, Settings");
  const own = tableOf(text, TABLE, fail);
  const ignores = tableOf(text, `${TABLE}.per-file-ignores`, fail);
  for (const [key, { line }] of own) {
    if (!KEYS.has(key)) {
      throw fail(line, `[${TABLE}] has no setting ${key}`);
    }
  }
  const list = (key: string) => {
    const entry = own.get(key);
    return entry === undefined ? {} : { [camel(key)]: stringsOf(entry, fail) };
  };
  const word = (key: string, change = (value: string) => value) => {
    const entry = own.get(key);
    if (entry === undefined) {
      return {};
    }
    if (typeof entry.value !== "string") {
      throw fail(entry.line, `${key} must be a string`);
    }
    return { [camel(key)]: change(entry.value) };
  };
  const inline = own.get("per-file-ignores");
  if (inline !== undefined) {
    throw fail(inline.line, `write per-file-ignores as a table: [${TABLE}.per-file-ignores]`);
  }
  return {
    ...list("select"),
    ...list("ignore"),
    ...list("exclude"),
    ...word("fail-on"),
    ...word("baseline", (value) => relative(process.cwd(), join(folder, value))),
    perFileIgnores: [...ignores].map(([pattern, entry]) => ({
      pattern,
      rules: stringsOf(entry, fail),
    })),
  };
}

function stringsOf(
  { value, line }: { value: TomlValue; line: number },
  fail: (line: number, what: string) => Error,
): readonly string[] {
  if (typeof value === "boolean" || typeof value === "number") {
    throw fail(line, "a string or a list of strings is expected here");
  }
  return typeof value === "string" ? [value] : value;
}

function camel(key: string): string {
  return key.replace(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase());
}
