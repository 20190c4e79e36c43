/** Ends of real processes that a poll finds late. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readStat, startTimeMs } from "../../linux/index.js";
import { nowMs } from "../../linux/this_process/clock.js";
import { present } from "../../model/base/present.js";
import type { SeriesRow } from "../../recording/batches.js";
import { type EndOf, ProcessTree } from "./process_tree.js";

/** Starts a child, and waits for its end. */
const PROGRAM = `import subprocess
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
child.wait()
print("ended", flush=True)
input()
`;

let program: ChildProcess;
let lines: AsyncIterator<string>;
let childPid = 0;
beforeEach(async () => {
  program = spawn("python3", ["-c", PROGRAM], { stdio: ["pipe", "pipe", "ignore"] });
  lines = createInterface({ input: present(program.stdout) })[Symbol.asyncIterator]();
  childPid = Number((await lines.next()).value);
});
afterEach(() => {
  program.kill("SIGKILL");
});

function treeOf(endOf?: EndOf): { tree: ProcessTree; seenMs: number } {
  const pid = present(program.pid);
  const ticks = readStat(pid)?.startTicks ?? 0;
  const seenMs = nowMs();
  const tree = new ProcessTree(pid, ticks, ["python3"], seenMs, true, seenMs, endOf);
  tree.poll(seenMs, false);
  return { tree, seenMs };
}

async function end(): Promise<void> {
  const exit = once(program, "exit");
  process.kill(childPid, "SIGKILL");
  await lines.next();
  program.kill("SIGSEGV");
  await exit;
}

const ends = (rows: readonly SeriesRow[]) => rows.map(({ pid, endedMs }) => ({ pid, endedMs }));

test("without another source, the root and its child end where they were last seen, and so does the poll", async () => {
  const { tree, seenMs } = treeOf();
  await end();
  expect(tree.rootRuns(seenMs + 60_000)).toBe(false);
  const poll = tree.poll(seenMs + 60_000, false);
  expect(poll.timeMs).toBe(seenMs);
  expect(poll.metrics).toEqual([]);
  const pid = present(program.pid);
  expect(ends(poll.rows)).toEqual([
    { pid, endedMs: seenMs },
    { pid: childPid, endedMs: seenMs },
  ]);
  expect(poll.events.map(({ timeMs }) => timeMs)).toEqual([seenMs, seenMs]);
  expect(tree.newPoll(seenMs + 70_000).timeMs).toBe(seenMs);
});

test("a known end counts, within what polls have seen", async () => {
  const known = new Map<number, number>();
  const { tree, seenMs } = treeOf(({ pid }) => known.get(pid) ?? null);
  known.set(present(program.pid), seenMs + 40_000);
  known.set(childPid, seenMs - 40_000);
  await end();
  const poll = tree.poll(seenMs + 60_000, false);
  expect(poll.timeMs).toBe(seenMs + 40_000);
  expect(ends(poll.rows)).toEqual([
    { pid: program.pid, endedMs: seenMs + 40_000 },
    { pid: childPid, endedMs: seenMs },
  ]);
});

test("what ran before the recording began has no start in it; what a launched program starts has one", () => {
  const pid = present(program.pid);
  const ticks = readStat(pid)?.startTicks ?? 0;
  const startsSince = (rootStartedMs: number) => {
    const atMs = nowMs() + 1_000; // start times are precise to 10 ms
    const tree = new ProcessTree(
      pid,
      ticks,
      ["python3"],
      atMs,
      true,
      Math.min(atMs, rootStartedMs),
    );
    const { rows, events } = tree.poll(atMs, false);
    expect(rows.map((row) => row.pid)).toEqual([pid, childPid]);
    return events.flatMap((event) => (event.kind === "process-start" ? event.pid : []));
  };
  expect(startsSince(startTimeMs(ticks))).toEqual([]);
  expect(startsSince(Number.POSITIVE_INFINITY)).toEqual([pid, childPid]);
});

test("between two polls, RSS alone has readings; a process that has ended has none", async () => {
  const { tree, seenMs } = treeOf();
  process.kill(childPid, "SIGKILL");
  await lines.next();
  const { metrics, rows } = tree.pollRss(seenMs + 20_000);
  expect(rows).toEqual([]);
  const [rss, sum] = metrics;
  expect(metrics.map(({ metric }) => metric)).toEqual(["rssBytes", "treeRssBytes"]);
  expect(rss?.value).toBeGreaterThan(2 ** 20);
  expect(sum?.value).toBe(rss?.value);
});
