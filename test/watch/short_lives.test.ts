/** Programs that end before the warm-up is over: a worker that is restarted all the time, and a host that runs many healthy tools. */
import { expect, test } from "vitest";
import { diagnoseRecording } from "../../src/inspect/index.js";
import { present } from "../../src/model/base/present.js";
import { open, until } from "../run.js";
import { stopped, withWatchTest } from "./watched.js";

const watched = withWatchTest();
const POLICY = "{warm_up: 40s, poll: 1s}";

/** Leaks; its supervisor restarts it after so many seconds. */
const WORKER = `import os, sys, time
kept = []
def remember():
    kept.append(os.urandom(200_000))
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    remember()
    time.sleep(0.05)
`;
/** Needs memory while it works, and gives it back. */
const TOOL = `import os, sys, time
def compile_unit():
    return sum(len(os.urandom(20_000)) for _ in range(20))
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    compile_unit()
    time.sleep(0.05)
`;

/** Keeps so many of a program running, each under its own service, for so many seconds each. */
function keeping(program: string, service: string, count: number, lifeSeconds: number): string {
  return `import os, subprocess, sys, time
env = {**os.environ, "TIDEMARK_SERVICE": ${JSON.stringify(service)}}
running = []
while True:
    running = [one for one in running if one.poll() is None]
    while len(running) < ${count}:
        running.append(subprocess.Popen([sys.executable, "-c", ${JSON.stringify(program)}, "${lifeSeconds}"], env=env))
    time.sleep(0.1)
`;
}

test("a worker that its supervisor restarts before the warm-up gets the agent, and its line is named; healthy tools get few", async () => {
  const test = watched();
  const { name } = test;
  test.python(keeping(WORKER, `${name}-worker`, 1, 18), "never");
  test.python(keeping(TOOL, `${name}-tool`, 4, 12), "never");
  const { child: collector, said } = test.watch("--config", test.policy(POLICY));
  const attached = (service: string) =>
    said().match(
      new RegExp(`${name}-${service} \\S* ?\\(process \\d+\\): recording it with`, "g"),
    ) ?? [];
  await until(() => attached("worker").length > 0);
  await until(() => /-worker 7 \(process \d+\): ended; in 2 of [2-4] lives/.test(said()));
  expect(said()).toMatch(
    /-worker 7 \(process \d+\): programs of this name keep ending after about [12]\d s, before the warm-up of 40 s: some of them get the agent at an age of 5\.0 s from now on/,
  );
  expect(said()).toMatch(/ended; in 2 of .* the same line kept what it allocated\. .*remember \(/);
  expect(said().match(/-worker 7 .* keep ending after/g)).toHaveLength(1);
  // Four at a time ran for more than a minute.
  expect(attached("tool").length).toBeLessThanOrEqual(3);
  expect(said()).not.toMatch(/-tool .*(?:the same line kept|leak)/);
  expect(await stopped(collector)).toBe(0);
});

/** Each worker keeps what its tasks allocate, and is replaced after four tasks. */
const POOL = `import multiprocessing, os, time
KEPT = []
def remember():
    KEPT.append(os.urandom(100_000))
def task(n):
    for _ in range(40):
        remember()
        time.sleep(0.05)
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=4) as pool:
        for _ in pool.imap_unordered(task, iter(int, 1)): pass
`;

test("workers of a pool that are replaced all the time are recorded with its program, and their line is in its diagnosis", async () => {
  const test = watched();
  test.python(POOL, "pool");
  const { child: collector, said } = test.watch("--config", test.policy("{warm_up: 5s}"));
  await until(() => test.recordingOf("pool", true) !== undefined);
  const recording = () => open(present(test.recordingOf("pool", true)));
  // Two workers at a time: most of these were started after the agent.
  await until(() => recording().processes.filter(({ profiled }) => profiled).length >= 6);
  const diagnosis = JSON.stringify(await diagnoseRecording(recording(), async () => {}));
  expect(diagnosis).toMatch(/"function":"(?:remember|task)"|remember \(|task \(/);
  expect(said()).not.toMatch(/keep ending after/);
  expect(await stopped(collector)).toBe(0);
});
