/** Tidemark together with other tools that read or wrap the same process. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import type { AttachResult } from "../../src/record/index.js";
import { environment } from "../environment.js";
import { bytesByLine, type Estimate, expectEstimate } from "../truth.js";
import { attach, killAll, removeScratch, scratch, startCommand, type Target } from "./targets.js";

afterEach(killAll);
afterAll(removeScratch);

const python = environment.packagesPython ?? "";
const pySpy = join(dirname(python), "py-spy");

/** Allocates and frees all the time, and reads commands from its input; "hold" makes it hold 150 MB more. */
const PROGRAM = `
import os, sys, threading, time
held = []
def hold():
    for _ in range(1500): held.append(bytearray(100_000))
def work():
    kept = []
    while True:
        kept.append(bytearray(50_000))
        kept.append([str(i) for i in range(100)])
        if len(kept) > 100: del kept[:]
        time.sleep(0.002)
threading.Thread(target=work, daemon=True).start()
print("up", flush=True)
for count, line in enumerate(sys.stdin, 1):
    word = line.strip()
    if word == "track":
        import memray
        tracker = memray.Tracker("%s/%d.bin" % (sys.argv[1], os.getpid()))
        tracker.__enter__()
    elif word == "untrack":
        tracker.__exit__(None, None, None)
    elif word == "hold":
        hold()
    print("did", count, flush=True)
print("well")
`;

/** Bytes that one call of `hold` keeps. */
const HELD = 1500 * 100_000;

const run = () => startCommand([python, "-u", "-c", PROGRAM, scratch]);

/** Resolves once the program has executed the command. */
async function tell(target: Target, word: string): Promise<void> {
  const count = target.output().split("did ").length;
  target.child.stdin?.write(`${word}\n`);
  await target.said(`did ${count}\n`);
}

async function endWell(target: Target): Promise<void> {
  target.child.stdin?.end();
  expect(await target.ended(), target.output()).toEqual({ code: 0, signal: null });
}

/** Attaches to the program: resolves once it is recorded; `leave` ends the recording. */
async function attached(target: Target): Promise<{ leave(): Promise<AttachResult> }> {
  let over = false;
  let begun = () => {};
  const recorded = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const result = attach(target.pid, { enough: () => over, onRecording: () => begun() });
  await Promise.race([recorded, result]);
  return {
    leave() {
      over = true;
      return result;
    },
  };
}

/** Long enough for the agent to take samples of the program's own thread. */
const aWhile = () => new Promise((resolve) => setTimeout(resolve, 700));

/** Live bytes of `hold`, at the line that calls bytearray. */
function held(result: AttachResult): Estimate | undefined {
  const places = bytesByLine(result.open().profileAt("end"), "live");
  return [...places].find(([place]) => place.startsWith("hold "))?.[1];
}

describe.runIf(existsSync(pySpy))("py-spy", () => {
  test("a program that dumps and records its own history can be attached to, before and after", async () => {
    const target = await run();
    const { leave } = await attached(target);
    const dump = spawnSync(pySpy, ["dump", "--pid", String(target.pid)], { encoding: "utf8" });
    expect(dump.stdout, dump.stderr).toMatch(/work \(/);
    const file = join(scratch, "spy.txt");
    const words = ["record", "-d", "3", "-r", "200", "-f", "raw", "-o", file];
    const spy = spawn(pySpy, [...words, "--pid", String(target.pid)], { stdio: "ignore" });
    const code = new Promise((resolve) => spy.on("close", resolve));
    await aWhile();
    expect((await leave()).open().processes[0]?.profiled).toBe(true);
    await (await attached(target)).leave(); // created and freed between its samples
    expect(await code).toBe(0);
    expect(statSync(file).size).toBeGreaterThan(0);
    await endWell(target);
  });
});

describe.runIf(existsSync(join(dirname(python), "memray")))("memray", () => {
  const said = (result: AttachResult) => result.open().limits.join("\n");

  test("starts and ends while attached: the gap is reported, and memory held after it is recorded", async () => {
    const target = await run();
    const { leave } = await attached(target);
    // So much that even a coarse period distinguishes it from allocations after the gap.
    for (let times = 0; times < 3; times++) {
      await tell(target, "hold");
    }
    await tell(target, "track");
    await aWhile();
    await tell(target, "untrack");
    await aWhile();
    await tell(target, "hold");
    const result = await leave();
    expect(said(result)).toMatch(/another tool .* wrapped the allocators/);
    expectEstimate(held(result), HELD); // what was allocated before it was dropped at the gap
    expect(statSync(join(scratch, `${target.pid}.bin`)).size).toBeGreaterThan(1000);
    await endWell(target);
  });

  test("starts first: nothing is sampled while it runs, which is reported; afterwards everything is", async () => {
    const target = await run();
    await tell(target, "track");
    const first = await attached(target);
    await aWhile();
    const covered = await first.leave();
    expect(said(covered)).toMatch(/another tool .* wrapped the allocators/);
    const second = await attached(target);
    await aWhile();
    await tell(target, "untrack");
    await aWhile();
    await tell(target, "hold");
    expectEstimate(held(await second.leave()), HELD);
    await endWell(target);
  });

  test("a program that outlasts the recording ends after it", async () => {
    const target = await run();
    const { leave } = await attached(target);
    await tell(target, "track");
    await leave();
    await tell(target, "untrack");
    const again = await attached(target);
    await tell(target, "hold");
    const result = await again.leave();
    expect(said(result)).not.toMatch(/another tool/);
    expectEstimate(held(result), HELD);
    await endWell(target);
  });
});
