import { expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { shareBase } from "../../model/documents/share_base.js";
import { shownFunction } from "../../model/profile/frame_stacks.js";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { ruleFinding } from "./verdict.fixture.js";
import { diagnose } from "./verdict.js";

const LEAK = "anonRssBytes 40 + 1/s\nsite record keeps 1/s";

function evidenceThatSays(text: string, says: string) {
  return diagnose(evidenceOf(text)).evidence.filter((one) => one.says === says);
}

test("a site that fills up is no evidence against a leak elsewhere", () => {
  const filled = `${LEAK}\nsite cache fills 20 by 15s\nholder record held=40 path=app>history`;
  expect(ruleFinding("plateau", filled)).toMatchObject({ says: "silent", kind: null });
  expect(evidenceThatSays(filled, "no leak")).toEqual([]);
  expect(diagnose(evidenceOf(filled)).verdict.confidence).toBe(0.9);
});

test("growth in a container with a bound is no evidence of a leak, in the ledger and in RSS", () => {
  const growing = "rssBytes 40 + 1/s\nanonRssBytes 30 + 1/s\nledger.python.used 20 + 1/s";
  const held = "holder document held=40 path=app>document entries=900 bound=4000";
  const bounded = `${growing}\nsite document keeps 1/s\n${held}`;
  expect(diagnose(evidenceOf(bounded)).verdict.kind).toBe("cache-plateau");
  expect(evidenceThatSays(bounded, "leak")).toEqual([]);
  // A container with a bound that holds little does not excuse the rest.
  const small = `${growing}\nsite document keeps 0.1/s\n${held}`;
  expect(evidenceThatSays(small, "leak").map(({ rule }) => rule)).toContain("ledger-parts");
});

test.each([
  ["rssBytes 40 + 1/s\nanonRssBytes 30 + 1/s\nsite record keeps 1/s", "the growth"],
  ["rssBytes 40 + 1/s\nanonRssBytes 30 + 1/s\nsite record keeps 2/s", "what all sites keep"],
  ["rssBytes 40 + 1/s\nanonRssBytes 30 + 1/s\nsite record keeps 1.15/s error=40", "the growth"],
  ["rssBytes 40\nanonRssBytes 30\nsite record keeps 1/s", "what all sites keep"],
])("a share is one of the same in the evidence and beside the suspect: %s", (text, base) => {
  const document = diagnose(evidenceOf(text));
  const kept = document.evidence.find(({ rule }) => rule === "age-cohorts");
  expect(shareBase(document)).toBe(base);
  expect(present(kept).detail).toContain(`% of ${base}`);
});

test("pages for the frames of threads and greenlets are not lost by C code", () => {
  const evidence = evidenceOf(
    "rssBytes 40 + 1/s\nanonRssBytes 30 + 1/s\nsite map keeps 1/s domain=native",
  );
  expect(diagnose(evidence).verdict.kind).toBe("native-leak");
  const leaf = present(evidence.sites?.sites[0]?.keptStacks[0]?.frames[0]);
  leaf.function = shownFunction("_PyMem_ArenaAlloc");
  expect(leaf.function).toBe("stack of Python frames");
  expect(shownFunction("grow_buffer")).toBe("grow_buffer");
  expect(diagnose(evidence).verdict.kind).not.toBe("native-leak");
});

test("the trend does not ask for a ledger that was read", () => {
  const rises = "rssBytes 40 + 1/s\nanonRssBytes 30 + 1/s";
  const { sites: _, ...outside } = evidenceOf(`${rises}\nledger.malloc.used 20 + 1/s`);
  const trend = diagnose(outside).evidence.find(({ rule }) => rule === "trend");
  expect(present(trend).detail).not.toContain("ledger is needed");
});

test("what does not grow is the measure whose growth was judged, not the one in the header", () => {
  const tree = "treeRssBytes 220\nrssBytes 60\nanonRssBytes 40\nchild 43 rssBytes 60";
  const evidence = evidenceOf(tree);
  const [root] = evidence.processes;
  const { timesMs, values } = present(root).series;
  (values as Map<string, Float64Array>).set(
    "treePssBytes",
    timesMs.map((_, at) => (at % 100 === 99 ? (100 + at / 10) * 2 ** 20 : Number.NaN)),
  );
  const trend = diagnose(evidence).evidence.find(({ rule }) => rule === "trend");
  expect(trend?.detail).toMatch(
    /^The sum of RSS of the process tree does not grow\. PSS of the process tree is .* at the end\.$/,
  );
});

test("anonymous shared mappings are counted once, as shared memory", () => {
  const text = "shmemRssBytes 2 + 1/s\nrssBytes 30 + 1/s\nsite take keeps 1/s domain=mapped";
  const { verdict, suspects, alsoFound } = diagnose(evidenceOf(text));
  expect(verdict.kind).toBe("shm-growth");
  expect(suspects.map(({ stack }) => stack[0]?.function)).toEqual(["take"]);
  expect(alsoFound).toBeUndefined();
  // Private mappings beside a little shared memory are a leak of their own.
  const both = diagnose(
    evidenceOf(`${text.replace("keeps 1/s", "keeps 4/s")}\nanonRssBytes 20 + 3/s`),
  );
  expect([both.verdict.kind, ...(both.alsoFound ?? []).map(({ kind }) => kind)]).toContain(
    "shm-growth",
  );
  expect(both.suspects[0]?.stack[0]?.function).toBe("take");
});

test("objects that were counted once show no growth", () => {
  const { sites: _, ...counted } = evidenceOf(
    "rssBytes 40 + 1/s\nanonRssBytes 30 + 1/s\ncensus bytes 20000 10000\ncensuses 20s",
  );
  const { evidence } = diagnose(counted);
  const found = evidence.find(({ rule }) => rule === "census-growth");
  expect(found?.detail).toBe("Objects were counted once, which shows no growth.");
});

test("without a lookup the kind of a leak is less certain", () => {
  const looked = `${LEAK}\nholder record held=40 path=app>history`;
  expect(diagnose(evidenceOf(looked)).verdict.confidence).toBe(0.9);
  expect(diagnose(evidenceOf(LEAK)).verdict.confidence).toBe(0.75);
});

test("unknown holders are a limit of a verdict that accuses something, and are reported once", () => {
  const limitsOf = (text: string, noted: readonly string[] = []) =>
    diagnose({ ...evidenceOf(text), limits: noted }).limits.filter((limit) =>
      /holder/i.test(limit),
    );
  expect(limitsOf(LEAK)).toHaveLength(1);
  expect(limitsOf("anonRssBytes 40")).toEqual([]);
  const noted = "No holders were looked up: too little memory was left for a lookup.";
  expect(limitsOf(LEAK, [noted])).toEqual([noted]);
});

test("entries of a full cache that replace older ones, allocated before an attach, are no leak while RSS does not rise", () => {
  const begun = evidenceOf("rssBytes 40\nanonRssBytes 30\nsite fetch keeps 0.3/s");
  const { startMs, endMs } = begun.window;
  const fullMs = startMs + ((endMs - startMs) * 2) / 3;
  /** In the last third, the site keeps 0.3 of what it did, and allocates the share `work` of it. */
  const slowing = (work: number, startedMs = startMs - 60_000) => {
    const evidence = evidenceOf("rssBytes 40\nanonRssBytes 30\nsite fetch keeps 0.3/s");
    const { sites: [fetch] = [], snapshotTimes = [] } = evidence.sites ?? {};
    snapshotTimes.forEach((time, snapshot) => {
      const [before, after] = [Math.min(time, fullMs) - startMs, Math.max(0, time - fullMs)];
      const { liveBytes, allocatedBytes } = present(fetch);
      liveBytes[snapshot] = (0.3 * 2 ** 20 * (before + 0.3 * after)) / 1000;
      allocatedBytes[snapshot] = (0.5 * 2 ** 20 * (before + work * after)) / 1000;
    });
    return diagnose({ ...evidence, target: { ...evidence.target, startedMs } }).verdict.kind;
  };
  expect(slowing(1)).toBe("steady");
  // Fewer requests: it keeps as large a part of what it allocates.
  expect(slowing(0.3)).toBe("python-leak");
  // Watched from its start.
  expect(slowing(1, startMs)).toBe("python-leak");
});

test("the rate behind a holder is not that of what another container holds", () => {
  const text =
    "rssBytes 40 + 2/s\nanonRssBytes 40 + 2/s\nsite order keeps 1.1/s\nsite audit keeps 0.9/s\n" +
    "holder order held=40 path=app>orders entries=900\nholder audit held=40 path=app>trail entries=900";
  const summary = (evidence: string) => diagnose(evidenceOf(evidence)).verdict.summary;
  expect(summary(text)).toMatch(/order .*orders holds them; 3\.9 GiB\/h, out of 7\.0 GiB\/h/);
  const together = text.replace("app>trail", "app>orders>entries");
  expect(summary(together)).toMatch(/order .*orders holds them; 7\.0 GiB\/h\.$/);
});
