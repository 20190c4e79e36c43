/** Files of PyTorch's allocator snapshots. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { readSnapshot } from "../../../gpu/snapshot/read_snapshot.js";
import type { OnProgress } from "../../../model/base/units.js";
import type { GpuSnapshot } from "../../../model/gpu/gpu_snapshot.js";

/** The first bytes of a pickle (PROTO), or of a compressed one: gzip, Zstandard. */
const BEGINNINGS = [[0x80], [0x1f, 0x8b], [0x28, 0xb5, 0x2f, 0xfd]];

/** Decides by the first bytes; false for a file that cannot be opened. */
export function isSnapshot(path: string): boolean {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return false;
  }
  try {
    const head = Buffer.alloc(4);
    const length = fstatSync(descriptor).isFile() ? readSync(descriptor, head) : 0;
    return BEGINNINGS.some(
      (bytes) => length >= bytes.length && bytes.every((byte, at) => head[at] === byte),
    );
  } catch {
    return false;
  } finally {
    closeSync(descriptor);
  }
}

/** `onProgress` counts MiB of the file. Throws TidemarkError if the file is missing or damaged. @internal */
export function loadSnapshot(path: string, onProgress: OnProgress): Promise<GpuSnapshot> {
  return readSnapshot(path, mebibytes(onProgress));
}

/** Converts a progress callback that counts MiB to one that counts bytes. @internal */
export function mebibytes(onProgress: OnProgress): (done: number, of: number) => Promise<void> {
  return (done, of) => onProgress(Math.floor(done / 2 ** 20), Math.ceil(of / 2 ** 20));
}
