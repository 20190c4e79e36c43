/** The allocator snapshots written while a program was recorded, if the files still exist. */

import { statSync } from "node:fs";
import { analyse } from "../../../gpu/analysis/analyse.js";
import { readSnapshot } from "../../../gpu/snapshot/read_snapshot.js";
import { shellWord } from "../../../model/base/shell_word.js";
import type { Bytes, Pid } from "../../../model/base/units.js";
import type { GpuJson } from "../../../model/documents/gpu/gpu_document.js";
import { TidemarkError } from "../../../model/errors/errors.js";
import type { TimelineEvent } from "../../../model/profile/series.js";
import type { Recording } from "../../../recording/types.js";

/** Larger files take long to read; only `tidemark gpu` reads them, not a verdict. */
const LARGEST: Bytes = 256 << 20;
const MOST = 4;
/** A file written at another time belongs to another run. */
const MARGIN_MS = 60_000;

interface RecordedSnapshots {
  readonly snapshots: readonly GpuJson[];
  /** Sentences about those that were not read. */
  readonly limits: readonly string[];
}

/**
 * For each process, the newest snapshot that it wrote because of its own error or threshold; errors first.
 * @internal
 */
export async function recordedSnapshots(recording: Recording): Promise<RecordedSnapshots> {
  const newest = new Map<Pid, TimelineEvent>();
  for (const event of recording.events) {
    const before = newest.get(event.pid);
    const own = event.kind === "gpu-snapshot" && !event.detail.startsWith("peer: ");
    if (own && !(before?.detail.startsWith("oom: ") && !event.detail.startsWith("oom: "))) {
      newest.set(event.pid, event);
    }
  }
  const snapshots: GpuJson[] = [];
  const limits: string[] = [];
  for (const { detail } of [...newest.values()].slice(0, MOST)) {
    const path = detail.slice(detail.indexOf(": ") + 2);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (
      !stat?.isFile() ||
      stat.mtimeMs < recording.startMs - MARGIN_MS ||
      stat.mtimeMs > recording.endMs + MARGIN_MS
    ) {
      continue; // moved, removed, or overwritten since
    }
    if (stat.size > LARGEST) {
      limits.push(
        `A large snapshot was not read; to read it: tidemark diagnose ${shellWord(path)}`,
      );
      continue;
    }
    try {
      snapshots.push(analyse(await readSnapshot(path), path));
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      limits.push(`A snapshot was ignored: ${error.what}.`);
    }
  }
  return { snapshots, limits };
}
