/** The limits of `tidemark check` as they are typed. */
import { InvalidArgumentError } from "commander";
import type { Bytes } from "../../model/base/units.js";
import { parseBytes } from "./options.js";

/** "2GiB"; a limit of nothing would fail every program. */
export function parseLimit(text: string): Bytes {
  const bytes = parseBytes(text);
  if (bytes < 1) {
    throw new InvalidArgumentError("a size of at least 1, such as 2GiB");
  }
  return bytes;
}

const HOURS: Record<string, number> = { s: 1 / 3600, min: 1 / 60, h: 1, d: 24 };

/** A page takes 4 KiB: "10/h" was meant to be "10MiB/h". */
const LEAST_GROWTH = 1024;

/** "10MiB/h", "1 MiB/min" to bytes per hour; 0 is the limit of what may not grow at all. */
export function parseGrowth(text: string): number {
  const [, size = "", unit = ""] = /^(.+)\/\s*(s|min|h|d)$/i.exec(text.trim()) ?? [];
  const hours = HOURS[unit.toLowerCase()];
  try {
    if (hours !== undefined) {
      const growth = parseBytes(size) / hours;
      if (growth === 0 || growth >= LEAST_GROWTH) {
        return growth;
      }
    }
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) {
      throw error;
    }
  }
  throw new InvalidArgumentError("a growth rate such as 10MiB/h");
}
