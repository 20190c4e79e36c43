/** The recordings of `watch` on disk: bounded by age and by bytes, oldest first. */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Bytes, Millis, TimeMs } from "../model/base/units.js";
import { makeFolder } from "../recording/frames/make_folder.js";

const SUFFIX = ".tidemark";
const LONGEST_NAME = 80;

export class KeptRecordings {
  readonly #open = new Set<string>();

  /** Creates the folder. Throws TidemarkError if that is not possible. */
  constructor(readonly folder: string) {
    makeFolder(folder);
  }

  /** Creates the folder again if someone removed it. Rejects with TidemarkError if that is not possible. */
  async prepare(): Promise<void> {
    makeFolder(this.folder);
  }

  /** Path of a new recording; it is kept until {@link closed}. */
  newPath(service: string, pid: number, timeMs: TimeMs): string {
    // A service's name comes from the program's environment: here it is a part of a file's name, and no path.
    const name = service
      .replace(/[^\w.@+-]+/g, "_")
      .replace(/^\.+/, "")
      .slice(0, LONGEST_NAME);
    const time = new Date(timeMs)
      .toISOString()
      .replace(/[-:]|\.\d+Z$/g, "")
      .replace("T", "-");
    const start = join(this.folder, `${name || "program"}-${pid}-${time}`);
    let path = `${start}${SUFFIX}`;
    for (let n = 2; this.#open.has(path) || existsSync(path); n++) {
      path = `${start}-${n}${SUFFIX}`;
    }
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

/** None if the folder was removed or is unreadable: the next recording reports it. */
function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function remove(path: string): boolean {
  try {
    rmSync(path, { force: true });
    return true;
  } catch {
    return false; // a read-only disk
  }
}
