import { type Stats, statSync } from "node:fs";

/** What stands under a name; undefined where nothing does, or nothing can be seen: whoever opens it
 * next is told why. */
export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
