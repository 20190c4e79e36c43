import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, test, vi } from "vitest";
import { present } from "../../model/base/present.js";
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
