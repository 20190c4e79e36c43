/** What a process used when it ran out of memory: its figures at the last reading of any kind. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, expect, test } from "vitest";
import { readStat } from "../../linux/index.js";
import { nowMs } from "../../linux/this_process/clock.js";
import { present } from "../../model/base/present.js";
import { MemoryWatch } from "./memory_watch.js";
import { ProcessTree } from "./process_tree.js";

let program: ChildProcess | null = null;
afterEach(() => {
  program?.kill("SIGKILL");
});

/** Has a limit, uses most of it, and gets larger with each line. */
const LIMITED = `import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
kept = [bytearray(350 * 2**20)]
print("up", flush=True)
for line in sys.stdin:
    kept.append(b"x" * (60 * 2**20))
    print("grown", flush=True)`;

test("RSS that was read alone counts at the end, not only that of the last full poll", async () => {
  program = spawn("python3", ["-c", LIMITED], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: present(program.stdout) })[Symbol.asyncIterator]();
  await lines.next();
  const pid = present(program.pid);
  const startMs = nowMs();
  const tree = new ProcessTree(pid, readStat(pid)?.startTicks ?? 0, ["python3"], startMs, false);
  const watch = new MemoryWatch(pid);
  expect(watch.poll(tree.poll(startMs, false), true)).toEqual([]);

  program.stdin?.write("\n");
  await lines.next();
  const readAlone = tree.pollRss(nowMs());
  watch.keepFigures(readAlone);
  const { value: rssBytes = 0 } =
    readAlone.metrics.find(({ metric }) => metric === "rssBytes") ?? {};
  expect(rssBytes).toBeGreaterThan(400 * 2 ** 20);

  const exit = once(program, "exit");
  program.kill("SIGKILL");
  await exit;
  const figures = { maxRssBytes: 0, userMs: 0, systemMs: 0, endedMs: null };
  const report = { exitCode: 1, signal: null, ...figures };
  const [end] = watch.poll(tree.poll(nowMs(), false), false, report);
  expect(end).toMatchObject({ pid, cause: "rlimit", limit: "RLIMIT_AS", rssBytes });
});
