/** Pauses real processes: threads, refusals, the time limit, a guard that is killed. */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { readStat } from "../process/process.js";
import { holdProcess, ProcessHolder } from "./hold.js";
import { pausedByOther } from "./other_tracer.fixture.js";

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) {
    child.kill("SIGKILL");
  }
});

/** One of the system's Python interpreters, after it has printed a line. */
async function python(source: string): Promise<number> {
  const child = spawn("python3", ["-Ec", source], { stdio: ["pipe", "pipe", "inherit"] });
  started.push(child);
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  return present(child.pid);
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const states = (pid: number) =>
  readdirSync(`/proc/${pid}/task`).map((tid) => readStat(`${pid}/task/${tid}` as never)?.state);

const SPINNING = `
import threading, time
def spin():
    while True: time.sleep(0.001)
for _ in range(4): threading.Thread(target=spin, daemon=True).start()
print("up", flush=True)
spin()`;

/** Traces a process repeatedly, for a moment each time, like a sampling profiler. */
const SAMPLING = (pid: number) => `
import ctypes, os
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
ptrace = ctypes.CDLL(None).ptrace
print("up", flush=True)
while True:
    if ptrace(PTRACE_SEIZE, ${pid}, None, None) == 0:
        ptrace(PTRACE_INTERRUPT, ${pid}, None, None)
        os.waitpid(${pid}, WALL)
        ptrace(PTRACE_DETACH, ${pid}, None, None)
`;

describe("a paused process", () => {
  test("every thread is paused, and continues afterwards", async () => {
    const pid = await python(SPINNING);
    const held = await holdProcess(pid, 10_000);
    expect(new Set(states(pid))).toEqual(new Set(["t"]));
    const { lapsed, pauseMs } = await held.release();
    expect(lapsed).toBe(false);
    expect(pauseMs).toBeGreaterThan(0);
    await until(() => states(pid).every((state) => state !== "t"));
  });

  test("no other work of this process runs before it can be read, and none before it continues", async () => {
    const pid = await python(SPINNING);
    const holder = new ProcessHolder(pid);
    await holder.hold(10_000); // after its guard has started
    await holder.release();
    const done: string[] = [];
    setImmediate(() => done.push("other work"));
    await holder.hold(10_000);
    done.push(`paused: ${states(pid).every((state) => state === "t")}`);
    expect(await holder.registers()).toHaveLength(5);
    await holder.release();
    done.push("released");
    await new Promise((resolve) => setImmediate(resolve));
    holder.close();
    expect(done).toEqual(["paused: true", "released", "other work"]);
  });

  test("a program that only waits for the end of its guard does not end before it", async () => {
    const pid = await python(SPINNING);
    const module = new URL("../../../dist/linux/hold/hold.js", import.meta.url).href;
    const source = `
const { ProcessHolder } = await import(${JSON.stringify(module)});
for (let round = 0; round < 20; round++) {
  const holder = new ProcessHolder(${pid});
  await holder.hold(10_000);
  await holder.end();
}
console.log("ended");`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", source]);
    expect(stdout.toString()).toBe("ended\n");
  });

  test("of several processes, one is paused at a time", async () => {
    const pids = [await python(SPINNING), await python(SPINNING), await python(SPINNING)];
    const [first, ...others] = pids.map((pid) => new ProcessHolder(pid));
    await present(first).hold(10_000);
    const waiting = others.map(async (holder) => {
      await holder.hold(10_000);
      const paused = pids.filter((pid) => states(pid).every((state) => state === "t"));
      await holder.release();
      holder.close();
      return paused;
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(pids.map((pid) => states(pid)[0] === "t")).toEqual([true, false, false]);
    await present(first).release();
    present(first).close();
    expect(await Promise.all(waiting)).toEqual([[pids[1]], [pids[2]]]);
  });

  test("the process continues by itself when the time is over, and this is reported", async () => {
    const pid = await python(SPINNING);
    const held = await holdProcess(pid, 20);
    await until(() => states(pid).every((state) => state !== "t"));
    expect((await held.release()).lapsed).toBe(true);
  });

  test("continues when its holder dies", async () => {
    const pid = await python(SPINNING);
    const holder = new ProcessHolder(pid);
    await holder.hold(60_000);
    holder.close();
    await until(() => states(pid).every((state) => state !== "t"));
  });

  test("a process that job control has stopped stays stopped", async () => {
    const pid = await python(SPINNING);
    process.kill(pid, "SIGSTOP");
    await until(() => readStat(pid)?.state === "T");
    const held = await holdProcess(pid, 10_000);
    expect((await held.release()).lapsed).toBe(false);
    await until(() => readStat(pid)?.state === "T");
    process.kill(pid, "SIGCONT");
    await until(() => readStat(pid)?.state !== "T");
  });

  test("a signal during the pause is not lost", async () => {
    const pid = await python(`
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"got"))
print("up", flush=True)
while True: pass`);
    const child = present(started.at(-1));
    for (let round = 0; round < 20; round++) {
      const said = new Promise((resolve) => child.stdout?.once("data", resolve));
      process.kill(pid, "SIGUSR1"); // sometimes it is paused while it handles the signal
      const held = await holdProcess(pid, 10_000);
      await held.release();
      expect(String(await said)).toBe("got");
    }
  });

  test("a tool that lets it go at that moment is not taken for a missing permission", async () => {
    const pid = await python("import time\nprint('up', flush=True)\ntime.sleep(600)");
    await python(SAMPLING(pid));
    const reasons = new Set<string>();
    for (let time = 0; time < 25; time++) {
      await holdProcess(pid, 1_000).then(
        (held) => held.release(),
        (error: Error) => reasons.add(error.message.slice(0, 7)),
      );
    }
    expect([...reasons].filter((reason) => reason !== "TM-E032")).toEqual([]);
  });

  test("refusals name their reason", async () => {
    const pid = await python(SPINNING);
    const release = await pausedByOther(pid);
    await expect(holdProcess(pid, 1_000)).rejects.toThrow(/TM-E032 .* traced by tidemark-guard/);
    await release();
    await expect(holdProcess(2 ** 22 + 1, 1_000)).rejects.toThrow(/TM-E020/);
    const zombie = await python(`
import os, time
pid = os.fork()
if pid == 0: os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print(pid, flush=True)
time.sleep(60)`);
    const dead = Number(readFileSync(`/proc/${zombie}/task/${zombie}/children`, "utf8"));
    await expect(holdProcess(dead, 1_000)).rejects.toThrow(/TM-E020/);
  });
});
