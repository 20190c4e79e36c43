/** Patterns of paths, as in .gitignore: `*` within a name, `**` over folders; without a slash any part of the path. */
import { relative } from "node:path";

/** Patterns, and the folder to which they are relative. */
export interface PathPatterns {
  readonly folder: string;
  readonly patterns: readonly string[];
}

export function matchesAny(path: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => matches(path, pattern));
}

/** Whether one of the patterns matches a file, each relative to the folder of its patterns. */
export function isMatched(path: string, lists: readonly PathPatterns[]): boolean {
  return lists.some(
    ({ folder, patterns }) =>
      patterns.length > 0 && matchesAny(relative(folder, path) || ".", patterns),
  );
}

const compiled = new Map<string, RegExp>();

function matches(path: string, pattern: string): boolean {
  let expression = compiled.get(pattern);
  if (expression === undefined) {
    const clean = pattern.replace(/^\.\//, "").replace(/\/+$/, "");
    const isFromRoot = clean.includes("/");
    const body = clean
      .replace(/^\//, "")
      .split(/(\*\*\/?|\*|\?|\[[^\]]*\])/)
      .map((part) => translated(part))
      .join("");
    expression = new RegExp(isFromRoot ? `^${body}(?:/|$)` : `(?:^|/)${body}(?:/|$)`);
    compiled.set(pattern, expression);
  }
  return expression.test(path);
}

const TRANSLATIONS: Record<string, string> = {
  "**/": "(?:.*/)?",
  "**": ".*",
  "*": "[^/]*",
  "?": "[^/]",
};

function translated(part: string): string {
  const characters = /^\[(!?)([^\]]+)\]$/.exec(part);
  if (characters !== null) {
    const [, negated, inner = ""] = characters;
    return `[${negated === "!" ? "^/" : ""}${inner.replaceAll(/[\\[^]/g, "\\$&")}]`;
  }
  return TRANSLATIONS[part] ?? part.replace(/[.+^${}()|[\]\\]/g, "\\$&");
}
