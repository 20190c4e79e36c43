import { expect, test } from "vitest";
import type { InstanceRowJson } from "../../../../src/model/documents/fleet_document.js";
import { comparisonIn, sidesOf, versionsOf } from "./comparison.js";

const RANGE = { startMs: 10_000_000, endMs: 11_000_000 };
const get = (search: string) => (name: string) => new URLSearchParams(search).get(name);

test("the newest version is compared with the one before it", () => {
  const rows = [
    { version: "41", startedMs: 100 },
    { version: "42", startedMs: 300 },
    { version: "41", startedMs: 200 },
  ] as InstanceRowJson[];
  expect(versionsOf(rows)).toEqual(["42", "41"]);
  expect(comparisonIn(get(""), ["42", "41"], [])).toEqual({
    kind: "versions",
    left: "41",
    right: "42",
  });
});

test("with one version, the chosen time is compared with the time before it", () => {
  const comparison = comparisonIn(get("with=versions"), ["42"], ["a"]);
  expect(comparison).toEqual({ kind: "earlier", ago: "same" });
  const [before, now] = sidesOf(comparison, "shop", RANGE);
  expect(before.range).toEqual({ startMs: 9_000_000, endMs: 10_000_000 });
  expect(now.range).toEqual(RANGE);
});

test("an address may name versions and instances that are gone", () => {
  expect(comparisonIn(get("with=versions&left=1&right=41"), ["42", "41"], [])).toEqual({
    kind: "versions",
    left: "41",
    right: "41",
  });
  expect(comparisonIn(get("with=instance&of=gone"), [], ["a", "b"])).toEqual({
    kind: "instance",
    of: "a",
  });
  expect(comparisonIn(get("with=instance&of=a"), [], ["a"]).kind).toBe("earlier");
  expect(comparisonIn(get("with=earlier&ago=3y"), [], [])).toMatchObject({ ago: "same" });
});

test("names are quoted in selectors", () => {
  const [left, right] = sidesOf({ kind: "versions", left: 'a"}', right: "" }, 'sh"op\\', RANGE);
  expect(left.selector).toBe('{service_name="sh\\"op\\\\", version="a\\"}"}');
  expect(right).toMatchObject({ name: "no version" });
  const [others, one] = sidesOf({ kind: "instance", of: "ab".repeat(16) }, "shop", RANGE);
  expect(others.selector).toContain("__stream__!=");
  expect(one.name).toBe("abababab");
});
