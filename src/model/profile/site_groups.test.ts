import { expect, it } from "vitest";
import { itemAt } from "../base/columns.js";
import { present } from "../base/present.js";
import { frameName } from "./frame_text.js";
import { FIXTURE_TIME_MS, profileOf } from "./profile.fixture.js";
import { LIFETIME_BUCKETS } from "./profile.js";
import { EVERY_ROW, selectSites } from "./row_filter.js";
import { groupSites, medianAge, medianLifetime, NO_FRAME } from "./site_groups.js";

const profile = profileOf(`
  main;load;libx.so+1f0 10 domain=native
  main;load;libx.so+2f0 5 domain=native thread=other
  main;load 3
  libx.so+1f0 2 domain=native
  main;idle 0 allocated=40
`);
const groups = groupSites(profile, profile, selectSites(profile, profile.sites, EVERY_ROW));

it("counts a site at its innermost Python frame, by allocator", () => {
  const said = groups.map((group) => [
    frameName(profile, group.frame),
    group.domain,
    group.liveBytes,
    group.liveVariance,
    group.liveSamples,
  ]);
  expect(said).toEqual([
    ["load", 1, 15, 125, 2],
    ["load", 0, 3, 9, 1],
    ["libx.so+0x1f0", 1, 2, 4, 1],
    ["idle", 0, 0, 0, 0],
  ]);
  expect(new Set(groups.map((group) => group.key)).size).toBe(groups.length);
});

it("keeps sites without a stack", () => {
  const bare = profileOf("main 5");
  bare.sites.stack[0] = 0;
  const [group] = groupSites(bare, bare, Uint32Array.of(0));
  expect([present(group).frame, present(group).liveBytes]).toEqual([NO_FRAME, 5]);
});

it("halves the live bytes by age, and those without any have none", () => {
  // All of it was allocated in the first of two cohorts: in the half second that ended half a second ago.
  expect(medianAge(itemAt(groups, 0), profile, FIXTURE_TIME_MS - 1000)).toBeCloseTo(750);
  expect(medianAge(itemAt(groups, 3), profile, FIXTURE_TIME_MS - 1000)).toBeNaN();
});

it("halves freed objects by lifetime", () => {
  const lifetimes = new Float64Array(LIFETIME_BUCKETS);
  expect(medianLifetime({ ...itemAt(groups, 0), lifetimes })).toBeNaN();
  lifetimes[0] = 4;
  expect(medianLifetime({ ...itemAt(groups, 0), lifetimes })).toBeCloseTo(0.5);
  lifetimes[11] = 100; // 1024 to 2048 ms
  const median = medianLifetime({ ...itemAt(groups, 0), lifetimes });
  expect(median).toBeGreaterThan(1024);
  expect(median).toBeLessThan(2048);
});
