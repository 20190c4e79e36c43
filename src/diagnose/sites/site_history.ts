/**
 * What grew where: allocation sites by the function of the program's own code that led to them, with their
 * live bytes at every look and the ages of what lives at the last one.
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
  /** The same in every look: process, function, file, and whether Python's allocator was asked. */
  readonly key: string;
  /** Function and file: the same for memory of every domain. */
  readonly place: string;
  /** The function is the program's own, neither a package's nor the interpreter's. */
  readonly own: boolean;
  /** What the function imports, code above all; not what it makes while it is being imported. */
  readonly imports: boolean;
  readonly pid: Pid;
  readonly domain: SiteDomain;
  /** By look; 0 where it was not seen. */
  readonly liveBytes: Float64Array;
  readonly allocatedBytes: Float64Array;
  /** Live objects by look. */
  readonly objects: Float64Array;
  /** Live bytes by look of those of its stacks alone whose objects are large on the mean ({@link LARGE_BLOCK_BYTES});
   * absent where no stacks are known. */
  readonly largeBytes?: Float64Array;
  /** Of the last look. */
  readonly liveObjects: Objects;
  readonly liveSamples: number;
  /** Standard error of the last look's live bytes. */
  readonly standardErrorBytes: Bytes;
  /** Live bytes by time of birth; bounds are {@link SiteHistories.cohorts}. */
  readonly cohortBytes: Float64Array;
  /** The stacks that keep most bytes of the window, the first most; each leaf first. */
  readonly keptStacks: readonly KeptStack[];
  /** Where it stands for all objects of a type (type_growth.ts): no agent saw who made them. */
  readonly type?: string;
}

export interface KeptStack {
  readonly id: StackId;
  readonly frames: readonly FrameJson[];
  /** Of the site's bytes that were kept. */
  readonly share: number;
}

/** `files`: mappings of files, apart from the memory of the others. */
type SiteDomain = "python" | "native" | "mapped" | "files";

export interface SiteHistories {
  /** Ascending; the last is the one that cohorts and samples are of. */
  readonly lookTimes: readonly TimeMs[];
  /** Upper bounds of the slices of birth, ascending. */
  readonly cohorts: readonly TimeMs[];
  /** By live bytes at the last look, largest first. */
  readonly sites: readonly SiteHistory[];
  /** Of children: sites of which nothing lives at the last look. They tell what a worker runs. */
  readonly passing: readonly SiteHistory[];
  /** By look: what all sites had allocated, a measure of the work done. */
  readonly allocatedBytes: Float64Array;
  /** Source files of all frames that were seen. */
  readonly files: readonly string[];
}

const MOST_STACKS = 12;
/** What was freed again tells of a stack only where nothing lives. */
const FREED_WEIGHT = 1e-6;
/** Bytes an object: smaller ones are told by their ages. */
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
  readonly largeBytes: Map<number, Bytes>;
  last: LastLook | null;
}

interface LastLook {
  objects: Objects;
  samples: number;
  variance: number;
  readonly cohorts: Float64Array;
  readonly keptByStack: Map<StackId, Bytes>;
}

/** Takes looks one by one, oldest first, so that a long recording needs no more memory than a short one. */
export class SiteHistoryBuilder {
  readonly #groups = new Map<string, Gathered>();
  readonly #times: TimeMs[] = [];
  readonly #totals: Bytes[] = [];
  #lastProfile: Profile | null = null;
  readonly #places = new Places();

  readonly #freedToo: boolean;

  /** `freedToo`: sites of which nothing lives at the last look are told as well. */
  constructor(freedToo = false) {
    this.#freedToo = freedToo;
  }

  add(profile: Profile): void {
    const look = this.#times.length;
    this.#times.push(profile.timeMs);
    this.#lastProfile = profile;
    const { sites } = profile;
    let total = 0;
    for (let row = 0; row < sites.length; row++) {
      if (this.#places.of(profile, sites.stack[row] as number).tidemark) {
        continue;
      }
      const group = this.#groupOf(profile, row);
      addTo(group.live, look, sites.liveBytes[row] as number);
      addTo(group.allocated, look, sites.allocatedBytes[row] as number);
      const objects = sites.liveObjects[row] as number;
      addTo(group.objects, look, objects);
      if ((sites.liveBytes[row] as number) >= LARGE_BLOCK_BYTES * Math.max(1, objects)) {
        addTo(group.largeBytes, look, sites.liveBytes[row] as number);
      }
      total += sites.allocatedBytes[row] as number;
    }
    this.#totals.push(total);
  }

  /** As of the looks so far; more may follow. */
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
      lookTimes: this.#times,
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
      group.last = null; // of the look at which it was built before
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
    const last = group.last as LastLook;
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
    return Float64Array.from(this.#times, (_, look) => values.get(look) ?? 0);
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
  /** Tidemark's own code in the process: no site of the program. */
  readonly tidemark: boolean;
}

/** The function that a stack counts for: {@link ownFrame}; apart where it imports something. Stack ids of one
 * recording stay what they are. */
class Places {
  readonly #known = new Map<StackId, Place>();

  of(profile: ProfileTables, stack: StackId): Place {
    let place = this.#known.get(stack);
    if (place === undefined) {
      const frames = framesOf(profile, stack);
      const frame = ownFrame(frames);
      // What a function imports at its first call is none of what it keeps from then on.
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
