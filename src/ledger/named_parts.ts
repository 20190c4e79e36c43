/** Which part a whole mapping belongs to, by its name and its neighbours. */

import type { Mapping } from "../linux/memory/memory.js";
import { itemAt } from "../model/base/columns.js";
import type { LedgerPartName } from "../model/profile/ledger.js";

/** The agent's memory for samples, which is unmapped when Tidemark detaches; its library stays mapped. */
const OWN_POOL = /^\/(?:memfd:tidemark-pool|dev\/shm\/tidemark)/;
const OWN = /^\/(?:memfd:tidemark|dev\/shm\/tidemark)|\/libtidemark(?:-keyed)?\.so$/;
const GPU = /^\/dev\/(?:nvidia|dri\/|kfd|davinci|accel)|^\/memfd:(?:nvidia|cuda)/;
const SHARED_MEMORY = /^\/(?:dev\/shm\/|memfd:|SYSV[0-9a-f]{8}|dev\/zero)/;
const KERNEL_CODE = /^\[(?:vdso|vvar|vsyscall|vvar_vclock|uprobes|sigpage)/;

/** Whether the mapping ends when Tidemark detaches. */
export function endsWithDetach({ path }: Mapping): boolean {
  return OWN_POOL.test(path);
}

/** One for each mapping. */
export function partsByName(mappings: readonly Mapping[]): LedgerPartName[] {
  // All mappings of a file with code, including its read-only and relocated data.
  const programs = new Set(
    mappings
      .filter(({ executable, inode }) => executable && inode !== 0)
      .map((mapping) => fileOf(mapping)),
  );
  const parts: LedgerPartName[] = [];
  for (let index = 0; index < mappings.length; index++) {
    const mapping = itemAt(mappings, index);
    const before = mappings[index - 1];
    // A library's zeroed data is anonymous and directly follows its data.
    const zeroed =
      before !== undefined &&
      parts[index - 1] === "libraries" &&
      before.inode !== 0 &&
      before.writable &&
      before.end === mapping.start;
    parts.push(partOf(mapping, programs, zeroed));
  }
  return parts;
}

function partOf(mapping: Mapping, programs: ReadonlySet<string>, zeroed: boolean): LedgerPartName {
  const { path, inode, shared } = mapping;
  if (OWN.test(path)) {
    return "tidemark";
  }
  if (GPU.test(path)) {
    return "gpu.driver";
  }
  if (SHARED_MEMORY.test(path)) {
    // A program's code may be in a memfd, and a private mapping of /dev/zero is plain memory.
    return path.startsWith("/dev/zero") && !shared
      ? "anon.other"
      : programs.has(fileOf(mapping)) && !shared
        ? "libraries"
        : "shm";
  }
  if (path.startsWith("/")) {
    const device = path.startsWith("/dev/");
    return programs.has(fileOf(mapping)) ? "libraries" : device ? "unexplained" : "file.mapped";
  }
  if (path.startsWith("[stack")) {
    return "stacks";
  }
  if (KERNEL_CODE.test(path)) {
    return "libraries";
  }
  if (path.startsWith("[anon_shmem:")) {
    return "shm";
  }
  if (path.startsWith("anon_inode:") || inode !== 0) {
    return "unexplained";
  }
  if (zeroed && path === "" && mapping.writable) {
    return "libraries";
  }
  return path === "" || path === "[heap]" || path.startsWith("[anon")
    ? "anon.other"
    : "unexplained";
}

function fileOf({ device, inode }: Mapping): string {
  return `${device} ${inode}`;
}
