/** What appeared, grew, shrank and disappeared between two moments of one or two files, by site. */
import { float64At, uint8At, uint32At } from "../../../../src/model/base/columns.js";
import {
  GPU_CATEGORIES,
  type GpuPageDevice,
} from "../../../../src/model/documents/gpu/gpu_page.js";
import type { Side } from "./gpuFlame.js";
import { informativeFrame, type NamedFrame } from "./stackNames.js";

export interface SiteDifference {
  readonly key: string;
  /** The location in the user's own code, otherwise the leaf. */
  readonly frame: NamedFrame;
  readonly category: string;
  before: number;
  after: number;
  allocationsBefore: number;
  allocationsAfter: number;
}

export type Change = "appeared" | "grew" | "shrank" | "went" | "same";
export const CHANGES: readonly Change[] = ["appeared", "grew", "shrank", "went", "same"];

export function changeOf({ before, after }: SiteDifference): Change {
  if (before === after) {
    return "same";
  }
  if (before === 0) {
    return "appeared";
  }
  if (after === 0) {
    return "went";
  }
  return after > before ? "grew" : "shrank";
}

type DifferenceSide = Side & Pick<GpuPageDevice, "category">;

export function differenceOf(before: DifferenceSide, after: DifferenceSide): SiteDifference[] {
  const sites = new Map<string, SiteDifference>();
  const add = (side: DifferenceSide, place: (site: SiteDifference, bytes: number) => void) => {
    const { size, stack } = side.replay.allocations;
    const frames = new Map<number, NamedFrame>();
    for (const row of side.held) {
      const leaf = uint32At(stack, row);
      const frame = frames.get(leaf) ?? informativeFrame(side.tables, leaf);
      frames.set(leaf, frame);
      const category = GPU_CATEGORIES[uint8At(side.category, row)] ?? "unknown";
      const key = `${frame.name}\0${frame.place}\0${category}`;
      const site = sites.get(key) ?? emptySite(key, frame, category);
      sites.set(key, site);
      place(site, float64At(size, row));
    }
  };
  add(before, (site, bytes) => {
    site.before += bytes;
    site.allocationsBefore += 1;
  });
  add(after, (site, bytes) => {
    site.after += bytes;
    site.allocationsAfter += 1;
  });
  return [...sites.values()];
}

function emptySite(key: string, frame: NamedFrame, category: string): SiteDifference {
  return {
    key,
    frame,
    category,
    before: 0,
    after: 0,
    allocationsBefore: 0,
    allocationsAfter: 0,
  };
}
