/** `[tool.tidemark.lint]` of pyproject.toml. */
import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parse, TomlError } from "smol-toml";
import { didYouMean } from "../../model/base/near_miss.js";
import { badUsage } from "../../model/errors/errors.js";
import type { PathPatterns } from "./globs.js";

export interface LintSettings {
  readonly select?: readonly string[];
  readonly ignore?: readonly string[];
  /** Paths to leave out, and the folders to which the patterns are relative. */
  readonly exclude?: readonly PathPatterns[];
  readonly failOn?: string;
  /** Path of the baseline, relative to the working folder. */
  readonly baseline?: string;
  /** Rules that are off for the files of a pattern. */
  readonly perFileIgnores?: readonly { paths: PathPatterns; rules: readonly string[] }[];
}

const TABLE = "tool.tidemark.lint";
const EXCLUDE = "exclude";
const IGNORES = "per-file-ignores";
const KEYS = ["select", "ignore", EXCLUDE, "fail-on", "baseline", IGNORES];

/** Settings of the nearest pyproject.toml above `start` that has the table. Throws TM-E002 for an unknown setting. */
export function settingsAbove(start: string): LintSettings {
  for (let folder = resolve(start); ; folder = dirname(folder)) {
    const path = join(folder, "pyproject.toml");
    const text = textOf(path);
    if (text?.includes("tidemark") === true) {
      const settings = settingsOf(text, relative(process.cwd(), path), folder);
      if (settings !== null) {
        return settings;
      }
    }
    if (folder === dirname(folder)) {
      return {};
    }
  }
}

/** null if there is no such file, or a folder has this name. */
function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8").replace(/^\ufeff/, "");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES" || code === "EPERM") {
      throw badUsage(`${path} may not be read`, "its table for lint may hold settings");
    }
    return null;
  }
}

/**
 * null for a text without the table.
 * @internal
 */
export function settingsOf(text: string, path: string, folder: string): LintSettings | null {
  const own = tableOf(text, path);
  if (own === undefined) {
    return null;
  }
  const fail = (key: string, what: string) =>
    badUsage(`${placeOf(key, text, path)}: ${what}`, "see docs/lint.md, Settings");
  if (!isTable(own)) {
    throw fail("lint", `${TABLE} must be a table`);
  }
  for (const key of Object.keys(own)) {
    if (!KEYS.includes(key)) {
      const guess = didYouMean(key, KEYS);
      throw badUsage(
        `${placeOf(key, text, path)}: [${TABLE}] has no setting ${key}`,
        guess || "see docs/lint.md, Settings",
      );
    }
  }
  const strings = (key: string, value: unknown): readonly string[] => {
    const list = typeof value === "string" ? [value] : value;
    if (!Array.isArray(list) || !list.every((each) => typeof each === "string")) {
      throw fail(key, `${key} must be a string or a list of strings`);
    }
    return list;
  };
  const word = (key: string): string | undefined => {
    const value = own[key];
    if (value !== undefined && typeof value !== "string") {
      throw fail(key, `${key} must be a string`);
    }
    return value;
  };
  const ignores = own[IGNORES] ?? {};
  if (!isTable(ignores)) {
    throw fail(IGNORES, "per-file-ignores must be a table of patterns");
  }
  const list = (key: "select" | "ignore") => (key in own ? { [key]: strings(key, own[key]) } : {});
  const exclude = own[EXCLUDE];
  const baseline = word("baseline");
  const failOn = word("fail-on");
  return {
    ...list("select"),
    ...list("ignore"),
    ...(exclude === undefined
      ? {}
      : { exclude: [{ folder, patterns: strings(EXCLUDE, exclude) }] }),
    ...(failOn === undefined ? {} : { failOn }),
    ...(baseline === undefined
      ? {}
      : { baseline: relative(process.cwd(), join(folder, baseline)) }),
    perFileIgnores: Object.entries(ignores).map(([pattern, rules]) => ({
      paths: { folder, patterns: [pattern] },
      rules: strings(pattern, rules),
    })),
  };
}

/** The table `tool.tidemark.lint`; undefined if there is none. */
function tableOf(text: string, path: string): unknown {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) {
      throw error;
    }
    const reason = error.message.split("\n")[0]?.replace(/^Invalid TOML document: /, "") ?? "";
    throw badUsage(`${path}:${error.line}: this is not TOML: ${reason}`, "correct this line");
  }
  for (const key of TABLE.split(".")) {
    value = isTable(value) ? value[key] : undefined;
  }
  return value;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** "pyproject.toml:12", by the line that sets the key. */
function placeOf(key: string, text: string, path: string): string {
  const escaped = key.replaceAll(/\W/g, "\\$&");
  const at = text
    .split("\n")
    .findIndex((line) => new RegExp(`(?:^|[\\s.{,"'])${escaped}["']?\\s*=`).test(line));
  return at === -1 ? path : `${path}:${at + 1}`;
}
