/**
 * Agents of other versions in a process, really built: an older one that has ended is replaced, one that still records
 * and a newer one are left alone.
 */
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { CONSTANTS } from "../../src/segment/layout.js";
import { someInterpreters } from "../environment.js";
import { execute, open, repository, tidemark } from "../run.js";
import { killAll, nameOf, removeScratch, scratch, start, type Target } from "./targets.js";

afterEach(killAll);
afterAll(removeScratch);

const OWN = CONSTANTS.TM_SEGMENT_VERSION;

/** An agent with another version of the segment. */
function build(version: number): string {
  const sources = join(scratch, `agent-${version}`);
  const isSource = (path: string) => !/\/(?:build|tests?)$/.test(path);
  cpSync(join(repository, "agent"), sources, { recursive: true, filter: isSource });
  const header = join(sources, "include/segment.h");
  const text = readFileSync(header, "utf8");
  const line = /#define TM_SEGMENT_VERSION \d+u/;
  expect(text).toMatch(line);
  writeFileSync(header, text.replace(line, `#define TM_SEGMENT_VERSION ${version}u`));
  execFileSync("make", ["-j2", "build/libtidemark.so"], { cwd: sources, stdio: "pipe" });
  return join(sources, "build/libtidemark.so");
}

beforeAll(() => {
  build(OWN - 1);
  build(OWN + 1);
}, 300_000);

const library = (version: number) => join(scratch, `agent-${version}/build/libtidemark.so`);

/** Loads the agent as an attach of that version does; "arm" and "disarm" on stdin. */
const PROGRAM = (version: number) => `
import _frozen_importlib, _imp, os, sys, threading, time
path = ${JSON.stringify(library(version))}
module = _imp.create_dynamic(_frozen_importlib.ModuleSpec("_tidemark_agent", None, origin=path))
_imp.exec_dynamic(module)
sys.modules["_tidemark_agent"] = module
kept = []
def remember():
    kept.append(bytearray(50_000))
    if len(kept) > 2000: del kept[:]
def obey():
    for line in sys.stdin:
        word = line.strip()
        if word == "arm": module.arm("period=512K")
        if word == "disarm": module.disarm()
        print("did", word, module.status(), flush=True)
threading.Thread(target=obey, daemon=True).start()
print("up", module.status(), flush=True)
while True:
    remember()
    time.sleep(0.001)`;

async function told(target: Target, word: string): Promise<void> {
  target.child.stdin?.write(`${word}\n`);
  await target.said(`did ${word}`);
}

const attach = (pid: number, path: string) =>
  execute([tidemark, "attach", String(pid), "--for", "3s", "-o", path], { cwd: scratch });

test.each(someInterpreters(2).map((one) => [nameOf(one), one] as const))(
  "an older agent that has ended is replaced, and can be removed again: %s",
  async (name, python) => {
    const target = await start(python, PROGRAM(OWN - 1));
    expect(target.output()).toContain(`"version":${OWN - 1}`);
    await told(target, "arm");
    const path = join(scratch, `older-${name.replace(/\W/g, "_")}.tidemark`);
    const busy = await attach(target.pid, path);
    expect([busy.status, busy.stderr]).toEqual([4, expect.stringContaining("TM-E0")]);
    await told(target, "disarm");
    for (const round of ["first", "second"]) {
      const again = await attach(target.pid, `${path}-${round}`);
      expect([again.status, again.stderr]).toEqual([0, expect.anything()]);
      const recording = open(`${path}-${round}`);
      expect(recording.snapshots.length).toBeGreaterThan(0);
      const { tables } = { tables: recording.profileOf(recording.snapshots.length - 1) };
      expect(tables.strings).toContain("remember");
    }
    expect(target.child.exitCode).toBeNull();
  },
);

test("a newer agent is left alone, whether it records or not", async () => {
  const [python] = someInterpreters(1);
  const target = await start(python as NonNullable<typeof python>, PROGRAM(OWN + 1));
  const path = join(scratch, "newer.tidemark");
  for (const word of ["disarm", "arm"]) {
    await told(target, word);
    const { status, stderr } = await attach(target.pid, path);
    expect(status).toBe(4);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(word === "arm" ? /TM-E03[78]/ : /newer version of Tidemark/);
  }
  await told(target, "status");
  expect(target.output()).toMatch(new RegExp(`did status .*"version":${OWN + 1},"state":"armed"`));
});
