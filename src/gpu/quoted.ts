/** Whether words of a log are said, or only spoken of: code, documentation and questions quote errors. */

const QUOTES = "\"'`“”";

/** The line of `text` that holds the character at `index`. */
export function lineWith(text: string, index: number): string {
  const end = text.indexOf("\n", index);
  return text.slice(text.lastIndexOf("\n", index - 1) + 1, end < 0 ? undefined : end);
}

/**
 * True for words in tight quotes, an exception's name before them included ("RuntimeError: CUDA error: ..."),
 * unless a key names them as an error's text (`"error": "CUDA error: ..."`).
 */
export function isQuoted(text: string, index: number, length: number): boolean {
  const before = text
    .slice(Math.max(0, index - 120), index)
    .replace(/(?:[\w.]{1,60}(?:Error|Exception): ?){1,2}$/, "");
  const open = before.at(-1) ?? "";
  const closed = /^\W?$/.test(text[index + length] ?? "") ? (text[index + length] ?? "") : "";
  const after = closed === "." ? (text[index + length + 1] ?? "") : closed;
  if (!QUOTES.includes(open) || open === "" || after === "" || !QUOTES.includes(after))
    return false;
  return !/(?:err\w{0,20}|exc\w{0,20}|message|msg|reason|detail|failed)["']?\s{0,4}[:=]?\s{0,4}["'`]$/i.test(
    before,
  );
}

/** True where the words at `index` are the argument of a `raise` or a condition: a line of a program. */
export function isSource(line: string, index: number): boolean {
  const before = line.slice(Math.max(0, index - 160), index);
  return /\b(?:raise\s+[\w.]{1,60}\(|(?:if|elif|assert|in|==)\s)\s{0,40}[rfbu]{0,2}["'`]{1,3}[^"'`]{0,120}$/.test(
    before,
  );
}
