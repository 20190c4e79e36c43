/** The server is told the outcome of a timed capture. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { present } from "../../model/base/present.js";
import { Captures } from "../captures/captures.js";
import { Artifacts } from "../kept/artifacts.js";
import { boundsOf } from "../policy/bounds.js";
import { DEFAULT_POLICY } from "../policy/policy.js";
import type { Chosen, Program } from "../policy/programs.js";
import type { OpenRequest } from "./server_requests.js";
import { TimedCaptures } from "./timed_captures.js";

/** Has mapped a file with the name of CUDA's library, as a program with a device has. */
const MAPPING = `import mmap, sys
library = open(sys.argv[1], "r+b")
kept = mmap.mmap(library.fileno(), 4096)
print(flush=True)
sys.stdin.read()
`;

const service = "job";
const identity = { service, version: "", env: "" };
const request: OpenRequest = {
  ...{ id: "", service, pids: null, endsMs: 60_000, forMs: 60_000 },
  captures: { atMs: 0, what: ["gpu"] },
};

test("a capture beyond the limit of an hour, and one that captures nothing, are no success", {
  timeout: 130_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-timed-"));
  const library = join(folder, "libcuda.so.1");
  writeFileSync(library, Buffer.alloc(4096));
  const child = spawn("python3", ["-c", MAPPING, library]);
  await once(child.stdout, "data");
  const pid = present(child.pid);
  const program = {
    root: { identity, pid, command: ["python3"] },
    processes: [{ pid }],
  } as unknown as Program;
  const bounds = { ...boundsOf(DEFAULT_POLICY).captures, perHour: 1 };
  const captures = new Captures(new Artifacts(folder), () => {});
  const answers: [number, string][] = [];
  const timed = new TimedCaptures({
    clock: () => 0,
    programs: () => [{ program, rule: { remote: true, watch: "agent" } as Chosen }],
    capture: (wanted) => {
      captures.want(wanted, bounds, 0);
      captures.next(bounds, 0);
    },
    answer: (_, programs, why) => answers.push([programs, why]),
  });
  timed.add(request);
  await vi.waitUntil(() => answers.length > 0, { timeout: 60_000 });
  timed.add(request);
  await vi.waitUntil(() => answers.length > 1, { timeout: 60_000 });
  const start = "the server asked for the memory of all ranks of job at this moment";
  expect(answers).toEqual([
    [0, expect.stringMatching(`^${start}: .`)],
    [0, `${start}, but job has reached its limit of captures in an hour (1)`],
  ]);
  timed.close();
  await captures.close();
  child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});
