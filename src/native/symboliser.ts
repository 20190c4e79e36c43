/** Converts addresses of native frames to function names, using exactly the files that the process runs. */

import { statSync } from "node:fs";
import { mappedInodes } from "../linux/index.js";
import { present } from "../model/base/present.js";
import type { Address, Pid, TimeMs } from "../model/base/units.js";
import { demangle } from "./demangle.js";
import { ElfSymbols } from "./elf_symbols.js";

/** Reading a process's mappings holds it up for a moment, so the objects of one look share one reading. */
const MAPPINGS_HOLD_MS = 1000;
/** Objects whose index is kept; the one unused for longest goes first. */
const MOST_OBJECTS = 64;

export class Symboliser {
  /** By device, inode and time of change: one file in many places is read once. */
  readonly #objects = new Map<string, ElfSymbols | null>();
  #mapped: {
    readonly pid: Pid;
    readonly atMs: number;
    readonly inodes: Set<number> | null;
  } | null = null;

  /** Demangled names of the functions at `addresses` (virtual, as the object has them) of the object that
   * process `pid`, started at `startedMs`, knows as `path`. "" where there is no symbol, or where the
   * file was deleted or replaced since: a wrong name is worse than none. */
  names(pid: Pid, startedMs: TimeMs, path: string, addresses: readonly Address[]): string[] {
    const file = path.startsWith("/") ? this.#fileOf(pid, startedMs, path) : null;
    const symbols = file === null ? null : this.#symbols(file);
    return symbols === null ? addresses.map(() => "") : symbols.names(addresses).map(demangle);
  }

  /** Where the object's file is for us: through the process's own root while it lives. */
  #fileOf(pid: Pid, startedMs: TimeMs, path: string): ObjectFile | null {
    const mapped = this.#mappedInodes(pid);
    if (mapped !== null) {
      const file = statFile(`/proc/${pid}/root${path}`);
      return file !== null && mapped.has(file.inode) ? file : null;
    }
    // It is gone, and nothing says which file it had mapped: only one that is older than the process.
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
  /** Also set when a file is moved into the place of another, unlike its time of modification. */
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
