/** The policy that the server hands out to collectors: a file, read again when it changes. */
import { readFileSync, statSync } from "node:fs";
import { reasonOf } from "../../model/errors/reason.js";
import { MOST_POLICY_BYTES } from "../../model/wire/requests.js";

export class HandedPolicy {
  #path: string | null = null;
  #changedMs = 0;
  #text: string | null = null;
  readonly #warn: (text: string) => void;

  constructor(warn: (text: string) => void) {
    this.#warn = warn;
  }

  /** `path`: null if none is handed out. If the file cannot be read, collectors keep what they have. */
  text(path: string | null): string | null {
    if (path === null) {
      return null;
    }
    try {
      const { mtimeMs, size } = statSync(path);
      if (path !== this.#path || mtimeMs !== this.#changedMs) {
        this.#path = path;
        this.#changedMs = mtimeMs;
        if (size > MOST_POLICY_BYTES) {
          throw new Error(`it is larger than ${MOST_POLICY_BYTES >> 10} KiB`);
        }
        this.#text = readFileSync(path, "utf8");
      }
    } catch (error) {
      this.#warn(`the policy for collectors cannot be read: ${path}: ${reasonOf(error).message}`);
    }
    return this.#text;
  }
}
