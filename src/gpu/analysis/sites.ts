/** Allocations of a moment, summed by stack and category. */
import { float64At, uint32At } from "../../model/base/columns.js";
import type { GpuCategory, GpuSiteJson } from "../../model/documents/gpu/gpu_document.js";
import type { GpuReplay } from "../../model/gpu/gpu_replay.js";
import type { GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";
import type { Classified } from "./category.js";
import { informativeFrames } from "./frame_roles.js";

const MOST_LIKELY_FIRST = (a: { bytes: number }, b: { bytes: number }) => b.bytes - a.bytes;

/** Rows of `replay.allocations` by site, the largest first. Stacks with the same displayed frames are one site. */
export function sitesOf(
  snapshot: GpuSnapshot,
  { allocations }: GpuReplay,
  rows: Iterable<number>,
  categoryOf: (row: number) => Classified,
): GpuSiteJson[] {
  const byStack = new Map<
    string,
    { stack: number; bytes: number; allocations: number } & Classified
  >();
  for (const row of rows) {
    const stack = uint32At(allocations.stack, row);
    const { category, sure } = categoryOf(row);
    const key = `${stack} ${category}`;
    const site = byStack.get(key) ?? { stack, category, sure, bytes: 0, allocations: 0 };
    site.bytes += float64At(allocations.size, row);
    site.allocations += 1;
    byStack.set(key, site);
  }
  const merged = new Map<string, GpuSiteJson>();
  for (const { stack, ...figures } of byStack.values()) {
    const frames = informativeFrames(snapshot, stack);
    const key = siteKey(frames, figures.category);
    const site = merged.get(key);
    if (site === undefined) {
      merged.set(key, { stack: frames, ...figures });
    } else {
      site.bytes += figures.bytes;
      site.allocations += figures.allocations;
      site.sure &&= figures.sure;
    }
  }
  return [...merged.values()].sort(MOST_LIKELY_FIRST);
}

/** Equal for sites with the same displayed frames, also in different snapshots. */
export function siteKey(stack: GpuSiteJson["stack"], category: GpuCategory): string {
  return JSON.stringify([
    category,
    ...stack.map(({ function: name, file, line }) => [name, file, line]),
  ]);
}
