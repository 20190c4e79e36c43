import { expect, test } from "vitest";
import { VERDICT_KINDS } from "../../../src/model/documents/diagnosis_document.js";
import { cohortsOf, holderWords, moodOf, partsShown, placeOf } from "./words.js";

test("cohorts come oldest first, and add up to the live bytes", () => {
  const ages = [
    { olderThanMs: 0, bytes: 100 },
    { olderThanMs: 1000, bytes: 60 },
    { olderThanMs: 2000, bytes: 10 },
  ];
  const cohorts = cohortsOf(ages);
  expect(cohorts).toEqual([
    { fromMs: 2000, toMs: Number.POSITIVE_INFINITY, bytes: 10 },
    { fromMs: 1000, toMs: 2000, bytes: 50 },
    { fromMs: 0, toMs: 1000, bytes: 40 },
  ]);
  expect(cohortsOf([])).toEqual([]);
});

test("a holder is described by type, entries and retained size, as far as known", () => {
  const holder = { path: ["module app"], type: "dict", entries: 1873, retainedBytes: 6_376_793 };
  expect(holderWords(holder)).toBe("a dict of 1,873 entries that keeps 6.08 MiB alive");
  expect(holderWords({ ...holder, type: "array.array", entries: 1, retainedBytes: 0 })).toBe(
    "an array.array of 1 entry",
  );
  expect(holderWords({ ...holder, type: "", entries: 0, retainedBytes: 0 })).toBe("an object");
});

test("a frame's place, with and without a file and a line", () => {
  const frame = { function: "f", file: "/srv/app.py", line: 4, kind: "python" } as const;
  expect(placeOf(frame)).toBe("app.py:4");
  expect(placeOf({ ...frame, file: "/lib/libc.so.6", line: 0, kind: "native" })).toBe("libc.so.6");
  expect(placeOf({ ...frame, file: "", line: 0, kind: "mark" })).toBe("");
});

test("empty parts are left out, the fastest growing comes first", () => {
  const part = (name: string, bytes: number, growthBytesPerHour: number) => ({
    part: name,
    bytes,
    growthBytesPerHour,
  });
  const rows = [
    part("shm", 0, 0),
    part("a", 5, 0),
    part("b", 9, 0),
    part("c", 1, 70),
    part("d", 0, -3),
  ];
  expect(partsShown(rows).map(({ part }) => part)).toEqual(["c", "b", "a", "d"]);
});

test("three kinds of verdict are harmless, one is undecided, all others are alarms", () => {
  const moods = VERDICT_KINDS.map(moodOf);
  expect(moods.filter((mood) => mood === "calm")).toHaveLength(3);
  expect(moods.filter((mood) => mood === "open")).toHaveLength(1);
});
