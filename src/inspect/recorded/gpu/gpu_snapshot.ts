/** The documents of allocator snapshots: `tidemark gpu SNAPSHOT...`. */
import { basename } from "node:path";
import { diagnose, evidenceOfSnapshots } from "../../../diagnose/index.js";
import { analyse } from "../../../gpu/analysis/analyse.js";
import { pageDocument } from "../../../gpu/analysis/page_document.js";
import type { OnProgress } from "../../../model/base/units.js";
import type { GpuJson } from "../../../model/documents/gpu/gpu_document.js";
import type { GpuPageDocument } from "../../../model/documents/gpu/gpu_page.js";
import { loadSnapshot } from "./snapshot_file.js";

/** The snapshot's document without a verdict. `onProgress` counts MiB. Throws TidemarkError for a damaged file. */
export async function analyseSnapshot(path: string, onProgress: OnProgress): Promise<GpuJson> {
  return analyse(await loadSnapshot(path, onProgress), path);
}

/** Adds the verdict. Its advice has the figures of this snapshot and replaces the same advice of the catalogue. */
export function withVerdict(document: GpuJson): GpuJson {
  const { verdict, advice } = diagnose(evidenceOfSnapshots([document]));
  const own = verdict.kind === "insufficient-evidence" ? [] : advice;
  const rest = document.advice.filter(({ id }) => !own.some((other) => other.id === id));
  return { ...document, verdict, advice: [...own, ...rest] };
}

/** The snapshot's page. `onProgress` counts MiB. Throws TidemarkError for a damaged file. */
export async function snapshotPage(path: string, onProgress: OnProgress): Promise<GpuPageDocument> {
  return pageDocument(await loadSnapshot(path, onProgress), path, basename(path));
}
