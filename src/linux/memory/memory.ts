/**
 * A common interface to a program's memory, live or in a core file. All readers of CPython's and glibc's
 * structures use only this interface.
 *
 * A hole is not an error: the returned length shows what could be read, because memory may be unmapped at any moment.
 */
import type { Address, Bytes, Pid } from "../../model/base/units.js";

/** One line of /proc/PID/maps, or one PT_LOAD of a core with the NT_FILE entry that covers it. */
export interface Mapping {
  readonly start: Address;
  /** First address behind it. */
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
  /** As the program's mount namespace names it, without " (deleted)"; "" for anonymous memory;
   * "[heap]", "[stack]", "[vdso]", "[anon:...]" as the kernel writes them. */
  readonly path: string;
  /** The file was unlinked or replaced since. */
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
  /** Ascending, as they were when last read. */
  readonly mappings: readonly Mapping[];
  /** Reads the mappings again (nothing to do for a core). False if the process has ended. */
  refresh(): boolean;
  /** Fills `target` from `address`; returns how many bytes of its beginning are valid, 0 for a hole.
   * Never throws for what the address holds. Give one large, reused buffer: fresh ones cost five times
   * as much (page faults of one's own). */
  readInto(address: Address, target: Uint8Array): Bytes;
  /** The same, in a thread beside this one: several at once read faster than one after the other. Not
   * there: {@link readInto} alone. */
  readBeside?(address: Address, target: Uint8Array): Promise<Bytes>;
  /** The parts of [start, end) that may be read without making anything resident: present pages of a
   * live process (pagemap), what a core holds. Ascending, whole pages, neighbours merged. */
  resident(start: Address, end: Address): AddressRange[];
  /** A descriptor on the mapped file's own bytes (through /proc/PID/map_files or root; beside a core, the
   * file of the same build id), for the caller to close; null where there is none any more. */
  openFile(mapping: Mapping): number | null;
  close(): void;
}
