/** Lines of text files of other tools. */
import { ForeignFault } from "./importer.js";

/** Throws ForeignFault if the last line has no end: it may be cut off within a number. */
export function requireLastLine(bytes: Buffer): void {
  if (bytes.at(-1) !== 0x0a) {
    throw new ForeignFault("its last line has no end, so it may be cut off");
  }
}

/** Lines of a text, without a copy of the whole text. */
export function* linesOf(bytes: Buffer): Generator<string> {
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0x0a, at);
    const stop = end < 0 ? bytes.length : end;
    yield bytes.toString("utf8", at, stop);
    at = stop + 1;
  }
}

/** "app.py:9" as a file and a line; the line is 0 if there is none. In time linear in the length. */
export function splitPlace(text: string): { readonly file: string; readonly line: number } {
  const at = text.lastIndexOf(":");
  const line = at < 0 ? "" : text.slice(at + 1);
  return /^\d{1,10}$/.test(line)
    ? { file: text.slice(0, at), line: Number(line) }
    : { file: text, line: 0 };
}
