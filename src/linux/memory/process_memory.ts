/**
 * The memory of a live process, through /proc/PID/{maps,pagemap,mem}. Nothing here pauses the process or writes
 * to it. Values may be from different moments, and readers validate them.
 *
 *   openProcessMemory(pid)
 *     ├─ maps     one descriptor, read again by refresh()
 *     ├─ pagemap  which pages are there: asked before anything large is read
 *     └─ mem      pread
 *
 * All three are bound to the address space that they were opened on. When the program calls exec, they read as
 * empty, as if the process had ended, so the memory of two programs is never mixed.
 *
 * | failure | outcome |
 * |---|---|
 * | no such process, a zombie, a kernel thread | TM-E020 |
 * | another user's process, Yama, not dumpable, a container's rules | TM-E021 with the reason and the remedy |
 * | main thread ended, others run | their entry under task/ is opened: the main thread's reads as empty |
 * | device memory, PROT_NONE | never read: reading a device register may have an effect |
 * | a mapping is removed while it is read | a short length |
 * | no pagemap (gVisor) | private memory counts as resident, shared memory does not |
 */

import { closeSync, constants, fstatSync, openSync, read, readSync } from "node:fs";
import type { Address, Bytes, Pid } from "../../model/base/units.js";
import { notPermitted, processGone } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { isKernelThread, readAttachPermission } from "../process/permission.js";
import { readNames } from "../process/proc_files.js";
import { openFileBelow } from "../process/root_files.js";
import { findMapping, parseMaps } from "./maps.js";
import type { AddressRange, Mapping, Memory } from "./memory.js";
import { appendPresent, clip } from "./pagemap.js";

/** Throws TM-E020 or TM-E021. */
export function openProcessMemory(pid: Pid): Memory {
  let refusal: string | null = null;
  // If the main thread has ended and others continue, it no longer has memory.
  for (const place of tasksOf(pid)) {
    const opened: number[] = [];
    try {
      const maps = open(`${place}/maps`, opened);
      const mappings = parseMaps(readWhole(maps));
      if (mappings.length > 0) {
        const memory = open(`${place}/mem`, opened);
        return new ProcessMemory(pid, place, mappings, {
          maps,
          memory,
          pagemap: openOrNull(`${place}/pagemap`),
        });
      }
    } catch (error) {
      refusal ??= reasonOf(error).code;
    }
    opened.forEach(closeSync);
  }
  if (refusal === "EACCES" || refusal === "EPERM") {
    const { reason, remedy } = readAttachPermission(pid);
    throw notPermitted(pid, reason || `the kernel refuses (${refusal})`, remedy);
  }
  if (isKernelThread(pid)) {
    throw notPermitted(pid, readAttachPermission(pid).reason, "");
  }
  throw processGone(pid);
}

function* tasksOf(pid: Pid): Generator<string> {
  yield `/proc/${pid}`;
  for (const task of readNames(`/proc/${pid}/task`) ?? []) {
    if (task !== String(pid)) {
      yield `/proc/${pid}/task/${task}`;
    }
  }
}

function open(path: string, opened: number[]): number {
  const descriptor = openSync(path, "r");
  opened.push(descriptor);
  return descriptor;
}

function openOrNull(path: string): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK); // opening a FIFO would wait for its writer
  } catch {
    return null;
  }
}

const MAPS_PIECE_BYTES = 65_536;

/** /proc returns its text in pieces of a page or less. "" if the address space no longer exists. */
function readWhole(descriptor: number): string {
  const pieces: Buffer[] = [];
  let length = 0;
  for (;;) {
    const piece = Buffer.allocUnsafe(MAPS_PIECE_BYTES);
    const got = readOrNothing(descriptor, piece, piece.length, length);
    if (got === 0) {
      return Buffer.concat(pieces).toString("utf8");
    }
    pieces.push(piece.subarray(0, got));
    length += got;
  }
}

function readOrNothing(
  descriptor: number,
  target: Uint8Array,
  length: Bytes,
  position: number,
): Bytes {
  try {
    return readSync(descriptor, target, 0, length, position);
  } catch (error) {
    if (isHole(error)) {
      return 0;
    }
    throw error;
  }
}

/** A hole, or the process has ended. */
function isHole(error: unknown): boolean {
  return ["EIO", "EFAULT", "ESRCH", "EINVAL"].includes(reasonOf(error).code);
}

interface Descriptors {
  readonly maps: number;
  readonly memory: number;
  readonly pagemap: number | null;
}

class ProcessMemory implements Memory {
  readonly name: string;
  #mappings: readonly Mapping[];
  /** The last mapping found: the next address is usually in it, too. */
  #last = 0;

  constructor(
    readonly pid: Pid,
    /** /proc/PID, or the directory of one of its tasks. */
    readonly place: string,
    mappings: readonly Mapping[],
    readonly descriptors: Descriptors,
  ) {
    this.name = `process ${pid}`;
    this.#mappings = mappings;
  }

  get mappings(): readonly Mapping[] {
    return this.#mappings;
  }

  refresh(): boolean {
    const mappings = parseMaps(readWhole(this.descriptors.maps));
    this.#last = 0;
    this.#mappings = mappings;
    return mappings.length > 0;
  }

  readInto(address: Address, target: Uint8Array): Bytes {
    const length = this.#readableFrom(address, target.length);
    return length === 0 ? 0 : readOrNothing(this.descriptors.memory, target, length, address);
  }

  readConcurrently(address: Address, target: Uint8Array): Promise<Bytes> {
    const length = this.#readableFrom(address, target.length);
    return new Promise((resolve, reject) => {
      read(this.descriptors.memory, target, 0, length, address, (error, got) => {
        if (error !== null && !isHole(error)) {
          reject(error);
        } else {
          resolve(error === null ? got : 0);
        }
      });
    });
  }

  /** How many of `wanted` bytes lie in adjacent readable mappings; 0 for a hole. */
  #readableFrom(address: Address, wanted: Bytes): Bytes {
    const mappings = this.#mappings;
    let index = this.#last;
    let mapping = mappings[index];
    if (mapping === undefined || address < mapping.start || address >= mapping.end) {
      index = findMapping(mappings, address);
      mapping = mappings[index];
    }
    if (mapping === undefined || !mayRead(mapping)) {
      return 0;
    }
    this.#last = index;
    let end = mapping.end;
    for (let next = mappings[++index]; end < address + wanted && next?.start === end; ) {
      if (!mayRead(next)) {
        break;
      }
      end = next.end;
      next = mappings[++index];
    }
    return Math.min(wanted, end - address);
  }

  resident(start: Address, end: Address): AddressRange[] {
    const found: { start: Address; end: Address }[] = [];
    const { pagemap } = this.descriptors;
    for (const mapping of this.#mappings) {
      const from = Math.max(start, mapping.start);
      const to = Math.min(end, mapping.end);
      if (from >= to || !mayRead(mapping)) {
        continue;
      }
      if (pagemap !== null) {
        appendPresent(pagemap, from, to, found);
      } else if (!mapping.shared) {
        found.push({ start: from, end: to });
      }
    }
    return clip(found, start, end);
  }

  openFile(mapping: Mapping): number | null {
    if (mapping.inode === 0) {
      return null;
    }
    const { start, end, path } = mapping;
    // The first path needs a capability. The second works for a program whose file was deleted. The third works
    // if the name still leads to the same file; it goes through the process's own root, because in a container
    // the path may mean another file here.
    const candidates = [
      () => openOrNull(`${this.place}/map_files/${start.toString(16)}-${end.toString(16)}`),
      () => openOrNull(`${this.place}/exe`),
      () => (mapping.deleted ? null : openFileBelow(`${this.place}/root`, path)),
    ];
    for (const open of candidates) {
      const descriptor = open();
      if (descriptor !== null) {
        const status = fstatSync(descriptor);
        if (status.isFile() && status.ino === mapping.inode) {
          return descriptor;
        }
        closeSync(descriptor);
      }
    }
    return null;
  }

  close(): void {
    const { maps, memory, pagemap } = this.descriptors;
    this.#mappings = [];
    closeSync(maps);
    closeSync(memory);
    if (pagemap !== null) {
      closeSync(pagemap);
    }
  }
}

/** Device memory is never read. /dev/shm is a file system, and /dev/zero is plain memory. */
function mayRead(mapping: Mapping): boolean {
  const { path } = mapping;
  return (
    mapping.readable &&
    !(path.startsWith("/dev/") && !path.startsWith("/dev/shm/") && path !== "/dev/zero") &&
    !path.startsWith("[vvar") &&
    path !== "[vsyscall]"
  );
}
