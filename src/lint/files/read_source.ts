/** The text of a Python file, in the encoding that it declares (PEP 263). */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { reasonOf } from "./source_files.js";

/** Generated files are smaller; larger ones are data. */
const LARGEST_FILE = 8 * 2 ** 20;

export interface SourceOfFile {
  /** Without a byte order mark. */
  readonly text: string;
  readonly hasByteOrderMark: boolean;
  /** The encoding in which a changed text would be written; null for encodings that cannot be written. */
  readonly encoding: "utf-8" | "ascii" | null;
}

export type ReadSource = SourceOfFile | { readonly problem: string };

const COOKIE = /^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)/;
const MARK = "\ufeff";

export function readSource(path: string): ReadSource {
  if (path.endsWith(".ipynb")) {
    return {
      problem: "is a notebook: check the output of `jupyter nbconvert --to script`",
    };
  }
  let bytes: Buffer;
  try {
    const { size } = statSync(path);
    if (size > LARGEST_FILE) {
      return { problem: `is larger than ${LARGEST_FILE / 2 ** 20} MiB: it was not checked` };
    }
    bytes = readFileSync(path);
  } catch (error) {
    return { problem: reasonOf(error) };
  }
  if (bytes.includes(0)) {
    return { problem: "has null bytes: it is not Python source, and was not checked" };
  }
  const head = bytes.subarray(0, 400).toString("latin1").split("\n").slice(0, 2);
  const declared = head.map((line) => COOKIE.exec(line)?.[1]).find((name) => name !== undefined);
  const encoding = declared === undefined ? "utf-8" : encodingNamed(declared);
  try {
    const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
    const text = decoder.decode(bytes);
    const isAscii = Buffer.byteLength(text) === text.length;
    return {
      text: text.replace(MARK, ""),
      hasByteOrderMark: text.startsWith(MARK),
      encoding: encoding === "utf-8" ? "utf-8" : isAscii ? "ascii" : null,
    };
  } catch {
    return { problem: `is not ${declared ?? "UTF-8"} text: it was not checked` };
  }
}

/**
 * Writes a changed text as the file was written before. Returns the reason if it could not, as the end of a sentence.
 *
 */
export function writeSource(path: string, text: string, source: SourceOfFile): string | null {
  if (source.encoding === null) {
    return "is not in UTF-8: it was not fixed";
  }
  try {
    writeFileSync(path, source.hasByteOrderMark ? MARK + text : text);
    return null;
  } catch (error) {
    return `${reasonOf(error)}: it was not fixed`;
  }
}

/** Python's names that the decoder does not know. */
function encodingNamed(name: string): string {
  const plain = name.toLowerCase().replaceAll("_", "-");
  return /^utf-?8/.test(plain) ? "utf-8" : plain.replace(/^latin-?1$|^iso-?8859-1$/, "latin1");
}
