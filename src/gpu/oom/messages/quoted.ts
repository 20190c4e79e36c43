/** Whether words of a log are said, or only spoken of: code, documentation and questions quote errors. */

/** A pattern that looks for errors has bars between them. */
const QUOTES = "\"'`“”|";

/** The line of `text` that holds the character at `index`. */
export function lineWith(text: string, index: number): string {
  const end = text.indexOf("\n", index);
  return text.slice(text.lastIndexOf("\n", index - 1) + 1, end < 0 ? undefined : end);
}

/** What is put before an error's text that it quotes: a key (`"error": "..."`), or the exception that holds it
 * (`RuntimeError('...')`). */
const SAID =
  /(?:(?:err|exc)\w{0,20}|message|msg|reason|cause|detail|text|log|output|stderr|failed)["']?\s{0,4}[:=]?\s{0,4}["'`]$|(?:Error|Exception)\(["'`]$/i;

/** True for words in tight quotes that nothing says: an exception's name before them may be within the quotes. */
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

/** True where the words at `index` are the argument of a `raise` or a condition: a line of a program. */
export function isSource(line: string, index: number): boolean {
  const before = line.slice(Math.max(0, index - 160), index);
  return /\b(?:raise\s+[\w.]{1,60}\(|(?:if|elif|assert|in|==)\s)\s{0,40}[rfbu]{0,2}["'`]{1,3}[^"'`]{0,120}$/.test(
    before,
  );
}
