/** The text of a Python file, in the encoding that it declares (PEP 263). */
import { readFileSync, statSync } from "node:fs";
import { reasonOf } from "./source_files.js";

/** Generated files are smaller; larger ones are data. */
const LARGEST_FILE = 8 * 2 ** 20;

export type ReadSource = { readonly text: string } | { readonly problem: string };

const COOKIE = /^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)/;

export function readSource(path: string): ReadSource {
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
    return { problem: "has null bytes: it is no Python source, and was not checked" };
  }
  const head = bytes.subarray(0, 400).toString("latin1").split("\n").slice(0, 2);
  const declared = head.map((line) => COOKIE.exec(line)?.[1]).find((name) => name !== undefined);
  const encoding = declared === undefined ? "utf-8" : encodingNamed(declared);
  try {
    return { text: new TextDecoder(encoding, { fatal: true }).decode(bytes) };
  } catch {
    return { problem: `is not ${declared ?? "UTF-8"} text: it was not checked` };
  }
}

/** Python's names that the decoder does not know. */
function encodingNamed(name: string): string {
  const plain = name.toLowerCase().replaceAll("_", "-");
  return /^utf-?8/.test(plain) ? "utf-8" : plain.replace(/^latin-?1$|^iso-?8859-1$/, "latin1");
}
