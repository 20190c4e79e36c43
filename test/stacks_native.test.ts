/** `tidemark stacks --native`: native frames among the Python ones, on every interpreter. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv } from "ajv";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { itemAt } from "../src/model/base/columns.js";
import { present } from "../src/model/base/present.js";
import type { FrameJson } from "../src/model/documents/documents.js";
import type { StacksJson } from "../src/model/documents/stacks_document.js";
import { environment } from "./environment.js";
import { startPython, type Waiting } from "./python_program.js";
import { execute, removeScratch, repository, tidemark } from "./run.js";

const interpreters = environment.interpreters.filter(({ freeThreaded }) => !freeThreaded);
type Interpreter = (typeof interpreters)[number];

/** C code that calls back into Python, and C code that sleeps; neither keeps frame pointers. */
const LIBRARY = `
#include <time.h>
#define CALLED __attribute__((noinline, noclone))
#define RETURNS __asm__ volatile("" ::: "memory")
static void CALLED sleeps_inner(void) { for (;;) { nanosleep(&(struct timespec){.tv_sec = 1000}, 0); RETURNS; } }
void sleeps_natively(void) { sleeps_inner(); RETURNS; }
static void CALLED calls_inner(void (*back)(void)) { back(); RETURNS; }
void calls_outer(void (*back)(void)) { calls_inner(back); RETURNS; }
`;

const folders: string[] = [];
const started: Waiting[] = [];
/** Inside the chroot, if the interpreter has one. */
const libraries = new Map<string, string>();

beforeAll(() => {
  for (const root of new Set(interpreters.map(({ chroot }) => chroot ?? ""))) {
    const folder = mkdtempSync(
      join(root === "" ? tmpdir() : join(root, "tmp"), "tidemark-native-"),
    );
    folders.push(folder);
    const path = join(folder, "native.so");
    writeFileSync(join(folder, "native.c"), LIBRARY);
    const options = ["-w", "-O2", "-fomit-frame-pointer", "-fPIC", "-shared"];
    execFileSync(process.env.CC ?? "cc", [...options, "-o", path, join(folder, "native.c")]);
    libraries.set(root, path.slice(root.length));
  }
});
afterEach(async () => {
  for (const program of started.splice(0)) {
    await program.stop();
  }
});
afterAll(() => {
  for (const folder of folders) {
    rmSync(folder, { recursive: true });
  }
  removeScratch();
});

async function startProgram(interpreter: Interpreter, source: string) {
  const program = await startPython(interpreter, source);
  started.push(program);
  return program;
}

const schema = JSON.parse(readFileSync(join(repository, "docs/json/stacks-1.json"), "utf8"));
const check = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true }).compile(schema);

async function snapshot(pid: number, ...words: string[]): Promise<StacksJson> {
  const { status, stdout, stderr } = await execute([
    tidemark,
    "stacks",
    String(pid),
    "--json",
    ...words,
  ]);
  expect([status, stderr]).toEqual([0, ""]);
  const document = JSON.parse(stdout) as StacksJson;
  expect(check(document), JSON.stringify(check.errors)).toBe(true);
  return document;
}

const named = (document: StacksJson, name: string) =>
  document.threads.find((thread) => thread.name === name)?.frames ?? [];

/** Frames of the program's own Python code and of its library. */
const own = (frames: readonly FrameJson[]) =>
  frames
    .filter(({ file, kind }) =>
      kind === "python" ? file === "<string>" : file.endsWith("native.so"),
    )
    .map((frame) => frame.function.split(".").at(-1));
const inOrder = (frames: readonly FrameJson[]) => frames.map(({ kind }) => kind[0]).join("");

const mixed = (library: string) => `
import ctypes
native = ctypes.CDLL(${JSON.stringify(library)})
Back = ctypes.CFUNCTYPE(None)
gate = threading.Barrier(3)
def leaf():
    gate.wait()
    native.sleeps_natively()
def middle(): leaf()
def called_back(): middle()
def calls(): native.calls_outer(Back(called_back))
class Compared:
    def __lt__(self, other):
        middle()
        return True
def generates(): yield sorted([Compared(), Compared()])
def sorts():
    for _ in generates(): pass
for function in (calls, sorts):
    threading.Thread(target=function, name=function.__name__, daemon=True).start()
gate.wait()
say(1)
`;

test.each(interpreters)(
  "Python $version at $path: each evaluator frame is replaced by the functions that it ran",
  async (interpreter) => {
    const library = present(libraries.get(interpreter.chroot ?? ""));
    const { pid } = await startProgram(interpreter, mixed(library));
    const sleeping = ["sleeps_inner", "sleeps_natively", "leaf", "middle"];
    let document = {} as StacksJson;
    await expect
      .poll(async () => {
        document = await snapshot(pid, "--native");
        return [own(named(document, "calls")), own(named(document, "sorts"))];
      })
      .toEqual([
        [...sleeping, "called_back", "calls_inner", "calls_outer", "calls"],
        [...sleeping, "__lt__", "generates", "sorts"],
      ]);
    const plain = await snapshot(pid);
    expect(document.limits).toEqual([]);
    expect(document.pauseMs).toBeGreaterThan(0);
    for (const { name, frames } of plain.threads) {
      const all = named(document, name);
      expect(all.filter(({ kind }) => kind === "python")).toEqual(frames);
      // From the system call to the thread's first function: nothing is missing, and no evaluator frame remains.
      expect(inOrder(all)).toMatch(/^n+p[np]*n+$/);
      expect(all.filter((frame) => /EvalFrameDefault/.test(frame.function))).toEqual([]);
    }
    const minor = Number(interpreter.version.split(".")[1]);
    const kinds = inOrder(named(document, "sorts"));
    // leaf < middle < __lt__ < (sort) < generates < sorts
    expect(kinds).toMatch(minor >= 11 ? /^n+pppn+p/ : /^n+pn+pn+pn+p/);
  },
);

const able = interpreters.filter(({ version }) => Number(version.split(".")[1]) >= 12);
test.each([able[0], able.at(-1)].filter((interpreter) => interpreter !== undefined))(
  "Python $version at $path: through the trampolines of -X perf, which have no unwind information",
  async (interpreter) => {
    const library = present(libraries.get(interpreter.chroot ?? ""));
    const { pid, said } = await startProgram(
      interpreter,
      `
try: sys.activate_stack_trampoline("perf")
except ValueError: pass
source = ${JSON.stringify(mixed(library))}.replace("say(1)", "say({'on': sys.is_stack_trampoline_active()})")
exec(compile(source, "<string>", "exec"))
`,
    );
    await expect
      .poll(async () => own(named(await snapshot(pid, "--native"), "calls")).slice(0, 8))
      .toEqual([
        ...["sleeps_inner", "sleeps_natively", "leaf", "middle"],
        ...["called_back", "calls_inner", "calls_outer", "calls"],
      ]);
    const all = named(await snapshot(pid, "--native"), "calls");
    expect(inOrder(all)).toMatch(/^[np]+n$/);
    expect(all.some((frame) => frame.function === "code outside any object file")).toBe(said.on);
  },
);

const ownInterpreters = interpreters.filter(({ chroot }) => chroot === undefined);

test("threads that run no Python, and threads that start and end", async () => {
  const interpreter = present(ownInterpreters.at(-1));
  const { pid } = await startProgram(
    interpreter,
    `
import ctypes
native = ctypes.CDLL(${JSON.stringify(libraries.get(""))})
thread = ctypes.c_ulong()
libc.pthread_create(ctypes.byref(thread), None, native.sleeps_natively, None)
libc.pthread_setname_np(thread, b"of the library")
def come_and_go():
    while True:
        threads = [threading.Thread(target=sum, args=([],)) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
threading.Thread(target=come_and_go, daemon=True).start()
say(1)
`,
  );
  for (let round = 0; round < 3; round++) {
    const document = await snapshot(pid, "--native");
    const library = document.threads.filter(({ name }) => name === "of the library");
    expect(library.map(({ interpreter, holdsGil }) => [interpreter, holdsGil])).toEqual([
      [-1, false],
    ]);
    expect(own(library[0]?.frames ?? [])).toEqual(["sleeps_inner", "sleeps_natively"]);
    const begun = document.threads.map(({ tid }) => tid).filter((tid) => tid !== 0);
    expect(new Set(begun).size).toBe(begun.length);
  }
  expect((await snapshot(pid)).threads.every(({ interpreter }) => interpreter === 0)).toBe(true);
  const { stdout } = await execute([
    tidemark,
    "stacks",
    String(pid),
    "--native",
    "--filter",
    "of the library",
  ]);
  expect(stdout).toMatch(/thread \d+ "of the library" {2}no Python, asleep\n {4}/);
});

test("a process that cannot be entered: for how long its main thread has been in C code, and at which native frame", async () => {
  const { pid } = await startProgram(
    present(ownInterpreters.at(-1)),
    `
import ctypes
native = ctypes.PyDLL(${JSON.stringify(libraries.get(""))})
os.write(1, b"1\\n")
native.sleeps_natively()
`,
  );
  const recording = join(itemAt(folders, 0), "never.tidemark");
  const words = ["attach", String(pid), "--wait", "2s", "--quiet", "-o", recording];
  const { status, stderr } = await execute([tidemark, ...words]);
  expect(status).toBe(4);
  expect(stderr).toMatch(
    /TM-E035 .* for \d+ s or more, at sleeps_inner \(native\.so\) called by sleeps_natively \(native\.so\); it holds the interpreter's lock/,
  );
});

test.skipIf(environment.packagesPython === null)("NumPy at work, and greenlets", async () => {
  const python = { path: present(environment.packagesPython) };
  const { pid } = await startPython(
    python,
    `
import numpy, greenlet
def works():
    numbers = numpy.random.default_rng(1).random(2_000_000)
    while True: numpy.sort(numbers)
def in_greenlet():
    threading.Event().wait()
def switches(): greenlet.greenlet(in_greenlet).switch()
for function in (works, switches):
    threading.Thread(target=function, name=function.__name__, daemon=True).start()
say(1)
`,
  ).then((program) => {
    started.push(program);
    return program;
  });
  await expect
    .poll(async () => {
      const document = await snapshot(pid, "--native");
      const works = named(document, "works");
      return [/numpy/.test(works[0]?.file ?? ""), own(works), own(named(document, "switches"))];
    })
    .toEqual([true, ["works"], ["in_greenlet"]]);
  const switches = named(await snapshot(pid, "--native"), "switches");
  const place = (pattern: RegExp) =>
    switches.findIndex((frame) => pattern.test(`${frame.function} ${frame.file}`));
  expect(place(/^in_greenlet/)).toBeLessThan(place(/\/_greenlet[^/]*\.so$/));
});
