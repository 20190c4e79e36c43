/** The sites of a snapshot as in a document: full stacks, and estimates with their errors. */
import { float64At, uint8At, uint32At } from "../../../model/base/columns.js";
import { interval95 } from "../../../model/base/interval.js";
import type { StackId } from "../../../model/base/units.js";
import type { FrameJson, SummarySiteJson } from "../../../model/documents/documents.js";
import { Domain, FrameKind, type Profile } from "../../../model/profile/profile.js";

interface SiteSum {
  readonly stack: StackId;
  readonly domain: number;
  liveBytes: number;
  liveObjects: number;
  liveVariance: number;
  allocatedBytes: number;
  allocatedObjects: number;
  allocatedVariance: number;
  peakBytes: number;
  peakVariance: number;
}

/** One site for each stack and domain: all processes, threads and labels are merged. @internal */
export function sitesOf(profile: Profile, peak: Profile): SummarySiteJson[] {
  const sums = new Map<number, SiteSum>();
  const at = ({ sites }: Profile, row: number): SiteSum => {
    const stack = uint32At(sites.stack, row);
    const domain = uint8At(sites.domain, row);
    const key = stack * 4 + domain;
    let sum = sums.get(key);
    if (!sum) {
      sum = {
        stack,
        domain,
        liveBytes: 0,
        liveObjects: 0,
        liveVariance: 0,
        allocatedBytes: 0,
        allocatedObjects: 0,
        allocatedVariance: 0,
        peakBytes: 0,
        peakVariance: 0,
      };
      sums.set(key, sum);
    }
    return sum;
  };
  for (let row = 0; row < profile.sites.length; row++) {
    const sum = at(profile, row);
    sum.liveBytes += float64At(profile.sites.liveBytes, row);
    sum.liveObjects += float64At(profile.sites.liveObjects, row);
    sum.liveVariance += float64At(profile.sites.liveVariance, row);
    sum.allocatedBytes += float64At(profile.sites.allocatedBytes, row);
    sum.allocatedObjects += float64At(profile.sites.allocatedObjects, row);
    sum.allocatedVariance += float64At(profile.sites.allocatedVariance, row);
  }
  for (let row = 0; row < peak.sites.length; row++) {
    const sum = at(peak, row);
    sum.peakBytes += float64At(peak.sites.liveBytes, row);
    sum.peakVariance += float64At(peak.sites.liveVariance, row);
  }
  const stacks = new StackNames(profile);
  return [...sums.values()]
    .filter((sum) => sum.liveBytes + sum.allocatedBytes + sum.peakBytes > 0)
    .sort(
      (a, b) =>
        b.liveBytes - a.liveBytes ||
        b.peakBytes - a.peakBytes ||
        b.allocatedBytes - a.allocatedBytes,
    )
    .map((sum) => ({
      stack: stacks.frames(sum.stack),
      domain: DOMAIN_NAMES[sum.domain] ?? "native",
      liveBytes: sum.liveBytes,
      liveObjects: sum.liveObjects,
      liveBytesAtPeak: sum.peakBytes,
      allocatedBytes: sum.allocatedBytes,
      allocatedObjects: sum.allocatedObjects,
      standardErrorBytes: Math.sqrt(sum.liveVariance),
      standardErrorAtPeakBytes: Math.sqrt(sum.peakVariance),
      standardErrorAllocatedBytes: Math.sqrt(sum.allocatedVariance),
      interval95Bytes: interval95(sum.liveBytes, Math.sqrt(sum.liveVariance)),
      interval95AtPeakBytes: interval95(sum.peakBytes, Math.sqrt(sum.peakVariance)),
      interval95AllocatedBytes: interval95(sum.allocatedBytes, Math.sqrt(sum.allocatedVariance)),
    }));
}

const DOMAIN_NAMES: Readonly<Record<number, SummarySiteJson["domain"]>> = {
  [Domain.python]: "python",
  [Domain.native]: "native",
  [Domain.mapped]: "mapped",
};

const KIND_NAMES: Readonly<Record<number, FrameJson["kind"]>> = {
  [FrameKind.python]: "python",
  [FrameKind.native]: "native",
  [FrameKind.mark]: "mark",
};

/** Stacks as lists of frames, leaf first; a frame's object is shared by all stacks that contain it. @internal */
export class StackNames {
  readonly #made: (FrameJson | undefined)[] = [];

  readonly #profile: Profile;

  constructor(profile: Profile) {
    this.#profile = profile;
  }

  frames(stack: StackId): FrameJson[] {
    const { parent, frame } = this.#profile.stacks;
    const frames: FrameJson[] = [];
    for (let node = stack; node > 0; node = uint32At(parent, node)) {
      frames.push(this.#frame(uint32At(frame, node)));
    }
    return frames;
  }

  #frame(id: number): FrameJson {
    const { strings, frames } = this.#profile;
    this.#made[id] ??= {
      function: strings[uint32At(frames.function, id)] ?? "",
      file: strings[uint32At(frames.file, id)] ?? "",
      line: uint32At(frames.line, id),
      kind: KIND_NAMES[uint8At(frames.kind, id)] ?? "mark",
    };
    return this.#made[id];
  }
}
