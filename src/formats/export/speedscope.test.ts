import { expect, it } from "vitest";
import { present } from "../../model/base/present.js";
import { profileOf } from "../../model/profile/profile.fixture.js";
import { speedscope } from "./speedscope.js";

it("holds one sampled profile for each figure, stacks root first", () => {
  const profile = profileOf(`
    main;load@/srv/app.py:7 10
    main;load@/srv/app.py:7 20 thread=other
    main;parse 0 allocated=500
  `);
  const file = JSON.parse(speedscope.encode(profile, { title: "demo" }));
  expect(file.name).toBe("demo");
  const names = (sample: number[]) => sample.map((index) => file.shared.frames[index].name);
  const byName = new Map<string, { samples: number[][]; weights: number[]; endValue: number }>(
    file.profiles.map((each: { name: string }) => [each.name, each]),
  );
  const live = present(byName.get("live bytes"));
  expect(live.samples.map(names)).toEqual([["main", "load"]]);
  expect(live.weights).toEqual([30]);
  expect(live.endValue).toBe(30);
  expect(present(byName.get("allocated bytes")).samples.map(names)).toEqual([
    ["main", "load"],
    ["main", "parse"],
  ]);
  expect(file.shared.frames).toContainEqual({ name: "load", file: "/srv/app.py", line: 7 });
  for (const { samples, weights, type, startValue } of file.profiles) {
    expect([type, startValue, samples.length]).toEqual(["sampled", 0, weights.length]);
  }
});
