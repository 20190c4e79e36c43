/** The recordings of `watch` on disk: bounded by age and by bytes, oldest first. */
import {
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { readStat } from "../../linux/index.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import { badUsage, fileUnusable } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { makeFolder } from "../../recording/frames/make_folder.js";

const SUFFIX = ".tidemark";
/** Names the collector that uses the folder: `PID START_TICKS`. */
const LOCK = "watch.lock";
const LONGEST_NAME = 80;

export class KeptRecordings {
  readonly #open = new Set<string>();

  readonly #lock: string;

  /** Creates the folder. Throws TidemarkError if that is not possible, or if another collector uses it. */
  constructor(readonly folder: string) {
    makeFolder(folder);
    this.#lock = join(folder, LOCK);
    const other = ownerIn(this.#lock);
    if (other !== null) {
      throw badUsage(
        `process ${other} already keeps its recordings in ${folder}`,
        "end that one, or choose another folder with --folder",
      );
    }
    try {
      writeFileSync(this.#lock, `${process.pid} ${readStat(process.pid)?.startTicks ?? 0}\n`);
    } catch (error) {
      throw fileUnusable(this.#lock, "write", reasonOf(error).message);
    }
  }

  /** Sets the time of the lock file to now: the probe of the Helm chart reads it. */
  renewLock(): void {
    const now = new Date();
    try {
      utimesSync(this.#lock, now, now);
    } catch {
      // The folder was removed; the next recording creates it again.
    }
  }

  /** Another collector may be using the folder now. */
  close(): void {
    remove(this.#lock);
  }

  /** Creates the folder again if someone removed it. Rejects with TidemarkError if that is not possible. */
  async prepare(): Promise<void> {
    makeFolder(this.folder);
  }

  /** Path of a new recording; it is kept until {@link closed}. */
  newPath(service: string, pid: number, timeMs: TimeMs): string {
    const isTaken = (path: string) => this.#open.has(path) || existsSync(path);
    const path = pathIn(this.folder, service, pid, timeMs, SUFFIX, isTaken);
    this.#open.add(path);
    return path;
  }

  closed(path: string): void {
    this.#open.delete(path);
  }

  /** Removes what is too old, then the oldest while all together are too large. @returns how many were removed. */
  tidy({ keepMs, mostBytes }: { keepMs: Millis; mostBytes: Bytes }, nowMs: TimeMs): number {
    const files = this.#files().sort((a, b) => a.changedMs - b.changedMs);
    let bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    let removed = 0;
    for (const file of files) {
      if (!this.#open.has(file.path) && (nowMs - file.changedMs > keepMs || bytes > mostBytes)) {
        removed += remove(file.path) ? 1 : 0;
        bytes -= file.bytes;
      }
    }
    return removed;
  }

  #files(): { path: string; bytes: Bytes; changedMs: TimeMs }[] {
    return filesOf(this.folder)
      .filter((name) => name.endsWith(SUFFIX))
      .flatMap((name) => {
        const path = join(this.folder, name);
        const stat = statSync(path, { throwIfNoEntry: false });
        return stat?.isFile() ? [{ path, bytes: stat.size, changedMs: stat.mtimeMs }] : [];
      });
  }
}

/** A new path in a folder: `checkout-4242-20261126-101500SUFFIX`. */
export function pathIn(
  folder: string,
  service: string,
  pid: number,
  timeMs: TimeMs,
  suffix: string,
  isTaken: (path: string) => boolean,
): string {
  // A service's name comes from the program's environment and becomes part of a file name, so it must not contain a
  // path.
  const name = service
    .replace(/[^\w.@+-]+/g, "_")
    .replace(/^\.+/, "")
    .slice(0, LONGEST_NAME);
  const time = new Date(timeMs)
    .toISOString()
    .replace(/[-:]|\.\d+Z$/g, "")
    .replace("T", "-");
  const start = join(folder, `${name || "program"}-${pid}-${time}`);
  let path = `${start}${suffix}`;
  for (let n = 2; isTaken(path); n++) {
    path = `${start}-${n}${suffix}`;
  }
  return path;
}

/** Empty if the folder was removed or is unreadable; the next recording reports that. */
function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The running collector, other than this process, that a lock names; null if there is none. */
function ownerIn(lock: string): Pid | null {
  let text: string;
  try {
    text = readFileSync(lock, "utf8");
  } catch {
    return null; // no lock, or an unreadable one: writing it reports the error
  }
  const [pid = 0, startTicks = 0] = text.split(" ").map(Number);
  const isLiving = Number.isInteger(pid) && readStat(pid)?.startTicks === startTicks;
  return isLiving && pid !== process.pid ? pid : null;
}

function remove(path: string): boolean {
  try {
    rmSync(path, { force: true });
    return true;
  } catch {
    return false; // a read-only disk
  }
}
