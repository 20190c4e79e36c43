/** Patterns in settings. */

/** `*` stands for any text. Without backtracking: a hostile command line cannot make it slow. */
export function fits(text: string, pattern: string): boolean {
  const parts = pattern.split("*");
  const [first = "", ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) {
    return text === first;
  }
  if (!text.startsWith(first)) {
    return false;
  }
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) {
      return false;
    }
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}
