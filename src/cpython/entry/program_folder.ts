/**
 * A folder that both sides see: of the program's own mount namespace, reached from here through /proc/PID/root.
 *
 *   the program names it   /tmp/.tidemark-<pid>-<random>.py
 *   from here              /proc/self/fd/N/.tidemark-<pid>-<random>.py
 *
 * It is held open meanwhile: a process that ends takes /proc/PID/root with it.
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

  /** Those that it has, the likeliest first; whoever takes one closes it. */
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

  /** As the program names it. */
  there(suffix: string): string {
    return `${this.#place}/${this.#name}${suffix}`;
  }

  /** The same from here. */
  here(suffix: string): string {
    return `/proc/self/fd/${this.#folder}/${this.#name}${suffix}`;
  }

  /** Makes what lies there the program's user's. */
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

/** Where none could be used: it is gone, or has none that can be written. */
export function noFolder(pid: Pid): TidemarkError {
  return existsSync(`/proc/${pid}`)
    ? targetUnknown(pid, `none of its folders can be written (${FOLDERS.slice(0, 4).join(", ")})`)
    : processGone(pid);
}
