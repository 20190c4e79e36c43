/**
 * The two files through which a process takes a script and gives its answer. They lie where both sides
 * see them: in a folder of the process's own mount namespace, reached from here through /proc/PID/root.
 *
 *   .tidemark-<pid>-<random>.py    the script, 0600, the process's user's
 *   .tidemark-<pid>-<random>       the answer, made empty by us and filled by the process:
 *                            "taken\n" at once, then "done\n" or "raised\n", text, "\n.\n"
 *
 * The folder is held open meanwhile: a process that ends takes /proc/PID/root with it. Both are removed when the exchange is closed, whatever has happened. A process that runs the script later
 * than that finds no file, and nothing happens.
 */
import { randomBytes } from "node:crypto";
import {
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

/** Of a process's own, that it can be given a file in. */
export const FOLDERS = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/"];

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
    private readonly folder: number,
    private readonly name: string,
  ) {}

  /** `work` is the body of a Python function that returns text; it may raise. Throws TidemarkError where no
   * folder of the process's can be written. */
  static open(pid: Pid, work: string): Exchange {
    const owner = statSync(`/proc/${pid}`);
    const name = `.tidemark-${pid}-${randomBytes(6).toString("hex")}`;
    for (const place of FOLDERS) {
      const answer = `${place === "/" ? "" : place}/${name}`;
      let folder: number;
      try {
        folder = openSync(`/proc/${pid}/root${place}`, constants.O_RDONLY | constants.O_DIRECTORY);
      } catch {
        continue;
      }
      const exchange = new Exchange(`${answer}.py`, folder, name);
      try {
        put(exchange.file(""), "", owner);
        put(exchange.file(".py"), scriptOf(work, answer), owner);
        return exchange;
      } catch {
        exchange.close();
      }
    }
    throw targetUnknown(
      pid,
      `none of its folders can be written (${FOLDERS.slice(0, 4).join(", ")})`,
    );
  }

  private file(suffix: string): string {
    return `/proc/self/fd/${this.folder}/${this.name}${suffix}`;
  }

  /** Runs the script's file in a namespace of its own; never raises, whatever becomes of the file. */
  get source(): string {
    return `try:exec(open(${pythonText(this.scriptPath)}).read(),{})\nexcept BaseException:pass\n`;
  }

  read(): Answer {
    let text: string;
    try {
      text = readFileSync(this.file(""), "utf8");
    } catch {
      return { state: "waiting" }; // somebody else removed it
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
    rmSync(this.file(".py"), { force: true });
    rmSync(this.file(""), { force: true });
    closeSync(this.folder);
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
