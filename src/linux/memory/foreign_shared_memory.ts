/**
 * Which files in /dev/shm belong to other programs. A file belongs to another program if no process of the
 * watched tree runs as the file's owner, or if only processes outside the tree have it open or mapped. A file
 * that no process holds may belong to any program and is not counted here.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Bytes, Pid } from "../../model/base/units.js";
import { readLink, readNames, readText } from "../process/proc_files.js";
import { listPids } from "../process/tree.js";

interface File {
  readonly path: string;
  readonly bytes: Bytes;
  readonly uid: number;
  readonly key: string;
}

const BLOCK_BYTES = 512;
/** Number of searches through all processes for one file whose holder is still unknown. */
const MOST_SEARCHES = 4;
const FOLDER = "/dev/shm/";

export class ForeignSharedMemory {
  /** By device and inode: true for a file of another program, false for one of the tree. */
  readonly #known = new Map<string, boolean>();
  readonly #searches = new Map<string, number>();

  /** Total size of other programs' files in the /dev/shm of the tree's first process. */
  bytesOf(tree: readonly Pid[]): Bytes {
    const [root] = tree;
    if (root === undefined) {
      return 0;
    }
    const files = filesIn(`/proc/${root}/root${FOLDER}`);
    const users = new Set(tree.map(userOf));
    const open = files.filter(({ key, uid }) => {
      if (!users.has(uid)) {
        this.#known.set(key, true);
      }
      const searches = this.#searches.get(key) ?? 0;
      return !this.#known.has(key) && searches < MOST_SEARCHES;
    });
    if (open.length > 0) {
      this.#search(open, new Set(tree));
    }
    return files.reduce((sum, { key, bytes }) => sum + (this.#known.get(key) ? bytes : 0), 0);
  }

  #search(files: readonly File[], tree: ReadonlySet<Pid>): void {
    const byName = new Map(
      files.map((file) => [FOLDER + (file.path.split("/").at(-1) ?? ""), file]),
    );
    for (const { key } of files) {
      this.#searches.set(key, (this.#searches.get(key) ?? 0) + 1);
    }
    // The tree is checked last: a file that it holds is its own, even if others hold it too.
    const pids = listPids().filter((pid) => !tree.has(pid) && pid !== process.pid);
    for (const pid of [...pids, ...tree]) {
      for (const name of heldBy(pid)) {
        const file = byName.get(name);
        if (file !== undefined) {
          this.#known.set(file.key, !tree.has(pid));
        }
      }
    }
  }
}

function filesIn(folder: string): File[] {
  try {
    return readdirSync(folder).flatMap((name) => {
      const path = join(folder, name);
      const found = statSync(path, { throwIfNoEntry: false });
      return found?.isFile()
        ? [
            {
              path,
              bytes: found.blocks * BLOCK_BYTES,
              uid: found.uid,
              key: `${found.dev}:${found.ino}`,
            },
          ]
        : [];
    });
  } catch {
    return [];
  }
}

function userOf(pid: Pid): number {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid ?? -1;
}

/** Paths in /dev/shm that a process has open or mapped; empty if they may not be read. */
function heldBy(pid: Pid): string[] {
  const open = (readNames(`/proc/${pid}/fd`) ?? []).map((descriptor) =>
    readLink(`/proc/${pid}/fd/${descriptor}`),
  );
  const mapped = (readText(`/proc/${pid}/maps`) ?? "")
    .split("\n")
    .map((line) => line.slice(Math.max(0, line.indexOf(FOLDER))));
  return [...open, ...mapped].filter((path): path is string => path?.startsWith(FOLDER) ?? false);
}
