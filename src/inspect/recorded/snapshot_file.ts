import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";
import type { CommonOptions } from "../../cli/options/options.js";
import { withProgress } from "../../cli/text/progress.js";
import { readSnapshot } from "../../gpu/read_snapshot.js";
import type { GpuSnapshot } from "../../model/gpu_snapshot.js";

/** PROTO of a pickle, or what packs one: gzip, Zstandard. */
const BEGINNINGS = [[0x80], [0x1f, 0x8b], [0x28, 0xb5, 0x2f, 0xfd]];

/** By its first bytes; what cannot be opened is none. */
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

/** A snapshot, with progress by MiB of its file. */
export function loadSnapshot(path: string, options: CommonOptions): Promise<GpuSnapshot> {
  return withProgress(basename(path), "MiB", options, (tell) =>
    readSnapshot(path, (done, of) => tell(Math.floor(done / 2 ** 20), Math.ceil(of / 2 ** 20))),
  );
}
