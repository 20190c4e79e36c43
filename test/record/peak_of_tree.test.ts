/** The figures of a tree at its peak contain only processes that ran at the same time. */

import { afterAll, expect, test } from "vitest";
import { anyInterpreter } from "../environment.js";
import { record, removeScratch } from "../run.js";

afterAll(removeScratch);

const program = `import os, time

def worker(mib):
    kept = [bytearray(b"x" * (1 << 20)) for _ in range(mib)]
    time.sleep(0.8)
    os._exit(0)

for mib in (40, 60):
    pid = os.fork()
    if pid == 0:
        worker(mib)
    os.waitpid(pid, 0)
kept = [bytearray(1 << 20) for _ in range(5)]
time.sleep(0.6)
`;

test("a worker that ended before the next one allocated is no part of the peak", async () => {
  const recorded = await record([anyInterpreter().path, "-c", program]);
  const { sites } = await recorded.summary();
  const ofWorkers = sites.filter(({ stack }) => stack.some((frame) => frame.function === "worker"));
  const atPeak = ofWorkers.reduce((sum, site) => sum + site.liveBytesAtPeak, 0);
  const allocated = ofWorkers.reduce((sum, site) => sum + site.allocatedBytes, 0);
  expect(atPeak / 2 ** 20).toBeGreaterThan(50);
  expect(atPeak / 2 ** 20).toBeLessThan(72);
  expect(allocated / 2 ** 20).toBeGreaterThan(90);
});
