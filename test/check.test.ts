/** `tidemark check` with real programs: exit codes, the five lines, files, baselines, hostile input. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GateJson } from "../src/model/documents/check_document.js";
import { expectSpeaksClearly } from "./behaviour.js";
import { python, validate } from "./recorded_app.js";
import {
  execute,
  type Outcome,
  type RunSettings,
  removeScratch,
  scratch,
  tidemark,
} from "./run.js";

afterAll(removeScratch);

const folder = scratch();
const check = (words: readonly string[], settings: RunSettings = {}) =>
  execute([tidemark, "check", ...words], { cwd: folder, ...settings });
const file = (name: string) => join(folder, name);
const read = (name: string) => readFileSync(file(name), "utf8");

const BLOCK = `import sys, time
def load():
    return bytearray(b"x") * (int(sys.argv[1]) << 20)
block = load()
time.sleep(0.8)
print("out"); print("err", file=sys.stderr)
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
`;
const LEAK = `import time
kept = []
def record(): kept.append(bytearray(20_000))
end = time.monotonic() + 32
while time.monotonic() < end:
    record(); time.sleep(0.004)
`;
/** Its rate is the same on a slow machine. */
const SLOW = `import time
kept = []
def record(): kept.append(bytearray(120))
start = time.monotonic()
while (elapsed := time.monotonic() - start) < 45:
    while len(kept) < 150 * elapsed: record()
    time.sleep(0.01)
`;
const CACHE = `import time
cache = {}
def fill(number): cache[number % 400] = bytearray(100_000)
end, number = time.monotonic() + 32, 0
while time.monotonic() < end:
    fill(number); number += 1; time.sleep(0.004)
`;

beforeAll(() => {
  for (const [name, text] of Object.entries({
    "block.py": BLOCK,
    "leak.py": LEAK,
    "cache.py": CACHE,
    "slow.py": SLOW,
  })) {
    writeFileSync(file(name), text);
  }
});

describe("a limit on the peak", () => {
  test("is met: the program's output and exit code, one line from Tidemark, no recording left", async () => {
    const outcome = await check(["--peak", "1GiB", "--python", python, "block.py", "60", "3"]);
    expect([outcome.status, outcome.stdout]).toEqual([3, "out\n"]);
    const ours = outcome.stderr.replace("err\n", "");
    expect(ours).toMatch(
      /^tidemark: passed peak, at most 1\.00 GiB: \d.* MiB RSS, under 1\.00 GiB\n$/,
    );
    expect(recordings()).toEqual([]);
  });

  test("is exceeded: exit code 1, five lines with gate, figure, line, holder and next command", async () => {
    const words = ["--peak", "50MiB", "-o", "over.tidemark", "--json", "over.json"];
    const outcome = await check([...words, "--", python, "block.py", "60"]);
    expect([outcome.status, outcome.stdout]).toEqual([1, "out\n"]);
    const lines = outcome.stderr.replace("err\n", "").trimEnd().split("\n");
    expect(lines).toEqual([
      "Gate      peak, at most 50.0 MiB: failed",
      expect.stringMatching(/^Measured {2}\d.* MiB RSS, over 50\.0 MiB$/),
      // A small block of the same line may be sampled, too.
      expect.stringMatching(/^Line {6}load block\.py:3 \(60\.[01] MiB\)$/),
      expect.stringMatching(/^Holder {4}60\.[01] MiB of it live at the end$/),
      "Next      tidemark summary over.tidemark --at peak",
    ]);
    const next = await execute([tidemark, "summary", "over.tidemark", "--at", "peak"], {
      cwd: folder,
    });
    expect(next.stdout).toContain("load");
    const document = validate(read("over.json"), "check");
    expect(document).toMatchObject({
      passed: false,
      exitCode: 0,
      recording: file("over.tidemark"),
    });
  });

  test("counts children, and pages that they share once", async () => {
    const forks = `import os, time
block = bytearray(b"x") * (60 << 20)
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        time.sleep(2.5); os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
`;
    const outcome = await check(["--peak", "200MiB", "--", python, "-c", forks]);
    expect(outcome.status, outcome.stderr).toBe(0);
    expect(outcome.stderr).toMatch(/in 5 processes \(PSS to sum of RSS\)/);
    const over = await check(["--peak", "40MiB", "--quiet", "--", python, "-c", forks]);
    expect(over.status, over.stderr).toBe(1);
  });
});

describe("a program that ends by itself", () => {
  test.each([0, 7, 126, 143])("exit code %i passes through", async (code) => {
    const words = ["--peak", "1GiB", "--quiet", "--", python, "-c", `import os; os._exit(${code})`];
    expect(await check(words)).toMatchObject({ status: code, signal: null, stderr: "" });
  });

  test("a signal passes through, unless there is a finding", async () => {
    const kill =
      "import os, time; x = bytearray(60 << 20); time.sleep(0.6); os.kill(os.getpid(), 15)";
    const words = (limit: string) => ["--peak", limit, "--quiet", "--", python, "-c", kill];
    expect(await check(words("1GiB"))).toMatchObject({ status: null, signal: "SIGTERM" });
    expect(await check(words("30MiB"))).toMatchObject({ status: 1, signal: null });
  });

  test.each([
    ["no such program", "/nonexistent/program", 127],
    ["not executable", "/etc/passwd", 126],
  ])("%s: as under a shell", async (_name, program, status) => {
    const outcome = await check(["--peak", "1GiB", "--", program]);
    expect(outcome.status).toBe(status);
    expect(outcome.stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("input and a terminal's width are the program's", async () => {
    const words = ["--peak", "1GiB", "--quiet", "--", python, "-c", "print(input()[::-1])"];
    expect(await check(words, { input: "abc\n" })).toMatchObject({ status: 0, stdout: "cba\n" });
  });
});

describe("growth and leaks", () => {
  test("a leak fails both gates, a cache that fills fails neither", async () => {
    const gates = ["--growth", "10MiB/h", "--leak", "--json"];
    const [leak, cache] = await Promise.all([
      check([...gates, "leak.json", "-o", "leak.tidemark", "--", python, "leak.py"]),
      check([...gates, "cache.json", "--", python, "cache.py"]),
    ]);
    expect(leak.status, leak.stderr).toBe(1);
    expect(leak.stderr).toMatch(/Gate {6}growth, at most \+10\.0 MiB\/h: failed/);
    expect(leak.stderr).toMatch(/Gate {6}leak: failed/);
    expect(leak.stderr).toMatch(/Line {6}record leak\.py:3/);
    expect(leak.stderr).toMatch(/Holder {4}.*kept/);
    expect(leak.stderr).toMatch(/Next {6}tidemark diagnose leak\.tidemark/);
    expect(validate(read("leak.json"), "check")).toMatchObject({ passed: false });
    expect(cache.status, cache.stderr).toBe(0);
    expect(validate(read("cache.json"), "check")).toMatchObject({ passed: true });
  });

  test("a slow leak fails the growth gate, whatever the verdict", async () => {
    // At the default period a megabyte is a dozen samples, so the line's growth may be within their error.
    const gates = ["--growth", "1MiB/h", "--period", "4KiB", "--json", "slow.json"];
    const outcome = await check([...gates, "-o", "slow.tidemark", "--", python, "slow.py"]);
    expect(outcome.status, outcome.stderr).toBe(1);
    expect(outcome.stderr).toMatch(/Gate {6}growth, at most \+1\.00 MiB\/h: failed/);
    expect(outcome.stderr).toMatch(/Line {6}record slow\.py:3 \(/);
    const next = /Next {6}tidemark (diff slow\.tidemark@\d+s slow\.tidemark@end)\n/.exec(
      outcome.stderr,
    );
    const diff = await execute([tidemark, ...(next?.[1] ?? "").split(" ")], { cwd: folder });
    expect(diff.stdout, outcome.stderr).toMatch(/record slow\.py:3/);
    const { gates: judged } = validate(read("slow.json"), "check") as { gates: GateJson[] };
    expect(judged[0]?.interval?.low).toBeGreaterThan(2 ** 20);
  });

  test("a program that ends too soon does not pass silently", async () => {
    const words = ["--growth", "10MiB/h", "--", python, "block.py", "1"];
    const outcome = await check(words);
    expect(outcome.status).toBe(1);
    expect(outcome.stderr).toMatch(/growth, at most \+10\.0 MiB\/h: not decided/);
    expect(outcome.stderr).toMatch(
      /growth cannot be distinguished from start-up in less than 25\.0 s/,
    );
    expect(outcome.stderr).toMatch(/Next {6}let the program run longer, or add --allow-undecided/);
    const allowed = await check(["--allow-undecided", "--junit", "short.xml", ...words]);
    expect([allowed.status, allowed.stdout]).toEqual([0, "out\n"]);
    expect(allowed.stderr).toMatch(/tidemark: not decided growth/);
    expect(read("short.xml")).toMatch(/failures="0" errors="0" skipped="1"/);
  });
});

describe("a baseline", () => {
  test("is saved, reviewed, compared", async () => {
    const saved = await check(["--save-baseline", "memory.txt", "--", python, "block.py", "60"]);
    expect([saved.status, saved.stdout], saved.stderr).toEqual([0, "out\n"]);
    expect(read("memory.txt")).toMatch(
      /^# Tidemark baseline 1: .*\n# command: .*block\.py 60\npeak +\d/,
    );
    // Here and below, a small block of the same line may be sampled, too.
    expect(read("memory.txt")).toMatch(/\nsite +60\.[01] MiB .* load block\.py\n/);
    const compare = (mib: string) =>
      check(["--baseline", "memory.txt", "--", python, "block.py", mib]);
    const same = await compare("60");
    expect([same.status, same.stderr]).toEqual([0, expect.not.stringMatching(/another command/)]);
    const less = await compare("20");
    expect([less.status, less.stderr]).toEqual([
      0,
      expect.stringMatching(/The baseline is that of another command: .*block\.py 60\n/),
    ]);
    const more = await compare("90");
    expect(more.status).toBe(1);
    expect(more.stderr).toMatch(/baseline-peak, at most .*: failed/);
    expect(more.stderr).toMatch(/Line {6}load block\.py:3 \(90\.[01] MiB\)/);
    // A user raises the limit by hand.
    writeFileSync(
      file("memory.txt"),
      read("memory.txt").replace(/to [\d.]+ MiB$/gm, "to 999.0 MiB"),
    );
    writeFileSync(
      file("memory.txt"),
      read("memory.txt").replace(/to [\d.]+ MiB {4}/gm, "to 999.0 MiB    "),
    );
    expect((await compare("90")).status).toBe(0);
  });

  test("of a program that fails is not saved", async () => {
    const outcome = await check([
      "--save-baseline",
      "failed.txt",
      "--",
      python,
      "block.py",
      "1",
      "4",
    ]);
    expect(outcome.status).toBe(4);
    expect(outcome.stderr).toMatch(
      /failed\.txt was not written: the program ended with exit code 4/,
    );
    expect(existsSync(file("failed.txt"))).toBe(false);
  });
});

describe("reports", () => {
  test("GITHUB_STEP_SUMMARY is appended to, and JUnit's XML is written", async () => {
    writeFileSync(file("summary.md"), "before\n");
    const words = ["--peak", "30MiB", "--junit", "gates.xml", "-o", "github.tidemark", "-f"];
    await check([...words, "--", python, "block.py", "60"], {
      env: { GITHUB_STEP_SUMMARY: file("summary.md") },
    });
    expect(read("summary.md")).toMatch(/^before\n### Memory check failed: `.*`\n/);
    expect(read("summary.md")).toMatch(/\| peak, at most 30\.0 MiB \| \*\*failed\*\* \|/);
    expect(read("summary.md")).toMatch(/Line {6}load block\.py:3 \(60\.[01] MiB\)/);
    expect(read("gates.xml")).toMatch(
      /name="peak"[\s\S]*<failure message=".*over 30\.0 MiB" type="finding">Gate/,
    );
    const parse = "import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1])";
    expect(await execute([python, "-c", parse, file("gates.xml")])).toMatchObject({ status: 0 });
  });

  test("every output calls an undecided gate undecided", async () => {
    const words = ["--growth", "10MiB/h", "--junit", "open.xml", "-o", "open.tidemark", "-f"];
    const outcome = await check([...words, "--", python, "-c", ""], {
      env: { GITHUB_STEP_SUMMARY: file("open.md") },
    });
    expect([outcome.status, outcome.stderr]).toEqual([1, expect.stringMatching(/: not decided\n/)]);
    expect(read("open.md")).toMatch(/\| growth, at most \+10\.0 MiB\/h \| \*\*not decided\*\* \|/);
    expect(read("open.xml")).toMatch(/<failure [^>]*type="undecided"/);
  });

  test("a summary that cannot be written fails no check", async () => {
    const outcome = await check(["--peak", "1GiB", "--", python, "-c", ""], {
      env: { GITHUB_STEP_SUMMARY: "/nonexistent/summary.md" },
    });
    expect(outcome.status).toBe(0);
    expect(outcome.stderr).toMatch(/GITHUB_STEP_SUMMARY cannot be written/);
  });
});

describe("hostile input ends in one line, and nothing runs", () => {
  const touch = ["--", "sh", "-c", "touch ran"];
  const refused = async (words: readonly string[], says: RegExp) => {
    const outcome: Outcome = await check([...words, ...touch]);
    expect([outcome.status, outcome.stdout], outcome.stderr).toEqual([2, ""]);
    expect(outcome.stderr).toMatch(/^tidemark: TM-E0\d\d [^\n]+\n$/);
    expect(outcome.stderr).toMatch(says);
    expectSpeaksClearly(outcome.stderr);
    expect(existsSync(file("ran"))).toBe(false);
  };

  test.each([
    [["--peak", "-5MiB"], /--peak takes a size such as/],
    [["--peak", "0"], /--peak takes a size of at least 1/],
    [["--peak", "2 apples"], /--peak takes a size/],
    [["--growth", "10MiB"], /--growth takes a growth rate such as 10MiB\/h/],
    [["--growth", "-1MiB/h"], /--growth takes a growth/],
    [["--growth", "1MiB/week"], /--growth takes a growth/],
    [["--growth", "10/h"], /--growth takes a growth rate such as 10MiB\/h/],
    [["--peak", "1GiB", "--json", "-"], /--json takes the name of a file, because stdout belongs/],
    [["--peak", "1GiB", "--json", "two", "--junit", "./two", "-f"], /two options name \.\/two/],
    [["--peak", "1GiB", "--json", "two", "-o", "two", "-f"], /two options name two/],
    [[], /check has nothing to compare with; add --peak/],
    [["--baseline", "missing.txt"], /missing\.txt/],
    [["--baseline", "."], /directory/],
    [["--baseline", "block.py"], /block\.py is not a baseline/],
    [["--peak", "1GiB", "--junit", "block.py"], /block\.py exists/],
    [["--save-baseline", "block.py"], /block\.py exists/],
    [["--peak", "1GiB", "--json", "/nonexistent/x.json"], /x\.json/],
    [["--peak", "1GiB", "-o", "/nonexistent/x.tidemark"], /x\.tidemark/],
  ])("%j", (words, says) => refused(words, says));

  test("a report that would overwrite the baseline is refused, with --force too", async () => {
    const text = "# Tidemark baseline 1:\npeak 1.0 MiB from 0.0 MiB to 2.0 MiB\n";
    writeFileSync(file("kept.txt"), text);
    await refused(["--baseline", "kept.txt", "--junit", "kept.txt", "-f"], /two options name kept/);
    expect(read("kept.txt")).toBe(text);
  });

  test("a baseline that was damaged is named with its line", async () => {
    mkdirSync(file("bad"), { recursive: true });
    writeFileSync(file("bad/memory.txt"), "# Tidemark baseline 1:\npeak lots\n");
    await refused(
      ["--baseline", "bad/memory.txt"],
      /bad\/memory\.txt, line 2: 'peak lots' is not a figure/,
    );
  });
});

function recordings(): string[] {
  return readdirSync(folder).filter((name) => /-\d{8}-.*\.tidemark$/.test(name));
}
