/** One table of a TOML file: strings, lists of strings, numbers and booleans. Other tables are not looked at. */

export type TomlValue = string | number | boolean | readonly string[];

export interface TomlEntry {
  readonly value: TomlValue;
  readonly line: number;
}

type Fail = (line: number, what: string) => Error;

/** The entries of `[name]`. Throws what `fail` makes for a line that it cannot read. */
export function tableOf(text: string, name: string, fail: Fail): Map<string, TomlEntry> {
  const entries = new Map<string, TomlEntry>();
  const lines = text.split(/\r?\n/);
  let isInside = false;
  for (let at = 0; at < lines.length; at++) {
    const line = withoutComment(lines[at] ?? "");
    const header = /^\s*\[+\s*([^\]]+?)\s*\]+\s*$/.exec(line)?.[1];
    if (header !== undefined) {
      isInside = header.replaceAll(/["'\s]/g, "") === name;
      continue;
    }
    if (!isInside || line.trim() === "") {
      continue;
    }
    const start = at;
    const [, quoted, bare, first] =
      /^\s*(?:["']([^"']+)["']|([\w-]+))\s*=\s*(.*)$/.exec(line) ?? [];
    const key = quoted ?? bare;
    if (key === undefined || first === undefined) {
      throw fail(start + 1, "a line KEY = VALUE is expected here");
    }
    let value = first;
    while (value.startsWith("[") && !value.trimEnd().endsWith("]") && at + 1 < lines.length) {
      at++;
      value += ` ${withoutComment(lines[at] ?? "").trim()}`;
    }
    entries.set(key, { value: parsedValue(value.trim(), start + 1, fail), line: start + 1 });
  }
  return entries;
}

const STRING = /"(?:[^"\\]|\\.)*"|'[^']*'/g;

function parsedValue(text: string, line: number, fail: Fail): TomlValue {
  if (text === "true" || text === "false") {
    return text === "true";
  }
  if (/^[-+]?\d+(?:\.\d+)?$/.test(text)) {
    return Number(text);
  }
  if (/^(?:"(?:[^"\\]|\\.)*"|'[^']*')$/.test(text)) {
    return unquoted(text);
  }
  if (/^\[.*\]$/s.test(text)) {
    const strings = text.match(STRING) ?? [];
    if (text.slice(1, -1).replace(STRING, "").replaceAll(/[\s,]/g, "") === "") {
      return strings.map(unquoted);
    }
  }
  throw fail(line, "a string or a list of strings is expected here");
}

function unquoted(text: string): string {
  const inner = text.slice(1, -1);
  return text.startsWith('"') ? inner.replaceAll(/\\(["\\])/g, "$1") : inner;
}

/** A `#` in a string is none. */
function withoutComment(line: string): string {
  const outside = line.replace(STRING, (string) => "x".repeat(string.length));
  const at = outside.indexOf("#");
  return at === -1 ? line : line.slice(0, at);
}
