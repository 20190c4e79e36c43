import { expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import type { SiteHistories } from "./site_history.js";
import { judgeSites, mayKeep, roseAtEnd, type SiteJudgement } from "./suspects.js";

/** The same site, seen only in a few snapshots; `live`, if given, replaces their live bytes. */
function seenAt(
  text: string,
  snapshots: readonly number[],
  live?: readonly number[],
): SiteHistories {
  const { sites } = evidenceOf(text) as { sites: SiteHistories };
  const pick = (values: ArrayLike<number>) =>
    Float64Array.from(snapshots, (snapshot) => values[snapshot] as number);
  return {
    ...sites,
    snapshotTimes: snapshots.map((snapshot) => sites.snapshotTimes[snapshot] as number),
    allocatedBytes: pick(sites.allocatedBytes),
    sites: sites.sites.map((site) => ({
      ...site,
      liveBytes: live ? Float64Array.from(live) : pick(site.liveBytes),
      allocatedBytes: pick(site.allocatedBytes),
      objects: pick(site.objects),
    })),
  };
}

const startOf = ({ cohorts }: SiteHistories) => (cohorts[0] as number) - 3_750;
const firstOf = (histories: SiteHistories) =>
  judgeSites(histories, startOf(histories))[0] as SiteJudgement;
const courseOf = (histories: SiteHistories) => firstOf(histories).course;

/** The histories with the one site's columns changed. */
function withSite(
  { sites }: ReturnType<typeof evidenceOf>,
  change: (column: "liveBytes" | "cohortBytes", bytes: number, n: number) => number,
): SiteHistories {
  const histories = sites as SiteHistories;
  return {
    ...histories,
    sites: histories.sites.map((site) => ({
      ...site,
      liveBytes: site.liveBytes.map((bytes, n) => change("liveBytes", bytes, n)),
      cohortBytes: site.cohortBytes.map((bytes, n) => change("cohortBytes", bytes, n)),
    })),
  };
}

test("on a busy machine two snapshots show whether survivors of every age still grow", () => {
  const keeps = "site infer keeps 1/s";
  expect(courseOf(seenAt(keeps, [1, 2, 13, 23]))).toBe("keeps");
  // A cache at its bound has survivors of every age, but no more than before.
  const full = [2, 4, 38, 36].map((mib) => mib * 2 ** 20);
  expect(courseOf(seenAt(keeps, [1, 2, 13, 23], full))).toBe("fills");
  expect(courseOf(seenAt(keeps, [1, 2, 23]))).toBe("keeps");
});

test("a table that is replaced by a larger one does not hide the site that fills it", () => {
  const strings = evidenceOf("site record keeps 0.5/s");
  const filled = withSite(strings, (column, bytes, n) => {
    const size = column === "liveBytes" ? (n < 15 ? 30 : 60) : n === 10 ? 60 : 0;
    return bytes + size * 2 ** 20;
  });
  expect(courseOf(filled)).toBe("keeps");
  // The number of objects is unchanged: only one block was added.
  const same = filled.sites.map((site) => ({ ...site, objects: site.objects.fill(1000) }));
  expect(courseOf({ ...filled, sites: same })).not.toBe("keeps");
});

test("a jump at the end counts as a rise, a replaced larger block does not", () => {
  const leaps = evidenceOf("site tables leaps 36 at 45s");
  const rose = (histories: SiteHistories) =>
    roseAtEnd(firstOf(histories), histories, startOf(histories));
  expect(rose(withSite(leaps, (_, bytes) => bytes))).toBe(true);
  // The previous table had 16 MiB, of which almost nothing is left.
  const made = withSite(leaps, (column, bytes) =>
    column === "liveBytes" && bytes < 8 * 2 ** 20 ? 16 * 2 ** 20 : bytes,
  );
  expect(rose(made)).toBe(false);
});

test("a few survivors that are all young may be temporary", () => {
  const few = evidenceOf("site gather keeps 0.02/s samples=6");
  const may = (histories: SiteHistories) =>
    mayKeep(firstOf(histories), histories, startOf(histories));
  expect(may(withSite(few, (_, bytes) => bytes))).toBe(true);
  const young = withSite(few, (column, bytes, n) =>
    column === "cohortBytes" && n < 13 ? 0 : bytes,
  );
  expect(may(young)).toBe(false);
});
