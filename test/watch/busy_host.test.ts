/**
 * A host on which 20 processes start and 200 are forked each second: the collector keeps no descriptor, child process or
 * memory of them, and records each one that lives ten seconds.
 */
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, inject, test } from "vitest";
import { readRss } from "../../src/linux/process/process.js";
import { descendantsOf } from "../../src/linux/process/tree.js";
import { present } from "../../src/model/base/present.js";
import { until } from "../run.js";
import { IDLE, stopped, withWatchTest } from "./watched.js";

const watched = withWatchTest();
const seconds = inject("counts").busyHostSeconds;

/** Each twentieth of a second: ten forks that end at once, and one start. One start in twenty lives for a while. */
const CROWD = `import os, subprocess, sys, time
name, ticks = sys.argv[1], int(sys.argv[2]) * 20
begin = time.monotonic()
def reap(flags):
    try:
        while os.waitpid(-1, flags)[0]: pass
    except ChildProcessError: pass
for tick in range(ticks):
    for _ in range(10):
        if os.fork() == 0: os._exit(0)
    lives = tick % 20 == 0
    service = f"{name}-lives" if lives else f"{name}-short"
    program = "import time; time.sleep(25)" if lives else "pass"
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", program], env={**os.environ, "TIDEMARK_SERVICE": service})
    if lives: print(child.pid, flush=True)
    child.returncode = 0
    reap(os.WNOHANG)
    time.sleep(max(0, begin + (tick + 1) / 20 - time.monotonic()))
reap(0)
`;

const what =
  "starts and forks all the time: nothing stays, and each program that lives ten seconds is recorded";
test(what, { timeout: seconds * 15_000 }, async () => {
  const test = watched();
  test.python(IDLE, "outside");
  const { child: collector, said } = test.watch(
    ...["--config", test.policy("{warm_up: 1s, agents: 2, turn: 10s, poll: 1s}")],
  );
  const pid = present(collector.pid);
  await until(() => test.recordings().length > 0);
  const descriptors = () => readdirSync(`/proc/${pid}/fd`).length;
  const started = () => descendantsOf(pid).length;
  const before = { descriptors: descriptors(), started: started() };

  const crowd = test.python(CROWD, "never", [], [test.name, String(seconds)]);
  const lived: string[] = [];
  const rss: number[] = [];
  const most = { descriptors: 0, started: 0 };
  createInterface({ input: present(crowd.stdout) }).on("line", (line) => {
    lived.push(line);
    rss.push(readRss(pid) ?? 0);
    most.descriptors = Math.max(most.descriptors, descriptors());
    most.started = Math.max(most.started, started());
  });
  await once(crowd, "exit");
  expect(crowd.exitCode).toBe(0);
  await until(() => lived.length === seconds);

  const recorded = () => test.recordings().map((file) => file.split("-").at(-3));
  await until(() => lived.every((one) => recorded().includes(one)));
  expect(recorded().length).toBeGreaterThanOrEqual(lived.length + 1);
  // At most 25 programs live at the same time; two have the agent, each with its descriptors and a keeper.
  expect(most.descriptors).toBeLessThan(before.descriptors + 150);
  expect(most.started).toBeLessThan(before.started + 20);
  const half = Math.max(...rss.slice(0, rss.length / 2));
  expect(Math.max(...rss.slice(rss.length / 2))).toBeLessThan(half + (48 << 20));
  await until(() => descriptors() <= before.descriptors + 2 && started() <= before.started);
  expect(said()).not.toMatch(/TM-E|Error/);
  expect(await stopped(collector)).toBe(0);
});
