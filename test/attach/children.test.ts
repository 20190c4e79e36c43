/** Children of an attached process, forked before or during the attach, are recorded and detached with it. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { attachProgressText } from "../../src/cli/screens/attach_progress.js";
import {
  type AttachProgress,
  AttachProgressReader,
} from "../../src/inspect/live/attach_progress.js";
import { uint16At } from "../../src/model/base/columns.js";
import { present } from "../../src/model/base/present.js";
import { openRecording } from "../../src/record/index.js";
import { anyInterpreter, environment, isRoot } from "../environment.js";
import { expectEstimate, liveOf } from "../truth.js";
import { attach, killAll, nameOf, removeScratch, start, type Target } from "./targets.js";

afterEach(killAll);
afterAll(removeScratch);

/** Forks once before it is attached to, and whenever it reads a line. A child prints its pid once it holds 160 MB,
 * and then its own agent's state whenever that changes. */
const PARENT = `
import os, sys, time
def say(line): # in one call: print() writes each word by itself, and three processes print
    sys.stdout.write(line + "\\n")
def grow(name):
    kept = []
    for _ in range(1600):
        kept.append(bytearray(100_000))
    say(f"{name} {os.getpid()}")
    said = ""
    while True:
        kept[0] = bytearray(100_000)
        agent = sys.modules.get("_tidemark_agent")
        state = agent.status().split('"state":"')[1].split('"')[0] if agent else "none"
        if state != said:
            said = state
            say(f"state {name} {state}")
        time.sleep(0.005)
def fork(name):
    if os.fork() == 0:
        grow(name)
fork("early")
time.sleep(0.3)
say("up")
for line in sys.stdin:
    fork(line.strip())
    for _ in range(100):
        bytearray(50_000)
`;

/** Bytes that a child holds. */
const GROWN = 1600 * 100_000;

async function pidOf(target: Target, name: string): Promise<number> {
  // Unbuffered output arrives in pieces: the line is read once its end is there.
  const line = new RegExp(`^${name} (\\d+)\n`, "m");
  await target.said(line);
  return Number(line.exec(target.output())?.[1]);
}

/** Whether the recording's list of processes contains all of them. */
function hasAll(recordingPath: string, pids: readonly number[]): boolean {
  const { processes } = openRecording(recordingPath);
  return pids.every((pid) => processes.some((one) => one.pid === pid));
}

const inChroot = environment.interpreters.find(
  ({ chroot, freeThreaded }) => chroot && !freeThreaded,
);
// Without /proc a process cannot open the recorder's pool, so it creates one for itself and its children.
const places = [anyInterpreter(), ...(inChroot && isRoot ? [inChroot] : [])];

describe.each(places.map((one) => [nameOf(one), one] as const))("%s", (_name, interpreter) => {
  const sharesPool = !interpreter.chroot;

  test("children forked before and during the recording are profiled, and disarm themselves after it", async () => {
    const target = await start(interpreter, PARENT);
    const early = await pidOf(target, "early");
    let late = 0;
    const result = await attach(target.pid, {
      onRecording: () => target.child.stdin?.write("late\n"),
      async enough(_elapsedMs, path) {
        late ||= target.output().includes("late ") ? await pidOf(target, "late") : 0;
        const isEarlyArmed = !sharesPool || target.output().includes("state early armed");
        // Some polls later both are in the recording's list of processes.
        const isArmed = target.output().includes("state late armed") && isEarlyArmed;
        return isArmed && hasAll(path, [early, late]);
      },
    });
    const recording = result.open();
    const byPid = new Map(recording.processes.map((one) => [one.pid, one]));
    expect(byPid.get(target.pid)?.profiled).toBe(true);
    expect(byPid.get(late)).toMatchObject({ profiled: true, python: interpreter.version });
    expect(byPid.get(early)?.profiled).toBe(sharesPool);
    const profile = recording.profileAt("end");
    const ofLate = (site: number) =>
      profile.processes[uint16At(profile.sites.process, site)]?.pid === late;
    expectEstimate(liveOf(profile, ofLate), GROWN, 0.05);
    await target.said("state late inert");
    if (sharesPool) {
      await target.said("state early inert");
    } else {
      expect(recording.limits.join()).toMatch(/Existing children are not profiled/);
      expect(target.output()).not.toMatch(/state early armed/);
    }
  });

  test("the progress shows the memory of all processes", async () => {
    const target = await start(interpreter, PARENT);
    await pidOf(target, "early");
    const updates: AttachProgress[] = [];
    const progress = new AttachProgressReader(target.pid, null, 1_000, (one) => updates.push(one));
    await attach(target.pid, {
      onRecording: () => target.child.stdin?.write("late\n"),
      enough: (elapsedMs, path) => {
        progress.recorded(elapsedMs, path);
        const { pssBytes = 0, processes = 0 } = updates.at(-1)?.tree ?? {};
        // The memory may be seen before the new process is, and while that still grows.
        return (pssBytes > 2 * GROWN && processes === 3) || elapsedMs > 60_000;
      },
    });
    const last = present(updates.at(-1));
    expect(last.tree?.processes).toBe(3);
    expect(last.tree?.pssBytes).toBeGreaterThan(2 * GROWN);
    expect(attachProgressText(target.pid, last)).toMatch(
      /^process \d+: [\d.]+ s, .*; PSS of 3 processes 3\d\d MiB \(\+1\d\d MiB\)/,
    );
  });

  test("with --no-children existing ones are not recorded", async () => {
    const target = await start(interpreter, PARENT);
    const early = await pidOf(target, "early");
    const result = await attach(target.pid, {
      children: "none",
      enough: (elapsedMs, path) => elapsedMs > 1000 && hasAll(path, [early]),
    });
    const known = result.open().processes.find(({ pid }) => pid === early);
    expect(known?.profiled).toBe(false);
    expect(target.output()).not.toMatch(/state early armed/);
  });

  test("with --no-follow it is left alone", async () => {
    const target = await start(interpreter, PARENT);
    const result = await attach(target.pid, {
      follow: false,
      onRecording: () => target.child.stdin?.write("late\n"),
      enough: () => target.output().includes("state late"),
    });
    const late = await pidOf(target, "late");
    expect(result.open().processes.map(({ pid }) => pid)).toEqual([target.pid]);
    // It undoes what it inherited at its first samples.
    await expect
      .poll(() => readFileSync(`/proc/${late}/maps`, "utf8"))
      .not.toMatch(/tidemark-pool/);
    await sleep(100);
    expect(target.output()).not.toMatch(/state late armed/);
  });
});
