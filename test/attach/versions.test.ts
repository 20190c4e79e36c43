/**
 * Agents of other versions in a process, really built, with the Tidemark of that version: an older agent that records
 * for nobody is drained, and ours records beside it; one that records for somebody, and a newer one, are left alone.
 */
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { CONSTANTS } from "../../src/segment/layout.js";
import { someInterpreters } from "../environment.js";
import { execute, repository, tidemark } from "../run.js";
import {
  killAll,
  libraryPath,
  removeScratch,
  scratch,
  start,
  startCommand,
  type Target,
} from "./targets.js";

afterEach(killAll);
afterAll(removeScratch);

const OWN = CONSTANTS.TM_SEGMENT_VERSION;
const [python] = someInterpreters(1);

const agentFolder = (version: number) => join(scratch, `agent-${version}`);
const library = (version: number) => join(agentFolder(version), "build/libtidemark.so");

/** Replaces the one occurrence of a text in a file. */
function replace(path: string, before: RegExp, after: string): void {
  const text = readFileSync(path, "utf8");
  expect(text).toMatch(before);
  writeFileSync(path, text.replace(before, after));
}

/** An agent and a guard with another version of the segment. */
function build(version: number): void {
  const sources = agentFolder(version);
  const isSource = (path: string) => !/\/(?:build|tests?)$/.test(path);
  cpSync(join(repository, "agent"), sources, { recursive: true, filter: isSource });
  replace(
    join(sources, "include/segment.h"),
    /#define TM_SEGMENT_VERSION \d+u/,
    `#define TM_SEGMENT_VERSION ${version}u`,
  );
  execFileSync("make", ["-j2", "build/libtidemark.so", "build/tidemark-guard"], {
    cwd: sources,
    stdio: "pipe",
  });
}

/** A whole Tidemark with that agent; its path. */
function install(version: number): string {
  const root = join(scratch, `tidemark-${version}`);
  for (const folder of ["bin", "dist/program", "dist/native", "python"]) {
    cpSync(join(repository, folder), join(root, folder), { recursive: true });
  }
  cpSync(join(repository, "package.json"), join(root, "package.json"));
  symlinkSync(join(repository, "node_modules"), join(root, "node_modules"));
  const program = join(root, "dist/program");
  const [chunk = ""] = execFileSync("grep", ["-rlE", "TM_SEGMENT_VERSION: ?[0-9]+", program], {
    encoding: "utf8",
  }).split("\n");
  replace(chunk, /TM_SEGMENT_VERSION: ?\d+/, `TM_SEGMENT_VERSION: ${version}`);
  for (const name of ["libtidemark.so", "tidemark-guard"]) {
    cpSync(join(agentFolder(version), "build", name), join(root, "dist/native", name));
  }
  return join(root, "bin/tidemark");
}

let olderTidemark = "";

beforeAll(() => {
  build(OWN - 1);
  build(OWN + 1);
  olderTidemark = install(OWN - 1);
}, 300_000);

const SERVICE = `
def say(line): # in one call: print() writes each word by itself, and two threads print
    sys.stdout.write(line + "\\n")
kept = []
def remember():
    kept.append(bytearray(50_000))
    if len(kept) > 2000: del kept[:]
def serve():
    while True:
        remember()
        time.sleep(0.001)
`;

/** Loads the agent as an attach of that version does; "arm" and "disarm" on stdin. */
const PROGRAM = (path: string) => `
import _frozen_importlib, _imp, os, sys, threading, time
path = ${JSON.stringify(path)}
module = _imp.create_dynamic(_frozen_importlib.ModuleSpec("_tidemark_agent", None, origin=path))
_imp.exec_dynamic(module)
sys.modules["_tidemark_agent"] = module
${SERVICE}
def obey():
    for line in sys.stdin:
        word = line.strip()
        if word == "arm": module.arm("period=512K")
        if word == "disarm": module.disarm()
        say("ours " + sys.modules["_tidemark_agent"].status())
        say("did " + word + " " + module.status())
threading.Thread(target=obey, daemon=True).start()
say("up")
serve()`;

const LABELLED = `
import os, sys, threading, time
import tidemark
${SERVICE}
def remember_labelled(unlabelled=remember):
    with tidemark.label(task="remembering"):
        unlabelled()
remember = remember_labelled
def obey():
    for line in sys.stdin:
        say("ours " + sys.modules["_tidemark_agent"].status())
threading.Thread(target=obey, daemon=True).start()
say("up")
serve()`;

const startPython = (source: string) =>
  start(python as NonNullable<typeof python>, source, { PYTHONPATH: join(repository, "python") });

async function told(target: Target, word: string): Promise<void> {
  target.child.stdin?.write(`${word}\n`);
  await target.said(`did ${word}`);
}

const attach = (pid: number, path: string, program = tidemark) =>
  execute([program, "attach", String(pid), "--for", "3s", "-o", path], { cwd: scratch });

/** The recording names the function that allocates. */
async function expectProfile(path: string): Promise<void> {
  const { status, stdout, stderr } = await execute(
    [tidemark, "export", path, "--format", "folded", "--value", "allocatedBytes", "-o", "-"],
    { cwd: scratch },
  );
  expect(status, stderr).toBe(0);
  expect(stdout).toContain("remember");
}

async function expectLeftAlone(target: Target, path: string): Promise<string> {
  const { status, stderr } = await attach(target.pid, path);
  expect([status, stderr.trimEnd().split("\n").length], stderr).toEqual([4, 1]);
  return stderr;
}

test("a newer agent is left alone, whether it records or not", async () => {
  const version = OWN + 1;
  const target = await startPython(PROGRAM(library(version)));
  const path = join(scratch, "newer.tidemark");
  await told(target, "arm");
  expect(target.output()).toMatch(new RegExp(`"version":${version},"state":"armed"`));
  expect(await expectLeftAlone(target, path)).toMatch(/TM-E03[78]/);
  await told(target, "disarm");
  const ended = await expectLeftAlone(target, path);
  expect(ended).toContain(`a newer version of Tidemark has loaded its agent (${version}, this`);
  expect(ended).toContain("it does not record");
  await told(target, "again");
  expect(target.output().trimEnd()).toMatch(/did again .*"state":"inert"/);
  expect(target.child.exitCode).toBeNull();
});

test("an older agent that the program armed itself is left alone while it records", async () => {
  const target = await startPython(PROGRAM(library(OWN - 1)));
  await told(target, "arm");
  await expectLeftAlone(target, join(scratch, "armed.tidemark"));
  await told(target, "again");
  expect(target.output()).toMatch(/did again .*"state":"armed"/);
});

test.each(["from another file", "from the file that an upgrade replaced"])(
  "ours is loaded beside an older agent that does not record: %s",
  async (how) => {
    let path = library(OWN - 1);
    let program = tidemark;
    if (how.includes("replaced")) {
      const root = join(scratch, "upgraded");
      cpSync(join(repository, "bin"), join(root, "bin"), { recursive: true });
      for (const folder of ["dist/program", "dist/native"]) {
        cpSync(join(repository, folder), join(root, folder), { recursive: true });
      }
      symlinkSync(join(repository, "node_modules"), join(root, "node_modules"));
      cpSync(join(repository, "package.json"), join(root, "package.json"));
      path = join(root, "dist/native/libtidemark.so");
      program = join(root, "bin/tidemark");
      cpSync(library(OWN - 1), `${path}.old`);
      renameSync(`${path}.old`, path);
    }
    const target = await startPython(PROGRAM(path));
    if (how.includes("replaced")) {
      cpSync(libraryPath, `${path}.new`);
      renameSync(`${path}.new`, path);
    }
    for (const round of ["first", "second"]) {
      const recording = join(scratch, `${how.length}-${round}.tidemark`);
      const { status, stderr } = await attach(target.pid, recording, program);
      expect(status, stderr).toBe(0);
      await expectProfile(recording);
    }
    await told(target, "ours");
    expect(target.output()).toMatch(new RegExp(`ours .*"version":${OWN},"state":"inert"`));
    expect(target.output()).toMatch(new RegExp(`did ours .*"version":${OWN - 1},"state":"inert"`));
  },
);

test("an older agent is drained once its recorder is killed, not before", async () => {
  const target = await startPython(LABELLED);
  const older = join(scratch, "older.tidemark");
  const command = `echo up; exec "${olderTidemark}" attach ${target.pid} --for 10min -o "${older}"`;
  const recorder = await startCommand(["sh", "-c", command]);
  await recorder.said("recording process");
  await expectLeftAlone(target, join(scratch, "early.tidemark"));
  recorder.child.kill("SIGKILL");
  await recorder.ended();
  const recording = join(scratch, "upgraded.tidemark");
  const { status, stderr } = await attach(target.pid, recording);
  expect(status, stderr).toBe(0);
  await expectProfile(recording);
  const labels = await execute([tidemark, "summary", recording, "--by", "task"], { cwd: scratch });
  expect(labels.stdout, labels.stderr).toContain("remembering");
  target.child.stdin?.write("\n");
  await target.said(new RegExp(`ours .*"version":${OWN},"state":"inert"`));
  expect(readFileSync(`/proc/${target.pid}/maps`, "utf8")).not.toContain("tidemark-pool");
});

test("two armed versions refuse each other in the agent itself", async () => {
  const target = await startPython(`
import ctypes, sys, threading, time
older, ours = (ctypes.PyDLL(path) for path in ${JSON.stringify([library(OWN - 1), libraryPath])})
def arm(library):
    why = ctypes.create_string_buffer(400)
    return library.tidemark_arm(b"period=512K", why, ctypes.c_size_t(400)), why.value.decode()
def status(library):
    text = ctypes.create_string_buffer(400)
    library.tidemark_status(text, ctypes.c_size_t(400))
    return text.value.decode()
print("older", arm(older)[0], status(older), flush=True)
print("ours", arm(ours), status(ours), flush=True)
why = ctypes.create_string_buffer(400)
older.tidemark_disarm(why, ctypes.c_size_t(400))
print("then", arm(ours)[0], status(ours), "up", flush=True)
time.sleep(60)`);
  expect(target.output()).toMatch(new RegExp(`older 0 .*"version":${OWN - 1},"state":"armed"`));
  expect(target.output()).toMatch(/ours \(\d+, 'armed: the agent of another version.*"inert"/);
  expect(target.output()).toMatch(new RegExp(`then 0 .*"version":${OWN},"state":"armed"`));
});
