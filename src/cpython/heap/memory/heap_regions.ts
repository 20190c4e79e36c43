/** Where objects may be in a program's memory. */
import type { AddressRange, Mapping, Memory } from "../../../linux/memory/memory.js";
import type { Address } from "../../../model/base/units.js";

/** The memory that may contain objects: private, writable, without a file; adjacent mappings are merged. */
export function heapRegions(memory: Memory): AddressRange[] {
  const regions: { start: Address; end: Address }[] = [];
  for (const mapping of memory.mappings) {
    if (!mayHoldObjects(mapping)) {
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

function mayHoldObjects({ readable, writable, shared, inode, path }: Mapping): boolean {
  return (
    readable &&
    writable &&
    !shared &&
    inode === 0 &&
    (path === "" || path === "[heap]" || path.startsWith("[anon"))
  );
}
