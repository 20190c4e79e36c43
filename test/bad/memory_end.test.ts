/** Programs that run out of memory: killed in a control group, or failing at their own rlimit. */
import { afterAll, describe, expect, test } from "vitest";
import { diagnoseRecording, summarize } from "../../src/inspect/index.js";
import { anyInterpreter } from "../environment.js";
import { makeMemoryGroup, removeMemoryGroup } from "../memory_group.js";
import { record, removeScratch } from "../run.js";

const python = anyInterpreter().path;
const MIB = 2 ** 20;

const group = makeMemoryGroup(150 * MIB);
afterAll(() => {
  removeScratch();
  removeMemoryGroup(group);
});

const fill = `import os, sys, time
kept = []
def remember():
    kept.append([bytes(20_000) for _ in range(50)])
def work():
    while True:
        remember()
        time.sleep(0.01)
`;

describe("a control group at its limit", () => {
  test.skipIf(group === null)("the program is killed", async () => {
    const program = `${fill}
open("${group}/cgroup.procs", "w").write(str(os.getpid()))
work()`;
    const outcome = await record([python, "-c", program]);
    expect(outcome.stderr).toMatch(/killed by the OOM killer of its control group: limit 150 MiB/);
    expect(outcome.stderr).toMatch(/of which Python objects 1\d\d MiB/);
    const recording = outcome.open();
    const { processes, memoryEnds: [end] = [] } = summarize(recording, "end");
    const killed = processes.find(({ pid }) => pid === recording.meta.pid);
    expect(killed?.peakRssBytes ?? 0).toBeGreaterThanOrEqual(end?.rssBytes ?? 1);
    expect(recording.memoryEnds).toMatchObject([
      { pid: recording.meta.pid, cause: "cgroup", limitBytes: 150 * MIB },
    ]);
    const { verdict, suspects, advice } = await diagnoseRecording(recording, async () => {});
    expect(["out-of-memory", "python-leak"]).toContain(verdict.kind);
    expect(verdict.summary).toMatch(/remember/);
    expect(suspects[0]?.stack.map((frame) => frame.function)).toContain("remember");
    expect(JSON.stringify(advice)).not.toMatch(/attach|PID/);
  });
});

describe("a worker in a control group at its limit", () => {
  test.skipIf(group === null)("is killed, and its master keeps running", async () => {
    const program = `${fill}
worker = os.fork()
if worker == 0:
    open("${group}/cgroup.procs", "w").write(str(os.getpid()))
    work()
pid, status = os.waitpid(worker, 0)
time.sleep(1.5)
print(worker, os.WTERMSIG(status))`;
    const outcome = await record([python, "-c", program]);
    expect(outcome.status).toBe(0);
    const [worker, signal] = outcome.stdout.split(" ").map(Number);
    expect(signal).toBe(9);
    expect(outcome.open().memoryEnds).toMatchObject([{ pid: worker, cause: "cgroup" }]);
    expect(outcome.stderr).toMatch(
      new RegExp(`Its process ${worker} was killed by the OOM killer of its control group`),
    );
    const { verdict } = await diagnoseRecording(outcome.open(), async () => {});
    expect(["out-of-memory", "python-leak", "child-growth"]).toContain(verdict.kind);
    expect(verdict.summary).toMatch(/remember/);
  });
});

describe("a separate limit", () => {
  const limited = (bytes: number, end: string) =>
    `${fill}
import resource
resource.setrlimit(resource.RLIMIT_AS, (${bytes}, ${bytes}))
${end}`;

  test("a MemoryError that ends the program", async () => {
    const outcome = await record([python, "-c", limited(300 * MIB, "work()")]);
    expect(outcome.status).toBe(1);
    expect(outcome.stderr).toMatch(
      /The program ended right after an allocation of .* had failed: RLIMIT_AS 300 MiB/,
    );
    expect(outcome.open().memoryEnds).toMatchObject([{ cause: "rlimit", limit: "RLIMIT_AS" }]);
    const { verdict } = await diagnoseRecording(outcome.open(), async () => {});
    expect(verdict.summary).toMatch(/remember/);
  });

  test("a child of a shell, whose one large request fails before any poll", async () => {
    const program = "kept = bytearray(40 << 20); import sys; more = bytearray(400 << 20)";
    const script = `ulimit -v 300000; "${python}" -c "${program}"; true`;
    const outcome = await record(["sh", "-c", script]);
    expect(outcome.stderr).toMatch(
      /Its process \d+ ended right after an allocation of 400 MiB had failed: RLIMIT_AS 293 MiB/,
    );
    expect(outcome.open().memoryEnds).toMatchObject([
      { cause: "rlimit", failedBytes: expect.toSatisfy((bytes) => bytes >= 400 * MIB) },
    ]);
  });

  test("an error at three quarters of the limit, although no allocation failed, is not reported", async () => {
    const most = "kept = bytearray(150 << 20); time.sleep(1.2); sys.exit(3)";
    const outcome = await record([python, "-c", limited(240 * MIB, most)]);
    expect(outcome.status).toBe(3);
    expect(outcome.open().memoryEnds).toEqual([]);
  });

  test("a program that fails far from its limit is not reported", async () => {
    const outcome = await record([python, "-c", limited(4000 * MIB, "time.sleep(1); sys.exit(3)")]);
    expect(outcome.status).toBe(3);
    expect(outcome.open().memoryEnds).toEqual([]);
  });
});
