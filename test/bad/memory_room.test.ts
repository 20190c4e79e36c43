/** Little memory: in a control group with hardly enough for a recorder, the program runs without one. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { diagnoseRecording } from "../../src/inspect/index.js";
import { readKernelKills } from "../../src/linux/index.js";
import { anyInterpreter } from "../environment.js";
import { makeMemoryGroup, removeMemoryGroup } from "../memory_group.js";
import { record, removeScratch, scratch, until } from "../run.js";

const python = anyInterpreter().path;
const MIB = 2 ** 20;

const group = makeMemoryGroup(90 * MIB);
afterAll(() => {
  removeScratch();
  removeMemoryGroup(group);
});

/** Starts a program in the group. */
const inGroup = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group ?? ""];

/** Keeps 20 MiB, prints its guard's other children, and ends with 8. */
const program = `import os, sys, time
def keep():
    return [bytes(20_000) for _ in range(1_000)]
kept = keep()
def beside():
    children = open(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read().split()
    try:
        return sorted(open(f"/proc/{pid}/comm").read().strip() for pid in children)
    except OSError:
        return beside() # one has just ended
patience = time.monotonic() + 60
time.sleep(1)
while "node" in str(beside()) and time.monotonic() < patience: time.sleep(0.05)
print(beside())
sys.exit(8)
`;

describe("memory", () => {
  test.skipIf(group === null)("too short for a recorder: the guard keeps the profile", async () => {
    const outcome = await record([python, "-c", program], { before: inGroup });
    expect(outcome.status).toBe(8);
    expect(outcome.stdout).not.toMatch(/node/);
    expect(outcome.stderr).toMatch(/The recorder left the program to its guard/);
    const recording = outcome.open();
    expect(recording.end).toMatchObject({ exitCode: 8 });
    const { sites, limits } = await outcome.summary();
    expect(sites[0]?.stack[0]?.function).toBe("keep");
    expect(sites[0]?.liveBytes).toBeGreaterThan(10 * MIB);
    expect(limits.join()).toMatch(/The recorder left the program to its guard/);
  });

  test.skipIf(group === null)("a program that is killed without a recorder beside it", async () => {
    const filling = `import time
kept = []
def remember():
    kept.append([bytes(20_000) for _ in range(50)])
while True:
    remember()
    time.sleep(0.02)`;
    const outcome = await record([python, "-c", filling], { before: inGroup });
    const recording = outcome.open();
    expect(recording.end).toMatchObject({ signal: 9 });
    expect(recording.memoryEnds).toMatchObject([
      { pid: recording.meta.pid, cause: "cgroup", limitBytes: 90 * MIB },
    ]);
    expect(outcome.stderr).toMatch(/killed by the OOM killer of its control group: limit 90 MiB/);
    const { verdict } = await diagnoseRecording(recording, async () => {});
    expect(verdict.summary).toMatch(/remember/);
  });

  // Without a recorder, only the kernel's log names a killed child; a pid namespace hides it.
  test.skipIf(group === null || readKernelKills(0) === null)(
    "a killed child holds nothing at the program's end",
    async () => {
      const filling = `import os, time
child = os.fork()
if child == 0:
    kept = []
    def remember():
        kept.append([bytes(20_000) for _ in range(50)])
    while True:
        remember()
        time.sleep(0.02)
pid, status = os.waitpid(child, 0)
time.sleep(1)
print(child, os.WTERMSIG(status))`;
      const outcome = await record([python, "-c", filling], { before: inGroup });
      const [child, signal] = outcome.stdout.split(" ").map(Number);
      expect(signal).toBe(9);
      const { memoryEnds } = outcome.open();
      const { sites } = await outcome.summary();
      const live = sites.reduce((sum, { liveBytes }) => sum + liveBytes, 0);
      expect(memoryEnds).toMatchObject([{ pid: child, cause: "cgroup" }]);
      expect(live).toBeLessThan(30 * MIB);
    },
  );

  test("is taken from the recorder first", async () => {
    const adjustments: string[] = [];
    const read = join(scratch(), "read");
    const waits = `import os, sys, time
print("ready", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.05)`;
    await record([python, "-c", waits, read], {
      async started(child, { stdout }) {
        await until(() => readFileSync(stdout, "utf8").includes("ready"));
        const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
        for (const pid of children.trim().split(" ")) {
          const name = readFileSync(`/proc/${pid}/comm`, "utf8").trim();
          adjustments.push(`${name} ${readFileSync(`/proc/${pid}/oom_score_adj`, "utf8").trim()}`);
        }
        writeFileSync(read, "");
      },
    });
    const own = readFileSync("/proc/self/oom_score_adj", "utf8").trim();
    expect(adjustments.filter((line) => line.startsWith("node"))).toEqual(["node 1000"]);
    expect(
      adjustments.filter((line) => !/^node/.test(line)).every((line) => line.endsWith(` ${own}`)),
    ).toBe(true);
  });
});
