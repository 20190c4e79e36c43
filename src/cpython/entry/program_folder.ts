/**
 * A folder that both sides see: in the program's own mount namespace, accessed through /proc/PID/root.
 *
 *   in the program   /tmp/.tidemark-<pid>-<random>.py
 *   from here              /proc/self/fd/N/.tidemark-<pid>-<random>.py
 *
 * It is kept open, because /proc/PID/root disappears when the process ends.
 */
import { randomBytes } from "node:crypto";
import { chownSync, closeSync, constants, existsSync, openSync, statSync } from "node:fs";
import type { Pid } from "../../model/base/units.js";
import { targetUnknown } from "../../model/errors/attach_errors.js";
import { processGone, type TidemarkError } from "../../model/errors/errors.js";

const FOLDERS = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/"];

export class ProgramFolder {
  readonly #pid: Pid;
  readonly #place: string;
  readonly #folder: number;
  readonly #name: string;

  private constructor(pid: Pid, place: string, folder: number, name: string) {
    this.#pid = pid;
    this.#place = place;
    this.#folder = folder;
    this.#name = name;
  }

  /** Candidate folders, most likely first; the caller closes the one it uses. */
  static *of(pid: Pid): Generator<ProgramFolder> {
    const name = `.tidemark-${pid}-${randomBytes(6).toString("hex")}`;
    for (const place of FOLDERS) {
      let folder: number;
      try {
        folder = openSync(`/proc/${pid}/root${place}`, constants.O_RDONLY | constants.O_DIRECTORY);
      } catch {
        continue;
      }
      yield new ProgramFolder(pid, place === "/" ? "" : place, folder, name);
    }
  }

  /** As in the program. */
  there(suffix: string): string {
    return `${this.#place}/${this.#name}${suffix}`;
  }

  /** The same path as seen from here. */
  here(suffix: string): string {
    return `/proc/self/fd/${this.#folder}/${this.#name}${suffix}`;
  }

  /** Changes the owner of a file there to the program's user. */
  handOver(suffix: string): void {
    const { uid, gid } = statSync(`/proc/${this.#pid}`);
    if (process.getuid?.() !== uid) {
      chownSync(this.here(suffix), uid, gid);
    }
  }

  close(): void {
    closeSync(this.#folder);
  }
}

/** Error if none could be used: the process has ended, or has no writable folder. */
export function noFolder(pid: Pid): TidemarkError {
  return existsSync(`/proc/${pid}`)
    ? targetUnknown(pid, `none of its folders is writable (${FOLDERS.slice(0, 4).join(", ")})`)
    : processGone(pid);
}
