/**
 * Allocation sites by the function of the program's own code that led to them, with their live bytes at every
 * snapshot and the ages of live blocks at the last one.
 */

import type { Bytes, Objects, Pid, StackId, TimeMs } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import {
  isImport,
  isOwn,
  isTidemark,
  ownFrame,
  recurringFile,
} from "../../model/documents/own_code.js";
import {
  Domain,
  FILES_DOMAIN,
  FrameKind,
  type Profile,
  type ProfileTables,
} from "../../model/profile/profile.js";

export interface SiteHistory {
  /** The same in every snapshot: process, function, file, and whether Python's allocator was used. */
  readonly key: string;
  /** Function and file: the same for memory of every domain. */
  readonly place: string;
  /** True if the function is the program's own, not a package's or the interpreter's. */
  readonly own: boolean;
  /** Memory of modules that the function imports, mostly code; not what it allocates while being imported. */
  readonly imports: boolean;
  readonly pid: Pid;
  readonly domain: SiteDomain;
  /** By snapshot; 0 if it was not seen. */
  readonly liveBytes: Float64Array;
  readonly allocatedBytes: Float64Array;
  /** Live objects by snapshot. */
  readonly objects: Float64Array;
  /** Objects freed until each snapshot; absent if unknown. */
  readonly freedObjects?: Float64Array;
  /**
   * Live bytes by snapshot, only of stacks whose mean object is large ({@link LARGE_BLOCK_BYTES}); absent if no
   * stacks are known.
   */
  readonly largeBytes?: Float64Array;
  /** At the last snapshot. */
  readonly liveObjects: Objects;
  readonly liveSamples: number;
  /** Standard error of the live bytes at the last snapshot. */
  readonly standardErrorBytes: Bytes;
  /** Live bytes by allocation time; bounds are {@link SiteHistories.cohorts}. */
  readonly cohortBytes: Float64Array;
  /** The stacks that keep most bytes from the window, largest first; each leaf first. */
  readonly keptStacks: readonly KeptStack[];
  /** Set if it represents all objects of a type (type_growth.ts), whose allocation was not recorded. */
  readonly type?: string;
}

export interface KeptStack {
  readonly id: StackId;
  readonly frames: readonly FrameJson[];
  /** Share of the site's kept bytes. */
  readonly share: number;
}

/** `files`: file mappings, separate from other memory. */
type SiteDomain = "python" | "native" | "mapped" | "files";

export interface SiteHistories {
  /** Ascending; cohorts and samples are of the last one. */
  readonly snapshotTimes: readonly TimeMs[];
  /** Upper bounds of the allocation-time slices, ascending. */
  readonly cohorts: readonly TimeMs[];
  /** By live bytes at the last snapshot, largest first. */
  readonly sites: readonly SiteHistory[];
  /** For children: sites without live bytes at the last snapshot, which show what a worker runs. */
  readonly passing: readonly SiteHistory[];
  /** Allocated bytes of all sites by snapshot, a measure of the work done. */
  readonly allocatedBytes: Float64Array;
  /** Source files of all frames. */
  readonly files: readonly string[];
}

/** A value at a time, interpolated between snapshots; 0 before the first. */
export function valueAt(
  { snapshotTimes }: Pick<SiteHistories, "snapshotTimes">,
  values: Float64Array,
  timeMs: TimeMs,
): number {
  const after = snapshotTimes.findIndex((time) => time >= timeMs);
  if (after <= 0) {
    return after === 0 ? 0 : (values.at(-1) ?? 0);
  }
  const [t0, t1] = [snapshotTimes[after - 1] as number, snapshotTimes[after] as number];
  const [v0, v1] = [values[after - 1] as number, values[after] as number];
  return v0 + ((v1 - v0) * (timeMs - t0)) / Math.max(1, t1 - t0);
}

const MOST_STACKS = 12;
/** Freed bytes are counted for a stack only if it has no live bytes. */
const FREED_WEIGHT = 1e-6;
/** Bytes per object; smaller objects are judged by their ages. */
export const LARGE_BLOCK_BYTES = 256_000;

const DOMAIN_NAMES: Readonly<Record<number, SiteDomain>> = {
  [Domain.python]: "python",
  [Domain.native]: "native",
  [Domain.mapped]: "mapped",
  [FILES_DOMAIN]: "files",
};

interface Gathered {
  readonly place: Place;
  readonly pid: Pid;
  readonly domain: SiteDomain;
  readonly live: Map<number, Bytes>;
  readonly allocated: Map<number, Bytes>;
  readonly objects: Map<number, Objects>;
  readonly freedObjects: Map<number, Objects>;
  readonly largeBytes: Map<number, Bytes>;
  last: LastSnapshot | null;
}

interface LastSnapshot {
  objects: Objects;
  samples: number;
  variance: number;
  readonly cohorts: Float64Array;
  readonly keptByStack: Map<StackId, Bytes>;
}

/** Takes snapshots one by one, oldest first, so that a long recording needs no more memory than a short one. */
export class SiteHistoryBuilder {
  readonly #groups = new Map<string, Gathered>();
  readonly #times: TimeMs[] = [];
  readonly #totals: Bytes[] = [];
  #lastProfile: Profile | null = null;
  readonly #places = new Places();

  readonly #freedToo: boolean;

  /** `freedToo`: includes sites without live bytes at the last snapshot. */
  constructor(freedToo = false) {
    this.#freedToo = freedToo;
  }

  add(profile: Profile): void {
    const snapshot = this.#times.length;
    this.#times.push(profile.timeMs);
    this.#lastProfile = profile;
    const { sites } = profile;
    let total = 0;
    for (let row = 0; row < sites.length; row++) {
      if (this.#places.of(profile, sites.stack[row] as number).tidemark) {
        continue;
      }
      const group = this.#groupOf(profile, row);
      addTo(group.live, snapshot, sites.liveBytes[row] as number);
      addTo(group.allocated, snapshot, sites.allocatedBytes[row] as number);
      const objects = sites.liveObjects[row] as number;
      addTo(group.objects, snapshot, objects);
      addTo(group.freedObjects, snapshot, (sites.allocatedObjects[row] as number) - objects);
      if ((sites.liveBytes[row] as number) >= LARGE_BLOCK_BYTES * Math.max(1, objects)) {
        addTo(group.largeBytes, snapshot, sites.liveBytes[row] as number);
      }
      total += sites.allocatedBytes[row] as number;
    }
    this.#totals.push(total);
  }

  /** Result for the snapshots so far; more may follow. */
  build(): SiteHistories {
    const profile = this.#lastProfile;
    if (profile) {
      this.#readLast(profile);
    }
    const all = [...this.#groups]
      .flatMap(([key, group]) =>
        profile && group.last ? [this.#history(profile, key, group)] : [],
      )
      .sort((a, b) => (b.liveBytes.at(-1) ?? 0) - (a.liveBytes.at(-1) ?? 0));
    const lives = ({ liveBytes }: SiteHistory) => this.#freedToo || (liveBytes.at(-1) ?? 0) > 0;
    return {
      snapshotTimes: this.#times,
      cohorts: profile?.cohorts ?? [],
      sites: all.filter(lives),
      passing: all.filter((site) => !lives(site)),
      allocatedBytes: Float64Array.from(this.#totals),
      files: profile ? filesOf(profile) : [],
    };
  }

  /** The {@link SiteHistory.key} of an allocation. `domain`: {@link Domain}. */
  keyOf(tables: ProfileTables, pid: Pid, domain: number, stack: StackId): string {
    return `${pid} ${DOMAIN_NAMES[domain] ?? "native"} ${this.#places.of(tables, stack).name}`;
  }

  #groupOf(profile: Profile, row: number): Gathered {
    const { sites } = profile;
    const domain = DOMAIN_NAMES[sites.domain[row] as number] ?? "native";
    const pid = profile.processes[sites.process[row] as number]?.pid ?? 0;
    const stack = sites.stack[row] as number;
    const key = this.keyOf(profile, pid, sites.domain[row] as number, stack);
    let group = this.#groups.get(key);
    if (!group) {
      const place = this.#places.of(profile, stack);
      group = {
        place,
        pid,
        domain,
        live: new Map(),
        allocated: new Map(),
        objects: new Map(),
        freedObjects: new Map(),
        largeBytes: new Map(),
        last: null,
      };
      this.#groups.set(key, group);
    }
    return group;
  }

  #readLast(profile: Profile): void {
    const { sites } = profile;
    for (const group of this.#groups.values()) {
      group.last = null; // of the snapshot at which it was last built
    }
    const width = profile.cohorts.length;
    const settled = afterStart(profile.cohorts, this.#times[0] ?? profile.timeMs);
    for (let row = 0; row < sites.length; row++) {
      const freedToo = this.#freedToo || (sites.process[row] as number) > 0;
      const isOurs = this.#places.of(profile, sites.stack[row] as number).tidemark;
      if (isOurs || ((sites.liveBytes[row] as number) <= 0 && !freedToo)) {
        continue;
      }
      const group = this.#groupOf(profile, row);
      group.last ??= {
        objects: 0,
        samples: 0,
        variance: 0,
        cohorts: new Float64Array(width),
        keptByStack: new Map(),
      };
      const { last } = group;
      last.objects += sites.liveObjects[row] as number;
      last.samples += sites.liveSamples[row] as number;
      last.variance += sites.liveVariance[row] as number;
      let kept = 0;
      for (let cohort = 0; cohort < width; cohort++) {
        const bytes = sites.cohortBytes[row * width + cohort] as number;
        last.cohorts[cohort] = (last.cohorts[cohort] as number) + bytes;
        kept += cohort >= settled ? bytes : bytes * 0.01;
      }
      const asked = freedToo ? (sites.allocatedBytes[row] as number) * FREED_WEIGHT : 0;
      addTo(last.keptByStack, sites.stack[row] as number, kept + asked);
    }
  }

  #history(profile: Profile, key: string, group: Gathered): SiteHistory {
    const last = group.last as LastSnapshot;
    const kept = [...last.keptByStack].sort((a, b) => b[1] - a[1]);
    const total = kept.reduce((sum, [, bytes]) => sum + bytes, 0);
    return {
      key,
      place: group.place.name,
      own: group.place.own,
      imports: group.place.imports,
      pid: group.pid,
      domain: group.domain,
      liveBytes: this.#column(group.live),
      allocatedBytes: this.#column(group.allocated),
      objects: this.#column(group.objects),
      freedObjects: this.#column(group.freedObjects),
      largeBytes: this.#column(group.largeBytes),
      liveObjects: last.objects,
      liveSamples: last.samples,
      standardErrorBytes: Math.sqrt(last.variance),
      cohortBytes: last.cohorts,
      keptStacks: kept.slice(0, MOST_STACKS).map(([id, bytes]) => ({
        id,
        frames: framesOf(profile, id),
        share: total > 0 ? bytes / total : 0,
      })),
    };
  }

  #column(values: ReadonlyMap<number, number>): Float64Array {
    return Float64Array.from(this.#times, (_, snapshot) => values.get(snapshot) ?? 0);
  }
}

function filesOf({ frames, strings }: Profile): string[] {
  return [...new Set(frames.file)].map((file) => strings[file] ?? "");
}

/** The first cohort that begins after a third of the time. */
function afterStart(cohorts: readonly TimeMs[], startMs: TimeMs): number {
  const third = startMs + ((cohorts.at(-1) ?? startMs) - startMs) / 3;
  return Math.max(
    0,
    cohorts.findIndex((bound) => bound > third),
  );
}

function addTo<Key>(sums: Map<Key, number>, key: Key, value: number): void {
  sums.set(key, (sums.get(key) ?? 0) + value);
}

const KIND_NAMES: Readonly<Record<number, FrameJson["kind"]>> = {
  [FrameKind.python]: "python",
  [FrameKind.native]: "native",
  [FrameKind.mark]: "mark",
};

/** Leaf first. */
export function framesOf(profile: ProfileTables, stack: StackId): FrameJson[] {
  const { strings, stacks, frames } = profile;
  const found: FrameJson[] = [];
  for (let node = stack; node > 0; node = stacks.parent[node] as number) {
    const frame = stacks.frame[node] as number;
    found.push({
      function: strings[frames.function[frame] as number] ?? "",
      file: strings[frames.file[frame] as number] ?? "",
      line: frames.line[frame] as number,
      kind: KIND_NAMES[frames.kind[frame] as number] ?? "mark",
    });
  }
  return found;
}

interface Place {
  readonly name: string;
  readonly own: boolean;
  readonly imports: boolean;
  /** Tidemark's own code in the process, which is not a site of the program. */
  readonly tidemark: boolean;
}

/**
 * The function that a stack is attributed to: {@link ownFrame}; separate if it imports something. Stack ids are
 * stable within a recording.
 */
class Places {
  readonly #known = new Map<StackId, Place>();

  of(profile: ProfileTables, stack: StackId): Place {
    let place = this.#known.get(stack);
    if (place === undefined) {
      const frames = framesOf(profile, stack);
      const frame = ownFrame(frames);
      // Modules that a function imports at its first call are not part of what it keeps later.
      const imports = isImport(frames) ? " import" : "";
      place = {
        name: frame ? `${frame.function} ${recurringFile(frame.file)}${imports}` : "",
        own: frame !== undefined && isOwn(frame),
        imports: frame !== undefined && isImport(frames.slice(0, frames.indexOf(frame))),
        tidemark: isTidemark(frames),
      };
      this.#known.set(stack, place);
    }
    return place;
  }
}
