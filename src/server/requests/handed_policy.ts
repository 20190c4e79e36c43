/** The policy that the server hands out to collectors: a file, read again when it changes. */
import { readFileSync, statSync } from "node:fs";
import type { TimeMs } from "../../model/base/units.js";
import { reasonOf } from "../../model/errors/reason.js";
import { MOST_POLICY_BYTES } from "../../model/wire/requests.js";

export class HandedPolicy {
  #path = "";
  /** Of the text; null: it was not read. */
  #changedMs: TimeMs | null = null;
  #text: string | undefined;
  /** The last reason, so that a file that stays unreadable is one line. */
  #said = "";
  readonly #warn: (text: string) => void;

  constructor(warn: (text: string) => void) {
    this.#warn = warn;
  }

  /**
   * `path`: null if none is handed out; the text is null then, too. If the file cannot be read, the text is the one that was
   * read last; undefined: there is none, and collectors keep what they have.
   */
  text(path: string | null): string | null | undefined {
    if (path === null) {
      return null;
    }
    if (path !== this.#path) {
      this.#path = path;
      this.#changedMs = null;
      this.#text = undefined;
    }
    try {
      const file = statSync(path);
      if (file.mtimeMs !== this.#changedMs) {
        this.#text = textOf(path, file);
        this.#changedMs = file.mtimeMs;
      }
      this.#said = "";
    } catch (error) {
      const why = `the policy for collectors cannot be read, and they keep the one that they have: ${path}: ${reasonOf(error).message}`;
      if (why !== this.#said) {
        this.#said = why;
        this.#warn(why);
      }
    }
    return this.#text;
  }
}

function textOf(path: string, file: { isFile(): boolean; readonly size: number }): string {
  if (!file.isFile()) {
    throw new Error("it is not an ordinary file");
  }
  if (file.size > MOST_POLICY_BYTES) {
    throw new Error(`it is larger than ${MOST_POLICY_BYTES >> 10} KiB`);
  }
  return readFileSync(path, "utf8");
}
