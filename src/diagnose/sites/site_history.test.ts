import { expect, test } from "vitest";
import { profileOf } from "../../model/profile/profile.fixture.js";
import { ProfileTablesBuilder } from "../../model/profile/tables_builder.js";
import { SiteHistoryBuilder } from "./site_history.js";

test("histories built after each snapshot, as in a recorder, equal those built at the end", () => {
  const tables = new ProfileTablesBuilder();
  const snapshots = [1000, 3000, 4000].map((live, n) => {
    const profile = profileOf(`main;record ${live} samples=${n + 3}\nmain;parse 500`, tables);
    return { ...profile, timeMs: profile.timeMs + n * 1000 };
  });
  const each = new SiteHistoryBuilder();
  const once = new SiteHistoryBuilder();
  for (const snapshot of snapshots) {
    each.add(snapshot);
    each.build();
    once.add(snapshot);
  }
  expect(each.build()).toEqual(once.build());
  const [site] = each.build().sites;
  expect(site?.liveSamples).toBe(5);
  expect(site?.cohortBytes.reduce((sum, bytes) => sum + bytes)).toBe(4000);
});

test("a function's imports are a separate site", () => {
  const builder = new SiteHistoryBuilder();
  builder.add(
    profileOf(`main@/srv/app.py:9;_find_and_load@<frozen importlib._bootstrap>:1176;load@/lib/python3.11/site-packages/torch/optim.py:3 5000
      main@/srv/app.py:12 700`),
  );
  const { sites } = builder.build();
  expect(sites.map(({ liveBytes }) => liveBytes.at(-1))).toEqual([5000, 700]);
  expect(sites.every(({ own }) => own)).toBe(true);
});

test("freed bytes are included on request", () => {
  const snapshot = profileOf("main;publish 0 allocated=9000\nmain;keep 10");
  const names = (freedToo: boolean) => {
    const builder = new SiteHistoryBuilder(freedToo);
    builder.add(snapshot);
    return builder.build().sites.map(({ keptStacks }) => keptStacks[0]?.frames[0]?.function);
  };
  expect(names(false)).toEqual(["keep"]);
  expect(names(true)).toEqual(["keep", "publish"]);
});
