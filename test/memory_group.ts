/** A control group with little memory, for programs that should run out of it. */
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findCgroup } from "../src/linux/index.js";

let made = 0;

/** The directory of a group below this process's own, with a limit in bytes; null if none can be created. */
export function makeMemoryGroup(limitBytes: number): string | null {
  const place = findCgroup(process.pid);
  const group = join(place?.directories[0] ?? "", `tidemark-test-${process.pid}-${made++}`);
  try {
    mkdirSync(group);
    const limit = place?.version === 2 ? "memory.max" : "memory.limit_in_bytes";
    writeFileSync(join(group, limit), String(limitBytes));
    return group;
  } catch {
    return null;
  }
}

export function removeMemoryGroup(group: string | null): void {
  if (group !== null) {
    rmdirSync(group);
  }
}
