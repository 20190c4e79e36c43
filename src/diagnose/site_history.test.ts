import { expect, test } from "vitest";
import { profileOf } from "../model/profile.fixture.js";
import { ProfileTablesBuilder } from "../model/tables_builder.js";
import { SiteHistoryBuilder } from "./site_history.js";

test("built after each look, as a recorder does, it is what it is built at the end", () => {
  const tables = new ProfileTablesBuilder();
  const looks = [1000, 3000, 4000].map((live, n) => {
    const profile = profileOf(`main;record ${live} samples=${n + 3}\nmain;parse 500`, tables);
    return { ...profile, timeMs: profile.timeMs + n * 1000 };
  });
  const each = new SiteHistoryBuilder();
  const once = new SiteHistoryBuilder();
  for (const look of looks) {
    each.add(look);
    each.build();
    once.add(look);
  }
  expect(each.build()).toEqual(once.build());
  const [site] = each.build().sites;
  expect(site?.liveSamples).toBe(5);
  expect(site?.cohortBytes.reduce((sum, bytes) => sum + bytes)).toBe(4000);
});
