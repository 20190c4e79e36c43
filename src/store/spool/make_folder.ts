import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { fileUnusable } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";

/** Makes a folder and those that it lies in, for this user alone. Node's own `recursive` never returns for a path in
 * /proc. Throws TidemarkError. */
export function makeFolder(path: string): void {
  try {
    if (!existsSync(path)) {
      if (dirname(path) !== path) {
        makeFolder(dirname(path));
      }
      mkdirSync(path, { mode: 0o700 });
    }
  } catch (error) {
    throw fileUnusable(path, "write", reasonOf(error).message);
  }
}
