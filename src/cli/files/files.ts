import { type Stats, statSync } from "node:fs";

/** The file status; undefined if the file does not exist or is not accessible. Opening it then reports the reason. */
export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
