import { expect, test } from "vitest";
import { notMade, tooLarge } from "./lookup_sentences.js";

const ANSWER = { batch: null, census: null, cpuMs: 2_340, objects: 0, refusal: null };

test("a heap above the limit is not looked up again, or was not at all, and the command is named", () => {
  const limit = { most: 2_000_000, isFirst: true };
  const once = tooLarge({ ...ANSWER, objects: 4_100_000 }, 42, limit);
  expect(once).toContain(
    "not looked up again: the heap has 4,100,000 objects, more than 2,000,000",
  );
  expect(once).toMatch(/took 2\.3 s of CPU.*tidemark heap 42 --retained$/);
  const refused = { ...ANSWER, refusal: "the heap is huge" };
  expect(tooLarge(refused, 42, limit)).toContain("were not looked up: the heap is huge. ");
  expect(tooLarge(refused, 42, { ...limit, isFirst: false })).toContain(
    "not looked up again: the heap is huge. ",
  );
});

test("a lookup that was due but has no result: how old the holders are, and what was short", () => {
  expect(notMade(49_200, "budget")).toBe(
    "The holders are from 49 s before the end: a later lookup would have exceeded the recorder's CPU budget.",
  );
  expect(notMade(49_200, "memory")).toMatch(/: too little memory was left for a later lookup\.$/);
  expect(notMade(null, "budget")).toMatch(/^No holders were looked up: a lookup would/);
  expect(notMade(null, "ended")).toMatch(/: the process ended during a lookup\.$/);
  expect(notMade(null, "unfinished")).toMatch(/had not finished at the end/);
});
