/** The owner of a file that may not be read or written. */
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { userName } from "../../linux/index.js";

/**
 * "DIR belongs to root": the owner of the file, or of the nearest accessible parent folder; "" if none is
 * accessible.
 */
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
