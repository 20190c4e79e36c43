/**
 * The recordings of `watch` on disk, bounded by age and by bytes. If all together are too large:
 *
 *     1. recordings that the server has, or all if there is no server, are removed, the oldest first
 *     2. others lose profiles, the oldest recording first: one in an hour stays; then none
 *     3. others are removed, the oldest first
 *
 * A file beside a recording, `NAME.unsent`, marks one that the server may lack. It contains how many bytes the server may
 * have; nothing if that is unknown, because it is being sent or a collector was killed while it was: such a recording is
 * not thinned.
 */
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
import { THINNED, thinRecording } from "../../recording/thinned.js";

const SUFFIX = ".tidemark";
const UNSENT = ".unsent";
/** Distances of the profiles that stay when the disk runs short. */
const THINNED_MS: readonly Millis[] = [3_600_000, Number.POSITIVE_INFINITY];
/** Names the collector that uses the folder: `PID START_TICKS`. */
const LOCK = "watch.lock";
const LONGEST_NAME = 80;

export class KeptRecordings {
  /** Recordings that are being written or sent: they are neither thinned nor removed. */
  readonly #open = new Set<string>();

  readonly #lock: string;

  /**
   * Creates the folder. `isSent`: recordings are sent to a server. Throws TidemarkError if that is not possible, or if
   * another collector uses it.
   */
  constructor(
    readonly folder: string,
    readonly isSent = false,
  ) {
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
      const next = "choose another folder with --folder";
      throw fileUnusable(this.#lock, "write", reasonOf(error).message, next);
    }
    this.#removeRemains();
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
    if (!existsSync(path)) {
      this.markSent(path); // nothing was recorded, or someone removed it
    }
  }

  /**
   * A recording that has ended is about to be sent: it stays as it is until {@link closed}, and its mark says that it is
   * unknown what the server has. @returns what the server may have so far; null: unknown. Throws an Error of the disk.
   */
  sending(path: string): Bytes | null {
    const mayHaveBytes = markedBytes(path);
    writeFileSync(`${path}${UNSENT}`, "", { flush: true });
    this.#open.add(path);
    return mayHaveBytes;
  }

  /** The server may lack a recording. `mayHaveBytes`: no more than these are there; null: unknown. */
  markUnsent(path: string, mayHaveBytes: Bytes | null = null): void {
    if (this.isSent) {
      try {
        writeFileSync(`${path}${UNSENT}`, mayHaveBytes === null ? "" : `${mayHaveBytes}\n`);
      } catch {
        // The disk is full; the recording is sent while it grows all the same.
      }
    }
  }

  markSent(path: string): void {
    remove(`${path}${UNSENT}`);
  }

  /** Recordings that have ended and that the server may lack, oldest first. */
  unsent(): string[] {
    return this.#files()
      .filter(({ path, isUnsent }) => isUnsent && !this.#open.has(path))
      .map(({ path }) => path);
  }

  /**
   * Removes what is too old, and what the server has, then thins out and removes the rest while all together are too large.
   * @returns how many were removed.
   */
  tidy({ keepMs, mostBytes }: { keepMs: Millis; mostBytes: Bytes }, nowMs: TimeMs): number {
    this.#removeRemains();
    const files = this.#files();
    let bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    let removed = 0;
    const closed = files.filter(({ path }) => !this.#open.has(path));
    const takeAway = ({ path, bytes: ofFile }: KeptFile) => {
      if (remove(path)) {
        this.markSent(path);
        removed += 1;
        bytes -= ofFile;
      }
    };
    for (const file of closed.filter(({ isUnsent }) => !isUnsent)) {
      if (nowMs - file.changedMs > keepMs || bytes > mostBytes) {
        takeAway(file);
      }
    }
    const unsent = closed.filter(({ isUnsent }) => isUnsent);
    for (const distanceMs of bytes > mostBytes ? THINNED_MS : []) {
      for (const file of unsent) {
        if (bytes > mostBytes) {
          const less = thinned(file, distanceMs);
          file.bytes -= less;
          bytes -= less;
        }
      }
    }
    for (const file of unsent) {
      if (bytes > mostBytes) {
        takeAway(file);
      }
    }
    return removed;
  }

  /** Of a collector that was killed: copies that it was thinning, and marks of recordings that it had removed. */
  #removeRemains(): void {
    const names = new Set(filesOf(this.folder));
    for (const name of names) {
      const recording = name.slice(0, -UNSENT.length);
      const isMark = name.endsWith(`${SUFFIX}${UNSENT}`);
      const isAlone = !names.has(recording) && !this.#open.has(join(this.folder, recording));
      if (name.endsWith(`${SUFFIX}${THINNED}`) || (isMark && isAlone)) {
        remove(join(this.folder, name));
      }
    }
  }

  /** Oldest first. */
  #files(): KeptFile[] {
    const names = new Set(filesOf(this.folder));
    return [...names]
      .filter((name) => name.endsWith(SUFFIX))
      .flatMap((name) => {
        const path = join(this.folder, name);
        const stat = statSync(path, { throwIfNoEntry: false });
        const isUnsent = this.isSent && names.has(`${name}${UNSENT}`);
        return stat?.isFile()
          ? [{ path, bytes: stat.size, changedMs: stat.mtimeMs, isUnsent }]
          : [];
      })
      .sort((a, b) => a.changedMs - b.changedMs);
  }
}

interface KeptFile {
  readonly path: string;
  bytes: Bytes;
  readonly changedMs: TimeMs;
  readonly isUnsent: boolean;
}

/** @returns how much smaller the recording is now. Its time stays, because others are compared with it. */
function thinned({ path, changedMs }: KeptFile, distanceMs: Millis): Bytes {
  try {
    const keptBytes = markedBytes(path);
    if (keptBytes === null) {
      return 0;
    }
    const less = thinRecording(path, { keptBytes, distanceMs });
    utimesSync(path, changedMs / 1000, changedMs / 1000);
    return less;
  } catch {
    return 0; // not a whole recording, or no room for the smaller one
  }
}

/** How many bytes of a recording the server may have, by its mark; null: unknown. Throws an Error of the disk. */
function markedBytes(path: string): Bytes | null {
  const text = readFileSync(`${path}${UNSENT}`, "utf8");
  // Without the line's end it was not written whole.
  return /^\d+\n$/.test(text) ? Number(text) : null;
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

/** The running collector that keeps its recordings in this folder; null if there is none, or it is this process. */
export function collectorOf(folder: string): Pid | null {
  return ownerIn(join(folder, LOCK));
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
