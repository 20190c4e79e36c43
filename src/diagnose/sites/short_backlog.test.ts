import { expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { evidenceOf } from "../evidence/evidence.fixture.js";
import { diagnose } from "../verdict/verdict.js";

const MIB = 2 ** 20;

/** A queue that gains 0.4 MiB/s since the start of the minute that was watched: the oldest item waits for most of it. */
function queued(producedMib: number, takesOldest: boolean, freedObjects?: number) {
  const evidence = evidenceOf("minute 1\nanonRssBytes 40 + 0.4/s\nsite produce keeps 0.4/s");
  const histories = present(evidence.sites);
  const site = present(histories.sites[0]);
  const { startMs, endMs } = evidence.window;
  const [spanMs, consumed] = [endMs - startMs, producedMib - 0.4];
  histories.snapshotTimes.forEach((timeMs, at) => {
    const seconds = (timeMs - startMs) / 1000;
    site.liveBytes[at] = 0.4 * MIB * seconds;
    site.allocatedBytes[at] = producedMib * MIB * seconds;
  });
  const oldestMs = takesOldest ? startMs + (spanMs * consumed) / producedMib : startMs;
  const share = takesOldest ? 1 : 0.4 / producedMib;
  histories.cohorts.forEach((endOfCohortMs, at) => {
    const from = Math.max(oldestMs, histories.cohorts[at - 1] ?? startMs);
    const left = Math.max(0, endOfCohortMs - from) / 1000;
    site.cohortBytes[at] = share * producedMib * MIB * left;
  });
  if (freedObjects !== undefined) {
    const until = site.objects.map((_, at) => (freedObjects * at) / site.objects.length);
    Object.assign(site, { freedObjects: until });
  }
  return diagnose(evidence);
}

test("a queue is a backlog although its oldest item has waited for half of the window", () => {
  const { verdict, suspects } = queued(0.7, true);
  expect(verdict.kind).toBe("python-leak");
  expect(verdict.summary).toMatch(/^A backlog grows: items arrive faster than they are consumed: /);
  const backlog = present(suspects[0]?.backlog);
  expect(backlog.waitingMs / 1000).toBeCloseTo((60 * 0.4) / 0.7, -1);
  const suspect = present(suspects[0]);
  expect(suspect.growthBytesPerHour / 3600 / MIB).toBeCloseTo(0.4, 1);
  const left = backlog.producedBytesPerHour - backlog.consumedBytesPerHour;
  expect(left).toBeCloseTo(suspect.growthBytesPerHour, -1);
});

test("what keeps nearly all that it allocates is none", () => {
  expect(queued(0.43, true).suspects[0]?.backlog).toBeUndefined();
});

test("what keeps half of its objects, of every age, is none", () => {
  const { verdict, suspects } = queued(0.8, false);
  expect(verdict.kind).toBe("python-leak");
  expect(suspects[0]?.backlog).toBeUndefined();
});

test("a dict that frees its tables as it grows, but none of its entries, is none", () => {
  // The site has 1,000 live objects at the end.
  expect(queued(0.7, true, 700).suspects[0]?.backlog).toBeDefined();
  const { verdict, suspects } = queued(0.7, true, 8);
  expect(verdict.kind).toBe("python-leak");
  expect(suspects[0]?.backlog).toBeUndefined();
});
