import { expect, it } from "vitest";
import { present } from "../../model/base/present.js";
import { profileOf } from "../../model/profile/profile.fixture.js";
import { folded } from "./folded.js";

/** As flamegraph.pl reads it: the last word is the number. */
function parse(text: string): [string[], number][] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => present(/^(.*) (\d+)$/.exec(line)))
    .map(([, stack, figure]) => [present(stack).split(";"), Number(figure)]);
}

it("folds equal stacks into one line", () => {
  const profile = profileOf(`
    main;load 10
    main;load 5 domain=native
    main;load;/lib/libx.so+1f0 3
    main 0 allocated=8
  `);
  expect(parse(folded.encode(profile, { value: "liveBytes" }))).toEqual([
    [["main (app.py:1)", "load (app.py:1)"], 15],
    [["main (app.py:1)", "load (app.py:1)", "libx.so+0x1f0 (libx.so)"], 3],
  ]);
  expect(parse(folded.encode(profile, { value: "allocatedBytes" }))).toContainEqual([
    ["main (app.py:1)"],
    8,
  ]);
});

it("replaces the characters in names that the format reserves", () => {
  const profile = profileOf("<lambda>@/a;b\tc.py:3 10".replace(";", "\u0000"));
  const hostile = { ...profile, strings: profile.strings.map((s) => s.replace("\u0000", ";\n")) };
  const [[stack, figure]] = parse(folded.encode(hostile, { value: "liveBytes" })) as [
    [string[], number],
  ];
  expect(stack).toHaveLength(1);
  expect(figure).toBe(10);
});

it("is empty if nothing is live", () => {
  expect(folded.encode(profileOf("main 0"), { value: "liveBytes" })).toBe("");
});
