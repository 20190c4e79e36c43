/** Kills the recorder at any moment of a run: the program is not affected, and the recording opens. */

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, inject, test } from "vitest";
import { itemAt } from "../../src/model/base/columns.js";
import { present } from "../../src/model/base/present.js";
import { expectSpeaksClearly } from "../behaviour.js";
import { anyInterpreter } from "../environment.js";
import { execute, record, removeScratch, tidemark } from "../run.js";

afterAll(removeScratch);

const program = `import os, time
kept = []
for number in range(40):
    kept.append(bytes(1 << 20)); time.sleep(0.05)
print(len(kept), flush=True)
os._exit(5)`;

/** The recorder started by a guard; null before it has started or after it has ended. */
function recorderBelow(guard: number): number | null {
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const parent = Number(stat.slice(stat.lastIndexOf(")") + 4).split(" ")[0]);
      if (
        parent === guard &&
        readFileSync(`/proc/${name}/cmdline`, "utf8").includes("main.js\0run")
      ) {
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
        if (/node$/.test(itemAt(command, 0))) {
          return Number(name);
        }
      }
    } catch {
      // it has just ended
    }
  }
  return null;
}

const LAST_MS = 2100;
const count = inject("counts").killMoments;
/** More moments at the beginning, while the recorder starts. */
const moments = Array.from({ length: count }, (_, i) =>
  Math.round(LAST_MS * (i / (count - 1)) ** 1.5),
);

test.each(moments)("after %i ms", async (delay) => {
  const outcome = await record([anyInterpreter().path, "-c", program], {
    started: async (child) => {
      await sleep(delay);
      const recorder = recorderBelow(present(child.pid));
      if (recorder !== null) {
        process.kill(recorder, "SIGKILL");
      }
    },
  });
  // If it is killed before it has started the program, nothing runs, and the guard's exit status shows that.
  const ran = outcome.stdout !== "";
  expect(ran ? { status: 5, stdout: "40\n" } : { signal: "SIGKILL" }).toMatchObject(
    ran ? { status: outcome.status, stdout: outcome.stdout } : { signal: outcome.signal },
  );
  const { status, stdout, stderr } = await execute([tidemark, "summary", outcome.path]);
  expectSpeaksClearly(stdout + stderr);
  if (ran && status === 0) {
    const recording = outcome.open();
    expect(recording.damage).toBeNull();
    expect(recording.complete).toBe(true);
  } else {
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  }
});
