import { expect, test } from "vitest";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import type { ProbeEvidence } from "../evidence/evidence.js";
import { diagnose } from "../verdict/verdict.js";

const MIB = 2 ** 20;
const growing = "anonRssBytes 40 + 1/s\nsite parse keeps 1/s";

function probed(text: string, freed: number, returned: number | null) {
  const probe: ProbeEvidence = {
    pid: 42,
    collectedObjects: 5000,
    freedBytes: freed * MIB,
    returnedBytes: returned === null ? null : returned * MIB,
    refusal: returned === null ? "process 42 refused: no ctypes" : "",
  };
  const { verdict, evidence, suspects } = diagnose({ ...evidenceOf(text), probe });
  return { kind: verdict.kind, suspects, said: evidence.find(({ rule }) => rule === "probe") };
}

test("memory that the collector frees was in cycles", () => {
  const { kind, suspects, said } = probed(growing, 38, 1);
  expect(kind).toBe("cycle-garbage");
  expect(suspects[0]?.stack[0]?.function).toBe("parse");
  expect(said?.detail).toContain("gc.collect() freed 5,000 objects in cycles, 38 MiB");
});

test("memory that trimming returns was retained by the allocator", () => {
  expect(probed("anonRssBytes 40 + 1/s\nsite work churns 9", 0, 36).kind).toBe(
    "allocator-retention",
  );
});

test("a leak that neither frees is still a leak, and a steady program stays steady", () => {
  expect(probed(growing, 2, 1).kind).toBe("python-leak");
  expect(probed(growing, 0, null).said?.detail).toContain(
    "could not be called: process 42 refused",
  );
  expect(probed("anonRssBytes 80\nsite work churns 9", 30, 30)).toMatchObject({
    kind: "steady",
    said: { says: "silent" },
  });
});
