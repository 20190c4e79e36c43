/** A process that overwrites its arguments and its environment with a title, as gunicorn and celery do with setproctitle. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { present } from "../../model/base/present.js";
import { readCommand } from "../process/process.js";
import { readEnvironment, usualName } from "./environment.js";
import { isOverwritten } from "./moved_environment.js";
import { PythonScan } from "./python_scan.js";

let started: ChildProcess | null = null;
afterEach(() => {
  started?.kill("SIGKILL");
});

/** Moves its environment to the heap and writes the title over the old place; so does a child that it forks. */
const TITLED = `import ctypes, os, time
fields = open("/proc/self/stat").read().rsplit(") ", 1)[1].split()
start, end = int(fields[45]), int(fields[48])
library = ctypes.CDLL(None)
kept = dict(os.environb)
library.clearenv()
for name, value in kept.items():
    library.setenv(name, value, 1)
def entitle(title):
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, title, len(title))
entitle(b"web: master [shop:app]")
if os.fork() == 0:
    entitle(b"web: worker " + b"of a long name " * 20)
print("up", flush=True)
time.sleep(600)`;

test("a process with a title of its own keeps its name and its variables, and so do the workers that it forks", async () => {
  const child = spawn("python3", ["-c", TITLED], {
    env: { ...process.env, OTEL_SERVICE_NAME: "checkout", TIDEMARK_VERSION: "42" },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  started = child;
  let said = "";
  while (said.split("up").length < 3) {
    said += String((await once(present(child.stdout), "data"))[0]);
  }
  const pid = present(child.pid);
  const family = new PythonScan().read(1).filter((one) => [one.pid, one.parentPid].includes(pid));
  try {
    expect(readCommand(pid)).toEqual(["web: master [shop:app]"]);
    expect(usualName(pid, readCommand(pid) ?? [])).toBe("web");
    expect(readEnvironment(pid)).toMatchObject({ OTEL_SERVICE_NAME: "checkout" });
    expect(family.map(({ command }) => command[0]?.slice(0, 11))).toEqual([
      "web: master",
      "web: worker",
    ]);
    expect(family.map(({ identity: { service, version } }) => `${service} ${version}`)).toEqual([
      "checkout 42",
      "checkout 42",
    ]);
    expect(new Set(family.map(({ stackStart }) => stackStart)).size).toBe(1);
  } finally {
    process.kill(-pid, "SIGKILL");
  }
});

test("only a text that cannot be an environment is taken for overwritten", () => {
  expect(["A=1\0B=\0", "", "A=1"].map(isOverwritten)).toEqual([false, false, false]);
  expect(["\0\0\0", "of gunicorn]\0\0\0", "level=info\0\0"].map(isOverwritten)).toEqual(
    Array(3).fill(true),
  );
});
