import { expect, test } from "vitest";
import { evidenceOf } from "./evidence.fixture.js";
import type { SiteHistories } from "./site_history.js";
import { judgeSites } from "./suspects.js";

/** The same site, seen at a few looks only; `live` in their place where it is given. */
function seenAt(text: string, looks: readonly number[], live?: readonly number[]): SiteHistories {
  const { sites } = evidenceOf(text) as { sites: SiteHistories };
  const pick = (values: ArrayLike<number>) =>
    Float64Array.from(looks, (look) => values[look] as number);
  return {
    ...sites,
    lookTimes: looks.map((look) => sites.lookTimes[look] as number),
    allocatedBytes: pick(sites.allocatedBytes),
    sites: sites.sites.map((site) => ({
      ...site,
      liveBytes: live ? Float64Array.from(live) : pick(site.liveBytes),
      allocatedBytes: pick(site.allocatedBytes),
    })),
  };
}

const courseOf = (histories: SiteHistories) =>
  judgeSites(histories, (histories.cohorts[0] as number) - 3_750)[0]?.course;

test("on a busy machine two looks tell whether survivors of every age still become more", () => {
  const keeps = "site infer keeps 1/s";
  expect(courseOf(seenAt(keeps, [1, 2, 13, 23]))).toBe("keeps");
  // A cache at its bound: survivors of every age, and no more of them than before.
  const full = [2, 4, 38, 36].map((mib) => mib * 2 ** 20);
  expect(courseOf(seenAt(keeps, [1, 2, 13, 23], full))).toBe("fills");
  expect(courseOf(seenAt(keeps, [1, 2, 23]))).toBe("keeps");
});
