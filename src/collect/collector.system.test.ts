/** The kernel's events find programs that the next regular scan would find an hour later. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { GUARD_PATH } from "../linux/installation.js";
import { Collector } from "./collector.js";
import type { WatchEvent } from "./recordings/watch_event.js";

const offered = spawnSync(GUARD_PATH, ["events"], { input: "", encoding: "utf8" }).status === 0;

test.runIf(offered)(
  "starts, and an exec that is late, are recorded between two regular scans",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "tidemark-collector-"));
    const policyPath = join(folder, "policy.yaml");
    const name = `started-${process.pid}`;
    writeFileSync(
      policyPath,
      `select: [{match: {service: "${name}-*"}, watch: outside}, {match: {}, watch: never}]\n`,
    );
    const stop = new AbortController();
    const events: WatchEvent[] = [];
    const collector = new Collector({
      ...{ policyPath, folder, to: null, actionsTo: null, until: stop.signal },
      onEvent: (event) => events.push(event),
      scanMs: 3_600_000,
    });
    const running = collector.run();
    const children: ChildProcess[] = [];
    const start = (service: string, words: readonly string[]) => {
      const [file = "", ...args] = words;
      const env = { ...process.env, TIDEMARK_SERVICE: `${name}-${service}` };
      children.push(spawn(file, args, { env, stdio: "ignore" }));
    };
    const isRecorded = (service: string) =>
      readdirSync(folder).some((file) => file.startsWith(`${name}-${service}-`));
    const program = "import time; time.sleep(3600)";
    try {
      // The first scan sees a shell, which becomes Python after it.
      start("late", ["sh", "-c", `sleep 3; exec python3 -c '${program}'`]);
      await vi.waitUntil(() => isRecorded("late"), { timeout: 60_000 });
      start("first", ["python3", "-c", program]);
      await vi.waitUntil(() => isRecorded("first"), { timeout: 60_000 });
      expect(events.filter(({ kind }) => kind === "no-events")).toEqual([]);
    } finally {
      stop.abort();
      await running;
      for (const child of children) {
        child.kill("SIGKILL");
      }
      rmSync(folder, { recursive: true });
    }
  },
);
