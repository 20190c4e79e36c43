/**
 * A program's code and its unwinding information, at their addresses in the program. They are read from the
 * mapped files if possible, because reading them in the process would make pages resident that it never
 * touched. Code without a file (the vDSO, code created at run time, a deleted file that may not be opened) is
 * read from the process.
 */
import { closeSync, readSync } from "node:fs";
import { findMapping } from "../../linux/memory/maps.js";
import type { Mapping, Memory } from "../../linux/memory/memory.js";
import type { Address, Bytes } from "../../model/base/units.js";

export class MappedCode implements Memory {
  readonly pid: Memory["pid"];
  readonly name: string;
  /** By device and inode; null if it cannot be opened. */
  readonly #files = new Map<string, number | null>();

  constructor(readonly memory: Memory) {
    this.pid = memory.pid;
    this.name = memory.name;
  }

  get mappings(): readonly Mapping[] {
    return this.memory.mappings;
  }

  refresh(): boolean {
    return this.memory.refresh();
  }

  mappingOf(address: Address): Mapping | null {
    return this.mappings[findMapping(this.mappings, address)] ?? null;
  }

  readInto(address: Address, target: Uint8Array): Bytes {
    const mapping = this.mappingOf(address);
    const file = mapping === null || mapping.writable ? null : this.fileOf(mapping);
    if (mapping === null || file === null) {
      return this.memory.readInto(address, target);
    }
    const length = Math.min(target.length, mapping.end - address);
    try {
      return readSync(file, target, 0, length, mapping.offset + (address - mapping.start));
    } catch {
      return 0;
    }
  }

  /** A descriptor that stays open as long as this object; null if the file is not accessible. */
  fileOf(mapping: Mapping): number | null {
    if (mapping.inode === 0) {
      return null;
    }
    const key = `${mapping.device} ${mapping.inode}`;
    let file = this.#files.get(key);
    if (file === undefined) {
      file = this.memory.openFile(mapping);
      this.#files.set(key, file);
    }
    return file;
  }

  resident(start: Address, end: Address) {
    return this.memory.resident(start, end);
  }

  openFile(mapping: Mapping): number | null {
    return this.memory.openFile(mapping);
  }

  /** Closes the files; the caller closes the memory. */
  close(): void {
    for (const file of this.#files.values()) {
      if (file !== null) {
        closeSync(file);
      }
    }
    this.#files.clear();
  }
}
