import { expect, it } from "vitest";
import type { RequestCount } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";
import { RequestRates } from "./request_rates.js";
import type { TreePoll } from "./tree_poll.js";

const START = 1_000_000;

/** A recording of the processes 10 (series 0) and, from a poll that names it, 11 (series 1), which started 20 s after the recording. */
function recorded() {
  const counts = new Map<Pid, RequestCount>();
  const searches: number[] = [];
  let seconds = 0;
  const rates = new RequestRates(START, {
    find: (pid) => {
      searches.push(seconds);
      return counts.has(pid) ? 4096 : null;
    },
    read: (pid) => counts.get(pid) ?? null,
    process: (pid) => ({ ownPid: pid, startedMs: pid === 10 ? START - 60_000 : START + 20_000 }),
  });
  return {
    counts,
    searches,
    /** What is measured, as [series, requests a second]. */
    poll(atSeconds: number, living: readonly Pid[] = [10], mappedBytes = 1_000) {
      seconds = atSeconds;
      const measured: [number, number][] = [];
      rates.poll({
        timeMs: START + atSeconds * 1000,
        metrics: living.map((pid) => ({
          series: pid - 10,
          metric: "vmsBytes",
          value: mappedBytes,
        })),
        tree: { livingSeries: new Map(living.map((pid) => [pid, pid - 10])) },
        measure: ({ series }: { series: number }, metric: string, value: number) => {
          expect(metric).toBe("requestsPerSecond");
          measured.push([series, value]);
        },
      } as unknown as TreePoll);
      return measured;
    },
  };
}

it("reports requests since the reading before, at polls that are ten seconds apart", () => {
  const { counts, poll } = recorded();
  counts.set(10, { requests: 5_000, countingPid: 10 });
  expect(poll(0)).toEqual([]);
  counts.set(10, { requests: 5_100, countingPid: 10 });
  expect(poll(4)).toEqual([]);
  expect(poll(10)).toEqual([[0, 10]]);
  expect(poll(30)).toEqual([[0, 0]]);
});

it("includes all requests of a worker that started during the recording, and reads all processes at the same polls", () => {
  const { counts, poll } = recorded();
  counts.set(10, { requests: 0, countingPid: 10 });
  poll(0);
  counts.set(11, { requests: 50, countingPid: 11 });
  expect(poll(30, [10, 11])).toEqual([
    [0, 0],
    [1, 5],
  ]);
});

it("does not take the requests of a parent for those of a child that was forked without Python's hooks", () => {
  const { counts, poll } = recorded();
  counts.set(11, { requests: 9_000, countingPid: 10 });
  expect(poll(30, [11])).toEqual([]);
  counts.set(11, { requests: 9_030, countingPid: 10 });
  expect(poll(40, [11])).toEqual([[1, 3]]);
});

it("begins again when the program does: after exec, and with a count that is smaller", () => {
  const { counts, poll } = recorded();
  counts.set(10, { requests: 100, countingPid: 10 });
  poll(0);
  counts.delete(10);
  expect(poll(10)).toEqual([]);
  counts.set(10, { requests: 900, countingPid: 10 });
  expect(poll(20)).toEqual([]);
  counts.set(10, { requests: 7, countingPid: 10 });
  expect(poll(30)).toEqual([]);
  counts.set(10, { requests: 27, countingPid: 10 });
  expect(poll(40)).toEqual([[0, 2]]);
});

it("searches programs that count nothing more and more rarely", () => {
  const { searches, poll } = recorded();
  for (let second = 0; second < 4_000; second += 10) {
    poll(second, [10], second);
  }
  expect(searches).toEqual([0, 10, 30, 70, 150, 310, 630, 1230, 1830, 2430, 3030, 3630]);
});

it("searches a program again when its mappings have changed, and otherwise every ten minutes", () => {
  const { searches, poll } = recorded();
  for (let second = 0; second < 1_300; second += 10) {
    poll(second, [10], second < 200 ? 1_000 : 2_000);
  }
  expect(searches).toEqual([0, 200, 800]);
});
