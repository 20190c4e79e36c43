/** Where objects may be in a program's memory. */
import type { AddressRange, Mapping, Memory } from "../../../linux/memory/memory.js";
import type { Address, Bytes } from "../../../model/base/units.js";

/** The memory that may contain objects: private, writable, without a file; adjacent mappings are merged. */
export function heapRegions(memory: Memory): AddressRange[] {
  const regions: { start: Address; end: Address }[] = [];
  for (const [n, mapping] of memory.mappings.entries()) {
    if (!mayHoldObjects(mapping) || isTablesOfLibrary(memory.mappings, n)) {
      continue;
    }
    const last = regions.at(-1);
    if (last?.end === mapping.start) {
      last.end = mapping.end;
    } else {
      regions.push({ start: mapping.start, end: mapping.end });
    }
  }
  return regions;
}

/** CUDA's libcublasLt has 90 MiB. A smaller one takes little time and may contain types. */
const LEAST_TABLES: Bytes = 16 * 2 ** 20;

/**
 * Whether a mapping contains a library's own tables: large variables without a value in the file (.bss). With the same
 * file before and after it, the mapping cannot contain other memory.
 */
export function isTablesOfLibrary(mappings: readonly Mapping[], n: number): boolean {
  const [before, own, after] = [mappings[n - 1], mappings[n], mappings[n + 1]];
  return (
    own?.inode === 0 &&
    own.end - own.start >= LEAST_TABLES &&
    before?.end === own.start &&
    before.inode !== 0 &&
    after?.start === own.end &&
    after.inode === before.inode &&
    after.device === before.device
  );
}

function mayHoldObjects({ readable, writable, shared, inode, path }: Mapping): boolean {
  return (
    readable &&
    writable &&
    !shared &&
    inode === 0 &&
    (path === "" || path === "[heap]" || path.startsWith("[anon"))
  );
}
