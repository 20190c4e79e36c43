/** The count of a real interpreter that uses the middleware of the Python package. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect, it } from "vitest";
import { environment } from "../../../test/environment.js";
import { repository } from "../../../test/run.js";
import { present } from "../../model/base/present.js";
import { findRequestCount, readRequestCount } from "./request_count.js";

/** Executes each line that it reads, then prints what the line left in `answer`. */
const PROGRAM = `
import os, sys, threading
answer = 0
for line in sys.stdin:
    exec(line)
    print(answer, flush=True)
`;
/** The child counts one, and waits until the other end of its pipe is closed. */
const FORK = `
import tidemark._request_count as counted
def fork():
    counting, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        counted.count()
        os.close(done[1])
        os.write(counting[1], b"x")
        os.read(done[0], 1)
        os._exit(0)
    os.read(counting[0], 1)
    return child, done[1]
`;
let child: ChildProcessWithoutNullStreams;
afterEach(async () => {
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
});

const interpreters = environment.interpreters.filter(({ chroot }) => chroot === undefined);

it.each(interpreters)(
  "reads requests of threads and of children in Python $version",
  async ({ path }) => {
    child = spawn(path, ["-c", PROGRAM], {
      env: { ...process.env, PYTHONPATH: join(repository, "python") },
    });
    const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
    const run = async (program: string) => {
      child.stdin.write(`exec(${JSON.stringify(program)})\n`);
      return Number((await answers.next()).value);
    };
    const pid = present(child.pid);
    await run("pass");
    expect(findRequestCount(pid)).toBeNull();
    await run("from tidemark.traffic import count");
    const address = present(findRequestCount(pid));
    expect(readRequestCount(pid, address)).toEqual({ requests: 0, countingPid: pid });
    await run(
      "all = [threading.Thread(target=lambda: [count() for _ in range(1000)]) for _ in range(8)]",
    );
    await run("for each in all: each.start()");
    await run("for each in all: each.join()");
    expect(readRequestCount(pid, address)?.requests).toBe(8000);
    const forked = await run(`${FORK}answer, end = fork()`);
    expect(findRequestCount(forked)).toBe(address);
    expect(readRequestCount(forked, address)).toEqual({ requests: 1, countingPid: forked });
    expect(readRequestCount(pid, address)?.requests).toBe(8000);
    await run("os.close(end); os.waitpid(answer, 0)");
    expect(readRequestCount(forked, address)).toBeNull();
    expect(readRequestCount(pid, 4096)).toBeNull();
  },
);
