/** `tidemark memcheck` and `asan` with the real tools and an extension that makes each error. */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { MemcheckJson } from "../src/model/documents/memcheck_document.js";
import { expectSpeaksClearly } from "./behaviour.js";
import { environment } from "./environment.js";
import { python, validate } from "./recorded_app.js";
import {
  execute,
  type Outcome,
  programs,
  type RunSettings,
  readText,
  removeScratch,
  scratch,
  tidemark,
  until,
} from "./run.js";

afterAll(removeScratch);

const folder = scratch();
const source = join(folder, "native");
/** Where memcheck keeps the reports that importing alone causes. */
const cache = scratch();

/** Line 3 calls the function named by the first argument. */
const CALLER = `import faulty, os, sys
def caller(name):
    return getattr(faulty, name)()
for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    caller(sys.argv[1])
print("done")
`;
const UNDER = `import faulty
def keep():
    text = bytes(1000) + b"x"
    faulty.under_count(text)
    return len(text)
keep()
`;
/** A list that is freed twice is allocated twice: by the program, and by the code that records Python stacks. */
const TWICE = `import faulty
def twice():
    items = [object() for _ in range(50)]
    faulty.under_count(items)
    faulty.under_count(items)
for _ in range(3):
    twice()
print("done")
`;
const FORK = `import faulty, os
if os.fork() == 0:
    faulty.overflow()
    os._exit(0)
os.wait()
`;

beforeAll(() => {
  mkdirSync(source);
  copyFileSync(join(programs, "faulty.c"), join(source, "faulty.c"));
  const ask = (what: string) =>
    execFileSync(python, ["-c", `import sysconfig as s; print(${what})`], {
      encoding: "utf8",
    }).trim();
  const include = ask("s.get_path('include')");
  const output = join(folder, `faulty${ask("s.get_config_var('EXT_SUFFIX')")}`);
  const file = join(source, "faulty.c");
  execFileSync("cc", ["-g", "-O0", "-shared", "-fPIC", `-I${include}`, file, "-o", output]);
  writeFileSync(join(folder, "caller.py"), CALLER);
  writeFileSync(join(folder, "under.py"), UNDER);
  writeFileSync(join(folder, "twice.py"), TWICE);
  writeFileSync(join(folder, "fork.py"), FORK);
  mkdirSync(join(folder, "scripts"));
  writeFileSync(join(folder, "scripts/caller.py"), CALLER);
});

const run = (words: readonly string[], settings: RunSettings = {}) =>
  execute([tidemark, ...words], {
    cwd: folder,
    ...settings,
    env: { XDG_CACHE_HOME: cache, ...settings.env },
  });

function documentOf(path: string): MemcheckJson {
  return validate(readFileSync(path, "utf8"), "memcheck") as unknown as MemcheckJson;
}

let runs = 0;
/** Runs one of the tools on a program. */
async function findings(
  tool: "memcheck" | "asan",
  words: readonly string[],
  program: readonly string[],
  env: Record<string, string> = {},
): Promise<{ outcome: Outcome; document: MemcheckJson }> {
  runs += 1;
  const json = join(folder, `${tool}-${runs}.json`);
  const outcome = await run([tool, "--json", json, ...words, "--", python, ...program], { env });
  expectSpeaksClearly(outcome.stderr);
  return { outcome, document: documentOf(json) };
}

const sourceLine = (text: string) =>
  readFileSync(join(source, "faulty.c"), "utf8")
    .split("\n")
    .findIndex((line) => line.includes(text)) + 1;

describe.skipIf(environment.tools.valgrind === null)("tidemark memcheck", () => {
  test.each([
    ["overflow", "InvalidWrite", "block[16] = 1", /outside a block/],
    ["use_after_free", "InvalidRead", "block[3]", /after free/],
    ["free_twice", "InvalidFree", "free(block);", /Double free/],
    ["uninitialised", "UninitCondition", "block[2] > 5", /uninitialised/],
  ])("explains %s, with its line in C and in Python", async (name, kind, line, title) => {
    const { outcome, document } = await findings("memcheck", [], ["caller.py", name]);
    expect([outcome.status, outcome.stdout]).toEqual([1, "done\n"]);
    expect(document.errors).toHaveLength(1);
    const [error] = document.errors;
    expect(error).toMatchObject({ kind, count: 1, owner: { module: "faulty", kind: "own" } });
    expect(error?.title).toMatch(title);
    const at = error?.stack.find(({ function: called }) => called === name);
    const expected = name === "free_twice" ? sourceLine(line) + 1 : sourceLine(line);
    expect(at?.line).toBe(expected);
    expect(error?.python).toMatchObject({
      precision: "exact",
      stack: [
        { function: "caller", line: 3 },
        { function: "<module>", line: 5 },
      ],
    });
    expect(error?.causes.length).toBeGreaterThan(0);
    expect(document.leaks).toEqual([]);
    expect(outcome.stderr).toMatch(/^1 memory error, 0 leaks/m);
  });

  test("explains a leak, adds up its blocks, and a Python object with a reference too many", async () => {
    const { document } = await findings("memcheck", [], ["caller.py", "leak", "4"]);
    expect(document.errors).toEqual([]);
    expect(document.leaks).toMatchObject([{ bytes: 4000, blocks: 4, owner: { module: "faulty" } }]);
    const over = await findings("memcheck", [], ["caller.py", "over_count", "5"]);
    const [first] = over.document.leaks;
    expect(first?.explanation).toMatch(/reference too many/);
    expect(first?.stack.some(({ function: called }) => called === "over_count")).toBe(true);
  });

  test("finds the use of an object with a reference too few, and the Python line", async () => {
    const { outcome, document } = await findings("memcheck", [], ["under.py"]);
    expect(outcome.status).toBe(1);
    expect(document.errors).toHaveLength(1);
    expect(document.errors[0]?.title).toMatch(/reference too few/);
    expect(document.errors[0]?.python?.stack.at(-1)?.file).toMatch(/under\.py$/);
  });

  test("raises nothing in a program whose lists are freed twice", async () => {
    const { outcome, document } = await findings("memcheck", [], ["twice.py"]);
    expect(outcome.stderr).not.toMatch(/sitecustomize|Circular/);
    expect(document.errors[0]?.python?.stack.at(-1)?.file).toMatch(/twice\.py$/);
  });

  test("reports nothing about a clean extension; what Python causes by itself stays out", async () => {
    const { outcome, document } = await findings("memcheck", [], ["caller.py", "clean", "3"]);
    expect([outcome.status, outcome.stdout]).toEqual([0, "done\n"]);
    expect([document.errors, document.leaks]).toEqual([[], []]);
    const everything = await findings("memcheck", ["--all"], ["caller.py", "clean"]);
    const { errors, leaks } = everything.document;
    expect(errors.length + leaks.length).toBeGreaterThan(0);
    expect(leaks.every(({ owner }) => owner.module !== "faulty" || owner.kind === "own")).toBe(
      true,
    );
  });

  test("reads the reports of children", async () => {
    const { document } = await findings("memcheck", [], ["fork.py"]);
    expect(document.processes).toHaveLength(2);
    expect(document.errors).toMatchObject([{ kind: "InvalidWrite" }]);
    expect(document.errors[0]?.python?.stack[0]?.line).toBe(3);
  });

  test("reports a crash, and passes the program's own exit code through", async () => {
    const crash = await findings("memcheck", [], ["caller.py", "crash"]);
    expect(crash.outcome.status).toBe(1);
    expect(
      crash.document.errors.some(({ message }) => message.endsWith("it ended the process")),
    ).toBe(true);
    const exit = await run(["memcheck", "--quiet", "--", python, "-c", "raise SystemExit(7)"]);
    expect([exit.status, exit.stderr]).toEqual([7, ""]);
  });

  test("ends with one line for a missing program, and without Valgrind", async () => {
    const missing = await run(["memcheck", "--", "./no-such-program"]);
    expect(missing.status).toBe(127);
    expect(missing.stderr).toMatch(/^tidemark: TM-E009 [^\n]+\n$/);
    const bin = scratch();
    execFileSync("ln", ["-s", process.execPath, join(bin, "node")]);
    for (const tool of ["sh", "readlink", "tr"]) {
      execFileSync("ln", ["-s", execFileSync("which", [tool], { encoding: "utf8" }).trim(), bin]);
    }
    const without = await run(["memcheck", "--", python, "-c", "pass"], { env: { PATH: bin } });
    expect(without.status).toBe(4);
    expect(without.stderr).toMatch(
      /^tidemark: TM-E090 Valgrind is not installed; install it: sudo apt install valgrind[^\n]*\n$/,
    );
  });

  test("ends with one line where no temporary folder can be created", async () => {
    for (const command of [["memcheck"], ["asan"], ["allocators", "--rounds", "2"]]) {
      const words = [...command, "--", python, "-c", "pass"];
      const outcome = await run(words, { env: { TMPDIR: "/dev/null" } });
      expect(outcome.status).toBe(2);
      expect(outcome.stderr.trimEnd().split("\n").at(-1)).toMatch(
        /^tidemark: TM-E004 cannot create a temporary folder in \/dev\/null: [^;]+; set TMPDIR to/,
      );
    }
  });

  test("leaves no process and no folder behind after Ctrl-C", async () => {
    const pidFile = join(folder, "pid");
    const code = `import os, time; open(${JSON.stringify(pidFile)}, "w").write(str(os.getpid()) + "\\n"); time.sleep(600)`;
    const temporary = scratch();
    const outcome = await run(["memcheck", "--", python, "-c", code], {
      env: { TMPDIR: temporary },
      started: async (child) => {
        await until(() => readText(pidFile).endsWith("\n"));
        child.kill("SIGINT");
      },
    });
    expect(outcome.status).toBe(130);
    expect(outcome.stderr).toMatch(/TM-E093 interrupted/);
    await until(() => !existsSync(`/proc/${readText(pidFile).trim()}`));
    expect(readdirSync(temporary).filter((name) => name.startsWith("tidemark-"))).toEqual([]);
  });
});

describe("tidemark asan", () => {
  test.each([
    ["overflow", "heap-buffer-overflow", "block[16] = 1"],
    ["use_after_free", "heap-use-after-free", "block[3]"],
    ["free_twice", "double-free", "free(block);"],
    ["crash", "SEGV", "*nowhere)"],
  ])(
    "builds the extension and explains %s, with the exact Python line",
    async (name, kind, line) => {
      const { outcome, document } = await findings(
        "asan",
        ["--build", source],
        ["scripts/caller.py", name],
      );
      expect(outcome.status).toBe(1);
      expect(document.errors).toMatchObject([{ kind, owner: { module: "faulty", kind: "own" } }]);
      const [error] = document.errors;
      const at = error?.stack.find(({ function: called }) => called === name);
      expect(at?.line).toBe(name === "free_twice" ? sourceLine(line) + 1 : sourceLine(line));
      expect(error?.python).toMatchObject({
        precision: "exact",
        stack: [{ line: 3 }, { line: 5 }],
      });
      expect(outcome.stderr).not.toMatch(/Shadow bytes|#0\|/);
    },
  );

  test("explains undefined behaviour, and keeps it out of the program's stderr", async () => {
    const { outcome, document } = await findings(
      "asan",
      ["--build", source],
      ["scripts/caller.py", "signed_overflow"],
    );
    expect([outcome.status, outcome.stdout]).toEqual([1, "done\n"]);
    expect(document.errors).toMatchObject([
      { kind: "undefined-behavior", owner: { module: "faulty" } },
    ]);
    expect(document.errors[0]?.message).toMatch(/^signed integer overflow/);
    expect(outcome.stderr).not.toMatch(/runtime error/);
  });

  test("looks for leaks in a second run, and shows those of the extension only", async () => {
    const { outcome, document } = await findings(
      "asan",
      ["--build", source],
      ["scripts/caller.py", "leak", "3"],
    );
    expect([outcome.status, outcome.stdout]).toEqual([1, "done\n"]);
    expect(document.errors).toEqual([]);
    expect(document.leaks).toMatchObject([{ bytes: 3000, blocks: 3, owner: { module: "faulty" } }]);
    const unreleased = ["scripts/caller.py", "unreleased_bytes", "3"];
    const object = await findings("asan", ["--build", source], unreleased, {
      ASAN_OPTIONS: "fast_unwind_on_malloc=0",
    });
    expect(object.document.leaks).toMatchObject([{ blocks: 3, owner: { module: "faulty" } }]);
    const clean = await findings("asan", ["--build", source], ["scripts/caller.py", "clean"]);
    expect([clean.outcome.status, clean.document.leaks]).toEqual([0, []]);
  });

  test("finds the use of a list with a reference too few, which Python would keep for reuse", async () => {
    const code = "import faulty; x = [1]; faulty.under_count(x); y = [2]; y.append(3); print(x)";
    const { outcome, document } = await findings("asan", ["--build", source], ["-c", code]);
    expect(outcome.status).toBe(1);
    expect(document.errors[0]?.title).toMatch(/broken Python object/);
  });

  test("shows a call of abort() with its Python stack", async () => {
    const code = "import os\ndef give_up():\n    os.abort()\ngive_up()";
    const { document } = await findings("asan", ["--no-leaks"], ["-c", code]);
    expect(document.errors).toMatchObject([
      { kind: "ABRT", title: "Call of abort()", python: { stack: [{ line: 3 }, { line: 4 }] } },
    ]);
  });

  test("reports that an extension was not built for it", async () => {
    const { outcome, document } = await findings(
      "asan",
      ["--no-leaks", "--module", "fualty"],
      ["caller.py", "clean"],
    );
    expect([outcome.status, document.leaksKnown]).toEqual([0, false]);
    expect(outcome.stderr).toMatch(/^No errors in calls of malloc.*other code was not checked/m);
    expect(outcome.stderr).toMatch(/^--module fualty: the program loaded no extension/m);
    expect(document.limits.join(" ")).toMatch(
      /No extension of the program was built.*faulty.*--build/,
    );
  });

  test("builds alone, and names the folder", async () => {
    const outcome = await run(["asan", "--build", "native", "--python", python]);
    expect(outcome.status).toBe(0);
    expect(outcome.stderr).toMatch(
      /next: PYTHONPATH=\S*build\/tidemark-asan tidemark asan -- COMMAND/,
    );
  });

  test("ends with one line for an extension that does not build, or a folder that is none", async () => {
    const broken = scratch();
    writeFileSync(join(broken, "broken.c"), "int PyInit_broken(void) { return nothing; }\n");
    const blocked = scratch();
    copyFileSync(join(source, "faulty.c"), join(blocked, "faulty.c"));
    writeFileSync(join(blocked, "build"), "a file");
    const cases: [string, RegExp][] = [
      [blocked, /TM-E092 cannot build .*build\/tidemark-asan cannot be made: not a directory/],
      [broken, /TM-E092 cannot build .*broken\.c:1:\d+: error: .nothing. undeclared/],
      [scratch(), /TM-E092 cannot build .*no setup\.py, no pyproject\.toml/],
      [join(folder, "nowhere"), /TM-E003 no such folder/],
    ];
    for (const [place, line] of cases) {
      const outcome = await run(["asan", "--quiet", "--build", place, "--", python, "-c", "pass"]);
      expect(outcome.status, outcome.stderr).toBe(2);
      expect(outcome.stderr).toMatch(line);
      expect(outcome.stderr.trimEnd().split("\n")).toHaveLength(1);
    }
    const nothing = await run(["asan"]);
    expect([nothing.status, nothing.stderr]).toEqual([2, expect.stringMatching(/needs a program/)]);
  });
});

describe("a segmentation fault under tidemark run", () => {
  test("names the command to run next", async () => {
    const outcome = await run(["run", "-o", "crash.tidemark", "--", python, "caller.py", "crash"]);
    expect(outcome.status === 139 || outcome.signal === "SIGSEGV").toBe(true);
    const next = environment.tools.valgrind === null ? "asan --build EXT_DIR" : "memcheck";
    expect(outcome.stderr).toContain(`next: tidemark ${next} -- ${python} caller.py crash`);
  });
});
