/** Compares /proc with what processes know about themselves. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import {
  countOpenFiles,
  countSockets,
  hasEnded,
  isLeaving,
  parseRollup,
  parseStat,
  parseStatus,
  readCommand,
  readDescriptors,
  readExecutable,
  readRollup,
  readStat,
  readStatus,
  readWrittenBytes,
  startTimeMs,
} from "./process.js";
import { childrenByScan, descendantsOf, endedChildren, listPids } from "./tree.js";
import { parsePasswords, userName } from "./users.js";

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
  }
});

/** Starts a Python program that prints one line of JSON and waits; returns that line. */
async function python(program: string): Promise<{ pid: number; says: Record<string, unknown> }> {
  const child = spawn("python3", ["-c", `${program}\nsys.stdin.read()`], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  const line = await new Promise<string>((resolve) => {
    let text = "";
    child.stdout?.on("data", (data) => {
      text += data;
      if (text.includes("\n")) {
        resolve(text);
      }
    });
  });
  const says = JSON.parse(line);
  return { pid: says.pid, says };
}

describe("one process", () => {
  test("threads, descriptors, sockets, memory", async () => {
    const { pid, says } = await python(`import json, os, socket, sys, threading, time
block = bytearray(64 << 20)
held = [open("/dev/null") for _ in range(5)] + list(socket.socketpair())
threads = [threading.Thread(target=time.sleep, args=(600,), daemon=True) for _ in range(3)]
for thread in threads: thread.start()
private = sum(int(l.split()[1]) for l in open("/proc/self/smaps_rollup") if l.startswith("Private_") and "Huge" not in l)
print(json.dumps({"pid": os.getpid(), "uid": os.getuid(), "fds": len(os.listdir("/proc/self/fd")) - 1,
  "sockets": sum(1 for p in map("/proc/self/fd/%d".__mod__, range(64)) if os.path.islink(p) and os.readlink(p).startswith("socket:")),
  "private": private * 1024, "peak": __import__("resource").getrusage(0).ru_maxrss * 1024}), flush=True)`);
    const status = readStatus(pid);
    expect(status).toMatchObject({ uid: says.uid, threads: 4 });
    expect(status?.namespacePids.at(0)).toBe(pid);
    expect(status?.rssBytes).toBeGreaterThan(64 << 20);
    expect(status?.vmsBytes).toBeGreaterThanOrEqual(status?.rssBytes ?? 0);
    expect(Math.abs((status?.vmHwmBytes ?? 0) - Number(says.peak))).toBeLessThan(4 << 20);
    const rollup = readRollup(pid);
    expect(Math.abs((rollup?.ussBytes ?? 0) - Number(says.private))).toBeLessThan(1 << 20);
    expect(rollup?.pssBytes).toBeGreaterThanOrEqual(rollup?.ussBytes ?? 0);
    expect(says.sockets).toBeGreaterThanOrEqual(2);
    expect([countOpenFiles(pid), countSockets(pid)]).toEqual([says.fds, says.sockets]);
    expect(readExecutable(pid)).toMatch(/python/);
  });

  test("a descriptor whose path is longer than a page has no name, and the others have theirs", async () => {
    const { pid, says } = await python(`import json, os, shutil, sys, tempfile
folder = tempfile.mkdtemp()
os.chdir(folder)
for _ in range(20):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
long = os.open("file", os.O_CREAT)
shutil.rmtree(folder)
print(json.dumps({"pid": os.getpid(), "long": long, "null": os.open("/dev/null", os.O_RDONLY)}), flush=True)`);
    const descriptors = readDescriptors(pid);
    expect(descriptors?.get(Number(says.long))).toBe("");
    expect(descriptors?.get(Number(says.null))).toBe("/dev/null");
    expect(countSockets(pid)).not.toBeNull();
  });

  test("stat: name, parent, start", () => {
    const stat = readStat(process.pid);
    expect(stat).toMatchObject({ parentPid: process.ppid });
    expect(stat?.state).toMatch(/[RS]/);
    expect(
      Math.abs(startTimeMs(stat?.startTicks ?? 0) - (Date.now() - process.uptime() * 1000)),
    ).toBeLessThan(5000);
    const used = process.cpuUsage();
    expect(Math.abs((stat?.userMs ?? 0) - used.user / 1000)).toBeLessThan(2000);
  });

  test("bytes written, to any target", () => {
    const before = readWrittenBytes(process.pid) ?? Number.NaN;
    writeFileSync("/dev/null", Buffer.alloc(3 << 20));
    expect((readWrittenBytes(process.pid) ?? Number.NaN) - before).toBeGreaterThanOrEqual(3 << 20);
  });

  test("arguments, with spaces, none and empty ones", async () => {
    const child = spawn("sleep", ["600"], { argv0: "odd name" });
    children.push(child);
    await new Promise((resolve) => child.once("spawn", resolve));
    await expect.poll(() => readCommand(present(child.pid))).toEqual(["odd name", "600"]);
  });

  test("a stopped one is reported as stopped; an ended one gives null", async () => {
    const child = spawn("sleep", ["600"]);
    children.push(child);
    const pid = present(child.pid);
    process.kill(pid, "SIGSTOP");
    await expect.poll(() => readStat(pid)?.state).toBe("T");
    child.kill("SIGKILL");
    await new Promise((resolve) => child.once("exit", resolve));
    for (const read of [
      readStatus,
      readStat,
      readRollup,
      countOpenFiles,
      countSockets,
      readWrittenBytes,
      readCommand,
      readExecutable,
    ]) {
      expect(read(pid)).toBeNull();
    }
    expect(descendantsOf(pid)).toEqual([pid]);
  });

  test("a kernel thread is known by the kernel's flag: a process without memory may be ending", () => {
    const stat = (flags: number) =>
      parseStat(`2 (a) S 0 0 0 0 -1 ${flags} 0 0 0 0 0 0 0 0 20 0 1 0 5\n`);
    expect(stat(2129984)?.kernelThread).toBe(true);
    expect(stat(4194564)?.kernelThread).toBe(false);
  });

  test("a kernel thread has no memory and no arguments", () => {
    const thread = listPids().find((pid) => readStat(pid)?.name === "kthreadd");
    if (thread !== undefined) {
      expect(readCommand(thread)).toEqual([]);
      expect(readStatus(thread)).toMatchObject({ rssBytes: 0, vmsBytes: 0 });
    }
  });
});

describe("trees", () => {
  test("children of every thread, and their children", async () => {
    const { pid, says } = await python(`import json, os, subprocess, sys, threading
found = []
def start(): found.append(subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True))
threads = [threading.Thread(target=start) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
grandchildren = [int(process.stdout.readline()) for process in found]
print(json.dumps({"pid": os.getpid(), "children": sorted(p.pid for p in found), "grandchildren": sorted(grandchildren)}), flush=True)`);
    const sorted = (pids: readonly number[] | undefined) => [...(pids ?? [])].sort((a, b) => a - b);
    expect(sorted(childrenByScan().get(pid))).toEqual(says.children);
    const tree = descendantsOf(pid);
    expect(tree[0]).toBe(pid);
    expect(sorted(tree.slice(1))).toEqual(
      sorted([...(says.children as number[]), ...(says.grandchildren as number[])]),
    );
    for (const grandchild of says.grandchildren as number[]) {
      process.kill(grandchild, "SIGKILL");
    }
  });
});

test("children that have ended and were not waited for", async () => {
  const { pid, says } = await python(`import json, os, subprocess, sys, time
kept = [subprocess.Popen(["true"]) for _ in range(3)] + [subprocess.Popen(["sleep", "600"])]
for process in kept[:3]: os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
print(json.dumps({"pid": os.getpid(), "pids": [p.pid for p in kept]}), flush=True)`);
  const [first = 0, ...others] = says.pids as number[];
  const ended = endedChildren(pid, new Set());
  expect(ended).toEqual(new Set([first, ...others.slice(0, 2)]));
  expect(endedChildren(pid, ended ?? new Set())).toEqual(ended);
  process.kill(others[2] ?? 0, "SIGKILL");
});

describe("texts", () => {
  test("a name may hold brackets, spaces and newlines", () => {
    const text = `42 (a) b (c\n) S 7 42 42 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 1 0 9876 1000 50 18446744073709551615 1 2 140000 0 0\n`;
    expect(parseStat(text)).toEqual({
      name: "a) b (c\n",
      state: "S",
      parentPid: 7,
      startTicks: 9876,
      userMs: 1500,
      systemMs: 250,
      stackStart: 140000,
      threads: 1,
      vmsBytes: 1000,
      exiting: false,
      kernelThread: false,
    });
    expect(parseStat("")).toBeNull();
  });

  test("a process has ended when its last thread has, and is exiting before that", () => {
    const stat = (state: string, flags: number, threads: number) =>
      parseStat(
        `42 (a) ${state} 7 42 42 0 -1 ${flags} 1 2 3 4 150 25 0 0 20 0 ${threads} 0 9876\n`,
      );
    const [running, exiting] = [4194560, 4194564];
    const answers = [
      stat("S", running, 3),
      stat("R", exiting, 1),
      stat("Z", exiting, 1),
      stat("Z", exiting, 3),
      null,
    ];
    expect(answers.map(hasEnded)).toEqual([false, false, true, false, true]);
    expect(answers.map(isLeaving)).toEqual([false, true, true, false, true]);
  });

  test("a zombie has a status and no memory", () => {
    expect(
      parseStatus("Name:\tz\nState:\tZ (zombie)\nUid:\t5\t5\t5\t5\nThreads:\t1\n"),
    ).toMatchObject({ uid: 5, rssBytes: 0, threads: 1 });
    expect(parseRollup("")).toBeNull();
  });

  test("users", () => {
    expect(parsePasswords("root:x:0:0::/:/bin/sh\n# no\nweb:x:33:33::/:\n")).toEqual(
      new Map([
        [0, "root"],
        [33, "web"],
      ]),
    );
    expect(userName(0)).toBe(execFileSync("id", ["-un", "0"], { encoding: "utf8" }).trim());
    expect(userName(3_999_999_999)).toBe("3999999999");
    expect(readFileSync("/etc/passwd", "utf8")).toContain("root");
  });
});
