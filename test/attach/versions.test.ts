/**
 * Agents of other versions in a process, really built: they are recognised, and neither used nor changed.
 */
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { CONSTANTS } from "../../src/segment/layout.js";
import { someInterpreters } from "../environment.js";
import { execute, repository, tidemark } from "../run.js";
import { killAll, removeScratch, scratch, start, type Target } from "./targets.js";

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

test.each([
  ["an older", OWN - 1],
  ["a newer", OWN + 1],
])("%s agent is recognised and left alone, whether it records or not", async (age, version) => {
  const [python] = someInterpreters(1);
  const target = await start(python as NonNullable<typeof python>, PROGRAM(version));
  const state = async (word: string, expected: string) => {
    await told(target, word);
    expect(target.output()).toMatch(new RegExp(`"version":${version},"state":"${expected}"`));
    const { status, stderr } = await attach(target.pid, join(scratch, `${version}.tidemark`));
    expect([status, stderr.trimEnd().split("\n").length]).toEqual([4, 1]);
    return stderr;
  };
  expect(await state("arm", "armed")).toMatch(/TM-E03[78]/);
  const ended = await state("disarm", "inert");
  expect(ended).toContain(
    `${age} version of Tidemark has loaded its agent (${version}, this version`,
  );
  expect(ended).toContain("it does not record");
  await told(target, "rearm");
  expect(target.output().trimEnd()).toMatch(/did rearm .*"state":"inert"/);
  expect(target.child.exitCode).toBeNull();
});
