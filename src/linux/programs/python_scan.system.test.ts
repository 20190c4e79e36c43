import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { present } from "../../model/base/present.js";
import { hasEnded, readStat } from "../process/process.js";
import { PythonScan } from "./python_scan.js";

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started) {
    child.kill("SIGKILL");
  }
});

/** Runs Python, and becomes `sleep` when a line arrives. */
const BECOMES_SLEEP = `import os, sys
print("up", flush=True)
sys.stdin.readline()
os.execvp("sleep", ["sleep", "600"])`;

async function python(program: string): Promise<ChildProcess> {
  const child = spawn("python3", ["-c", program], { stdio: ["pipe", "pipe", "ignore"] });
  started.push(child);
  await once(present(child.stdout), "data");
  return child;
}

test("a program is found once; when it ends, or becomes another program, it is gone", async () => {
  let nowMs = 0;
  const scan = new PythonScan(() => true);
  const has = ({ pid }: ChildProcess) => {
    nowMs += 1;
    return scan.read(nowMs).some((one) => one.pid === pid);
  };
  const becomes = await python(BECOMES_SLEEP);
  const ends = await python("import time; print('up', flush=True); time.sleep(600)");
  expect([has(becomes), has(ends)]).toEqual([true, true]);

  becomes.stdin?.write("\n");
  await vi.waitUntil(
    () => {
      scan.examine(present(becomes.pid)); // as for the kernel's event of an exec
      return !has(becomes);
    },
    { timeout: 60_000 },
  );
  expect(has(ends)).toBe(true);

  const exit = once(ends, "exit");
  ends.kill("SIGKILL");
  await exit;
  scan.ended(present(ends.pid));
  expect(has(ends)).toBe(false);
});

test("an end that nobody reports is noticed by the next scan, which knows when the process was last seen", async () => {
  const gone: number[] = [];
  const scan = new PythonScan(
    () => false,
    (pid) => gone.push(pid),
  );
  const child = await python("import time; print('up', flush=True); time.sleep(600)");
  const pid = present(child.pid);
  scan.read(1_000);
  scan.read(4_000);
  expect(scan.lastSeenMs(pid, 0)).toBe(null);
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
  scan.read(7_000);
  expect(gone).toContain(pid);
  expect(scan.lastSeenMs(pid, 1_000)).toBe(4_000);
  // Another process had this pid before.
  expect(scan.lastSeenMs(pid, 5_000)).toBe(null);
});

/** Forks a child that ends at once, and never waits for it. */
const ZOMBIE = `import os, sys, time
child = os.fork()
if child == 0:
    sys.stdin.readline()
    os._exit(0)
print(child, flush=True)
time.sleep(600)`;

test("a zombie was not seen since it was last known to run", async () => {
  const scan = new PythonScan();
  const parent = spawn("python3", ["-c", ZOMBIE], { stdio: ["pipe", "pipe", "ignore"] });
  started.push(parent);
  const pid = Number(String((await once(present(parent.stdout), "data"))[0]));
  scan.read(1_000);
  parent.stdin?.write("\n");
  await vi.waitUntil(() => hasEnded(readStat(pid)), { timeout: 60_000 });
  for (const nowMs of [4_000, 7_000, 60_000]) {
    scan.read(nowMs);
  }
  expect(scan.lastSeenMs(pid, 0)).toBe(1_000);
});
