/** `tidemark lint` as a user runs it. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { LintJson } from "../../src/model/documents/lint_document.js";
import { cli, python, validate } from "../recorded_app.js";
import { record, removeScratch, scratch } from "../run.js";

const LEAK = `CACHE = {}


def handle(request):
    CACHE[request.id] = bytearray(1000)
`;
let cwd: string;

beforeEach(() => {
  cwd = scratch();
  mkdirSync(join(cwd, "app"));
  writeFileSync(join(cwd, "app/leak.py"), LEAK);
  writeFileSync(join(cwd, "app/good.py"), "def f(x):\n    return x\n");
});
afterAll(removeScratch);

const lint = (...words: string[]) => cli(["lint", ...words], { cwd });

async function documentOf(...words: string[]): Promise<LintJson> {
  const { stdout } = await lint(...words, "--json");
  return validate(stdout, "lint") as unknown as LintJson;
}

describe("findings", () => {
  test("name the line, the rule and what grows; the exit code is 1", async () => {
    const { status, stdout, stderr } = await lint("app");
    expect([status, stderr]).toEqual([1, ""]);
    expect(stdout.split("\n").slice(0, 5)).toEqual([
      "app/leak.py:5:5 error TM-L001 module-container-grows",
      "    `CACHE` of this module gains an entry for each new key in each call of the handler `handle`, and nothing removes any",
      "    | CACHE[request.id] = bytearray(1000)",
      "",
      "1 finding (1 error) in 2 files, 7 lines",
    ]);
  });

  test("as JSON that obeys its schema", async () => {
    const { findings, files, errors } = await documentOf("app");
    expect(findings).toMatchObject([
      { file: "app/leak.py", line: 5, column: 5, endLine: 5, rule: "TM-L001", severity: "error" },
    ]);
    expect([files, errors]).toEqual([2, []]);
    expect(JSON.parse((await lint("app", "--format", "json")).stdout).findings).toEqual(findings);
  });

  test("as SARIF, and as annotations of GitHub", async () => {
    const { runs, version } = JSON.parse((await lint("app", "--format", "sarif")).stdout);
    expect(version).toBe("2.1.0");
    expect(runs[0].results).toMatchObject([
      {
        ruleId: "TM-L001",
        level: "error",
        locations: [
          {
            physicalLocation: {
              artifactLocation: { uri: "app/leak.py" },
              region: { startLine: 5 },
            },
          },
        ],
      },
    ]);
    expect(await lint("app", "--json", "--format", "sarif")).toMatchObject({
      status: 2,
      stderr: "tidemark: TM-E002 --json and --format sarif cannot be combined; choose one\n",
    });
    expect(runs[0].tool.driver.rules[runs[0].results[0].ruleIndex].id).toBe("TM-L001");
    const { stdout } = await lint("app", "--format", "github");
    expect(stdout).toMatch(
      /^::error file=app\/leak\.py,line=5,endLine=5,col=5,title=TM-L001 module-container-grows::`CACHE` .*\n$/,
    );
  });

  test("fail by severity", async () => {
    writeFileSync(join(cwd, "app/leak.py"), "def f(path):\n    return open(path).read()\n");
    expect((await lint("app")).status).toBe(1);
    expect((await lint("app", "--fail-on", "error")).status).toBe(0);
    writeFileSync(join(cwd, "app/leak.py"), LEAK);
    expect((await lint("app", "--fail-on", "error")).status).toBe(1);
    expect((await lint("app", "--fail-on", "never")).status).toBe(0);
    // A path that cannot be checked counts more.
    expect((await lint("app", "gone.py")).status).toBe(2);
  });

  test("are ignored by a comment, for the named rule alone", async () => {
    const ignored = LEAK.replace("(1000)", "(1000)  # tidemark: ignore[TM-L001] few ids");
    writeFileSync(join(cwd, "app/leak.py"), ignored);
    expect(await documentOf("app")).toMatchObject({ findings: [], suppressed: 1 });
    writeFileSync(join(cwd, "app/leak.py"), ignored.replace("L001", "L002"));
    expect((await documentOf("app")).findings).toHaveLength(1);
    writeFileSync(join(cwd, "app/leak.py"), `# tidemark: ignore-file\n${LEAK}`);
    expect(await documentOf("app")).toMatchObject({ findings: [], suppressed: 1 });
  });

  test("of chosen rules and paths", async () => {
    expect((await documentOf("app", "--select", "module-container-grows")).findings).toHaveLength(
      1,
    );
    expect((await documentOf("app", "--select", "TM-L01")).findings).toEqual([]);
    expect((await documentOf("app", "--ignore", "TM-L001")).findings).toEqual([]);
    expect(await documentOf("app", "--exclude", "leak.py")).toMatchObject({
      findings: [],
      files: 1,
    });
    const { status, stderr } = await lint("app", "--select", "TM-L999");
    expect(status).toBe(2);
    expect(stderr).toMatch(/^tidemark: TM-E002 there is no rule TM-L999; .*\n$/);
  });

  test("of another file that empties the container do not count", async () => {
    writeFileSync(
      join(cwd, "app/good.py"),
      "from leak import CACHE\n\ndef clear():\n    CACHE.clear()\n",
    );
    expect((await documentOf("app")).findings).toEqual([]);
  });
});

test("--fix makes only safe changes", async () => {
  const path = join(cwd, "app/leak.py");
  writeFileSync(
    path,
    "def f(path):\n    with open(path) as f:\n        for line in f.readlines():\n            print(line)\n",
  );
  const { status, stdout } = await lint("app", "--fix");
  expect([status, stdout]).toEqual([0, "no findings in 2 files, 6 lines; 1 fixed\n"]);
  expect(readFileSync(path, "utf8")).toContain("        for line in f:\n");
  writeFileSync(path, LEAK);
  expect((await lint("app", "--fix")).status).toBe(1);
  expect(readFileSync(path, "utf8")).toBe(LEAK);
});

describe("--fix does not change", () => {
  const path = () => join(cwd, "app/leak.py");
  const fixed = async (content: string | Uint8Array) => {
    writeFileSync(path(), content);
    const result = await lint("app", "--fix");
    return { ...result, bytes: readFileSync(path()) };
  };
  const LOOP = "def f(path):\n    for line in open(path).readlines():\n        print(line)\n";

  test("line ends, and the byte order mark", async () => {
    const { bytes } = await fixed(`\ufeff${LOOP}`.replaceAll("\n", "\r\n"));
    expect(bytes.toString()).toBe(
      `\ufeff${LOOP.replace(".readlines()", "")}`.replaceAll("\n", "\r\n"),
    );
  });

  test("a file in an encoding that --fix cannot write", async () => {
    const before = Buffer.from(`# coding: latin-1\nname = "\u00e9"\n${LOOP}`, "latin1");
    const { bytes, status, stderr } = await fixed(before);
    expect(bytes.equals(before)).toBe(true);
    expect([status, stderr]).toEqual([
      2,
      "tidemark: app/leak.py is not in UTF-8: it was not fixed\n",
    ]);
    const ascii = await fixed(`# coding: latin-1\n${LOOP}`);
    expect(ascii.bytes.toString()).not.toContain("readlines");
  });

  test.each([
    "def f(path):\n    with open(path) as f:\n        for line in f.readlines():\n            f.seek(0)\n",
    'def f(path):\n    for line in open(path).readlines():\n        open(path, "w").write(line)\n',
  ])("a loop that changes what it reads: %j", async (text) => {
    expect((await fixed(text)).bytes.toString()).toBe(text);
  });
});

test("a baseline accepts existing findings, wherever their lines move", async () => {
  expect((await lint("app", "--save-baseline", "known.txt")).status).toBe(0);
  expect(await documentOf("app", "--baseline", "known.txt")).toMatchObject({
    findings: [],
    baselined: 1,
  });
  writeFileSync(join(cwd, "app/leak.py"), `import os\n\n${LEAK}    CACHE[request.path] = 1\n`);
  const { findings, baselined } = await documentOf("app", "--baseline", "known.txt");
  expect(baselined).toBe(1);
  expect(findings).toEqual([]);
  writeFileSync(join(cwd, "app/other.py"), LEAK);
  expect((await documentOf("app", "--baseline", "known.txt")).findings).toMatchObject([
    { file: "app/other.py" },
  ]);
  const inside = await cli(["lint", ".", "--baseline", "../known.txt", "--json"], {
    cwd: join(cwd, "app"),
  });
  expect(JSON.parse(inside.stdout)).toMatchObject({
    baselined: 1,
    findings: [{ file: "other.py" }],
  });
  const wrong = await lint("app", "--baseline", "app/leak.py");
  expect([wrong.status, wrong.stderr]).toEqual([
    2,
    "tidemark: TM-E002 app/leak.py is not a baseline of tidemark lint; write it again with --save-baseline app/leak.py\n",
  ]);
});

describe("pyproject.toml", () => {
  const settings = (text: string) =>
    writeFileSync(join(cwd, "pyproject.toml"), `[tool.tidemark.lint]\n${text}`);

  test("chooses rules, paths, the severity and the baseline", async () => {
    settings('ignore = ["TM-L001"]\n');
    expect((await documentOf("app")).findings).toEqual([]);
    settings('exclude = [\n  "app/l*",  # one\n]\n');
    expect((await documentOf("app")).files).toBe(1);
    settings('fail-on = "never"\n');
    expect((await lint("app")).status).toBe(0);
    expect((await lint("app", "--fail-on", "error")).status).toBe(1);
    settings('\n[tool.tidemark.lint.per-file-ignores]\n"app/*" = ["module-container-grows"]\n');
    expect((await documentOf("app")).findings).toEqual([]);
  });

  test("leaves out files that a pre-commit hook names, and counts from its folder", async () => {
    settings('exclude = ["app/leak.py"]\n');
    expect(await lint("app/leak.py")).toMatchObject({
      status: 0,
      stdout: "no findings in 0 files, 0 lines\n",
    });
    const inside = await cli(["lint", "leak.py"], { cwd: join(cwd, "app") });
    expect([inside.status, inside.stdout]).toEqual([0, "no findings in 0 files, 0 lines\n"]);
    expect((await lint("app/leak.py", "--exclude", "app")).status).toBe(0);
    settings("");
    expect((await lint("app/leak.py", "--exclude", "app")).status).toBe(1);
  });

  test("may be a folder, or broken", async () => {
    mkdirSync(join(cwd, "app/pyproject.toml"));
    expect((await lint("app")).status).toBe(1);
    writeFileSync(join(cwd, "pyproject.toml"), "[tool.tidemark.lint\n");
    const { status, stderr } = await lint("app");
    expect(status).toBe(2);
    expect(stderr).toMatch(/^tidemark: TM-E002 pyproject\.toml:1: this is not TOML: [^\n]*\n$/);
  });

  test("that is invalid is refused with one line", async () => {
    settings("selct = []\n");
    expect(await lint("app")).toMatchObject({
      status: 2,
      stderr:
        "tidemark: TM-E002 pyproject.toml:2: [tool.tidemark.lint] has no setting selct; did you mean select?\n",
    });
    settings("select = [1, 2]\n");
    expect((await lint("app")).status).toBe(2);
  });
});

describe("text that is not Python source", () => {
  const check = async (name: string, content: string | Uint8Array) => {
    writeFileSync(join(cwd, name), content);
    return lint(name);
  };

  test("null bytes, and text in an unknown encoding, are reported in one line each", async () => {
    expect(await check("nulls.py", "x = 1\0\n")).toMatchObject({
      status: 2,
      stderr: "tidemark: nulls.py has null bytes: it is not Python source, and was not checked\n",
    });
    expect(await check("latin.py", Buffer.from("x = 'é'\n", "latin1"))).toMatchObject({
      status: 2,
      stderr: "tidemark: latin.py is not UTF-8 text: it was not checked\n",
    });
    const declared = Buffer.from("# coding: latin-1\nx = 'é'\n", "latin1");
    expect((await check("declared.py", declared)).status).toBe(0);
  });

  test("a line of 1 MB, and 10,000 levels, are checked around", async () => {
    const long = await check("long.py", `x = [${"1, ".repeat(350_000)}]\n${LEAK}`);
    expect([long.status, long.stderr]).toEqual([1, ""]);
    for (const [open, close] of [
      ["(", ")"],
      ["[", "]"],
      ["f(", ")"],
      ["-", ""],
      ["lambda: ", ""],
    ]) {
      const nested = `x = ${open?.repeat(10_000)}1${close?.repeat(10_000)}\n`;
      const { status, stderr, stdout } = await check("deep.py", nested + LEAK);
      expect(stderr.split("\n").length, stderr).toBeLessThanOrEqual(3);
      expect([0, 1]).toContain(status);
      expect(stdout).toMatch(/ in 1 file, \d+ lines\n$/);
    }
    const sum = await check("sum.py", `x = ${"1 + ".repeat(10_000)}1\n${LEAK}`);
    expect(sum.status).toBe(1);
    const indented = Array.from({ length: 3_000 }, (_none, at) => `${" ".repeat(at)}if x:\n`).join(
      "",
    );
    expect([0, 1]).toContain(
      (await check("blocks.py", `${LEAK}${indented}${" ".repeat(3_000)}pass\n`)).status,
    );
  });

  test("syntax that the parser does not know is checked around", async () => {
    const { status, stderr, stdout } = await check(
      "odd.py",
      `class Box[T = int]:\n    pass\n\nx = = 3\n${LEAK}`,
    );
    expect(status).toBe(1);
    expect(stdout).toContain("TM-L001");
    expect(stderr).toMatch(
      /^tidemark: odd\.py:\d+ contains syntax that the parser does not know: the rest was checked\n$/,
    );
  });

  test("pipes and notebooks end in one line each", async () => {
    execFileSync("mkfifo", [join(cwd, "pipe.py")]);
    expect(await lint("pipe.py")).toMatchObject({
      status: 2,
      stderr: "tidemark: pipe.py is not a regular file\n",
    });
    expect(await check("a.ipynb", '{"cells": []}')).toMatchObject({
      status: 2,
      stderr:
        "tidemark: a.ipynb is a notebook: check the output of `jupyter nbconvert --to script`\n",
    });
  });

  test("links in circles, missing paths and empty folders", async () => {
    symlinkSync(".", join(cwd, "app/again"));
    symlinkSync("two", join(cwd, "one"));
    symlinkSync("one", join(cwd, "two"));
    expect((await documentOf("app")).files).toBe(2);
    expect(await lint("one")).toMatchObject({
      status: 2,
      stderr: "tidemark: one is a link in a circle\n",
    });
    expect(await lint("gone.py")).toMatchObject({
      status: 2,
      stderr: "tidemark: gone.py does not exist\n",
    });
    mkdirSync(join(cwd, "empty"));
    expect(await lint("empty")).toMatchObject({
      status: 2,
      stderr:
        "tidemark: TM-E002 no Python file below empty; name a file or a folder with .py files\n",
    });
  });
});

test("--recording ranks findings by the bytes that are live from their lines", async () => {
  const folder = scratch();
  writeFileSync(
    join(folder, "two.py"),
    `SMALL, LARGE = {}, {}


def handle_small(request):
    SMALL[request] = bytearray(100_000)


def handle(request):
    data = bytearray(4_000_000)
    LARGE[request] = data


for number in range(10):
    handle_small(number)
    handle(number)
`,
  );
  const { path } = await record([python, "two.py"], { cwd: folder, options: ["--period", "1"] });
  const ranked = (...words: string[]) =>
    cli(["lint", "two.py", "--recording", path, ...words], { cwd: folder });
  const { findings } = validate((await ranked("--json")).stdout, "lint") as unknown as LintJson;
  expect(findings.map(({ line, measured }) => [line, measured?.where])).toEqual([
    [10, "function"],
    [5, "line"],
  ]);
  const [large, small] = findings.map(({ measured }) => measured?.liveBytes ?? 0);
  expect(large).toBeGreaterThanOrEqual(40_000_000);
  expect(small).toBeGreaterThanOrEqual(1_000_000);
  expect(small).toBeLessThan(2_000_000);
  expect((await ranked()).stdout).toMatch(
    /^two\.py:10:5 error TM-L001 module-container-grows {2}38\.\d MiB live from this function\n/,
  );
});

test("--rules lists every rule", async () => {
  const { status, stdout } = await lint("--rules");
  expect(status).toBe(0);
  expect(stdout.match(/^TM-L\d{3} /gm)?.length).toBeGreaterThanOrEqual(30);
});
