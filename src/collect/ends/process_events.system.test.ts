/** Events of the real kernel, by the real guard; without the privilege, the reason. */
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { GUARD_PATH } from "../../linux/installation.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import { ProcessEvents } from "./process_events.js";

const offered = spawnSync(GUARD_PATH, ["events"], { input: "", encoding: "utf8" }).status === 0;
const PYTHON = "python3";

function run(program: string): { pid: number } {
  return spawnSync(PYTHON, ["-c", program]);
}

test.runIf(offered)(
  "ends of processes of any parent, and Python programs that ended soon",
  async () => {
    let why = "";
    const started: number[] = [];
    const events = new ProcessEvents({
      clock: monotonicMs,
      onUnavailable: (text) => {
        why = text;
      },
      onLost: () => {},
      onStarted: (pid) => started.push(pid),
    });
    events.start();
    await vi.waitUntil(() => events.isReady, { timeout: 60_000 });
    const sinceMs = monotonicMs();
    expect(await events.awaitedEndOf(run("raise SystemExit(4)").pid, sinceMs)).toMatchObject({
      exitCode: 4,
    });
    const ended = [
      [run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)").pid, null, 11],
      [run("raise SystemExit(3)").pid, 3, null],
      [run("pass").pid, 0, null],
    ] as const;
    const endedMs = monotonicMs();
    // A grandchild, whose parent is another process.
    const text = execFileSync("sh", [
      "-c",
      `(${PYTHON} -c 'import os; print(os.getpid(), flush=True); os.abort()') || true`,
    ]);
    await vi.waitUntil(() => events.endOf(Number(text), sinceMs) !== null, { timeout: 60_000 });
    for (const [pid, exitCode, signal] of ended) {
      expect(events.endOf(pid, sinceMs)).toMatchObject({ exitCode, signal });
      // When it ended, not when the event was read.
      expect(events.endOf(pid, sinceMs)?.atMs).toBeLessThanOrEqual(endedMs);
      expect(events.endOf(pid, monotonicMs() + 1)).toBeNull();
    }
    expect(events.endOf(Number(text), sinceMs)).toMatchObject({ signal: 6 });
    expect(started).toEqual(expect.arrayContaining([...ended.map(([pid]) => pid), Number(text)]));
    // Other programs of this host may have ended, too.
    expect(events.takeShortLived()).toBeGreaterThanOrEqual(4);
    events.close();
    await sleep(300);
    expect(why).toBe("");
  },
);

test("an answer that arrives while this process is busy for longer than the wait is an answer", async () => {
  const asked = join(mkdtempSync(join(tmpdir(), "tidemark-events-")), "asked");
  const { events, reasons, folder } = guardedBy(
    `echo ready\n: > ${asked}\nexec cat > /dev/null`,
    1,
  );
  while (!existsSync(asked)) {
    // The event loop does not run meanwhile.
  }
  await vi.waitUntil(() => events.isReady || reasons.length > 0, { timeout: 60_000 });
  expect(reasons).toEqual([]);
  events.close();
  rmSync(folder, { recursive: true });
  rmSync(dirname(asked), { recursive: true });
});

test.runIf(process.getuid?.() === 0).each([
  ["network", "unshare -n", "they are available only in the host's network namespace"],
  [
    "pid",
    "unshare -p -f --kill-child",
    "they are available only in the host's pid and user namespaces",
  ],
])("in another %s namespace, the reason, once", async (_, enter, reason) => {
  const { events, reasons, folder } = guardedBy(`exec ${enter} "${GUARD_PATH}" "$@"`);
  while (reasons.length === 0) {
    // The kernel sends the answer to another listener to all of them.
    spawnSync(GUARD_PATH, ["events"], { input: "" });
    await sleep(200);
  }
  expect(reasons).toEqual([reason]);
  expect(events.isReady).toBe(false);
  expect(events.endOf(1, 0)).toBeNull();
  rmSync(folder, { recursive: true });
});

/** Started events of a guard that is a script. */
function guardedBy(script: string, answerMs?: number) {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-events-"));
  const guardPath = join(folder, "guard");
  writeFileSync(guardPath, `#!/bin/sh\n${script}\n`);
  chmodSync(guardPath, 0o755);
  const reasons: string[] = [];
  const events = new ProcessEvents({
    clock: monotonicMs,
    onUnavailable: (why) => reasons.push(why),
    onLost: () => {},
    guardPath,
    ...(answerMs === undefined ? {} : { answerMs }),
  });
  events.start();
  return { events, reasons, folder };
}
