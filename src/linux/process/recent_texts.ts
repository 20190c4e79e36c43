import type { Bytes, Millis } from "../../model/base/units.js";
import { readText } from "./proc_files.js";

/** The file's text, or null as for `readText`. */
export type ReadText = (path: string) => string | null;

const MOST_BYTES: Bytes = 4 << 20;

/**
 * Files that describe several processes (control groups, mounts, the machine): read once for all that ask at about the same
 * time. A text is less than `keptMs` old; 0: nothing is kept.
 */
export class RecentTexts {
  readonly #clock: () => Millis;
  readonly #keptMs: Millis;
  readonly #texts = new Map<string, string | null>();
  readonly #results = new Map<unknown, Map<string, unknown>>();
  #sinceMs: Millis = 0;
  #bytes: Bytes = 0;

  /** `clock` moves only forward. */
  constructor(clock: () => Millis, keptMs: Millis) {
    this.#clock = clock;
    this.#keptMs = keptMs;
  }

  readonly read: ReadText = (path) => {
    this.#forgetOld();
    const known = this.#texts.get(path);
    if (known !== undefined) {
      return known;
    }
    const text = readText(path);
    this.#texts.set(path, text);
    this.#bytes += path.length + (text?.length ?? 0);
    return text;
  };

  /** What `work` reads about `subject`, worked out once while the texts are kept. */
  worked<Subject, Result>(
    work: (subject: Subject, read: ReadText) => Result,
    subject: Subject,
    nameOfSubject: string,
  ): Result {
    this.#forgetOld();
    const results = this.#results.get(work) ?? new Map<string, unknown>();
    this.#results.set(work, results);
    if (!results.has(nameOfSubject)) {
      results.set(nameOfSubject, work(subject, this.read));
    }
    return results.get(nameOfSubject) as Result;
  }

  /** The next call for any path reads the file again. */
  forget(): void {
    this.#texts.clear();
    this.#results.clear();
    this.#bytes = 0;
  }

  #forgetOld(): void {
    const nowMs = this.#clock();
    if (nowMs - this.#sinceMs >= this.#keptMs || this.#bytes > MOST_BYTES) {
      this.forget();
      this.#sinceMs = nowMs;
    }
  }
}
