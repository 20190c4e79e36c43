import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { fileUnusable } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";

/** Creates a folder and its parents, accessible only to this user. Node's own `recursive` never returns for a path in /proc.
 * Throws TidemarkError. */
export function makeFolder(path: string): void {
  if (existsSync(path)) {
    return;
  }
  if (dirname(path) !== path) {
    makeFolder(dirname(path));
  }
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const next = "name a folder in which this user may create files";
    throw fileUnusable(path, "write", reasonOf(error).message, next);
  }
}
