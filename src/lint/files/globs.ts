/** Patterns of paths, as in .gitignore: `*` within a name, `**` over folders; without a slash any part of the path. */
export function matchesAny(path: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => matches(path, pattern));
}

const compiled = new Map<string, RegExp>();

function matches(path: string, pattern: string): boolean {
  let expression = compiled.get(pattern);
  if (expression === undefined) {
    const clean = pattern.replace(/^\.\//, "").replace(/\/+$/, "");
    const body = clean
      .split(/(\*\*\/?|\*|\?)/)
      .map((part) => TRANSLATIONS[part] ?? part.replace(/[.+^${}()|[\]\\]/g, "\\$&"))
      .join("");
    expression = new RegExp(clean.includes("/") ? `^${body}(?:/|$)` : `(?:^|/)${body}(?:/|$)`);
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
