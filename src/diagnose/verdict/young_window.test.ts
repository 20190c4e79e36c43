import { expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import type { Observations } from "../evidence/observations.js";
import type { Finding } from "../rules/rule.js";
import { diagnose } from "./verdict.js";
import { withYouth } from "./young_window.js";

const after = (seconds: number, endedMs: number | null = null, low = 0) =>
  ({
    windowMs: seconds * 1000,
    total: { low },
    evidence: {},
    target: { process: { endedMs } },
  }) as Observations;
const finding = (kind: Finding["kind"], says: Finding["says"]): Finding => ({
  says,
  kind,
  weight: 0.8,
  detail: "Survivors of every age add up to 5 MiB.",
});

test("a leak that was observed only briefly is not called a leak yet", () => {
  const leak = finding("python-leak", "leak");
  expect(withYouth(leak, after(20))).toEqual({
    ...leak,
    kind: "insufficient-evidence",
    detail:
      "Survivors of every age add up to 5 MiB. In 20 s a starting program, a filling cache and a leak look the same; a window of 1 min would settle it.",
    neededMs: 60_000,
  });
  expect(withYouth(leak, after(25))).toBe(leak);
});

test("the program is not called steady, either", () => {
  const { kind, detail } = withYouth(finding("cache-plateau", "no leak"), after(12));
  expect(kind).toBe("insufficient-evidence");
  expect(detail).toMatch(
    /an idle program and a slow leak look the same; a window of 1 min would settle it\.$/,
  );
  // A program that certainly grows is not idle.
  const growing = withYouth(finding("cache-plateau", "no leak"), after(12, null, 0.1));
  expect(growing.detail).toMatch(/a starting program, a filling cache and a leak look the same; /);
});

test("a program that has ended is to be run again for longer", () => {
  const { detail } = withYouth(finding("steady", "no leak"), after(12, 1_700_000_012_000));
  expect(detail).toMatch(/look the same; a run of 1 min or more would settle it\.$/);
});

test("counts and device-allocator figures are valid in any window", () => {
  const handles = finding("handle-leak", "leak");
  const device: Finding = { ...finding("python-leak", "leak"), about: "device" };
  expect(withYouth(handles, after(10))).toBe(handles);
  expect(withYouth(device, after(10))).toBe(device);
});

test("a container that the code may still clear is a less certain leak", () => {
  const after = (minutes: number, entries: number) =>
    diagnose(
      evidenceOf(`minute ${minutes}
        anonRssBytes 30 + 1/s
        site record keeps 1/s
        holder record held=40 path=app>cache type=dict entries=${entries}`),
    ).verdict;
  const young = after(0.67, 900);
  expect(young.kind).toBe("python-leak");
  expect(young.confidence).toBeLessThan(0.8);
  expect(young.summary).toMatch(
    / If the code clears that container at a size that it did not reach within 40 s, it is a cache, and no leak: watch it for longer\.$/,
  );
  const object = after(0.67, 0);
  expect(object.confidence).toBe(0.9);
  expect(object.summary).not.toContain("clears");
  const grown = after(2, 900);
  expect(grown.confidence).toBe(0.9);
  expect(grown.summary).not.toContain("clears");
});
