/** Rounding of the allocator (c10/cuda/CUDACachingAllocator.cpp, round_size). */
import type { Bytes } from "../../model/base/units.js";

const SMALLEST = 512;
const MIB = 2 ** 20;

/** The smallest block for `size`, according to the snapshot's `allocator_settings`. */
export function roundingOf(settings: Readonly<Record<string, unknown>>): (size: Bytes) => Bytes {
  const divisions = divisionsOf(settings.roundup_power2_divisions);
  return (size) => {
    if (size < SMALLEST) {
      return SMALLEST;
    }
    const plain = Math.ceil(size / SMALLEST) * SMALLEST;
    const parts = divisions(size);
    if (parts <= 1 || size <= SMALLEST * parts) {
      return plain;
    }
    const power = 2 ** Math.floor(Math.log2(size));
    if (power === size) {
      return size;
    }
    const step = power / parts;
    return step < 1 ? power * 2 : Math.ceil(size / step) * step;
  };
}

/** The setting by the size's power of two in MiB: {"1": 0, "2": 0, ..., "32768": 0}. */
function divisionsOf(setting: unknown): (size: Bytes) => number {
  const table = new Map<number, number>();
  if (setting !== null && typeof setting === "object") {
    for (const [power, parts] of Object.entries(setting)) {
      if (typeof parts === "number") {
        table.set(Number(power), parts);
      }
    }
  }
  if ([...table.values()].every((parts) => parts <= 1)) {
    return () => 0;
  }
  return (size) => {
    const power = 2 ** Math.floor(Math.log2(Math.max(size, MIB) / MIB));
    return table.get(Math.min(power, 32_768)) ?? 0;
  };
}
