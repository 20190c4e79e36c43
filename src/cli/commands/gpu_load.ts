import { basename } from "node:path";
import { readSnapshot } from "../../gpu/read_snapshot.js";
import type { GpuSnapshot } from "../../model/gpu_snapshot.js";
import type { CommonOptions } from "../options.js";
import { withProgress } from "../progress.js";

/** A snapshot, with progress by MiB of its file. */
export function loadSnapshot(path: string, options: CommonOptions): Promise<GpuSnapshot> {
  return withProgress(basename(path), "MiB", options, (tell) =>
    readSnapshot(path, (done, of) => tell(Math.floor(done / 2 ** 20), Math.ceil(of / 2 ** 20))),
  );
}
