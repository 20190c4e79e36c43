/**
 * The lines of /proc/PID/maps (proc_pid_maps(5)):
 *
 *   7f0c3a400000-7f0c3a428000 r--p 00000000 fe:01 131091      /usr/lib/libc.so.6 (deleted)
 *   start        end          perms offset  dev   inode       path, "\n" in it as \012
 */
import { itemAt } from "../../model/base/columns.js";
import type { AddressRange, Mapping } from "./memory.js";

const LINE = /^([0-9a-f]+)-([0-9a-f]+) (.{4}) ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+) (\d+) *(.*)$/;
const DELETED = " (deleted)";

/**
 * Mappings in ascending order. The kernel writes the text piece by piece, so a mapping that grew between two
 * pieces may occur twice. A mapping that overlaps the one before it is left out, and so is a truncated line.
 */
export function parseMaps(text: string): Mapping[] {
  const mappings: Mapping[] = [];
  let behind = 0;
  for (const line of text.split("\n")) {
    const mapping = parseLine(line);
    if (mapping !== null && mapping.start >= behind && mapping.end > mapping.start) {
      mappings.push(mapping);
      behind = mapping.end;
    }
  }
  return mappings;
}

function parseLine(line: string): Mapping | null {
  const match = LINE.exec(line);
  if (match === null) {
    return null;
  }
  const [, start, end, permissions, offset, device, inode, name] = match as unknown as [
    ...string[],
  ] &
    [string, string, string, string, string, string, string, string];
  // Only a file can be deleted; the kernel appends these words to its name.
  const deleted = inode !== "0" && name.endsWith(DELETED);
  return {
    start: Number.parseInt(start, 16),
    end: Number.parseInt(end, 16),
    readable: permissions[0] === "r",
    writable: permissions[1] === "w",
    executable: permissions[2] === "x",
    shared: permissions[3] === "s",
    offset: Number.parseInt(offset, 16),
    device,
    inode: Number(inode),
    path: (deleted ? name.slice(0, -DELETED.length) : name).replaceAll("\\012", "\n"),
    deleted,
  };
}

/** Index of the mapping that contains `address`; -1 if there is none. */
export function findMapping(mappings: readonly AddressRange[], address: number): number {
  let low = 0;
  let high = mappings.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (itemAt(mappings, middle).end <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const found = mappings[low];
  return found !== undefined && found.start <= address ? low : -1;
}
