/**
 * `_Py_DebugOffsets`, the first bytes of `_PyRuntime` from 3.13 on (Include/internal/pycore_runtime.h, later
 * pycore_debug_offsets.h): the interpreter's own description of its structures.
 *
 *   0 "xdebugpy"   8 u64 PY_VERSION_HEX   16 u64 free-threaded   24 u64 slots, by version
 */

import type { MemoryReader } from "../../linux/index.js";
import { present } from "../../model/base/present.js";
import type { Address } from "../../model/base/units.js";
import type { PythonLayout } from "../layouts/index.js";
import { minorOf } from "./version_facts.js";

interface Published {
  /** "3.13.2", "3.15.0b1". */
  readonly version: string;
  readonly minor: number;
  readonly freeThreaded: boolean;
}

export const COOKIE = "xdebugpy";
/** No structure is larger than this, so a larger offset is invalid. */
const LARGEST_OFFSET = 2 ** 22;
/** Fields whose published value must be equal to that in the table, or the rest of the table is not trusted. */
const SIZES = ["runtime.size", "interpreter.size", "thread.size"];

/** null if nothing is published there (before 3.13, or no runtime). */
export function readPublished(reader: MemoryReader, address: Address): Published | null {
  try {
    if (Buffer.from(reader.bytes(address, COOKIE.length)).toString("latin1") !== COOKIE) {
      return null;
    }
    const hex = reader.uint64(address + 8);
    if (Math.floor(hex / 2 ** 24) !== 3) {
      return null;
    }
    return {
      version: versionOf(hex),
      minor: (hex >>> 16) & 0xff,
      freeThreaded: reader.uint64(address + 16) !== 0,
    };
  } catch {
    return null;
  }
}

/** PY_VERSION_HEX as text: 0x030b07f0 is "3.11.7". */
export function versionOf(hex: number): string {
  const [major, minor, patch] = [hex >>> 24, (hex >>> 16) & 0xff, (hex >>> 8) & 0xff];
  const level = { 10: "a", 11: "b", 12: "rc" }[(hex >>> 4) & 0xf];
  return `${major}.${minor}.${patch}${level === undefined ? "" : `${level}${hex & 0xf}`}`;
}

/** The tables of the published minor version, with their offsets replaced by the published ones. */
export function applyPublished(
  reader: MemoryReader,
  address: Address,
  published: Published,
  layouts: readonly PythonLayout[],
): { layout: PythonLayout; sizesAgree: boolean }[] {
  const own = layouts.filter(
    (layout) => layout.published !== null && minorOf(layout.version) === published.minor,
  );
  return own.map((layout) => {
    const merged = structuredClone(layout) as unknown as Record<string, Record<string, number>>;
    let sizesAgree = true;
    for (const [target, slot] of Object.entries(layout.published?.slots ?? {})) {
      const [group, field] = target.split(".") as [string, string];
      const value = reader.uint64(address + slot);
      const fields = present(merged[group]);
      if (SIZES.includes(target) && fields[field] !== value) {
        sizesAgree = false;
      }
      if (value < LARGEST_OFFSET) {
        fields[field] = value;
      }
    }
    return { layout: merged as unknown as PythonLayout, sizesAgree };
  });
}
