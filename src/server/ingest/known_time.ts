/** The last time that was not doubted (steady_clock.ts), in a file: files and rows have the times of a clock that may be wrong. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TimeMs } from "../../model/base/units.js";

const NAME = "time";

/** null: none is known. */
export function knownTime(folder: string): TimeMs | null {
  try {
    const ms = Date.parse(readFileSync(join(folder, NAME), "utf8").trim());
    return Number.isNaN(ms) ? null : ms;
  } catch {
    return null;
  }
}

/** Throws if the file cannot be written. */
export function keepTime(folder: string, timeMs: TimeMs): void {
  const path = join(folder, NAME);
  writeFileSync(`${path}.new`, `${new Date(timeMs).toISOString()}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
