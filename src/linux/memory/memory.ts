/**
 * A common interface to a program's memory, live or in a core file. All readers of CPython's and glibc's
 * structures use only this interface.
 *
 * A hole is not an error: the returned length shows how much was read, because memory may be unmapped at any
 * moment.
 */
import type { Address, Bytes, Pid } from "../../model/base/units.js";

/** One line of /proc/PID/maps, or one PT_LOAD of a core with the NT_FILE entry that covers it. */
export interface Mapping {
  readonly start: Address;
  /** The address after the last byte. */
  readonly end: Address;
  readonly readable: boolean;
  readonly writable: boolean;
  readonly executable: boolean;
  /** MAP_SHARED. */
  readonly shared: boolean;
  /** Offset of `start` in the file. */
  readonly offset: Bytes;
  /** "254:1" as /proc writes it ("fe:01"); "00:00" for anonymous memory. */
  readonly device: string;
  readonly inode: number;
  /**
   * Path in the program's mount namespace, without " (deleted)"; "" for anonymous memory; "[heap]", "[stack]",
   * "[vdso]" and "[anon:...]" as the kernel writes them.
   */
  readonly path: string;
  /** The file has been unlinked or replaced. */
  readonly deleted: boolean;
}

export interface AddressRange {
  readonly start: Address;
  readonly end: Address;
}

export interface Memory {
  /** null for a core file. */
  readonly pid: Pid | null;
  /** For messages: "process 4242", "core.4242". */
  readonly name: string;
  /** Ascending, as of the last time they were read. */
  readonly mappings: readonly Mapping[];
  /** Reads the mappings again (does nothing for a core). False if the process has ended. */
  refresh(): boolean;
  /**
   * Fills `target` from `address` and returns the number of valid bytes at its beginning, 0 for a hole. Never
   * throws because of the memory's contents. Reuse one large buffer: new buffers cost five times as much (page
   * faults).
   */
  readInto(address: Address, target: Uint8Array): Bytes;
  /**
   * The same in another thread: several concurrent reads are faster than sequential ones. If absent, only
   * {@link readInto} is available.
   */
  readConcurrently?(address: Address, target: Uint8Array): Promise<Bytes>;
  /**
   * The parts of [start, end) that can be read without making anything resident: present pages of a live
   * process (pagemap), or the contents of a core. Ascending whole pages, with adjacent ranges merged.
   */
  resident(start: Address, end: Address): AddressRange[];
  /**
   * A descriptor of the mapped file (through /proc/PID/map_files or root; for a core, the file with the same
   * build id), which the caller must close; null if the file is no longer available.
   */
  openFile(mapping: Mapping): number | null;
  close(): void;
}
