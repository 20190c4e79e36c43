/** The agent without `tidemark run`: switched on by the environment, as in a container image. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { summarize } from "../src/inspect/recorded/summary.js";
import { itemAt } from "../src/model/base/columns.js";
import { openRecording } from "../src/record/index.js";
import { anyInterpreter } from "./environment.js";
import { execute, removeScratch, repository, scratch, tidemark, until } from "./run.js";

afterAll(removeScratch);

const program = `import os
kept = []
def load():
    for number in range(64):
        kept.append(bytearray(1 << 20))
load()
os._exit(0)`;

/** A program that keeps what it allocates, with the agent from its start, once its pool exists. */
async function startKeeping(): Promise<{ folder: string; child: ChildProcess }> {
  const folder = scratch();
  const keeps = `import time
kept = []
def remember():
    kept.append(bytearray(1 << 20))
while True:
    remember()
    time.sleep(0.05)`;
  const env = {
    ...process.env,
    LD_PRELOAD: join(repository, "dist/native/libtidemark.so"),
    TIDEMARK: `dir=${folder}`,
  };
  const child = spawn(anyInterpreter().path, ["-c", keeps], { env, stdio: "ignore" });
  await until(() => readdirSync(folder).some((name) => name.endsWith(".pool")));
  return { folder, child };
}

async function leavePool(options: string): Promise<{ folder: string; pools: string[] }> {
  const folder = scratch();
  const library = join(repository, "dist/native/libtidemark.so");
  const env = { LD_PRELOAD: library, TIDEMARK: options.replace("DIR", folder) };
  const { status } = await execute([anyInterpreter().path, "-c", program], { env });
  expect(status).toBe(0);
  return { folder, pools: readdirSync(folder).filter((file) => file.endsWith(".pool")) };
}

describe("TIDEMARK=dir=DIR", () => {
  test("leaves a pool, which becomes a recording with the allocating line", async () => {
    const { folder, pools } = await leavePool("period=256K,dir=DIR");
    expect(pools).toHaveLength(1);
    const recording = join(folder, "app.tidemark");
    const pool = join(folder, itemAt(pools, 0));
    const { status } = await execute([tidemark, "import", pool, "-o", recording]);
    expect(status).toBe(0);
    const summary = summarize(openRecording(recording), "end");
    const site = summary.sites.find(({ stack }) =>
      stack.some((frame) => frame.function === "load"),
    );
    expect(site?.stack.find((frame) => frame.function === "load")?.line).toBe(5);
    const error = Math.abs((site?.liveBytes ?? 0) - (64 << 20));
    expect(error).toBeLessThanOrEqual(5 * (site?.standardErrorBytes ?? 0) + (1 << 20));
    expect(summary.rss.peakBytes).toBe(0);
    expect(summary.limits.join(" ")).toContain("No recorder watched the process");
    const screen = (await execute([tidemark, "summary", recording])).stdout;
    expect(screen).toMatch(/RSS +not recorded/);
  });

  test("pools of several processes become a recording each; those of a shell's children are skipped", async () => {
    const folder = scratch();
    const library = join(repository, "dist/native/libtidemark.so");
    const env = { LD_PRELOAD: library, TIDEMARK: `dir=${folder}`, PYTHON: anyInterpreter().path };
    const script = `/bin/true; "$PYTHON" -c 'a = bytearray(40 << 20)'; "$PYTHON" -c 'b = bytearray(50 << 20)'; /bin/true`;
    expect((await execute(["sh", "-c", script], { env })).status).toBe(0);
    const pools = readdirSync(folder).map((name) => join(folder, name));
    const outcome = await execute([tidemark, "import", ...pools]);
    expect(outcome.status).toBe(0);
    const recordings = outcome.stdout.match(/^\S+\.tidemark/gm) ?? [];
    const largest = recordings.map(
      (path) => summarize(openRecording(path), "peak").sites[0]?.liveBytesAtPeak ?? 0,
    );
    expect(largest.filter((bytes) => bytes >= 40 << 20)).toHaveLength(2);
    expect(recordings.length).toBeLessThan(pools.length);
    expect(outcome.stderr).toMatch(/files contain no profile: their processes have no samples\./);
    const both = await execute([tidemark, "import", ...pools, "-o", join(folder, "all.tidemark")]);
    expect(both).toMatchObject({ status: 2, stdout: "" });
    expect(both.stderr).toMatch(/--output needs exactly one file/);
  });

  test("a pool becomes a recording with the children that left pools beside it", async () => {
    const folder = scratch();
    const library = join(repository, "dist/native/libtidemark.so");
    const env = { LD_PRELOAD: library, TIDEMARK: `dir=${folder}` };
    const forks = `import os
kept = []
def work():
    for number in range(64):
        kept.append(bytearray(1 << 20))
if os.fork() == 0:
    work()
    os._exit(0)
os.wait()`;
    const { status } = await execute([anyInterpreter().path, "-c", forks], { env });
    expect(status).toBe(0);
    const pools = readdirSync(folder).map((name) => join(folder, name));
    expect(pools).toHaveLength(2);
    const recording = join(folder, "all.tidemark");
    const imported = async (pool: string) => {
      await execute([tidemark, "import", pool, "-o", recording, "--force"]);
      return summarize(openRecording(recording), "peak");
    };
    // The child's pool comes first or last; that of the parent contains both.
    const [first = "", second = ""] = pools;
    let shown = await imported(first);
    if (shown.processes.length === 1) {
      shown = await imported(second);
    }
    expect(shown.processes).toHaveLength(2);
    expect(shown.sites[0]?.stack.some((frame) => frame.function === "work")).toBe(true);
    const { stdout } = await execute([tidemark, "summary", recording]);
    expect(stdout).toMatch(/Processes +2 in all\n.*COMMAND\n +- +- +\d+ /);
    expect(stdout).toMatch(/No recorder watched the processes: their memory figures/);
  });

  test("is used by attach, which records from then on, and left as it was", async () => {
    const { folder, child } = await startKeeping();
    try {
      const recording = join(folder, "taken.tidemark");
      const words = ["attach", String(child.pid), "--for", "4s", "-o", recording];
      expect((await execute([tidemark, ...words])).status).toBe(0);
      const { sites, limits, processes } = summarize(openRecording(recording), "end");
      expect(processes).toMatchObject([{ pid: child.pid, profiled: true }]);
      const site = sites.find(({ stack }) => stack.some((frame) => frame.function === "remember"));
      // 80 blocks in 4 s, and the earlier ones.
      expect(site?.liveBytes).toBeGreaterThan(40 << 20);
      expect(limits.join(" ")).toContain("program's environment had armed the agent");
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("keeps what was recorded if the recorder of an attach is killed", async () => {
    const { folder, child } = await startKeeping();
    const recording = join(folder, "killed.tidemark");
    const words = ["attach", String(child.pid), "--for", "10min", "-o", recording, "--quiet"];
    const recorder = spawn(tidemark, words, { stdio: "ignore" });
    try {
      await until(() => existsSync(recording) && statSync(recording).size > 10_000);
      recorder.kill("SIGKILL");
      await once(recorder, "exit");
      const { status, stdout, stderr } = await execute([tidemark, "summary", recording]);
      expect([status, stderr]).toEqual([0, expect.not.stringContaining("TM-E")]);
      expect(stdout).toContain("remember");
      const again = ["attach", String(child.pid), "--for", "1s", "-o", join(folder, "again")];
      const refused = await execute([tidemark, ...again]);
      expect(refused.stderr).toMatch(
        /TM-E037 the recorder of process \d+ has ended.*: tidemark detach/,
      );
      expect((await execute([tidemark, "detach", String(child.pid)])).status).toBe(0);
      expect((await execute([tidemark, ...again])).status).toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("off: the library does nothing", async () => {
    const { pools } = await leavePool("off,dir=DIR");
    expect(pools).toEqual([]);
  });

  test("a pool with truncated records reports that they are missing", async () => {
    const { folder, pools } = await leavePool("dir=DIR");
    const pool = join(folder, itemAt(pools, 0));
    truncateSync(pool, 12_300); // the header's page is complete, with nothing after it
    const recording = join(folder, "cut.tidemark");
    expect((await execute([tidemark, "import", pool, "-o", recording])).status).toBe(0);
    const { sites, limits } = summarize(openRecording(recording), "end");
    expect(sites).toEqual([]);
    expect(limits.join(" ")).toMatch(/missing|could not be read|cut/);
  });

  test("a pool that is truncated before that, or another file, is refused in one line", async () => {
    const { folder, pools } = await leavePool("dir=DIR");
    const pool = join(folder, itemAt(pools, 0));
    for (const length of [12_000, 5_000, 40, 0]) {
      truncateSync(pool, length);
      const { status, stderr } = await execute([tidemark, "import", pool]);
      expect(status).toBe(2);
      expect(stderr).toMatch(/^tidemark: [^\n]*\n( [^\n]*\n)*$/);
      expect(readdirSync(folder).filter((file) => file.endsWith(".tidemark"))).toEqual([]);
    }
    const other = join(folder, "other.pool");
    writeFileSync(other, "not a pool");
    expect((await execute([tidemark, "import", other])).stderr).toContain("TM-E0");
    expect((await execute([tidemark, "import", join(folder, "none.pool")])).stderr).toContain(
      "TM-E003",
    );
  });
});
