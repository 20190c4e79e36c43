/** The results of `tidemark asan --build`, and how to recognize them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Name of the folder that a build creates. */
export const BUILD_NAME = "tidemark-asan";
/** A word in the symbols of each extension that a compiler instrumented. */
export const ASAN_CALL = "__asan_";

/** Paths of the shared libraries in a folder and below; none if it does not exist. */
export function extensionsIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".so"))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** Whether a file, read as bytes, has the word in it; false for one that cannot be read. */
export function contains(path: string, word: string): boolean {
  try {
    return readFileSync(path).includes(word);
  } catch {
    return false;
  }
}
