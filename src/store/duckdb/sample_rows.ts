/** The profiles of a recording as rows: samples, and the frames, stacks and labels that they name. */
import { frameName, labelPairs } from "../../model/frame_text.js";
import type { Profile } from "../../model/profile.js";
import type { SiteIndex, TimeMs } from "../../model/units.js";
import { contentId } from "./content_ids.js";
import type { AddRow } from "./schema.js";
import { type SeriesRows, whole } from "./series_rows.js";

const DOMAIN_NAMES = ["python", "native", "mapped"] as const;
const MAX_INTEGER = 2 ** 31 - 1;
const KIND_NAMES = ["python", "native", "mark"] as const;

/** Profiles and samples, with the frames, stacks and labels they need, each row of those once. */
export class SampleRows {
  readonly #series: SeriesRows;
  readonly #add: AddRow;
  readonly #written = new Set<bigint>();
  /** Allocated figures of the profile before, by site. */
  #before = new Map<string, Allocated>();
  #lastMs: TimeMs | null = null;

  constructor(series: SeriesRows, add: AddRow) {
    this.#series = series;
    this.#add = add;
  }

  addProfile(profile: Profile): void {
    const { sites, timeMs } = profile;
    const profiles = this.#addProfiles(profile);
    const stackIds = this.#stackIds(profile);
    const labelIds = new Map<number, bigint>();
    const after = new Map<string, Allocated>();
    for (let site = 0; site < sites.length; site++) {
      const owner = profiles[sites.process[site]!]!;
      let labelId = labelIds.get(sites.label[site]!);
      if (labelId === undefined) {
        labelId = this.#labelId(profile, sites.label[site]!);
        labelIds.set(sites.label[site]!, labelId);
      }
      const head: SampleHead = [
        dayOf(timeMs),
        owner.seriesId,
        whole(timeMs),
        owner.profileId,
        this.#stack(profile, sites.stack[site]!, stackIds),
        profile.threads[sites.thread[site]!]?.name ?? "",
        labelId,
      ];
      const domain = DOMAIN_NAMES[sites.domain[site]!] ?? "";
      const key = `${sites.stack[site]} ${sites.process[site]} ${sites.thread[site]} ${sites.label[site]} ${domain}`;
      const allocated = {
        head,
        domain,
        bytes: sites.allocatedBytes[site]!,
        objects: sites.allocatedObjects[site]!,
      };
      const before = this.#before.get(key);
      after.set(key, allocated);
      this.#before.delete(key);
      this.#addSite(profile, site, allocated, before);
    }
    // Sites of ended processes may have been added up as one: take back what stands there again.
    for (const { head, domain, bytes, objects } of this.#before.values()) {
      const [, seriesId, , , ...rest] = head;
      const profileId = contentId("profile", seriesId, whole(timeMs));
      this.#add(
        "samples",
        dayOf(timeMs),
        seriesId,
        whole(timeMs),
        profileId,
        ...rest,
        0,
        0,
        0,
        0,
        -objects,
        -bytes,
        domain,
        0,
      );
    }
    this.#before = after;
    this.#lastMs = timeMs;
  }

  #addProfiles(profile: Profile): { seriesId: bigint; profileId: bigint }[] {
    const durationMs = this.#lastMs === null ? profile.durationMs : profile.timeMs - this.#lastMs;
    return profile.processes.map(({ pid, startedMs, command, python, periodBytes }) => {
      const seriesId = this.#series.of(pid, startedMs, command, python);
      const profileId = contentId("profile", seriesId, whole(profile.timeMs));
      if (this.#isNew(profileId)) {
        this.#add(
          "profiles",
          profileId,
          seriesId,
          whole(profile.timeMs),
          whole(durationMs),
          "heap",
          periodBytes,
        );
      }
      return { seriesId, profileId };
    });
  }

  /** The rows of one site, by age; its allocated figures stand in the oldest. */
  #addSite(profile: Profile, site: SiteIndex, now: Allocated, before: Allocated | undefined): void {
    const { sites, cohorts, timeMs } = profile;
    const ages = new Map<number, number>();
    const live = sites.liveBytes[site]!;
    for (let cohort = 0; cohort < cohorts.length; cohort++) {
      const bytes = sites.cohortBytes[site * cohorts.length + cohort]!;
      if (bytes > 0) {
        const bucket = ageBucket(timeMs - bornMs(cohorts, cohort, timeMs));
        ages.set(bucket, (ages.get(bucket) ?? 0) + bytes);
      }
    }
    if (ages.size === 0) {
      ages.set(0, live);
    }
    let allocatedObjects = now.objects - (before?.objects ?? 0);
    let allocatedBytes = now.bytes - (before?.bytes ?? 0);
    let peakBytes = sites.peakBytes[site]!;
    for (const [bucket, bytes] of ages) {
      const share = live > 0 ? bytes / live : 0;
      if (bytes > 0 || allocatedBytes !== 0 || peakBytes > 0) {
        this.#add(
          "samples",
          ...now.head,
          bucket,
          sites.liveObjects[site]! * share,
          bytes,
          // Independent parts of a sum: their variances are shares of its own.
          sites.liveVariance[site]! * share,
          allocatedObjects,
          allocatedBytes,
          now.domain,
          peakBytes,
        );
      }
      allocatedObjects = 0;
      allocatedBytes = 0;
      peakBytes = 0;
    }
  }

  /** Ids of all stacks: of the parent's and the own frame's, in one ascending pass. */
  #stackIds(profile: Profile): {
    readonly stacks: BigUint64Array;
    readonly frames: BigUint64Array;
  } {
    const { frames, strings, stacks } = profile;
    const frameIds = new BigUint64Array(frames.length);
    for (let frame = 0; frame < frames.length; frame++) {
      frameIds[frame] = contentId(
        "frame",
        frameName(profile, frame),
        strings[frames.file[frame]!]!,
        frames.line[frame]!,
        frames.kind[frame]!,
      );
    }
    const ids = new BigUint64Array(stacks.length);
    ids[0] = contentId("stack");
    for (let stack = 1; stack < stacks.length; stack++) {
      ids[stack] = contentId("stack", ids[stacks.parent[stack]!]!, frameIds[stacks.frame[stack]!]!);
    }
    return { stacks: ids, frames: frameIds };
  }

  #stack(
    profile: Profile,
    stack: number,
    ids: { stacks: BigUint64Array; frames: BigUint64Array },
  ): bigint {
    const id = ids.stacks[stack]!;
    if (this.#isNew(id)) {
      const { stacks, frames, strings } = profile;
      const frameIds: bigint[] = [];
      for (let node = stack; node !== 0; node = stacks.parent[node]!) {
        const frame = stacks.frame[node]!;
        const frameId = ids.frames[frame]!;
        frameIds.push(frameId);
        if (this.#isNew(frameId)) {
          const kind = KIND_NAMES[frames.kind[frame]!] ?? "mark";
          this.#add(
            "frames",
            frameId,
            frameName(profile, frame),
            strings[frames.file[frame]!]!,
            Math.min(frames.line[frame]!, MAX_INTEGER),
            kind,
          );
        }
      }
      this.#add("stacks", id, frameIds);
    }
    return id;
  }

  #labelId(profile: Profile, label: number): bigint {
    const pairs = [...labelPairs(profile, label)];
    const id = contentId("label", ...pairs.flat());
    if (this.#isNew(id)) {
      this.#add(
        "labels",
        id,
        pairs.map(([key]) => key),
        pairs.map(([, value]) => value),
      );
    }
    return id;
  }

  #isNew(id: bigint): boolean {
    const isNew = !this.#written.has(id);
    this.#written.add(id);
    return isNew;
  }
}

/** day, series, time, profile, stack, thread, label. */
type SampleHead = [string, bigint, number, bigint, bigint, string, bigint];

interface Allocated {
  readonly head: SampleHead;
  readonly domain: string;
  readonly bytes: number;
  readonly objects: number;
}

/** Middle of a cohort; the last one ends with the look. */
function bornMs(cohorts: readonly TimeMs[], cohort: number, timeMs: TimeMs): TimeMs {
  const end = Math.min(cohorts[cohort]!, timeMs);
  const width = cohorts.length > 1 ? cohorts[1]! - cohorts[0]! : 0;
  const start = cohort > 0 ? cohorts[cohort - 1]! : cohorts[0]! - width;
  return (Math.min(start, end) + end) / 2;
}

function ageBucket(ageMs: number): number {
  return ageMs < 1 ? 0 : Math.floor(Math.log2(ageMs)) + 1;
}

function dayOf(timeMs: TimeMs): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}
