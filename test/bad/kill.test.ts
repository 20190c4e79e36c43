/** Kills the program, the recorder and the guard, singly and together: the program continues, the recording opens. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, inject, test } from "vitest";
import { present } from "../../src/model/base/present.js";
import { openRecording } from "../../src/record/index.js";
import { expectSpeaksClearly } from "../behaviour.js";
import { anyInterpreter } from "../environment.js";
import {
  execute,
  readText,
  record,
  removeScratch,
  scratch,
  summaryOf,
  tidemark,
  until,
} from "../run.js";
import { topPlaces } from "../truth.js";

const python = anyInterpreter().path;
afterAll(removeScratch);

/** Keeps 30 MiB, waits for the file "go" in its directory, keeps 50 MiB more, waits again. */
const program = `import os, sys, time
def before():
    return bytes(30 << 20)
def after():
    return bytes(50 << 20)
first = before()
print("ready", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
second = after()
print("done", flush=True)
time.sleep(0.5)
os._exit(8)
`;

interface Actors {
  readonly guard: number;
  readonly recorder: number;
  readonly program: number;
}

/** Finds guard, recorder and program from the guard's children. */
function actorsBelow(guard: number): Actors {
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        const parent = Number(stat.slice(stat.lastIndexOf(")") + 4).split(" ")[0]);
        return parent === guard
          ? [
              {
                pid: Number(name),
                command: readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0"),
              },
            ]
          : [];
      } catch {
        return []; // it has just ended
      }
    });
  const recorder = children.find(
    ({ command: [program = "", ...words] }) =>
      program.endsWith("node") && words.some((word) => word.endsWith("dist/program/main.js")),
  );
  const target = children.find(({ command }) => command[0] === python);
  if (recorder === undefined || target === undefined) {
    throw new Error(`guard ${guard} has ${JSON.stringify(children)}`);
  }
  return { guard, recorder: recorder.pid, program: target.pid };
}

/** Whether the recording so far contains what the program keeps at first. */
function isRecorded(path: string): boolean {
  try {
    const recording = openRecording(path);
    return topPlaces(recording.profileAt("end"), "live")[0] === "before <string>:3";
  } catch {
    return false; // nothing complete is written yet
  }
}

/** Runs the program, waits until it is in the recording, and calls a function with the three processes. */
async function interrupted(act: (actors: Actors, go: () => void) => Promise<void> | void) {
  const go = join(scratch(), "go");
  const release = async () => void (await execute(["touch", go]));
  let actors: Actors | undefined;
  const path = join(scratch(), "run.tidemark");
  const outcome = await record([python, "-c", program, go], {
    recording: path,
    started: async (child, files) => {
      await until(() => readText(files.stdout).includes("ready"));
      await until(() => isRecorded(path));
      actors = actorsBelow(present(child.pid));
      await act(actors, () => void release());
    },
  });
  return { ...outcome, actors: present(actors) };
}

const rounds = Array.from({ length: inject("counts").killRounds }, (_, i) => i + 1);

describe.each(rounds)("SIGKILL, round %i,", () => {
  test("of the program: the last moment is in the recording", async () => {
    const outcome = await interrupted(({ program: pid }) => void process.kill(pid, "SIGKILL"));
    expect(outcome.signal).toBe("SIGKILL");
    const recording = outcome.open();
    expect(recording.complete).toBe(true);
    expect(recording.end?.signal).toBe(9);
    expect(topPlaces(recording.profileAt("end"), "live")[0]).toBe("before <string>:3");
  });

  test("of the recorder: the program continues, the next command finishes the recording", async () => {
    const outcome = await interrupted(async ({ recorder }, go) => {
      process.kill(recorder, "SIGKILL");
      await sleep(300);
      go();
    });
    expect(outcome).toMatchObject({ status: 8, stdout: "ready\ndone\n" });
    const summary = await summaryOf(outcome.path);
    const places = summary.sites.map(({ stack }) => stack[0]?.function);
    expect(places.slice(0, 2)).toEqual(expect.arrayContaining(["before", "after"]));
    expect(summary.limits.join("\n")).toMatch(/recorder/i);
    // And again: what was merged once is not merged twice.
    expect((await summaryOf(outcome.path)).sites).toEqual(summary.sites);
    expect(outcome.open().snapshots.length).toBeGreaterThan(0);
  });

  test("of the program and the recorder at once: everything up to the last complete frame", async () => {
    const outcome = await interrupted(({ recorder, program: pid }) => {
      process.kill(recorder, "SIGKILL");
      process.kill(pid, "SIGKILL");
    });
    expect(outcome.signal).toBe("SIGKILL");
    const summary = await summaryOf(outcome.path);
    expect(summary.sites[0]?.stack[0]).toMatchObject({ function: "before", line: 3 });
  });

  test("of guard, recorder and program: the recording opens", async () => {
    const outcome = await interrupted(({ guard, recorder, program: pid }) => {
      for (const victim of [recorder, guard, pid]) {
        process.kill(victim, "SIGKILL");
      }
    });
    const { status, stdout, stderr } = await execute([tidemark, "summary", outcome.path]);
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(/before/);
    expectSpeaksClearly(stdout + stderr);
    expect(outcome.open().complete).toBe(false);
    expect(outcome.open().limits.join("\n")).toMatch(/recorder|end/i);
  });

  test("of the guard alone: the program survives", async () => {
    const outcome = await interrupted(({ guard }, go) => {
      process.kill(guard, "SIGKILL");
      go();
    });
    const { program: pid } = outcome.actors;
    await until(() => !existsSync(`/proc/${pid}`));
    const summary = await summaryOf(outcome.path);
    expect(summary.sites.map(({ stack }) => stack[0]?.function)).toContain("before");
  });
});

test("a recording is readable while it grows", async () => {
  const go = join(scratch(), "go");
  const path = join(scratch(), "run.tidemark");
  let growing = "";
  const outcome = await record([python, "-c", program, go], {
    recording: path,
    started: async (_child, files) => {
      await until(() => readText(files.stdout).includes("ready"));
      await until(() => isRecorded(path));
      const summary = await summaryOf(path);
      growing = summary.sites[0]?.stack[0]?.function ?? "";
      await execute(["touch", go]);
    },
  });
  expect(outcome.status).toBe(8);
  expect(growing).toBe("before");
  expect((await outcome.summary()).sites[0]?.stack[0]?.function).toBe("after");
});
