/** The profiles of a recording as rows: profiles, samples, and the dictionary rows that they refer to. */

import { addAt, float64At, itemAt, uint8At, uint16At, uint32At } from "../../model/base/columns.js";
import { RowIndex } from "../../model/base/row_index.js";
import type { Millis, SiteIndex, TimeMs } from "../../model/base/units.js";
import type { Profile } from "../../model/profile/profile.js";
import { type ComparedSites, comparedOf, sameSite, siteHash } from "./compared_sites.js";
import { contentId } from "./content_ids.js";
import { DictionaryRows } from "./dictionary_rows.js";
import { dayOf, type SampleTarget } from "./sample_chunks.js";
import type { AddRow } from "./schema.js";
import { type SeriesRows, whole } from "./series_rows.js";
import type { WrittenIds } from "./written_ids.js";

const DOMAIN_NAMES = ["python", "native", "mapped"] as const;

/** The sites of one profile, by stack, process and so on. */
interface KnownSites {
  readonly sites: ComparedSites;
  readonly index: RowIndex;
  /** By process. */
  readonly owners: readonly SampleOwner[];
}

/** Values that all rows of a profile share. */
interface StoredSnapshotRows {
  readonly profile: Profile;
  readonly day: ReturnType<typeof dayOf>;
  readonly timeMs: bigint;
  /** By cohort: which of {@link buckets} it falls into. */
  readonly slots: Uint32Array;
  /** Unlike age buckets of the cohorts. */
  readonly buckets: readonly number[];
  /** For the current site, by slot; 0 between sites. */
  readonly bytes: Float64Array;
}

/** The owner of a row of samples. */
interface SampleOwner {
  readonly seriesId: bigint;
  readonly profileId: bigint;
}

/** Sums of one process's sites. */
interface SampleTotals {
  liveBytes: number;
  allocatedBytes: number;
}

/**
 * How long a profile holds if no other follows: the recorder takes one whenever the run is 12 % longer than at the last
 * one.
 */
export const SHORTEST_CARRY_MS: Millis = 600_000;
export const CARRY_SHARE = 0.15;
/** A sender that is late by a few intervals still runs; one that reports no interval may have a long one. */
const RECEIVED_INTERVALS = 4;
const SHORTEST_RECEIVED_CARRY_MS: Millis = 120_000;
/** A profile is stored at least this often, even if nothing has changed. */
export const LONGEST_UNSTORED_MS: Millis = 600_000;

/** The figures of one row of the `samples` table. */
interface SampleFigures {
  readonly ageBucket: number;
  readonly liveObjects: number;
  readonly liveBytes: number;
  readonly liveVariance: number;
  readonly allocatedObjects: number;
  readonly allocatedBytes: number;
  readonly peakBytes: number;
}

/** Fills profiles and samples; dictionary rows are added when they are first needed. */
export class SampleRows {
  readonly #series: SeriesRows;
  readonly #add: AddRow;
  readonly #samples: SampleTarget;
  readonly #dictionaries: DictionaryRows;
  readonly #profileIds = new Set<bigint>();
  /** The previous profile: its allocated figures are subtracted. */
  #before: KnownSites | null = null;
  #lastMs: TimeMs | null = null;
  #storedMs: TimeMs = 0;

  /** `written`: the dictionary rows that `add` has been called with. */
  constructor(series: SeriesRows, add: AddRow, samples: SampleTarget, written: WrittenIds) {
    this.#series = series;
    this.#add = add;
    this.#samples = samples;
    const labelValue = (name: string, value: string) => series.label(name, value);
    this.#dictionaries = new DictionaryRows(add, labelValue, written);
  }

  forgetWritten(): void {
    this.#dictionaries.forgetWritten();
  }

  addProfile(profile: Profile): void {
    const { sites, timeMs } = profile;
    this.#dictionaries.take(profile);
    const owners = this.#ownersOf(profile);
    const totals = owners.map((): SampleTotals => ({ liveBytes: 0, allocatedBytes: 0 }));
    const snapshot = snapshotRows(profile);
    // Other profilers send differences.
    const { isReceived } = this.#series;
    const before = this.#before;
    const found = new Uint8Array(before?.sites.length ?? 0);
    const index = new RowIndex();
    let site = 0;
    const same = (row: number) =>
      found[row] === 0 && before !== null && sameSite(before.sites, row, sites, site);
    for (; site < sites.length; site++) {
      const hash = isReceived ? 0 : siteHash(sites, site);
      const known = before === null ? -1 : before.index.find(hash, same);
      let objects = float64At(sites.allocatedObjects, site);
      let bytes = float64At(sites.allocatedBytes, site);
      if (before !== null && known >= 0) {
        found[known] = 1;
        objects -= float64At(before.sites.allocatedObjects, known);
        bytes -= float64At(before.sites.allocatedBytes, known);
      }
      const process = uint16At(sites.process, site);
      this.#addSite(snapshot, itemAt(owners, process), site, objects, bytes);
      const total = itemAt(totals, process);
      total.liveBytes += float64At(sites.liveBytes, site);
      total.allocatedBytes += bytes;
      if (!isReceived) {
        index.add(hash, site);
      }
    }
    if (before !== null) {
      this.#takeBack(snapshot, before, found, totals);
    }
    this.#dictionaries.release();
    this.#addProfiles(profile, owners, owners, totals);
    this.#before = isReceived ? null : { sites: comparedOf(sites), index, owners };
    this.#lastMs = timeMs;
    this.#storedMs = timeMs;
  }

  /** As {@link addProfile}, but a profile that differs from the last stored one by less than its own standard error, and
   * comes soon after it, is stored without samples: it refers to those of the last stored one. */
  addIfChanged(profile: Profile): void {
    const before = this.#before;
    if (before === null || !this.#isLike(before, profile)) {
      this.addProfile(profile);
      return;
    }
    const owners = this.#ownersOf(profile);
    const totals = owners.map((): SampleTotals => ({ liveBytes: 0, allocatedBytes: 0 }));
    const { sites } = profile;
    for (let site = 0; site < sites.length; site++) {
      itemAt(totals, uint16At(sites.process, site)).liveBytes += float64At(sites.liveBytes, site);
    }
    // The next stored profile includes its allocated bytes.
    this.#addProfiles(profile, owners, before.owners, totals);
    this.#lastMs = profile.timeMs;
  }

  #isLike(before: KnownSites, { sites, processes, timeMs }: Profile): boolean {
    if (
      timeMs - this.#storedMs >= LONGEST_UNSTORED_MS ||
      dayOf(timeMs).days !== dayOf(this.#storedMs).days ||
      processes.length !== before.owners.length
    ) {
      return false;
    }
    let difference = 0;
    let variance = 0;
    let found = 0;
    for (let site = 0; site < sites.length; site++) {
      const known = before.index.find(siteHash(sites, site), (row) =>
        sameSite(before.sites, row, sites, site),
      );
      const liveBefore = known < 0 ? 0 : float64At(before.sites.liveBytes, known);
      found += known < 0 ? 0 : 1;
      difference += Math.abs(float64At(sites.liveBytes, site) - liveBefore);
      variance += float64At(sites.liveVariance, site);
    }
    return found === before.sites.length && difference <= Math.sqrt(variance);
  }

  /** Sites of ended processes may have been merged into one: removes those that are stored again. */
  #takeBack(
    snapshot: StoredSnapshotRows,
    { sites, owners: ownersBefore }: KnownSites,
    found: Uint8Array,
    totals: readonly SampleTotals[],
  ): void {
    const owners = ownersBefore.map(({ seriesId }) => ({
      seriesId,
      profileId: contentId("profile", seriesId, whole(snapshot.profile.timeMs)),
    }));
    for (let site = 0; site < sites.length; site++) {
      if (found[site] === 0) {
        const { allocatedObjects, allocatedBytes } = sites;
        const process = uint16At(sites.process, site);
        const row = this.#addRow(snapshot, itemAt(owners, process), sites, site);
        const total = totals[process];
        if (total !== undefined) {
          total.allocatedBytes -= float64At(allocatedBytes, site);
        }
        this.#setFigures(row, {
          ageBucket: 0,
          liveObjects: 0,
          liveBytes: 0,
          liveVariance: 0,
          allocatedObjects: -float64At(allocatedObjects, site),
          allocatedBytes: -float64At(allocatedBytes, site),
          peakBytes: 0,
        });
      }
    }
  }

  #ownersOf({ processes, timeMs }: Profile): SampleOwner[] {
    return processes.map(({ pid, startedMs, command, python }) => {
      const seriesId = this.#series.of(pid, startedMs, command, python);
      return { seriesId, profileId: contentId("profile", seriesId, whole(timeMs)) };
    });
  }

  /** `stored`: the profile whose samples each process refers to. */
  #addProfiles(
    profile: Profile,
    owners: readonly SampleOwner[],
    stored: readonly SampleOwner[],
    totals: readonly SampleTotals[],
  ): void {
    const { timeMs, processes } = profile;
    const { isReceived, recordedMs } = this.#series;
    const carryMs = isReceived
      ? receivedCarryMs(profile.durationMs)
      : Math.max(SHORTEST_CARRY_MS, CARRY_SHARE * (timeMs - recordedMs));
    const durationMs =
      isReceived || this.#lastMs === null ? profile.durationMs : timeMs - this.#lastMs;
    const sums = new Map<bigint, SampleTotals>();
    owners.forEach(({ profileId }, process) => {
      const { liveBytes, allocatedBytes } = itemAt(totals, process);
      const sum = sums.get(profileId) ?? { liveBytes: 0, allocatedBytes: 0 };
      sum.liveBytes += liveBytes;
      sum.allocatedBytes += allocatedBytes;
      sums.set(profileId, sum);
    });
    owners.forEach(({ seriesId, profileId }, process) => {
      // A process that became another program by exec is there several times.
      if (this.#profileIds.has(profileId)) {
        return;
      }
      this.#profileIds.add(profileId);
      this.#add(
        "profiles",
        profileId,
        seriesId,
        whole(timeMs),
        whole(durationMs),
        "heap",
        itemAt(processes, process).periodBytes,
        sums.get(profileId)?.liveBytes ?? 0,
        sums.get(profileId)?.allocatedBytes ?? 0,
        itemAt(stored, process).profileId,
        whole(carryMs),
      );
    });
  }

  /** The rows of one site, by age; the oldest has its allocated figures. */
  #addSite(
    snapshot: StoredSnapshotRows,
    owner: SampleOwner,
    site: SiteIndex,
    allocatedObjects: number,
    allocatedBytes: number,
  ): void {
    const { sites, cohorts } = snapshot.profile;
    const live = float64At(sites.liveBytes, site);
    let objects = allocatedObjects;
    let bytes = allocatedBytes;
    let peakBytes = float64At(sites.peakBytes, site);
    const add = (bucket: number, aged: number): void => {
      if (aged > 0 || bytes !== 0 || peakBytes > 0) {
        const share = live > 0 ? aged / live : 0;
        const row = this.#addRow(snapshot, owner, sites, site);
        // Independent parts of a sum: their variances are shares of its own.
        const variance = float64At(sites.liveVariance, site) * share;
        const liveObjects = float64At(sites.liveObjects, site) * share;
        this.#setFigures(row, {
          ageBucket: bucket,
          liveObjects,
          liveBytes: aged,
          liveVariance: variance,
          allocatedObjects: objects,
          allocatedBytes: bytes,
          peakBytes,
        });
      }
      objects = 0;
      bytes = 0;
      peakBytes = 0;
    };
    const first = site * cohorts.length;
    let aged = false;
    for (let cohort = 0; cohort < cohorts.length; cohort++) {
      addAt(
        snapshot.bytes,
        uint32At(snapshot.slots, cohort),
        float64At(sites.cohortBytes, first + cohort),
      );
    }
    for (let slot = 0; slot < snapshot.buckets.length; slot++) {
      const slotBytes = float64At(snapshot.bytes, slot);
      if (slotBytes > 0) {
        snapshot.bytes[slot] = 0;
        aged = true;
        add(itemAt(snapshot.buckets, slot), slotBytes);
      }
    }
    if (!aged) {
      add(0, live);
    }
  }

  /** A row with its keys; its figures must still be set. */
  #addRow(
    snapshot: StoredSnapshotRows,
    owner: SampleOwner,
    sites: ComparedSites,
    site: SiteIndex,
  ): number {
    const { profile } = snapshot;
    const stackId = this.#dictionaries.stackId(profile, uint32At(sites.stack, site));
    const labelId = this.#dictionaries.labelId(profile, uint32At(sites.label, site));
    const row = this.#samples.nextRow();
    const { vectors } = this.#samples;
    vectors.day.setItem(row, snapshot.day);
    vectors.series_id.setItem(row, owner.seriesId);
    vectors.ts_ms.setItem(row, snapshot.timeMs);
    vectors.profile_id.setItem(row, owner.profileId);
    vectors.stack_id.setItem(row, stackId);
    vectors.thread.setItem(row, profile.threads[uint32At(sites.thread, site)]?.name ?? "");
    vectors.label_id.setItem(row, labelId);
    vectors.domain.setItem(row, DOMAIN_NAMES[uint8At(sites.domain, site)] ?? "");
    return row;
  }

  #setFigures(row: number, figures: SampleFigures): void {
    const { vectors } = this.#samples;
    vectors.age_bucket.setItem(row, figures.ageBucket);
    vectors.live_objects.setItem(row, figures.liveObjects);
    vectors.live_bytes.setItem(row, figures.liveBytes);
    vectors.live_variance.setItem(row, figures.liveVariance);
    vectors.allocated_objects.setItem(row, figures.allocatedObjects);
    vectors.allocated_bytes.setItem(row, figures.allocatedBytes);
    vectors.peak_bytes.setItem(row, figures.peakBytes);
  }
}

function receivedCarryMs(durationMs: Millis): Millis {
  const intervals = Math.max(SHORTEST_RECEIVED_CARRY_MS, RECEIVED_INTERVALS * durationMs);
  return durationMs > 0 ? Math.min(intervals, SHORTEST_CARRY_MS) : SHORTEST_CARRY_MS;
}

function snapshotRows(profile: Profile): StoredSnapshotRows {
  const { cohorts, timeMs } = profile;
  const buckets: number[] = [];
  const slots = Uint32Array.from(cohorts, (_, cohort) => {
    const bucket = ageBucket(timeMs - bornMs(cohorts, cohort, timeMs));
    const slot = buckets.indexOf(bucket);
    return slot < 0 ? buckets.push(bucket) - 1 : slot;
  });
  const bytes = new Float64Array(buckets.length);
  return { profile, day: dayOf(timeMs), timeMs: BigInt(whole(timeMs)), slots, buckets, bytes };
}

/** Middle of a cohort; the last one ends at the snapshot's time. */
function bornMs(cohorts: readonly TimeMs[], cohort: number, timeMs: TimeMs): TimeMs {
  const end = Math.min(itemAt(cohorts, cohort), timeMs);
  const width = cohorts.length > 1 ? itemAt(cohorts, 1) - itemAt(cohorts, 0) : 0;
  const start = cohort > 0 ? itemAt(cohorts, cohort - 1) : itemAt(cohorts, 0) - width;
  return (Math.min(start, end) + end) / 2;
}

function ageBucket(ageMs: number): number {
  return ageMs >= 1 && ageMs < Number.POSITIVE_INFINITY ? Math.floor(Math.log2(ageMs)) + 1 : 0;
}
