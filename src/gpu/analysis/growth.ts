/**
 * Sites whose live bytes rise from step to step. The level of a step is measured at its beginning, when
 * temporaries are freed. The first quarter of the steps is skipped, because set-up is not growth.
 */

import { addAt, float64At, int32At, itemAt, uint32At } from "../../model/base/columns.js";
import type { Bytes } from "../../model/base/units.js";
import type { GpuGrowthJson } from "../../model/documents/gpu/gpu_document.js";
import type { GpuReplay } from "../../model/gpu/gpu_replay.js";
import type { GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";
import type { Classified } from "./category.js";
import { siteKey, sitesOf } from "./sites.js";
import type { Steps } from "./steps.js";

/** 10 MB over 20 steps, whatever the device's size. */
const GROWTH_PER_STEP: Bytes = 500_000;
/** Share of the steps in which the level must rise. */
const RISING = 0.6;
const MOST_STEPS = 200;

export function growthOf(
  snapshot: GpuSnapshot,
  replay: GpuReplay,
  { moments }: Steps,
  categoryOf: (row: number) => Classified,
): GpuGrowthJson[] {
  const bounds = thinned(moments.slice(Math.floor(moments.length / 4)));
  if (bounds.length < 3) {
    return [];
  }
  const perBound = (moments.length - Math.floor(moments.length / 4) - 1) / (bounds.length - 1);
  const levels = levelsByStack(replay, bounds);
  const growing = new Map<string, GpuGrowthJson>();
  for (const [stack, { level, rows }] of levels) {
    const first = float64At(level, 0);
    const last = float64At(level, level.length - 1);
    const bytesPerStep = (last - first) / ((level.length - 1) * perBound);
    if (bytesPerStep < GROWTH_PER_STEP / 8 || !rises(level) || stack === 0) {
      continue;
    }
    const [site] = sitesOf(snapshot, replay, rows, categoryOf);
    if (site === undefined) {
      continue;
    }
    const key = siteKey(site.stack, site.category);
    const known = growing.get(key);
    growing.set(key, {
      ...site,
      bytes: last + (known?.bytes ?? 0),
      allocations: rows.length + (known?.allocations ?? 0),
      bytesPerStep: Math.round(bytesPerStep + (known?.bytesPerStep ?? 0)),
      steps: moments.length,
      startBytes: first + (known?.startBytes ?? 0),
    });
  }
  return [...growing.values()]
    .filter((site) => site.bytesPerStep >= GROWTH_PER_STEP)
    .sort((a, b) => b.bytesPerStep - a.bytesPerStep);
}

/** Live bytes of each stack at each step boundary, only for stacks with live bytes at the last one. */
function levelsByStack(replay: GpuReplay, bounds: readonly number[]) {
  const { start, end, size, stack, length } = replay.allocations;
  const last = itemAt(bounds, bounds.length - 1);
  const found = new Map<number, { level: Float64Array; rows: number[] }>();
  for (let row = 0; row < length; row++) {
    if (!(int32At(start, row) < last && last <= int32At(end, row))) {
      continue;
    }
    const entry = found.get(uint32At(stack, row)) ?? {
      level: new Float64Array(bounds.length),
      rows: [],
    };
    entry.rows.push(row);
    found.set(uint32At(stack, row), entry);
  }
  for (let row = 0; row < length; row++) {
    const level = found.get(uint32At(stack, row))?.level;
    if (level === undefined) {
      continue;
    }
    for (
      let at = firstAbove(bounds, int32At(start, row));
      at < bounds.length && itemAt(bounds, at) <= int32At(end, row);
      at++
    ) {
      addAt(level, at, float64At(size, row));
    }
  }
  return found;
}

function firstAbove(bounds: readonly number[], event: number): number {
  let low = 0;
  let high = bounds.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (itemAt(bounds, middle) <= event) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** True if it rises in most steps and no fall takes back half of the gain. */
function rises(level: Float64Array): boolean {
  let up = 0;
  let highest = float64At(level, 0);
  const gained = float64At(level, level.length - 1) - float64At(level, 0);
  for (let at = 1; at < level.length; at++) {
    up += float64At(level, at) > float64At(level, at - 1) ? 1 : 0;
    highest = Math.max(highest, float64At(level, at));
    if (highest - float64At(level, at) > gained / 2) {
      return false;
    }
  }
  return up >= RISING * (level.length - 1);
}

function thinned(moments: readonly number[]): number[] {
  if (moments.length <= MOST_STEPS) {
    return [...moments];
  }
  return Array.from({ length: MOST_STEPS }, (_, at) =>
    itemAt(moments, Math.round((at * (moments.length - 1)) / (MOST_STEPS - 1))),
  );
}
