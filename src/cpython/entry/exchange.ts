/**
 * The two files through which a process receives a script and returns its answer. They are in a folder that
 * both sides see ({@link ProgramFolder}).
 *
 *   .tidemark-<pid>-<random>.py    the script, 0600, the process's user's
 *   .tidemark-<pid>-<random>       the answer, created empty by us and filled by the process:
 *                            "taken\n" at once, then "done N\n" or "raised N\n", text, "\n.\n";
 *                            or "withdrawn\n" first, by us
 *
 * N is the process's descriptor of the answer, which it closes last: until then it is not left as it was.
 *
 * Both sides append their first word; the first one in the file decides whether the script's work is done. Our
 * word may appear between the process's words.
 *
 * Both are removed when the exchange is closed, whatever has happened. If the process runs the script later, it
 * finds no file and does nothing.
 */
import { closeSync, fstatSync, readSync, statSync, writeSync } from "node:fs";
import { present } from "../../model/base/present.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { noFolder, ProgramFolder } from "./program_folder.js";

const WITHDRAWN = "withdrawn\n";
const LONGEST_ANSWER: Bytes = 64 * 2 ** 20;

type Answer =
  | { readonly state: "waiting" }
  /** It is running and has not finished. */
  | { readonly state: "taken" }
  | {
      readonly state: "done" | "raised";
      /** What the work returned; or the last line of its exception. */
      readonly text: string;
      /** Whether the process has closed its descriptor of the answer. */
      readonly closed: boolean;
    };

export class Exchange {
  readonly #pid: Pid;
  readonly #folder: ProgramFolder;
  /** The answer's file. */
  #answer: number | null = null;

  private constructor(pid: Pid, folder: ProgramFolder) {
    this.#pid = pid;
    this.#folder = folder;
  }

  /**
   * `work` is the body of a Python function that returns text; it may raise. Throws TidemarkError if no folder
   * of the process is writable.
   */
  static open(pid: Pid, work: string): Exchange {
    for (const folder of ProgramFolder.of(pid)) {
      const exchange = new Exchange(pid, folder);
      try {
        exchange.#answer = folder.create("", "");
        closeSync(folder.create(".py", scriptOf(work, folder.there(""))));
        return exchange;
      } catch {
        exchange.close();
      }
    }
    throw noFolder(pid);
  }

  /** Path as seen by the process. */
  get scriptPath(): string {
    return this.#folder.there(".py");
  }

  /** Runs the script's file in its own namespace; never raises, even if the file has been removed. */
  get source(): string {
    // Closed at once, and with its encoding: a program that shows warnings would show one about ours.
    const read = `with open(${pythonText(this.scriptPath)},encoding="utf-8") as file:source=file.read()`;
    return `try:exec(${pythonText(`${read}\nexec(source,{})`)},{})\nexcept BaseException:pass\n`;
  }

  read(): Answer {
    const text = this.#answer === null ? "" : readStart(this.#answer);
    const match = /^taken\n(?:withdrawn\n)?(?:(done|raised) (\d+)\n([\s\S]*)\n\.\n)?/.exec(text);
    if (match === null) {
      return { state: "waiting" };
    }
    return match[1] === undefined
      ? { state: "taken" }
      : {
          state: match[1] as "done" | "raised",
          text: match[3] ?? "",
          closed: !this.#isOpenThere(Number(match[2])),
        };
  }

  #isOpenThere(descriptor: number): boolean {
    try {
      const there = statSync(`/proc/${this.#pid}/fd/${descriptor}`);
      const { dev, ino } = fstatSync(present(this.#answer));
      return there.dev === dev && there.ino === ino;
    } catch {
      return false; // closed, or the process has ended
    }
  }

  /**
   * Withdraws the work, unless it has begun.
   * @returns false if it has begun; it then runs to its end and answers
   */
  withdraw(): boolean {
    if (this.#answer !== null) {
      writeSync(this.#answer, WITHDRAWN);
    }
    return this.read().state === "waiting";
  }

  close(): void {
    this.#folder.remove(".py");
    this.#folder.remove("");
    if (this.#answer !== null) {
      closeSync(this.#answer);
      this.#answer = null;
    }
    this.#folder.close();
  }
}

/** The program may write any amount into its answer. */
function readStart(descriptor: number): string {
  const { size } = fstatSync(descriptor);
  const bytes = Buffer.alloc(Math.min(size, LONGEST_ANSWER));
  return bytes.toString("utf8", 0, readSync(descriptor, bytes, 0, bytes.length, 0));
}

function scriptOf(work: string, answer: string): string {
  const body = work
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n");
  const source = `def work():
${body}
def answer():
    import os
    try:
        out = os.open(${pythonText(answer)}, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return  # nobody waits for it any more
    try:
        os.write(out, b"taken\\n")
        if os.pread(out, 6, 0) != b"taken\\n":
            return  # withdrawn
        try:
            state, text = "done", str(work())
        except BaseException as error:
            state, text = "raised", type(error).__name__ + ": " + str(error)
        os.write(out, (state + " " + str(out) + "\\n" + text + "\\n.\\n").encode("utf-8", "replace"))
    finally:
        os.close(out)
answer()
`;
  // Under its own file name, so that its allocations are not attributed to the program.
  return `exec(compile(${pythonText(source)}, "<tidemark>", "exec"), {})\n`;
}

/** A Python string literal. */
export function pythonText(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
