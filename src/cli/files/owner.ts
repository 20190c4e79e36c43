/** Whose a file is that may not be read or written. */
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { userName } from "../../linux/index.js";

/** "DIR belongs to root": the file, or the nearest folder on the way to it that can be seen; "" where none can. */
export function ownerSentence(path: string): string {
  for (let seen = resolve(path); ; seen = dirname(seen)) {
    try {
      return `${seen} belongs to ${userName(statSync(seen).uid)}`;
    } catch {
      if (seen === dirname(seen)) {
        return "";
      }
    }
  }
}
