/** The advice of whole verdicts: which facts of the evidence choose it. */
import { expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import type { Evidence } from "../evidence/evidence.js";
import { diagnose } from "./verdict.js";

function given(evidence: Evidence): string[] {
  const { suspects, advice } = diagnose(evidence);
  return [...suspects.flatMap((suspect) => suspect.advice), ...advice].map(({ id }) => id);
}

const LEAK = "anonRssBytes 40 + 1/s\nsite record keeps 1/s\n";

test("a queue's deque, a history's list, and a set", () => {
  const held = (path: string, type: string) =>
    given(evidenceOf(`${LEAK}holder record held=40 path=${path} type=${type} entries=900`));
  expect(held("__main__>q>.queue", "collections.deque")).toEqual(["TM-A006"]);
  expect(held("__main__>history", "list")).toEqual(["TM-A001"]);
  expect(held("__main__>active", "set")).toEqual(["TM-A008"]);
});

test("many tracebacks: the exceptions are kept", () => {
  const holder = "holder record held=40 path=__main__>rows type=list entries=900\n";
  const census = "census traceback 0.1 + 0.01/s\n";
  expect(given(evidenceOf(LEAK + holder + census))).toEqual(["TM-A005", "TM-A001"]);
});

test("threads and sockets that accumulate", () => {
  expect(given(evidenceOf("anonRssBytes 40\nthreads 4 + 1/s"))).toEqual(["TM-A071"]);
  const sockets = "anonRssBytes 40\nopenFiles 4 + 1/s\nopenSockets 4 + 1/s";
  expect(given(evidenceOf(sockets))).toEqual(["TM-A072"]);
  expect(given(evidenceOf("anonRssBytes 40\nopenFiles 4 + 1/s"))).toEqual(["TM-A070"]);
});

test("a program that has ended is recorded again, not watched", () => {
  const evidence = evidenceOf("minute 0.1\nanonRssBytes 40 + 5/s");
  const [target] = evidence.processes;
  const ended = {
    ...evidence,
    target: { ...evidence.target, command: ["/usr/bin/python3.12", "app.py", "two words"] },
    processes: [{ ...(target as (typeof evidence.processes)[0]), endedMs: evidence.window.endMs }],
  };
  const again = (one: Evidence) => diagnose(one).advice[0]?.text;
  expect(again(evidence)).toMatch(/: tidemark diagnose 42 --for \d+min\.$/);
  const outside = {
    ...evidence,
    processes: evidence.processes.map((one) => ({ ...one, profiled: false })),
  };
  expect(again(outside)).toMatch(/: tidemark diagnose 42 --no-agent --for \d+min\.$/);
  const imported = { ...evidence, importedFrom: "memray" };
  expect(again(imported)).toMatch(/: tidemark diagnose PID --for \d+min\.$/);
  const [advice] = diagnose(ended).advice;
  expect(advice?.text).toMatch(
    /^The program has ended\. Record it again, for \d+ min or more: tidemark run app\.py 'two words'$/,
  );
});

test("lists in a dict that grow are bounded, not the dict", () => {
  const kept =
    "anonRssBytes 40 + 1.2/s\nsite make keeps 1/s\nsite record keeps 0.2/s\n" +
    "holder make held=40 path=__main__>history type=dict entries=50 putter=record\n";
  expect(given(evidenceOf(kept))).toContain("TM-A002");
  const evidence = evidenceOf(kept);
  const buffers = present(evidence.sites?.sites.find(({ key }) => key.endsWith(" record")));
  buffers.objects.fill(50);
  expect(given(evidence)).toContain("TM-A028");
  expect(given(evidence)).not.toContain("TM-A002");
  const seen = (grow: string) =>
    given(evidenceOf(kept.replace("entries=50", `entries=50 grow=${grow}`)));
  expect(seen("yes")).toContain("TM-A028");
  expect(seen("no")).toContain("TM-A002");
  // One block that is reallocated is the holder's own, however many objects its one sample counts for.
  const oneSample = evidenceOf(kept.replace("record keeps 0.2/s", "record keeps 0.2/s samples=1"));
  present(oneSample.sites?.sites.find(({ key }) => key.endsWith(" record"))).objects.fill(50);
  expect(given(oneSample)).toContain("TM-A002");
  buffers.objects.fill(1);
  expect(given(evidence)).toContain("TM-A002");
  // Each entry holds one object, so entries are what grows.
  const single = evidenceOf(kept.replace("entries=50", "entries=1000"));
  present(single.sites?.sites.find(({ key }) => key.endsWith(" record"))).objects.fill(50);
  expect(given(single)).toContain("TM-A002");
});
