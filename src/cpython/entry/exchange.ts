/**
 * The two files through which a process takes a script and gives its answer. They lie where both sides
 * see them: in a folder of the process's own mount namespace, reached from here through /proc/PID/root.
 *
 *   .tidemark-<random>.py    the script, 0600, the process's user's
 *   .tidemark-<random>       the answer, made empty by us and filled by the process:
 *                            "taken\n" at once, then "done\n" or "raised\n", text, "\n.\n"
 *
 * Both are removed when the exchange is closed, whatever has happened. A process that runs the script later
 * than that finds no file, and nothing happens.
 */
import { randomBytes } from "node:crypto";
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { targetUnknown } from "../../model/attach_errors.js";
import type { Pid } from "../../model/units.js";

const FOLDERS = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/"];

export type Answer =
  | { readonly state: "waiting" }
  /** It runs, and has not ended. */
  | { readonly state: "taken" }
  | { readonly state: "done"; readonly text: string }
  /** The last line of its exception. */
  | { readonly state: "raised"; readonly text: string };

export class Exchange {
  private constructor(
    /** As the process names it. */
    readonly scriptPath: string,
    private readonly answerFile: string,
    private readonly scriptFile: string,
  ) {}

  /** `work` is the body of a Python function that returns text; it may raise. Throws TidemarkError where no
   * folder of the process's can be written. */
  static open(pid: Pid, work: string): Exchange {
    const root = `/proc/${pid}/root`;
    const owner = statSync(`/proc/${pid}`);
    const name = `.tidemark-${randomBytes(6).toString("hex")}`;
    for (const folder of FOLDERS) {
      const script = `${folder === "/" ? "" : folder}/${name}.py`;
      const answer = script.slice(0, -3);
      try {
        accessSync(`${root}${folder}`, constants.W_OK);
        put(`${root}${answer}`, "", owner);
        put(`${root}${script}`, scriptOf(work, answer), owner);
        return new Exchange(script, `${root}${answer}`, `${root}${script}`);
      } catch {
        rmSync(`${root}${answer}`, { force: true });
        rmSync(`${root}${script}`, { force: true });
      }
    }
    throw targetUnknown(
      pid,
      `none of its folders can be written (${FOLDERS.slice(0, 4).join(", ")})`,
    );
  }

  /** Runs the script's file in a namespace of its own; never raises, whatever becomes of the file. */
  get source(): string {
    return `try:exec(open(${pythonText(this.scriptPath)}).read(),{})\nexcept BaseException:pass\n`;
  }

  read(): Answer {
    let text: string;
    try {
      text = readFileSync(this.answerFile, "utf8");
    } catch {
      return { state: "waiting" }; // the process has ended, and its root with it
    }
    const match = /^taken\n(?:(done|raised)\n([\s\S]*)\n\.\n)?/.exec(text);
    if (match === null) {
      return { state: "waiting" };
    }
    return match[1] === undefined
      ? { state: "taken" }
      : { state: match[1] as "done" | "raised", text: match[2] ?? "" };
  }

  close(): void {
    rmSync(this.scriptFile, { force: true });
    rmSync(this.answerFile, { force: true });
  }
}

function put(path: string, text: string, owner: { uid: number; gid: number }): void {
  const descriptor = openSync(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    fchmodSync(descriptor, 0o600);
    writeSync(descriptor, text);
  } finally {
    closeSync(descriptor);
  }
  if (process.getuid?.() !== owner.uid) {
    chownSync(path, owner.uid, owner.gid);
  }
}

function scriptOf(work: string, answer: string): string {
  const body = work
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n");
  return `def work():
${body}
def answer():
    import os
    try:
        out = os.open(${pythonText(answer)}, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return  # nobody waits for it any more
    try:
        os.write(out, b"taken\\n")
        try:
            text = "done\\n" + str(work())
        except BaseException as error:
            text = "raised\\n" + type(error).__name__ + ": " + str(error)
        os.write(out, (text + "\\n.\\n").encode("utf-8", "replace"))
    finally:
        os.close(out)
answer()
`;
}

/** A string literal of Python. */
export function pythonText(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
