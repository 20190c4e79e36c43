import { expect, test } from "vitest";
import { itemAt, uint32At } from "../model/base/columns.js";
import { frameName, framePlace, framesOf } from "../model/profile/frame_text.js";
import { profileOf } from "../model/profile/profile.fixture.js";
import { joinRecurringStacks, withJoinedStacks } from "./recurring_stacks.js";

/** "main app.py:1 > load <…>:7 100": the sites of a profile once its stacks are joined, leaf last. */
function joinedSites(text: string): string[] {
  const profile = profileOf(text);
  const joined = joinRecurringStacks(profile);
  const sites = withJoinedStacks(profile.sites, profile.cohorts.length, joined);
  return Array.from({ length: sites.length }, (_, row) => {
    const frames = framesOf(joined.tables, uint32At(sites.stack, row)).reverse();
    const names = frames.map(
      (frame) => `${frameName(joined.tables, frame)} ${framePlace(joined.tables, frame)}`,
    );
    return `${names.join(" > ")} ${sites.liveBytes[row]}`;
  }).sort();
}

test("the same code in several cells is one site, which names the first and the last cell", () => {
  expect(
    joinedSites(`
      run;<module>@<ipython-input-3-5fa0>:1;load@/srv/app.py:7 100
      run;<module>@<ipython-input-9-17b2>:1;load@/srv/app.py:7 40
      run;<module>@<ipython-input-4-aa10>:1;load@/srv/app.py:7 2
      run;<module>@<ipython-input-5-bb10>:1;other@/srv/app.py:9 8
      run;<module>@<ipython-input-4-aa10>:2;load@/srv/app.py:7 16
    `),
  ).toEqual([
    "run app.py:1 > <module> In [3..9]:1 > load /srv/app.py:7 142",
    "run app.py:1 > <module> In [4]:2 > load /srv/app.py:7 16",
    "run app.py:1 > <module> In [5]:1 > other /srv/app.py:9 8",
  ]);
});

test("cells of a kernel without known numbers are named without one, or without an end", () => {
  expect(
    joinedSites(`
      <module>@/tmp/ipykernel_71/2750.py:1 100
      <module>@/tmp/ipykernel_71/9981.py:1 20
      <module>@/tmp/ipykernel_71/4444.py:3 5
    `),
  ).toEqual(["<module> notebook cell:3 5", "<module> notebook cells:1 120"]);
  expect(
    joinedSites(`
      <module>@<ipython-input-3-5fa0>:1 100
      <module>@/tmp/ipykernel_71/9981.py:1 20
    `),
  ).toEqual(["<module> In [3..]:1 120"]);
});

test("templates and doctests that are compiled with a counter are one site", () => {
  expect(
    joinedSites(`
      main;root@<template 0x7f01aa>:4 1
      main;root@<template 0x7f01bb>:4 2
      main;root@<template 0x7f01bb>:5 4
      main;<module>@<doctest shop.add[0]>:1 8
      main;<module>@<doctest shop.add[1]>:1 16
    `),
  ).toEqual([
    "main app.py:1 > <module> <doctest shop.add[#]>:1 24",
    "main app.py:1 > root <template #>:4 3",
    "main app.py:1 > root <template 0x7f01bb>:5 4",
  ]);
});

test("other files are never joined", () => {
  const text = `
    main;work@/srv/job1.py:4 1
    main;work@/srv/job2.py:4 2
    main;work@<string>:4 4
  `;
  const profile = profileOf(text);
  expect(joinRecurringStacks(profile)).toEqual({ tables: profile, represents: null });
  expect(itemAt(joinedSites(text), 0)).toBe("main app.py:1 > work /srv/job1.py:4 1");
});
