/** `pytest --tidemark` with the real pytest, xdist and pytest-asyncio. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { environment } from "../environment.js";
import { execute, type Outcome, removeScratch, repository, scratch, tidemark } from "../run.js";

afterAll(removeScratch);

const { packagesPython } = environment;

/** Writes the files into a new folder and runs pytest there, with the plugin available. */
async function pytest(files: Record<string, string>, ...words: string[]): Promise<Outcome> {
  const folder = scratch();
  const temporary = join(folder, "tmp");
  mkdirSync(temporary);
  for (const [name, text] of Object.entries({ "pytest.ini": "[pytest]\n", ...files })) {
    writeFileSync(join(folder, name), text);
  }
  const command = [
    "-B",
    "-m",
    "pytest",
    "-p",
    "no:cacheprovider",
    "-p",
    "tidemark.pytest_plugin",
    "-o",
    "asyncio_default_fixture_loop_scope=function",
  ];
  const outcome = await execute([packagesPython ?? "", ...command, ...words], {
    cwd: folder,
    env: { PYTHONPATH: join(repository, "python"), TMPDIR: temporary, COLUMNS: "150" },
  });
  const left = readdirSync(temporary).filter((name) => !name.startsWith("pytest-of"));
  return { ...outcome, stderr: `${outcome.stderr}${left.length > 0 ? `left: ${left}` : ""}` };
}

/** "PASSED", "FAILED", "ERROR" by test, of `pytest -rA`. */
function results({ stdout }: Outcome): Record<string, string> {
  const rows = stdout.matchAll(/^(PASSED|FAILED|ERROR|SKIPPED|XFAIL) \S+?::(\S+)/gm);
  return Object.fromEntries([...rows].map(([, state = "", name = ""]) => [name, state]));
}

const MARKS = `import pytest
limit_memory, limit_growth = pytest.mark.limit_memory, pytest.mark.limit_growth
kept = []
`;

describe.skipIf(packagesPython === null)("pytest", () => {
  test("limits of functions, classes and parameters; set-up does not count", async () => {
    const outcome = await pytest(
      {
        "test_app.py": `${MARKS}
@pytest.fixture
def corpus(): return [bytes(1000) for _ in range(30_000)]

@limit_memory("24 MiB")
def test_fixture_is_free(corpus): bytes(20 << 20)

@limit_memory("24 MiB")
def test_too_much(corpus): bytes(30 << 20)

@limit_memory("24 MiB")
class TestLoader:
    def test_small(self): bytes(1 << 20)
    def test_large(self): bytes(30 << 20)
    @limit_memory("40 MiB")
    def test_own(self): bytes(30 << 20)
    @limit_memory(None)
    def test_none(self): bytes(90 << 20)

@pytest.mark.parametrize("size", [1, 9, pytest.param(10, marks=limit_memory("20 MiB"))])
@limit_memory("8 MiB")
def test_sizes(size): bytes(size << 20)

def test_unmarked(): bytes(90 << 20)
`,
      },
      "--tidemark",
      "-rA",
    );
    expect(outcome.stderr).toBe("");
    expect(results(outcome)).toEqual({
      test_fixture_is_free: "PASSED",
      test_too_much: "FAILED",
      "TestLoader::test_small": "PASSED",
      "TestLoader::test_large": "FAILED",
      "TestLoader::test_own": "PASSED",
      "TestLoader::test_none": "PASSED",
      "test_sizes[1]": "PASSED",
      "test_sizes[9]": "FAILED",
      "test_sizes[10]": "PASSED",
      test_unmarked: "PASSED",
    });
    expect(outcome.status).toBe(1);
    expect(outcome.stdout).toMatch(/8 tests measured; most in test_app\.py::/);
  });

  test("a failure fits on a screen: limit, measured, lines, sampling, next command", async () => {
    const outcome = await pytest(
      {
        "test_app.py": `${MARKS}
def load(count):
    return [bytes(1000) for _ in range(count)]

@limit_memory("4 MiB")
def test_load():
    rows = load(10_000)
    more = bytearray(2 << 20)
`,
      },
      "--tidemark",
      "--tidemark-period=1",
    );
    const [, text = ""] = /_ test_load _+\n([\s\S]*?)\n[=_]/.exec(outcome.stdout) ?? [];
    expect(text.split("\n")).toEqual([
      expect.stringMatching(/^tidemark: limit_memory 4\.00 MiB: 11\.[89] MiB at the peak$/),
      expect.stringMatching(/^ {2}9\.\d\d? MiB {2}test_app\.py:6 {2}return \[bytes\(1000\)/),
      expect.stringMatching(/^ {2}2\.00 MiB {2}test_app\.py:11 {2}more = bytearray/),
      "  (recorded every allocation; children read every 10 ms)",
      "  next: tidemark run -m pytest test_app.py::test_load",
    ]);
  });

  test("growth: a leak fails, a cache does not; native leaks count", async () => {
    const outcome = await pytest(
      {
        "test_app.py": `${MARKS}
import ctypes, functools
libc = ctypes.CDLL(None)

@limit_growth("1 KiB/call")
def test_leaks(): kept.append(bytearray(2000))

@limit_growth("4 KiB/call", warmup=0, calls=3)
def test_leaks_less(): kept.append(bytearray(2000))

@functools.lru_cache(maxsize=8)
def squares(n): return list(range(n, n + 1000))

@limit_growth("1 KiB/call")
def test_cache():
    for n in range(5): squares(n)

@pytest.mark.no_leaks
def test_clean(tmp_path):
    (tmp_path / "file").write_text("x" * 10_000)
    cycle = []; cycle.append(cycle)

@pytest.mark.no_leaks
def test_native(): libc.malloc(64)

@pytest.mark.no_leaks(warmup=1, calls=2)
@limit_memory("1 MiB")
def test_both(): kept.append(bytes(2 << 20))
`,
      },
      "--tidemark",
      "-rA",
    );
    expect(outcome.stderr).toBe("");
    expect(results(outcome)).toEqual({
      test_leaks: "FAILED",
      test_leaks_less: "PASSED",
      test_cache: "PASSED",
      test_clean: "PASSED",
      test_native: "FAILED",
      test_both: "FAILED",
    });
    expect(outcome.stdout).toMatch(/limit_growth 1\.00 KiB\/call: 2\.0\d KiB\/call stay live/);
    expect(outcome.stdout).toMatch(/2\.0\d KiB\/call {2}test_app\.py:\d+ {2}def test_leaks/);
    expect(outcome.stdout).toMatch(/tidemark: no_leaks: 6[45] B\/call stay live/);
    expect(outcome.stdout).toMatch(
      /limit_memory 1\.00 MiB: 2\.00 MiB at the peak[\s\S]*no_leaks: 2\.00 MiB\/call/,
    );
  });

  test("what pytest itself keeps of each call is no growth, and is reported once", async () => {
    const outcome = await pytest(
      {
        "test_app.py": `${MARKS}
import logging, sys, unittest, warnings
pytestmark = pytest.mark.no_leaks
log = logging.getLogger("app")
def test_log(): log.warning("told %s", "x" * 100)
def test_caplog(caplog):
    log.warning("told"); assert len(caplog.records) == 1 and caplog.text.count("told") == 1
def test_print(): print("x" * 1000)
def test_capsys(capsys): print("seen"); assert capsys.readouterr().out == "seen\\n"
def test_capsys_unread(capsys): print("x" * 1000)
def test_warning():
    warnings.simplefilter("always"); warnings.warn("mind" * 50)
def test_recwarn(recwarn): warnings.warn("mind"); assert len(recwarn) == 1
def test_monkeypatch(monkeypatch):
    monkeypatch.setattr(sys, "app_mark", 1, raising=False); monkeypatch.setenv("APP", "1")
def test_property(record_property): record_property("key", "value")
def test_subtests(subtests):
    for number in range(3):
        with subtests.test(number=number): pass
class TestCase(unittest.TestCase):
    def test_subtest(self):
        for number in range(3):
            with self.subTest(number=number): pass
def test_reports_once(): print("once"); log.warning("once"); kept.append(bytearray(100))
`,
      },
      "--tidemark",
      "-rA",
      "-o",
      "verbosity_subtests=1",
    );
    const { test_reports_once: last, ...clean } = results(outcome);
    expect([last, ...new Set(Object.values(clean))], outcome.stdout).toEqual(["FAILED", "PASSED"]);
    expect(Object.keys(clean)).toHaveLength(11);
    expect(outcome.stdout).toMatch(/1 failed, 11 passed, 1 warning, 6 subtests passed/);
    const text = outcome.stdout.slice(outcome.stdout.indexOf("= FAILURES ="));
    const failure = text.slice(0, text.indexOf("= PASSES ="));
    expect(failure.match(/\bonce$/gm)).toHaveLength(2); // printed, logged
  });

  test("a repeated call that fails reports the number of the call", async () => {
    const outcome = await pytest(
      {
        "test_app.py": `${MARKS}
@pytest.mark.no_leaks
def test_folder(tmp_path): print("call"); (tmp_path / "new").mkdir()
`,
      },
      "--tidemark",
    );
    expect(outcome.stdout).toMatch(/FileExistsError/);
    expect(outcome.stdout).toMatch(
      /This was call 2: no_leaks repeats the test, and fixtures are set up once for all calls\./,
    );
  });

  test("doctests by the defaults of the configuration, with the lines of their examples", async () => {
    const outcome = await pytest(
      {
        "pytest.ini": "[pytest]\ntidemark_limit_memory = 2 MiB\ntidemark_no_leaks = true\n",
        "app.py": `kept = []
def small():
    """
    >>> small_block = bytes(1000)
    >>> len(small_block)
    1000
    """
def large():
    """
    >>> block = bytes(
    ...     3 << 20)
    """
def leaks():
    """
    >>> kept.append(bytes(1000))
    """
def fails():
    """
    >>> 1 + 1
    3
    """
`,
      },
      "--tidemark",
      "--doctest-modules",
      "-rA",
    );
    expect(results(outcome)).toMatchObject({ "app.small": "PASSED" });
    expect(outcome.stdout).toMatch(
      /limit_memory 2\.00 MiB: 3\.\d\d MiB at the peak\n {2}3\.00 MiB {2}app\.py:10 {2}block = bytes\(\n/,
    );
    expect(outcome.stdout).toMatch(
      /no_leaks: 1\.\d\d KiB\/call.*\n {2}1\.\d\d KiB\/call {2}app\.py:15 {2}kept\.append\(bytes\(1000\)\)\n/,
    );
    expect(outcome.stdout).toMatch(
      /next: tidemark run -m pytest --doctest-modules app\.py::app\.large/,
    );
    expect(outcome.stdout).toMatch(/Expected:\s+3\s+Got:\s+2/);
    expect(outcome.stdout).toMatch(/3 failed, 1 passed/);
  });

  test("unittest's mix-in under pytest, with and without the plugin's flag", async () => {
    const files = {
      "test_app.py": `import unittest
from tidemark.testing import MemoryLimits, no_leaks
kept = []
class Case(MemoryLimits, unittest.TestCase):
    memory_limit = "2 MiB"
    def test_small(self): bytes(1000)
    def test_large(self): bytes(3 << 20)
    @no_leaks
    def test_leaks(self): kept.append(bytes(100))
`,
    };
    for (const words of [[], ["--tidemark"]]) {
      const outcome = await pytest(files, "-rA", ...words);
      expect(outcome.stdout).toMatch(/limit_memory 2\.00 MiB: 3\.0\d MiB.* at the peak/);
      expect(outcome.stdout).not.toMatch(/testPartExecutor|Traceback/);
      expect(outcome.stdout).toMatch(/no_leaks: \d+ B\/call stay live/);
      expect(outcome.stdout).toMatch(/2 failed, 1 passed/);
    }
  });

  test("threads, children and asynchronous tests", async () => {
    const outcome = await pytest(
      {
        "test_app.py": `${MARKS}
import asyncio, multiprocessing, subprocess, sys, threading, unittest

@limit_memory("10 MiB")
def test_thread():
    thread = threading.Thread(target=lambda: bytes(20 << 20)); thread.start(); thread.join()

@limit_memory("15 MiB")
def test_child():
    subprocess.run([sys.executable, "-c", "import time; b = bytearray(b'x') * (30 << 20); time.sleep(0.4)"], check=True)

def child(): import time; b = bytearray(b'x') * (30 << 20); time.sleep(0.4)

@limit_memory("15 MiB")
def test_fork():
    process = multiprocessing.get_context("fork").Process(target=child); process.start(); process.join()

@pytest.mark.asyncio
@limit_memory("10 MiB")
async def test_asyncio():
    block = bytes(20 << 20); await asyncio.sleep(0)

@pytest.mark.asyncio
@pytest.mark.no_leaks
async def test_asyncio_leaks():
    await asyncio.sleep(0); kept.append(bytes(500))

class TestCase(unittest.TestCase):
    def setUp(self): self.block = bytes(30 << 20)
    @limit_memory("10 MiB")
    def test_small(self): pass
    @limit_memory("10 MiB")
    def test_large(self): bytes(20 << 20)

class TestAsyncCase(unittest.IsolatedAsyncioTestCase):
    @limit_memory("10 MiB")
    async def test_large(self): block = bytes(20 << 20); await asyncio.sleep(0)
`,
      },
      "--tidemark",
      "-rA",
      "-W",
      "ignore",
    );
    expect(outcome.stderr).toBe("");
    expect(results(outcome)).toEqual({
      test_thread: "FAILED",
      test_child: "FAILED",
      test_fork: "FAILED",
      test_asyncio: "FAILED",
      test_asyncio_leaks: "FAILED",
      "TestCase::test_small": "PASSED",
      "TestCase::test_large": "FAILED",
      "TestAsyncCase::test_large": "FAILED",
    });
    expect(outcome.stdout).toMatch(/of it in 1 child process/);
  });

  const DEFAULTS = `[pytest]
tidemark_limit_memory = 8 MiB
tidemark_no_leaks = true
`;

  test("defaults of the configuration, with xdist", async () => {
    const tests = Array.from({ length: 12 }, (_, n) => `def test_${n}(): bytes(${n + 1} << 20)`);
    const files = {
      "pytest.ini": DEFAULTS,
      "test_app.py": `${MARKS}
${tests.join("\n")}
@limit_memory("90 MiB")
def test_own(): bytes(20 << 20)
@pytest.mark.no_leaks(None)
def test_lifted(): kept.append(bytes(100))
def test_leaks(): kept.append(bytes(100))
`,
    };
    const expected = Object.fromEntries([
      ...tests.map((_, n) => [`test_${n}`, n + 1 > 8 || n === 7 ? "FAILED" : "PASSED"]),
      ...[
        ["test_own", "PASSED"],
        ["test_lifted", "PASSED"],
        ["test_leaks", "FAILED"],
      ],
    ]);
    for (const words of [[], ["-n", "2"]]) {
      const outcome = await pytest(files, "--tidemark", "-rA", ...words);
      expect(results(outcome), outcome.stdout).toEqual(expected);
      expect(outcome.stdout).toMatch(/15 tests measured; most in test_app\.py::test_own/);
    }
  });

  test("without --tidemark the markers do nothing, and one warning is printed, with xdist too", async () => {
    const files = {
      "test_app.py": `${MARKS}
@limit_memory("1 KiB")
def test_a(): bytes(1 << 20)
@pytest.mark.no_leaks
def test_b(): kept.append(1)
`,
    };
    for (const words of [[], ["-n", "2"]]) {
      const outcome = await pytest(files, "--strict-markers", ...words);
      expect(outcome.status, outcome.stdout).toBe(0);
      const said = outcome.stdout.match(
        /2 tests have memory limits that are not checked: add --tidemark/g,
      );
      expect(said).toHaveLength(1);
    }
  });
});

describe.skipIf(packagesPython === null)("hostile tests and settings", () => {
  test("invalid markers are errors of their tests, one line each", async () => {
    const marks = [
      '"24 apples"',
      '"-1 MiB"',
      "",
      "True",
      "None, None",
      'size="1 MiB", unit=3',
      '"1e999"',
      "object()",
    ];
    const tests = marks.map((mark, n) => `@limit_memory(${mark})\ndef test_${n}(): pass`);
    const outcome = await pytest(
      {
        "test_app.py": `${MARKS}
${tests.join("\n")}
@limit_growth("1 KiB", calls=3)
def test_rate(): pass
@limit_growth("1 KiB/call", calls=-3)
def test_calls(): pass
@pytest.mark.no_leaks(calls="many")
def test_many(): pass
@pytest.mark.limit_memory
def test_bare(): pass
def test_plain(): pass
`,
      },
      "--tidemark",
      "-rA",
    );
    const found = results(outcome);
    expect(Object.values(found).filter((state) => state === "ERROR")).toHaveLength(12);
    expect(found.test_plain).toBe("PASSED");
    expect(outcome.stdout).toMatch(
      /tidemark: limit_memory takes a size such as '24 MiB', not '24 apples'/,
    );
    expect(outcome.stdout).toMatch(
      /tidemark: limit_growth takes a growth rate such as '1 KiB\/call', not '1 KiB'/,
    );
    expect(outcome.stdout).toMatch(
      /tidemark: limit_growth takes calls as a whole number from 1 on, not -3/,
    );
    expect(outcome.stdout).not.toMatch(/Traceback|INTERNALERROR|During handling/);
  });

  test.each([
    ["tidemark_limit_memory = lots", [], /tidemark_limit_memory takes a size/],
    ["tidemark_limit_growth = 1 KiB", [], /tidemark_limit_growth takes a growth/],
    ["tidemark_no_leaks = maybe", [], /tidemark_no_leaks takes true or false/],
    ["tidemark_period = often", [], /tidemark_period takes a size such as '4K', not 'often'/],
    ["", ["--tidemark-period", "-4"], /--tidemark-period takes a size such as '4K', not '-4'/],
  ])("%s %j", async (line, words, says) => {
    const files = { "pytest.ini": `[pytest]\n${line}\n`, "test_app.py": "def test_a(): pass\n" };
    const outcome = await pytest(files, "--tidemark", ...words);
    expect(outcome.status).toBe(4);
    expect(outcome.stderr).toMatch(says);
    expect(outcome.stderr.trim().split("\n")).toHaveLength(1);
  });

  test("tests that fork, exit, leave threads running, fail or skip do not affect the next measurement", async () => {
    const outcome = await pytest(
      {
        "pytest.ini": "[pytest]\ntidemark_limit_memory = 5 MiB\n",
        "test_app.py": `${MARKS}
import os, sys, threading, time

def test_1_forks():
    if os.fork() == 0: os._exit(0)
    os.wait()
def test_2_exits(): sys.exit(3)
def test_3_thread_goes_on(): threading.Thread(target=time.sleep, args=(0.5,)).start()
def test_4_raises(): raise ValueError("its own")
def test_5_skips(): pytest.skip("not here")
@pytest.mark.xfail(strict=True)
def test_6_xfail(): bytes(9 << 20)
def test_7_many_small():
    for n in range(20_000): bytes(n % 700)
def test_8_deep():
    def deep(n): return deep(n - 1) if n else bytes(1 << 20)
    deep(400)
def test_9_large(): bytes(9 << 20)
`,
      },
      "--tidemark",
      "-rA",
    );
    expect(outcome.stderr).toBe("");
    expect(results(outcome), outcome.stdout).toEqual({
      test_1_forks: "PASSED",
      test_2_exits: "FAILED",
      test_3_thread_goes_on: "PASSED",
      test_4_raises: "FAILED",
      test_6_xfail: "XFAIL",
      test_7_many_small: "PASSED",
      test_8_deep: "PASSED",
      test_9_large: "FAILED",
    });
    expect(outcome.stdout).toContain("its own");
    expect(outcome.stdout).not.toContain("INTERNALERROR");
  });

  test("a worker whose test kills it is replaced, and the others are measured", async () => {
    const outcome = await pytest(
      {
        "pytest.ini": "[pytest]\ntidemark_limit_memory = 5 MiB\n",
        "test_app.py": `${MARKS}
import os, signal
def test_kills(): os.kill(os.getpid(), signal.SIGKILL)
def test_large(): bytes(9 << 20)
def test_small(): bytes(1 << 20)
`,
      },
      "--tidemark",
      "-rA",
      "-n",
      "1",
    );
    expect(results(outcome), outcome.stdout).toMatchObject({
      test_kills: "FAILED",
      test_large: "FAILED",
      test_small: "PASSED",
    });
    expect(outcome.stdout).toMatch(/worker 'gw0' crashed/);
    expect(outcome.stderr).toBe("");
  });

  test("under tidemark run nothing is checked, and a warning is printed", async () => {
    const folder = scratch();
    writeFileSync(
      join(folder, "test_app.py"),
      `${MARKS}@limit_memory("1 KiB")\ndef test_a(): bytes(1 << 20)\n`,
    );
    const words = ["-m", "pytest", "-p", "tidemark.pytest_plugin", "--tidemark"];
    const outcome = await execute(
      [tidemark, "run", "-o", "t.tidemark", "--", packagesPython ?? "", ...words],
      { cwd: folder, env: { PYTHONPATH: join(repository, "python") } },
    );
    expect(outcome.status, outcome.stdout).toBe(0);
    expect(outcome.stdout).toMatch(
      /`tidemark run` records this process already: --tidemark checks no limits/,
    );
  });
});
