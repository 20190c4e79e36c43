import { readSync } from "node:fs";
import { fileUnusable } from "../model/errors/errors.js";

/** Reads into `target` from `position` of the file; returns the number of bytes read, fewer only at the end of the file.
 * @throws TidemarkError TM-E004 */
export function readAt(fd: number, target: Uint8Array, position: number, source: string): number {
  let done = 0;
  while (done < target.length) {
    let count: number;
    try {
      count = readSync(fd, target, done, target.length - done, position + done);
    } catch (error) {
      throw fileUnusable(source, "read", error instanceof Error ? error.message : String(error));
    }
    if (count === 0) {
      break;
    }
    done += count;
  }
  return done;
}

/** An unsigned 64-bit figure as a number; above 2^53 it is rounded. */
export function readUint64(view: DataView, offset: number): number {
  return view.getUint32(offset, true) + view.getUint32(offset + 4, true) * 0x1_0000_0000;
}

/** An estimate that the agent stores as a double: garbage (NaN, infinite, negative) counts as 0. */
export function readEstimate(view: DataView, offset: number): number {
  const value = view.getFloat64(offset, true);
  return value > 0 && value < Number.MAX_VALUE ? value : 0;
}

const decoder = new TextDecoder("utf-8");

/** UTF-8 text; invalid bytes become U+FFFD. */
export function readText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Text up to the first NUL of a fixed field. */
export function readField(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return readText(end < 0 ? bytes : bytes.subarray(0, end));
}
