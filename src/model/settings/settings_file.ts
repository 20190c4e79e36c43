/**
 * Settings that people write in a YAML file: read, checked against a form, and refused in one line that names the line
 * of the file. `watch` reads its policy with it, and `serve` its configuration.
 */
import { readFileSync, statSync } from "node:fs";
import { isMap, isScalar, LineCounter, parseDocument } from "yaml";
import { z } from "zod";
import { bytesIn, durationIn } from "../base/quantities.js";
import { badUsage, fileNotFound, fileUnusable, TidemarkError } from "../errors/errors.js";
import { reasonOf } from "../errors/reason.js";

/** What a file holds, for its messages. */
export interface SettingsKind {
  /** "policy" */
  readonly name: string;
  /** Page that describes the form. */
  readonly page: string;
  /** Rewrites the path of a setting, such as "select.0", for people. */
  readonly place?: (path: string) => string;
}

const LONGEST_FILE = 1 << 20;

/** A setting that `read` understands. `example`: "a size such as 2GiB". */
export function quantity<Value>(read: (text: string) => Value | null, example: string) {
  const written = z.union([z.string(), z.number()], { error: () => `expected ${example}` });
  return written.transform((value, context) => {
    const found = read(String(value));
    if (found === null) {
      context.addIssue({ code: "custom", message: `expected ${example}` });
      return z.NEVER;
    }
    return found;
  });
}

export const duration = quantity(durationIn, "a duration such as 30s, 5min or 2h");
export const size = quantity(bytesIn, "a size such as 512MiB or 2GiB");

/** A person corrects them all at once; the others would fill the screen. */
const MOST_MISTAKES = 4;

/** The text of a settings file. Throws TidemarkError if it cannot be read. */
export function settingsText(path: string, kind: SettingsKind): string {
  try {
    // A folder, a pipe or a device has no settings; the file is read again when it changes.
    if (!statSync(path).isFile()) {
      throw refused(kind, path, null, "it is not an ordinary file");
    }
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof TidemarkError) {
      throw error;
    }
    const { code, message } = reasonOf(error);
    throw code === "ENOENT" ? fileNotFound(path, kind.name) : fileUnusable(path, "read", message);
  }
}

/** The settings in a text. Throws TidemarkError: it is not YAML, or does not follow the form; names the lines. */
export function settingsIn<Form extends z.ZodType>(
  text: string,
  path: string,
  form: Form,
  kind: SettingsKind,
): z.infer<Form> {
  if (text.length > LONGEST_FILE) {
    throw refused(kind, path, null, `it is larger than 1 MiB, so it is not a ${kind.name}`);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken !== undefined) {
    throw refused(kind, path, lines.linePos(broken.pos[0]).line, broken.message);
  }
  const parsed = form.safeParse(plainValue(document, path, kind) ?? {});
  if (parsed.success) {
    return parsed.data;
  }
  const mistakes = parsed.error.issues.map((issue) => {
    const keys = issue.path.map(String);
    const place = (kind.place ?? String)(keys.join("."));
    const value = keys.length === 0 ? document.contents : document.getIn(keys, true);
    const [why] = describeIssue(issue, value).split("\n", 1);
    const line = lineOf(document, keys, issue, lines);
    return { line, text: `${place || `the ${kind.name}`}: ${why}` };
  });
  mistakes.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  const named = mistakes
    .slice(0, MOST_MISTAKES)
    .map(({ line, text }, at) => (at === 0 || line === null ? text : `line ${line}: ${text}`));
  const left = mistakes.length - named.length;
  const rest = left === 0 ? [] : [`and ${left} more`];
  throw refused(kind, path, mistakes[0]?.line ?? null, [...named, ...rest].join("; "));
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  boolean: "true or false",
  int: "a whole number",
  array: "a list",
  object: "settings in the form name: value",
  record: "settings in the form name: value",
};

/** `node`: of the value in the document; undefined if it is missing. */
function describeIssue(issue: z.core.$ZodIssue, node: unknown): string {
  switch (issue.code) {
    case "unrecognized_keys":
      return `no such setting: ${issue.keys.join(", ")}`;
    case "invalid_value":
      return `expected ${issue.values.join(", ").replace(/, (?=[^,]*$)/, " or ")}`;
    case "too_small":
      return issue.origin === "string"
        ? "it is empty"
        : `expected at least ${issue.minimum}${issue.origin === "array" ? (issue.minimum === 1 ? " entry" : " entries") : ""}`;
    case "too_big":
      return `expected at most ${issue.maximum}${issue.origin === "string" ? " characters" : ""}`;
    case "invalid_type": {
      const expected = EXPECTED[issue.expected] ?? issue.expected;
      if (node === undefined) {
        return `it is missing: expected ${expected}`;
      }
      const isUnquoted =
        issue.expected === "string" && isScalar(node) && typeof node.value !== "string";
      return isUnquoted && node.source !== undefined && node.source !== ""
        ? `expected text: write it in quotes, "${node.source}"`
        : `expected ${expected}`;
    }
    default:
      return issue.message;
  }
}

/** The line of a value, or of the nearest one around it if it is missing. */
function lineOf(
  document: ReturnType<typeof parseDocument>,
  keys: readonly string[],
  issue: z.core.$ZodIssue | undefined,
  lines: LineCounter,
): number | null {
  if (issue?.code === "unrecognized_keys") {
    const around = keys.length === 0 ? document.contents : document.getIn(keys, true);
    const pair = isMap(around)
      ? around.items.find(({ key }) => String(isScalar(key) ? key.value : key) === issue.keys[0])
      : undefined;
    const offset = (pair?.key as { range?: readonly number[] } | undefined)?.range?.[0];
    if (offset !== undefined) {
      return lines.linePos(offset).line;
    }
  }
  for (let depth = keys.length; depth > 0; depth--) {
    const node = document.getIn(keys.slice(0, depth), true) as { range?: readonly number[] } | null;
    const offset = node?.range?.[0];
    if (offset !== undefined) {
      return lines.linePos(offset).line;
    }
  }
  return null;
}

function refused(
  kind: SettingsKind,
  path: string,
  line: number | null,
  why: string,
): TidemarkError {
  const place = line === null ? path : `${path}, line ${line}`;
  return badUsage(`${place}: ${why.split("\n", 1)[0]}`, `its form is in ${kind.page}`);
}

/** Aliases that expand to a huge document are refused by the library. */
function plainValue(
  document: ReturnType<typeof parseDocument>,
  path: string,
  kind: SettingsKind,
): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw refused(kind, path, null, reasonOf(error).message);
  }
}
