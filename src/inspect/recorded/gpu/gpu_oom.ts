/** The document of `tidemark gpu oom`: the out-of-memory messages of a log. */
import { logLines } from "../../../gpu/oom/log/log_lines.js";
import { readOomLog } from "../../../gpu/oom/oom_log.js";
import { checkAgainst } from "../../../gpu/oom/oom_snapshot.js";
import type { OnProgress } from "../../../model/base/units.js";
import type { GpuJson, OomJson } from "../../../model/documents/gpu/gpu_document.js";
import { mebibytes } from "./snapshot_file.js";

/** @param log a path, or "-" for standard input; `onProgress` counts MiB. Throws TM-E003, TM-E004. */
export function oomDocument(log: string, onProgress: OnProgress): Promise<OomJson> {
  return readOomLog(log, logLines(log, mebibytes(onProgress)));
}

/** Adds to each message whether the snapshot agrees with its figures. */
export function withSnapshotCheck(document: OomJson, snapshot: GpuJson): OomJson {
  const events = document.events.map((event) => ({
    ...event,
    snapshot: checkAgainst(event, snapshot),
  }));
  return { ...document, events };
}
