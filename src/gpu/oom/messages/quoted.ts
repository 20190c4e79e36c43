/** Whether an error text in a log is only quoted, as in code, documentation and questions. */

/** A search pattern for errors contains bars. */
const QUOTES = "\"'`“”|";

/** The line of `text` that contains the character at `index`. */
export function lineWith(text: string, index: number): string {
  const end = text.indexOf("\n", index);
  return text.slice(text.lastIndexOf("\n", index - 1) + 1, end < 0 ? undefined : end);
}

/** Text before a quoted error message that really is an error: a key (`"error": "..."`), or the exception that
 * contains it
 * (`RuntimeError('...')`). */
const SAID =
  /(?:(?:err|exc)\w{0,20}|message|msg|reason|cause|detail|text|log|output|stderr|failed)["']?\s{0,4}[:=]?\s{0,4}["'`]$|(?:Error|Exception)\(["'`]$/i;

/**
 * True for text in tight quotes that is not an actual error; an exception's name before it may be inside the
 * quotes.
 */
export function isQuoted(text: string, index: number, length: number): boolean {
  const before = text
    .slice(Math.max(0, index - 120), index)
    .replace(/(?:[\w.]{1,60}(?:Error|Exception): ?){1,2}$/, "");
  const next = text.slice(index + length, index + length + 2).replace(/^\./, "");
  const open = before.at(-1) ?? "";
  const close = next[0] ?? "";
  const tight = open !== "" && QUOTES.includes(open) && close !== "" && QUOTES.includes(close);
  return tight && !SAID.test(before);
}

/** True if the words at `index` are the argument of a `raise` or a condition: a line of a program. */
export function isSource(line: string, index: number): boolean {
  const before = line.slice(Math.max(0, index - 160), index);
  return /\b(?:raise\s+[\w.]{1,60}\(|(?:if|elif|assert|in|==)\s)\s{0,40}[rfbu]{0,2}["'`]{1,3}[^"'`]{0,120}$/.test(
    before,
  );
}
