/** Polls of real processes from outside: what is read while they do not change, and when they do. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { makeMemoryGroup, removeMemoryGroup } from "../../../test/memory_group.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import { present } from "../../model/base/present.js";
import type { MemorySeries, Metric } from "../../model/profile/series.js";
import { openRecording } from "../process/open_recording.js";
import { OutsideRecording } from "./outside.js";

/** Answers each line of its input with one line, after it has done what the line asks for. */
const PROGRAM = `import subprocess, sys
kept = []
print("ready", flush=True)
for line in sys.stdin:
    if line == "grow\\n":
        kept.append(b"x" * (8 << 20))
    elif line == "start\\n":
        kept.append(subprocess.Popen(["sleep", "600"]))
    print("done", flush=True)
`;

let folder = "";
let child: ChildProcess;
let lines: AsyncIterator<string>;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-outside-"));
  child = spawn("python3", ["-c", PROGRAM], { stdio: ["pipe", "pipe", "ignore"], detached: true });
  lines = createInterface({ input: present(child.stdout) })[Symbol.asyncIterator]();
  await lines.next();
});
afterEach(() => {
  if (child.exitCode === null && child.signalCode === null) {
    process.kill(-present(child.pid), "SIGKILL");
  }
  rmSync(folder, { recursive: true });
});

async function ask(line: string): Promise<void> {
  child.stdin?.write(`${line}\n`);
  await lines.next();
}

test("a process that does not change gives RSS at each poll, and all figures rarely; growth gives all at once", async () => {
  const recordingPath = join(folder, "flat.tidemark");
  const recording = new OutsideRecording({
    ...{ pid: present(child.pid), recordingPath, follow: true },
    startedBelowMs: () => Number.NEGATIVE_INFINITY,
  });
  for (let n = 0; n < 13; n++) {
    recording.poll();
    await sleep(2); // two readings of one millisecond are one
  }
  await ask("grow");
  recording.poll();
  await recording.close();
  const { series } = openRecording(recordingPath);
  const count = (metric: Metric) => readings(series, metric).length;
  expect([count("rssBytes"), count("treeRssBytes")]).toEqual([14, 14]);
  // A full poll for each of 0, 1, 3, 7, 12 and the growth, unless the machine itself waited for memory.
  expect(count("openFiles")).toBeGreaterThanOrEqual(6);
  expect(count("vmDataBytes")).toBe(count("openFiles"));
  const rss = readings(series, "rssBytes");
  expect((rss.at(-1) ?? 0) - (rss.at(-2) ?? 0)).toBeGreaterThan(7 << 20);
  expect(new Set(rss.slice(2, -1)).size).toBe(1);
});

test("a child is found at the poll after it was seen to start, although its parent does not change", async () => {
  let startedMs = Number.NEGATIVE_INFINITY;
  const recordingPath = join(folder, "child.tidemark");
  const recording = new OutsideRecording({
    ...{ pid: present(child.pid), recordingPath, follow: true },
    startedBelowMs: () => startedMs,
  });
  for (let n = 0; n < 5; n++) {
    recording.poll();
  }
  await ask("start");
  startedMs = monotonicMs();
  recording.poll();
  await recording.close();
  const [parent, ...others] = openRecording(recordingPath).processes;
  expect(others.map(({ parentPid }) => parentPid)).toEqual([parent?.pid]);
});

const group = makeMemoryGroup(2 ** 30);
afterAll(() => removeMemoryGroup(group));

test.skipIf(group === null)(
  "the limit of a real control group is recorded, and its memory.high, which version 1 lacks",
  async () => {
    const high = join(group ?? "", "memory.high");
    const hasHigh = existsSync(high);
    const softLimit = join(group ?? "", "memory.soft_limit_in_bytes");
    writeFileSync(hasHigh ? high : softLimit, String(2 ** 29));
    writeFileSync(join(group ?? "", "cgroup.procs"), String(child.pid));
    const recordingPath = join(folder, "group.tidemark");
    const recording = new OutsideRecording({
      ...{ pid: present(child.pid), recordingPath, follow: true },
      startedBelowMs: () => Number.NEGATIVE_INFINITY,
    });
    recording.poll();
    await recording.close();
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended; // the group must be empty
    const { series } = openRecording(recordingPath);
    expect(readings(series, "cgroupLimitBytes")).toEqual([2 ** 30]);
    expect(readings(series, "cgroupHighBytes")).toEqual(hasHigh ? [2 ** 29] : []);
  },
);

function readings(all: readonly MemorySeries[], metric: Metric): number[] {
  return all.flatMap(({ values }) =>
    Array.from(values.get(metric) ?? []).filter((value) => !Number.isNaN(value)),
  );
}

test("the recording of a program that ended has the exit code that its caller knows", async () => {
  const recordingPath = join(folder, "ended.tidemark");
  const recording = new OutsideRecording({
    ...{ pid: present(child.pid), recordingPath, follow: true },
    outcomeOf: async () => ({ exitCode: 0, signal: null }),
  });
  const left = new OutsideRecording({
    ...{ pid: present(child.pid), recordingPath: join(folder, "left.tidemark"), follow: true },
    outcomeOf: () => Promise.reject(new Error("the program has not ended")),
  });
  recording.poll();
  left.poll();
  await left.close();
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.stdin?.end();
  await ended;
  expect(recording.poll()).toBe(false);
  await recording.close();
  expect(openRecording(recordingPath).end).toMatchObject({ exitCode: 0, signal: null });
});
