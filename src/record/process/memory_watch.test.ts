/** Which figures of its control group a program's recording gets; the group is a folder with the kernel's files. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RecentTexts } from "../../linux/index.js";
import type { Metric } from "../../model/profile/series.js";
import { MemoryWatch } from "./memory_watch.js";
import { ProcessTree } from "./process_tree.js";
import { TreePoll } from "./tree_poll.js";

const HIGH = 64 * 2 ** 20;
const USAGE = 48 * 2 ** 20;
let group: string;

beforeEach(() => {
  group = mkdtempSync(join(tmpdir(), "tidemark-group-"));
  write({ "memory.max": "max\n", "memory.high": "max\n", "memory.current": `${USAGE}\n` });
  write({ "memory.events": "low 0\nhigh 3\nmax 0\noom 0\noom_kill 0\n" });
});
afterEach(() => rmSync(group, { recursive: true, force: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(group, name), text);
  }
}

/** As on a host of version 2 whose root group is the folder. */
class OneGroup extends RecentTexts {
  override readonly read = (path: string) => {
    if (path === "/proc/self/mountinfo") {
      return `30 23 0:26 / ${group} rw,nosuid - cgroup2 cgroup2 rw\n`;
    }
    try {
      return readFileSync(path, "utf8");
    } catch {
      return null;
    }
  };

  constructor() {
    super(() => 0, 0);
  }
}

/** What a poll records about the group of this process. */
function recorded(isQuiet: boolean): Partial<Record<Metric, number>> {
  const poll = new TreePoll(new ProcessTree(process.pid, 0, [], 0, false), 0);
  poll.isQuiet = isQuiet;
  new MemoryWatch(process.pid, new OneGroup()).poll(poll, true);
  return Object.fromEntries(
    poll.metrics.flatMap(({ metric, value }) =>
      metric.startsWith("cgroup") ? [[metric, value]] : [],
    ),
  );
}

test("memory.high is recorded at each poll, its throttlings at each full one", () => {
  write({ "memory.high": `${HIGH}\n` });
  const often = { cgroupUsageBytes: USAGE, cgroupHighBytes: HIGH };
  expect(recorded(true)).toEqual(often);
  expect(recorded(false)).toMatchObject({ ...often, cgroupHighEvents: 3 });
  write({ "memory.max": `${2 * HIGH}\n` });
  expect(recorded(true)).toEqual({ ...often, cgroupLimitBytes: 2 * HIGH });
});

test("max is no value", () => {
  expect(recorded(true)).toEqual({});
  expect(recorded(false)).not.toHaveProperty("cgroupHighBytes");
});
