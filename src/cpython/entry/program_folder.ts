/**
 * A folder that both sides see: in the program's own mount namespace, accessed through /proc/PID/root.
 *
 *   in the program   /tmp/.tidemark-<pid>-<random>.py
 *   from here              /proc/self/fd/N/.tidemark-<pid>-<random>.py
 *
 * It is kept open, because /proc/PID/root disappears when the process ends. The program may replace every file in it, so
 * files are used by their descriptors.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  lchownSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { openFolderBelow } from "../../linux/index.js";
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
      const folder = openFolderBelow(`/proc/${pid}/root`, place);
      if (folder !== null) {
        yield new ProgramFolder(pid, place === "/" ? "" : place, folder, name);
      }
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

  /**
   * Creates a file with this content that only the program's user may open.
   * @returns its descriptor, for reading and appending
   */
  create(suffix: string, content: string | Uint8Array): number {
    const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const flags = O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW;
    const descriptor = openSync(this.here(suffix), flags, 0o600);
    try {
      fchmodSync(descriptor, 0o600);
      writeFileSync(descriptor, content);
      const { uid, gid } = statSync(`/proc/${this.#pid}`);
      if (process.getuid?.() !== uid) {
        fchownSync(descriptor, uid, gid);
      }
      return descriptor;
    } catch (error) {
      closeSync(descriptor);
      this.remove(suffix);
      throw error;
    }
  }

  /** Changes the owner of a socket there to the program's user. */
  handOver(suffix: string): void {
    const { uid, gid } = statSync(`/proc/${this.#pid}`);
    if (process.getuid?.() !== uid) {
      lchownSync(this.here(suffix), uid, gid);
    }
  }

  /** Whatever the program has put in its place. */
  remove(suffix: string): void {
    try {
      rmSync(this.here(suffix), { force: true });
    } catch {
      // A folder of that name, or a file system that became read-only.
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
