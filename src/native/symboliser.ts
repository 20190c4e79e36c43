/** Converts addresses of native frames to function names, using exactly the files that the process runs. */

import { closeSync, statSync } from "node:fs";
import { mappedInodes, openFileBelow } from "../linux/index.js";
import { present } from "../model/base/present.js";
import type { Address, Pid, TimeMs } from "../model/base/units.js";
import { demangle } from "./demangle.js";
import { ElfSymbols } from "./elf_symbols.js";

/** Reading a process's mappings delays the process for a moment, so all objects of one call share one reading. */
const MAPPINGS_HOLD_MS = 1000;
/** Number of cached indexes of objects; the least recently used one is removed first. */
const MOST_OBJECTS = 64;

export class Symboliser {
  /** Keyed by device, inode and time of change, so a file that is mapped in many places is read once. */
  readonly #objects = new Map<string, ElfSymbols | null>();
  #mapped: {
    readonly pid: Pid;
    readonly atMs: number;
    readonly inodes: Set<number> | null;
  } | null = null;

  /**
   * Demangled names of the functions at `addresses` (virtual, as in the object), in the object that process
   * `pid`, started at `startedMs`, knows as `path`. "" if there is no symbol, or if the file was deleted or
   * replaced since then: a wrong name is worse than none.
   */
  names(pid: Pid, startedMs: TimeMs, path: string, addresses: readonly Address[]): string[] {
    const file = path.startsWith("/") ? this.#fileOf(pid, startedMs, path) : null;
    const symbols = file === null ? null : this.#symbols(file);
    return symbols === null ? addresses.map(() => "") : symbols.names(addresses).map(demangle);
  }

  /** Path of the object's file for this process: through the other process's own root while it runs. */
  #fileOf(pid: Pid, startedMs: TimeMs, path: string): ObjectFile | null {
    const mapped = this.#mappedInodes(pid);
    if (mapped !== null) {
      const root = `/proc/${pid}/root`;
      // A path of the process that has become a link would lead to a file of ours.
      const file = isFileBelow(root, path) ? statFile(`${root}${path}`) : null;
      return file !== null && mapped.has(file.inode) ? file : null;
    }
    // The process has ended, and nothing shows which file it had mapped. Only a file that is older than the
    // process is used.
    const file = statFile(path);
    return file !== null && file.changedMs <= startedMs ? file : null;
  }

  #mappedInodes(pid: Pid): Set<number> | null {
    const now = performance.now();
    if (this.#mapped?.pid !== pid || now - this.#mapped.atMs > MAPPINGS_HOLD_MS) {
      this.#mapped = { pid, atMs: now, inodes: mappedInodes(pid) };
    }
    return this.#mapped.inodes;
  }

  #symbols({ path, key }: ObjectFile): ElfSymbols | null {
    const known = this.#objects.get(key);
    const symbols = known === undefined ? ElfSymbols.open(path) : known;
    this.#objects.delete(key);
    this.#objects.set(key, symbols);
    if (this.#objects.size > MOST_OBJECTS) {
      const [oldest] = this.#objects.keys();
      this.#objects.delete(present(oldest));
    }
    return symbols;
  }
}

interface ObjectFile {
  readonly path: string;
  readonly key: string;
  readonly inode: number;
  /** Unlike the modification time, it also changes when a file is moved to the place of another. */
  readonly changedMs: TimeMs;
}

function statFile(path: string): ObjectFile | null {
  try {
    const { dev, ino, ctimeMs } = statSync(path);
    return { path, key: `${dev} ${ino} ${ctimeMs}`, inode: ino, changedMs: ctimeMs };
  } catch {
    return null;
  }
}

function isFileBelow(root: string, path: string): boolean {
  const descriptor = openFileBelow(root, path);
  if (descriptor !== null) {
    closeSync(descriptor);
  }
  return descriptor !== null;
}
