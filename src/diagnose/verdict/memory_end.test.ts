import { expect, test } from "vitest";
import { evidenceOf, FIXTURE_START_MS } from "../evidence/evidence.fixture.js";
import type { MemoryEndEvidence } from "../evidence/evidence.js";
import { diagnose } from "./verdict.js";

const end: MemoryEndEvidence = {
  pid: 42,
  timeMs: FIXTURE_START_MS + 60_000,
  cause: "cgroup",
  limitBytes: 400 * 2 ** 20,
  usedBytes: 398 * 2 ** 20,
  rssBytes: 390 * 2 ** 20,
  limit: "/app",
  evidence: ["The kernel log names process 42."],
  sentence: "The program was killed.",
};
const killed = (text: string, pid = 42) =>
  diagnose({ ...evidenceOf(text), memoryEnds: [{ ...end, pid }] });

test("a steady program that was killed: what used its memory, and no advice to watch it", () => {
  const { verdict, suspects, advice, growth } = killed(
    "anonRssBytes 340\nsite load fills 300 by 2s\nsite parse churns 5\n" +
      "holder load held=40 path=app>table type=dict entries=900 at=4s",
  );
  expect(verdict.kind).toBe("out-of-memory");
  expect(verdict.summary).toMatch(/^The program was killed\. load .*300 MiB/);
  expect(suspects[0]).toMatchObject({
    atEnd: true,
    stack: [{ function: "load" }],
    holder: { path: ["app", "table"], entries: 900 },
  });
  expect(advice.map(({ text }) => text).join()).toMatch(/Raise the limit to 600 MiB/);
  expect(JSON.stringify({ verdict, advice })).not.toMatch(/PID|would settle/);
  expect(growth.msToLimit).toBe(0);
});

test.each([
  ["cgroup", "TM-A095"],
  ["rlimit", "TM-A096"],
  ["machine", "TM-A097"],
] as const)("a limit of a %s: advice about that limit", (cause, id) => {
  const evidence = evidenceOf("anonRssBytes 340\nsite load fills 300 by 2s");
  const { advice } = diagnose({ ...evidence, memoryEnds: [{ ...end, cause }] });
  expect(advice.map((each) => each.id)).toContain(id);
});

test("a window too short for a trend", () => {
  const { verdict, evidence } = killed("minute 0.05\nanonRssBytes 340\nsite load fills 300 by 1s");
  expect(verdict.kind).toBe("out-of-memory");
  expect(evidence.map(({ rule }) => rule)).not.toContain("window");
});

test("a leak that used most memory stays the verdict; a small leak does not", () => {
  expect(killed("anonRssBytes 40 + 2/s\nsite record keeps 2/s").verdict.kind).toBe("python-leak");
  const beside = killed(
    "anonRssBytes 340 + 0.5/s\nsite load fills 300 by 2s\nsite record keeps 0.5/s",
  );
  expect(beside.verdict.kind).toBe("out-of-memory");
});

test("of several workers, the one whose allocations were recorded", () => {
  const evidence = evidenceOf(
    "anonRssBytes 50\nchild 43 anonRssBytes 200\nsite batch fills 150 by 5s pid=43",
  );
  const memoryEnds = [43, 44].map((pid) => ({ ...end, pid }));
  const { verdict } = diagnose({ ...evidence, memoryEnds });
  expect(verdict.summary).toMatch(/batch .*150 MiB/);
});

test("a worker that was killed while its master keeps running", () => {
  const { verdict, suspects } = killed(
    "anonRssBytes 50\nchild 43 anonRssBytes 200\nsite batch fills 150 by 5s pid=43",
    43,
  );
  expect(verdict.kind).toBe("out-of-memory");
  expect(suspects[0]).toMatchObject({ pid: 43, stack: [{ function: "batch" }] });
});

test("a program that frees its memory as it fails: what each site held at the peak", () => {
  const evidence = evidenceOf("anonRssBytes 200\nsite load fills 200 by 2s");
  const atPeak = evidenceOf("site load fills 200 by 2s\nsite copy fills 100 by 2s").sites;
  const { verdict, suspects } = diagnose({
    ...evidence,
    ...(atPeak === undefined ? {} : { sitesAtPeak: atPeak }),
    memoryEnds: [{ ...end, cause: "rlimit", failedBytes: 2 ** 20 }],
  });
  expect(verdict).toMatchObject({ kind: "out-of-memory", confidence: 0.9 });
  expect(verdict.summary).toMatch(/load .*most of the live memory: 200 MiB, 67 % of it/);
  expect(suspects.map(({ stack }) => stack[0]?.function)).toEqual(["load", "copy"]);
});

test("a failed allocation that no agent saw is less certain", () => {
  const evidence = evidenceOf("anonRssBytes 340\nsite load fills 300 by 2s");
  const { verdict } = diagnose({ ...evidence, memoryEnds: [{ ...end, cause: "rlimit" }] });
  expect(verdict.confidence).toBe(0.6);
});
