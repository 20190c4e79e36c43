/** `tidemark allocators` and `run --allocator` with real allocators and programs. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AllocatorsJson } from "../src/model/documents/allocators_document.js";
import { expectSpeaksClearly } from "./behaviour.js";
import { environment } from "./environment.js";
import { python, validate } from "./recorded_app.js";
import {
  execute,
  type RunSettings,
  readText,
  removeScratch,
  scratch,
  tidemark,
  until,
} from "./run.js";

afterAll(removeScratch);

const folder = scratch();
const libraries = environment.allocators;
const env: Record<string, string> = libraries === null ? {} : { LD_LIBRARY_PATH: libraries };
const allocators = (words: readonly string[], settings: RunSettings = {}) =>
  execute([tidemark, "allocators", ...words], { cwd: folder, env, ...settings });

/** Blocks just below glibc's mmap threshold, of which every other one is freed: the heap keeps them all. */
const HOLES = `import ctypes, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
# A freed block of 16 MiB raises the dynamic threshold: later blocks of 1 MiB come from the heap.
libc.free(libc.malloc(16 << 20))
blocks = [libc.malloc(1 << 20) for _ in range(96)]
for block in blocks: libc.memset(block, 1, 1 << 20)
for block in blocks[:-1]: libc.free(block)
time.sleep(1.2)
`;
const EVEN = `import time
kept = [bytearray(1 << 20) for _ in range(40)]
time.sleep(1.2)
`;

beforeAll(() => {
  writeFileSync(join(folder, "holes.py"), HOLES);
  writeFileSync(join(folder, "even.py"), EVEN);
});

describe("tidemark allocators", () => {
  test("recommends the setting that returns what glibc keeps, with its interval", async () => {
    const outcome = await allocators([
      "--only",
      "mmap,trim",
      "--rounds",
      "3",
      "--json",
      "--",
      python,
      "holes.py",
    ]);
    expect(outcome.status, outcome.stderr).toBe(0);
    const document = validate(outcome.stdout, "allocators") as unknown as AllocatorsJson;
    const of = (name: string) => document.trials.find(({ allocator }) => allocator === name);
    expect(document.trials.map(({ loaded }) => loaded)).toEqual([true, true, true]);
    expect(of("glibc")?.steadyRssBytes).toBeGreaterThan(96 << 20);
    expect(of("mmap")?.steadyRssBytes).toBeLessThan(60 << 20);
    expect(of("mmap")?.steadyChange?.high).toBeLessThan(-0.3);
    expect(document.best).toBe("mmap");
    expect(document.recommendation).toMatch(
      /^Use mmap \(glibc, mmap from 128 KiB on\).* 95 % interval/,
    );
    // Interleaved: each round has each setting once.
    for (const trial of document.trials) {
      expect(trial.runs.map(({ round }) => round)).toEqual([1, 2, 3]);
      expect(trial.runs.every(({ cpuMs, wallMs }) => cpuMs > 0 && wallMs > 1_000)).toBe(true);
    }
    // Live bytes are shown next to RSS: the program's own peak, whatever the allocator.
    expect(of("mmap")?.liveBytes).toBeGreaterThan(80 << 20);
  });

  test("reports that no setting makes a difference", async () => {
    const words = ["--only", "arenas,mmap", "--rounds", "3", "--", python, "even.py"];
    const outcome = await allocators(words);
    expect(outcome.status, outcome.stderr).toBe(0);
    expect(outcome.stdout).toMatch(/makes no difference/);
    expect(outcome.stdout).not.toMatch(/^Next:/m);
  });

  test.skipIf(libraries === null)("proves that each library was loaded", async () => {
    const names = "jemalloc,mimalloc,tcmalloc";
    const words = ["--only", names, "--rounds", "2", "--json", "--", python, "even.py"];
    const outcome = await allocators(words);
    expect(outcome.status, outcome.stderr).toBe(0);
    const document = validate(outcome.stdout, "allocators") as unknown as AllocatorsJson;
    for (const name of names.split(",")) {
      const trial = document.trials.find(({ allocator }) => allocator === name);
      expect(trial?.loaded, name).toBe(true);
      expect(trial?.proof).toMatch(
        new RegExp(`^/.*lib${name}.* is in /proc/PID/maps: 2 of 2 runs$`),
      );
      // 40 MiB, and four standard errors: a sample every 512 KiB.
      expect(trial?.liveBytes).toBeGreaterThan(22 << 20);
      expect(trial?.liveBytes).toBeLessThan(58 << 20);
    }
  });

  test("names the command that installs a missing allocator", async () => {
    const ask = (only: string) =>
      allocators(["--only", only, "--rounds", "2", "--", python, "-c", "pass"], {
        env: { LD_LIBRARY_PATH: folder },
      });
    const alone = await ask("jemalloc");
    expect([alone.status, alone.stdout]).toEqual([4, ""]);
    expect(alone.stderr).toMatch(/TM-E090 jemalloc is not installed; .*apt install libjemalloc2$/m);
    const outcome = await ask("jemalloc,arenas");
    expect(outcome.status).toBe(0);
    expect(outcome.stdout).toMatch(
      /Not tried: jemalloc: not installed; sudo apt install libjemalloc2/,
    );
  });

  test("ends with one line for a program that fails or is missing, and for a bad option", async () => {
    const cases: [string[], number, RegExp][] = [
      [
        ["--only", "mmap", "--", python, "-c", "raise ValueError('x')"],
        4,
        /exit code 1; its last line: ValueError: x/,
      ],
      [["--", "no-such-program"], 127, /no-such-program/],
      [["--rounds", "1", "--", python, "-c", "pass"], 2, /from 2 to 1000/],
      [["--only", "nothing", "--", python, "-c", "pass"], 2, /jemalloc/],
    ];
    for (const [words, status, line] of cases) {
      const outcome = await allocators(words);
      expect(outcome.status, outcome.stderr).toBe(status);
      expect(outcome.stderr.trimEnd()).toMatch(line);
      expect(outcome.stdout).toBe("");
      expectSpeaksClearly(outcome.stderr);
    }
  });

  test("leaves no process behind after Ctrl-C", async () => {
    const pidFile = join(folder, "pids");
    writeFileSync(
      join(folder, "endless.py"),
      `import os, time
if os.fork() == 0: os.setsid()
open(${JSON.stringify(pidFile)}, "a").write(f"{os.getpid()}\\n")
time.sleep(600)
`,
    );
    const pids = () => readText(pidFile).split("\n").filter(Boolean).map(Number);
    const outcome = await allocators(["--", python, "endless.py"], {
      started: async (child) => {
        await until(() => pids().length === 2);
        child.kill("SIGINT");
      },
    });
    expect(outcome.status).toBe(130);
    expect(outcome.stderr).toMatch(/^tidemark: TM-E093 interrupted[^\n]*\n$/);
    await until(() => pids().every((pid) => !existsSync(`/proc/${pid}`)));
  });
});

describe("tidemark run --allocator", () => {
  const MAPS = "print(any('jemalloc' in line for line in open('/proc/self/maps')))";

  test.skipIf(libraries === null)(
    "starts the program with the library, beside the agent",
    async () => {
      const words = ["run", "-o", join(folder, "run.tidemark"), "--allocator", "jemalloc"];
      const outcome = await execute([tidemark, ...words, "--", python, "-c", MAPS], { env });
      expect([outcome.status, outcome.stdout]).toEqual([0, "True\n"]);
    },
  );

  test("ends with one line where the Python is too old for it", async () => {
    const old = environment.interpreters.find(({ version }) => version.startsWith("3.11."));
    const words = ["run", "--allocator", "pymimalloc", "--", old?.path ?? python, "-c", "pass"];
    const outcome = await execute([tidemark, ...words]);
    expect(outcome.status).toBe(2);
    expect(outcome.stderr).toMatch(
      /^tidemark: TM-E002 --allocator pymimalloc needs Python 3\.13 or newer, this is 3\.\d+[^\n]*\n$/,
    );
  });

  test("ends with one line where the library is not installed", async () => {
    const words = ["run", "--allocator", "tcmalloc", "--", python, "-c", "pass"];
    const outcome = await execute([tidemark, ...words], { env: { LD_LIBRARY_PATH: folder } });
    expect(outcome.status).toBe(4);
    expect(outcome.stderr).toMatch(
      /TM-E090 tcmalloc is not installed; install it: sudo apt install/,
    );
  });

  test("trims the heap from a thread, and keeps the environment's own sitecustomize", async () => {
    writeFileSync(join(folder, "sitecustomize.py"), "import builtins; builtins.own = True\n");
    const code = "import threading; print(own, [t.name for t in threading.enumerate()])";
    const words = ["run", "-o", join(folder, "trim.tidemark"), "--allocator", "trim"];
    const outcome = await execute([tidemark, ...words, "--", python, "-c", code], {
      env: { PYTHONPATH: folder },
    });
    expect(outcome.stdout).toBe("True ['MainThread', 'tidemark-trim']\n");
  });
});
