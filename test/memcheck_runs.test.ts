/** `tidemark memcheck` and `asan` of running programs: versions of Python, threads, input, Ctrl-C, suppressions. */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import type { MemcheckJson } from "../src/model/documents/memcheck_document.js";
import { expectSpeaksClearly } from "./behaviour.js";
import { environment, someInterpreters } from "./environment.js";
import { python, validate } from "./recorded_app.js";
import {
  execute,
  programs,
  type RunSettings,
  readText,
  removeScratch,
  repository,
  scratch,
  tidemark,
  until,
} from "./run.js";

afterAll(removeScratch);

const folder = scratch();
const cache = scratch();

/** Builds faulty.c for an interpreter; returns the folder of the module. */
function buildFor(interpreter: string, name: string): string {
  const output = join(folder, name);
  mkdirSync(output);
  const include = execFileSync(
    interpreter,
    ["-c", "import sysconfig as s; print(s.get_path('include'), end='')"],
    { encoding: "utf8" },
  );
  const file = join(programs, "faulty.c");
  const words = ["-g", "-O0", "-pthread", "-shared", "-fPIC", `-I${include}`, file];
  execFileSync("cc", [...words, "-o", join(output, "faulty.so")]);
  return output;
}

async function found(
  tool: "memcheck" | "asan",
  words: readonly string[],
  { env, ...settings }: RunSettings,
) {
  const json = join(folder, "found.json");
  const outcome = await execute([tidemark, tool, "--force", "--json", json, ...words], {
    cwd: folder,
    ...settings,
    env: { XDG_CACHE_HOME: cache, ...env },
  });
  // An interrupted program has its own traceback.
  expectSpeaksClearly(outcome.stderr.replace("Traceback (most recent", ""));
  const document = validate(readFileSync(json, "utf8"), "memcheck") as unknown as MemcheckJson;
  return { outcome, document };
}

const versions = someInterpreters(inject("counts").memcheckVersions);
const EVERY = `import faulty
for name in ("overflow", "use_after_free", "free_twice", "uninitialised"):
    getattr(faulty, name)()
for _ in range(5):
    faulty.leak()
    faulty.over_count()
`;

describe.skipIf(environment.tools.valgrind === null)("tidemark memcheck", () => {
  test.each(versions)(
    "explains each kind of fault on Python $version",
    async ({ path, version }) => {
      const env = { PYTHONPATH: buildFor(path, `for-${version}`) };
      const { document } = await found("memcheck", ["--", path, "-c", EVERY], { env });
      expect(document.errors.map(({ kind }) => kind).sort()).toEqual([
        ...["InvalidFree", "InvalidRead", "InvalidWrite", "UninitCondition"],
      ]);
      const leaks = document.leaks.map(({ explanation, blocks }) => [
        explanation.slice(0, 20),
        blocks,
      ]);
      expect(leaks).toContainEqual(["Leaked memory. The m", 5]);
      // Each list is an object and an array.
      expect(leaks).toContainEqual(["Leaked Python object", 10]);
      expect(document.leaks.every(({ owner }) => owner.module === "faulty")).toBe(true);
    },
  );

  describe("with one extension", () => {
    let env: Record<string, string>;
    beforeAll(() => {
      env = { PYTHONPATH: buildFor(python, "one") };
    });

    test("attributes an error of another thread to no Python line of the main thread", async () => {
      const code = "import faulty; faulty.overflow_in_thread()";
      const { document } = await found("memcheck", ["--", python, "-c", code], { env });
      expect(document.errors).toMatchObject([{ kind: "InvalidWrite" }]);
      expect(document.errors[0]?.python).toBeUndefined();
    });

    test("names the Python line of an error in a thread, and in a child that is spawned", async () => {
      writeFileSync(
        join(folder, "thread.py"),
        `import faulty, multiprocessing, threading
def work():
    faulty.overflow()
if __name__ == "__main__":
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    multiprocessing.set_start_method("spawn")
    process = multiprocessing.Process(target=work)
    process.start()
    process.join()
    print("exit code", process.exitcode)
`,
      );
      const { document, outcome } = await found("memcheck", ["--", python, "thread.py"], { env });
      expect(outcome.stdout).toBe("exit code 0\n");
      expect(document.errors).toMatchObject([{ kind: "InvalidWrite", count: 2 }]);
      expect(document.errors[0]?.python).toMatchObject({
        precision: "exact",
        stack: expect.arrayContaining([expect.objectContaining({ function: "work", line: 3 })]),
      });
      expect(document.processes.length).toBeGreaterThan(1);
    });

    test("attributes lists that leak although Python would reuse the memory of others", async () => {
      const code = `import faulty
for _ in range(100):
    items = [1, 2]
    del items
    faulty.over_count()`;
      const { document } = await found("memcheck", ["--", python, "-c", code], { env });
      expect(document.errors).toEqual([]);
      // Each list is an object and an array.
      expect(document.leaks).toMatchObject([{ blocks: 200, owner: { module: "faulty" } }]);
    });

    test("keeps no local variable of the program's functions after an error", async () => {
      const code = `import faulty, weakref
class Big: pass
def work():
    global kept
    big = Big()
    kept = weakref.ref(big)
    faulty.overflow()
work()
print("freed" if kept() is None else "kept")`;
      const { document, outcome } = await found("memcheck", ["--", python, "-c", code], { env });
      expect(outcome.stdout).toBe("freed\n");
      expect(document.errors).toMatchObject([
        { kind: "InvalidWrite", python: { stack: [{ line: 7 }, {}] } },
      ]);
    });

    test("attributes an error in a call by ctypes to the program", async () => {
      const code = `import ctypes
block = ctypes.create_string_buffer(32)
ctypes.memset(block, 0, 33)
print("done")`;
      const { document, outcome } = await found("memcheck", ["--", python, "-c", code], { env });
      expect([outcome.status, outcome.stdout]).toEqual([1, "done\n"]);
      expect(document.errors).toMatchObject([
        { kind: "InvalidWrite", owner: { module: "ctypes", kind: "own" } },
      ]);
      expect(document.leaks).toEqual([]);
    });

    test("explains misuse of memory and references by ctypes in the terms of ctypes", async () => {
      writeFileSync(
        join(folder, "by_ctypes.py"),
        `import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
def helper():
    pass
def free_twice():
    block = libc.malloc(40)
    libc.free(None)
    libc.free(block)
    libc.free(block)
    helper()
def use_after_free():
    block = libc.malloc(40)
    libc.free(block)
    ctypes.string_at(block, 4)
def release_too_often():
    items = [object() for _ in range(30)]
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(items))
free_twice()
use_after_free()
release_too_often()
def too_long():
    ctypes.memset(ctypes.create_string_buffer(64), 0, 65)
def too_long_again():
    ctypes.memset(ctypes.create_string_buffer(128), 0, 129)
too_long()
too_long_again()
`,
      );
      const { document, outcome } = await found("memcheck", ["--", python, "by_ctypes.py"], {
        env,
      });
      const errorOf = (title: RegExp) => document.errors.find((error) => title.test(error.title));
      expect(document.errors, outcome.stderr).toHaveLength(5);
      // Valgrind reports both calls of memset once: their C stacks are the same.
      expect(errorOf(/^Access outside a block/)?.python?.stack[0]?.function).toBe("too_long");
      const again = errorOf(/^Another error in the C function of another finding/);
      expect(again?.python?.stack[0]?.function).toBe("too_long_again");
      const twice = errorOf(/^Double free$/);
      expect(twice?.causes.join()).toMatch(/memory of a ctypes or cffi object/);
      // The error is noticed when \`helper\` is called, and was made before, in its caller.
      expect(twice?.python).toMatchObject({
        precision: "near",
        stack: [{ function: "free_twice", line: 12 }, { line: 20 }],
      });
      expect(errorOf(/^Use after free/)?.fix).toMatch(/Keep a Python reference/);
      expect(errorOf(/one reference too few/)?.causes[0]).toMatch(/pythonapi\.Py_DecRef/);
      // \`free\` itself is shown, as the function that ctypes called.
      expect(outcome.stderr).toMatch(/where {5}free$/m);
      expect(outcome.stderr).not.toMatch(/libffi/);
    });

    test("explains a crash through a NULL pointer, with its Python line", async () => {
      writeFileSync(join(folder, "crash.py"), "import faulty\nfaulty.crash()\n");
      const { document } = await found("memcheck", ["--", python, "crash.py"], { env });
      expect(document.errors.map(({ title }) => title)).toEqual([
        "Access near address 0 (NULL pointer)",
      ]);
      const [error] = document.errors;
      expect(error).toMatchObject({ count: 1, python: { stack: [{ line: 2 }] } });
      expect(error?.message).toMatch(/it ended the process$/);
      expect(error?.stack[0]?.function).toBe("crash");
      expect(document.signal).toBe("SIGSEGV");
    });

    test("leaves out what a suppression file names, and counts it", async () => {
      const file = join(folder, "own.supp");
      writeFileSync(file, "# ours\n{\n   known overflow\n   Memcheck:Addr1\n   fun:overflow\n}\n");
      const code = "import faulty; faulty.overflow(); faulty.overflow(); faulty.free_twice()";
      const words = ["--suppressions", file, "--", python, "-c", code];
      const { outcome, document } = await found("memcheck", words, { env });
      expect(document.errors).toMatchObject([{ kind: "InvalidFree" }]);
      expect(document.suppressed.suppressionFiles).toBe(2);
      expect(outcome.stderr).toMatch(/2 that --suppressions names/);
    });

    test("ends with one line for a bad suppression file", async () => {
      const bad = join(folder, "bad.supp");
      writeFileSync(bad, "{\n  broken\n  Memcheck:Nothing\n");
      const cases: [string, RegExp][] = [
        [
          bad,
          /TM-E002 Valgrind cannot read .*bad\.supp" near line 3: unknown tool suppression type/,
        ],
        [folder, /TM-E002 Valgrind cannot read .*is a directory/],
        [join(folder, "none.supp"), /TM-E003 no such file/],
      ];
      for (const [file, line] of cases) {
        const words = ["memcheck", "--suppressions", file, "--", python, "-c", "pass"];
        const outcome = await execute([tidemark, ...words]);
        expect(outcome.status).toBe(2);
        expect(outcome.stderr).toMatch(line);
        expect(outcome.stderr.trimEnd().split("\n")).toHaveLength(1);
      }
    });

    test("reports after Ctrl-C what was found up to then, and lets the program clean up", async () => {
      const ready = join(folder, "ready");
      const code = `import faulty, sys, time
faulty.overflow()
open(sys.argv[1], "w").write("ready\\n")
try: time.sleep(600)
finally: print("cleaned")`;
      const { outcome, document } = await found("memcheck", ["--", python, "-c", code, ready], {
        env,
        started: async (child) => {
          await until(() => existsSync(ready) && readText(ready).endsWith("\n"));
          child.kill("SIGINT");
        },
      });
      expect([outcome.status, outcome.stdout]).toEqual([130, "cleaned\n"]);
      expect(document.errors).toMatchObject([{ kind: "InvalidWrite" }]);
      expect(document.leaksKnown).toBe(false);
      expect(outcome.stderr).toMatch(/^1 memory error/m);
      expect(outcome.stderr).toMatch(/TM-E093 interrupted: the findings up to then are above/);
    });

    test("passes the program its input", async () => {
      const words = ["memcheck", "--quiet", "--", python, "-c", "print(input()[::-1])"];
      const outcome = await execute([tidemark, ...words], { input: "drawer\n" });
      expect([outcome.status, outcome.stdout, outcome.stderr]).toEqual([0, "reward\n", ""]);
    });
  });
});

describe("the hook of memcheck", () => {
  test.each(environment.interpreters.filter(({ chroot }) => chroot === undefined))(
    "does nothing outside Valgrind: Python $version",
    async ({ path }) => {
      const code = `import faulthandler, os, sys
print(sys.getprofile(), faulthandler.is_enabled(), os.listdir(os.environ["FOLDER"]))`;
      const output = scratch();
      const outcome = await execute([path, "-c", code], {
        env: {
          FOLDER: output,
          PYTHONPATH: join(repository, "python/tidemark/_hooks/frames"),
          TIDEMARK_FRAMES: `memcheck:${output}`,
          TIDEMARK_CALLS: join(repository, "dist/native/libtidemark-calls.so"),
        },
      });
      expect([outcome.stdout, outcome.stderr]).toEqual(["None False []\n", ""]);
    },
  );
});

describe("tidemark asan", () => {
  test("explains a crash after a reference too few as a broken object, not as a NULL result", async () => {
    const source = join(folder, "source");
    mkdirSync(source);
    copyFileSync(join(programs, "faulty.c"), join(source, "faulty.c"));
    const code = `import faulty
text = "".join(["a", " text"] * 40)
faulty.under_count(text)
print(text.upper())
`;
    writeFileSync(join(folder, "under.py"), code);
    const words = ["--build", source, "--", python, "under.py"];
    const { document, outcome } = await found("asan", words, {});
    expect(document.errors, outcome.stderr).toHaveLength(1);
    expect(document.errors[0]?.title).toMatch(/broken Python object|reference too few/);
    expect(document.errors[0]?.causes.join()).toMatch(/Py_DECREF of a borrowed reference/);
    expect(document.errors[0]?.fix).not.toMatch(/for NULL/);
    expect(outcome.stderr).not.toMatch(/DEADLYSIGNAL/);
  });

  test("shows a prompt that has no newline while the program waits", async () => {
    const answer = join(folder, "answer");
    const code = `import os, sys, time
sys.stderr.write("name? ")
sys.stderr.flush()
while not os.path.exists(sys.argv[1]): time.sleep(0.05)
sys.stderr.write("thanks")`;
    const words = ["asan", "--quiet", "--no-leaks", "--", python, "-c", code, answer];
    const outcome = await execute([tidemark, ...words], {
      started: async (_, { stderr }) => {
        await until(() => readText(stderr) === "name? ");
        writeFileSync(answer, "");
      },
    });
    expect([outcome.status, outcome.stderr]).toEqual([0, "name? thanks"]);
  });
});
