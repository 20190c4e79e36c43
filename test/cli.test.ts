import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMMAND_NAMES } from "../src/cli/command_line.js";
import { present } from "../src/model/base/present.js";
import type { SummaryJson } from "../src/model/documents/summary_document.js";
import { cli, errorLine, folder, python, ran, recordApp, recording } from "./recorded_app.js";
import { execute, removeScratch, repository, scratch, tidemark } from "./run.js";

beforeAll(recordApp);
afterAll(removeScratch);

describe("help", () => {
  test.each(COMMAND_NAMES)("%s shows an example of itself and its options", async (name) => {
    const { status, stdout, stderr } = await cli([name, "--help"]);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(new RegExp(`^Examples:\\n {2}\\$ tidemark ${name}\\b`, "m"));
    for (const option of ["--json", "--quiet", "--debug", "--help"]) {
      expect(stdout).toContain(option);
    }
    expect(stdout.split("\n").every((line) => line.length <= 100)).toBe(true);
    expect((await cli(["help", name])).stdout).toBe(stdout);
  });

  test("names every command, and is printed without arguments", async () => {
    const { status, stdout } = await cli(["--help"]);
    expect(status).toBe(0);
    for (const name of COMMAND_NAMES) {
      expect(stdout).toMatch(new RegExp(`^ {2}${name} `, "m"));
    }
    expect((await cli([])).stdout).toBe(stdout);
  });

  test("advice and pages name only existing commands", () => {
    const pages = readdirSync(join(repository, "docs"))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `docs/${name}`);
    const named = ["README.md", ...pages].flatMap((page) => {
      const text = readFileSync(join(repository, page), "utf8");
      const pattern =
        page === "docs/advice.md" ? /\btidemark ([a-z]+)/g : /`(?:npx )?tidemark ([a-z]+)/g;
      return [...text.matchAll(pattern)].map(([, command]) => present(command));
    });
    const known: readonly string[] = [...COMMAND_NAMES, "help"];
    expect(named.length).toBeGreaterThan(30);
    expect(named.filter((command) => !known.includes(command))).toEqual([]);
  });

  test("the version is the package's", async () => {
    const { version } = JSON.parse(readFileSync(join(repository, "package.json"), "utf8"));
    for (const word of ["--version", "-V", "-v", "version"]) {
      expect((await cli([word])).stdout, word).toBe(`${version}\n`);
    }
  });
});

describe("mistakes", () => {
  test.each([
    [["sumary", "x"], /unknown command 'sumary'; did you mean summary\?/],
    [["help", "nothing"], /unknown command 'nothing'/],
    [["--wrong"], /unknown option '--wrong'/],
    [["--native", "run"], /unknown option '--native'; did you mean tidemark run --native\?/],
    [["report", "--out", "x"], /unknown option '--out'; did you mean --output\?/],
    [["attach", "1", "--duration", "9"], /unknown option '--duration'; did you mean --for\?/],
    [["attach", "--pid", "9"], /unknown option '--pid'; did you mean tidemark attach 9\?/],
    [["run", "--rate", "9", "x.py"], /unknown option '--rate'; did you mean --period\?/],
    [["gpu", "oom", "--snapsot", "x"], /did you mean --snapshot\?/],
    [["record", "x"], /unknown command 'record'; did you mean run\?/],
    [["export", "x", "--format", "pporf"], /did you mean pprof\?/],
    [["diagnose", "x", "--fail-on", "python-leek"], /did you mean python-leak\?/],
    [["report", "app.tidemark", "-o", "app.py"], /TM-E017 app\.py exists/],
    [["export", "app.tidemark", "--format", "csv", "-o", "app.py"], /TM-E017 app\.py exists/],
    [["run", "--json", "app.py", "--", "true"], /TM-E017 app\.py exists/],
    [["--verison"], /unknown option '--verison'; did you mean --version\?/],
    [["diagnose", "app.tidemark", "--for", "5s"], /--for .*app\.tidemark is not a process id/],
    [["diagnose", "app.tidemark", "--no-agent"], /--no-agent .*app\.tidemark is not a process id/],
    [["heap", "app.tidemark"], /it is a recording; read it with: tidemark summary app\.tidemark/],
    [["ledger", "app.tidemark"], /it is a recording; read it with: tidemark summary app\.tid/],
    [["stacks", "app.tidemark"], /is a recording; read it with: tidemark summary app\.tidemark/],
    [["gpu", "0"], /gpu takes a snapshot, or a process id such as 4242 .*, not '0'/],
    [["live", "missing.tidemark"], /TM-E003 no such recording: missing\.tidemark/],
    [["live", "app.py"], /it is a Python script; run it: tidemark run app\.py/],
    [["gpu", "app.tidemark"], /TM-E060 .*it is a recording, which tidemark summary reads/],
    [["summary", "app.py"], /it is a Python script; run it: tidemark run app\.py/],
    [["summary", "--jsn", "x"], /unknown option '--jsn'; did you mean --json\?/],
    [["summary"], /summary needs <recording>, as in: tidemark summary app\.tidemark/],
    [["summary", "a", "b"], /summary takes 1 argument, and 2 are given/],
    [["ps", "app.tidemark"], /ps takes no arguments, and 1 is given/],
    [["ps", "--top", "-1"], /whole number/],
    [["ps", "--min", "much"], /size such as/],
    [["export", "app.tidemark"], /--format/],
    [
      ["export", "app.tidemark", "--format", "pdf"],
      /--format takes one or more of pprof.*, not 'pdf'/,
    ],
    [["export", "app.tidemark", "--format", "csv,pprof", "-o", "x"], /-o names one file/],
    [["export", "app.tidemark", "--format", "duckdb", "-o", "-"], /cannot be written to stdout/],
    [
      ["export", "app.tidemark", "--format", "csv", "-o", "app.tidemark"],
      /is the recording itself/,
    ],
    [["report", "app.tidemark", "-o", "app.tidemark"], /is the recording itself/],
    [["diff", "app.tidemark", "app.tidemark"], /same moment/],
    [["diff", "app.tidemark@soon", "app.tidemark"], /'soon' is not a moment/],
    [["summary", "app.tidemark", "--at", "pek"], /'pek' is not a moment.*; did you mean peak\?/],
    [["import", "app.tidemark", "--value", "lve"], /not 'lve' \(did you mean live\?\)/],
    [["top", "--once", "--sort", "grwth"], /not 'grwth' \(did you mean growth\?\)/],
    [["summary", "app.tidemark", "--at", "3h"], /outside app\.tidemark/],
    [["summary", "missing.tidemark"], /no such/],
    [["summary", "app.py"], /TM-E00[57]/],
    [["summary", "."], /TM-E00/],
    [["summary", "app.tidemark/x"], /TM-E00[34]/],
    [["summary", "pipe"], /not a regular file/],
    [["report", "app.tidemark", "-o", "app.py/x.html"], /TM-E004 cannot write app\.py\/x\.html/],
    [
      ["export", "app.tidemark", "--format", "parquet", "-o", "app.py"],
      /TM-E004 cannot write app\.py/,
    ],
    [["export", "app.tidemark", "--format", "parquet", "-o", "."], /it contains other files/],
    [["lines", "app.tidemark", "other.py"], /the profile has no allocation from other\.py/],
    [["run"], /run needs <program>, as in: tidemark run app\.py/],
    [["run", "--", "./no-such-program"], /cannot start|no such/],
    [["run", "--period", "often", "--", "true"], /size such as/],
    [["run", "-o", "missing/x.tidemark", "--", "true"], /cannot write/],
    [
      ["run", "--json", "--", "true"],
      /--json takes a value \(<file>\), but none is given; see tidemark run --help/,
    ],
    [
      ["report", "app.tidemark", "-o", "--quiet"],
      /--output takes a value \(<file>\), but none is given; see tidemark report --help/,
    ],
    [["run", "-o", "app.tidemark", "--", "true"], /exists.*-f/],
  ])("%j: one line", async (words, says) => {
    const outcome = await cli(words);
    expect(errorLine(outcome)).toMatch(says);
    expect(outcome.stderr).toMatch(/^tidemark: TM-E\d{3} /);
    expect(outcome.status === 2 || words[0] === "run").toBe(true);
    expect(outcome.status).not.toBe(0);
  });

  test.each([
    [["lines", "app.tidemark"]],
    [["summary", "app.tidemark"]],
    [["summary", "app.tidemark", "--by", "thread"]],
    [["diff", "app.tidemark@1s", "app.tidemark"]],
    [["ps"]],
  ])("%j --filter zzz: nothing matches it", async (words) => {
    // For `ps`: there may be no other Python on a quiet machine.
    const program = spawn(python, ["-c", "print(0, flush=True); import time; time.sleep(60)"]);
    try {
      await once(program.stdout, "data");
      const { status, stdout } = await cli([...words, "--filter", "zzz"]);
      expect(status).toBe(0);
      expect(stdout).toContain("nothing matches --filter zzz\n");
    } finally {
      program.kill("SIGKILL");
    }
  });

  test("only --debug prints the stack", async () => {
    expect((await cli(["summary", "missing.tidemark"])).stderr).not.toMatch(/^ +at /m);
    expect((await cli(["summary", "missing.tidemark", "--debug"])).stderr).toMatch(/^ +at /m);
  });

  test("a full disk behind stdout is reported, a closed pipe is not", async () => {
    const full = await execute(["sh", "-c", `'${tidemark}' ps --json > /dev/full`]);
    expect(errorLine(full)).toMatch(/TM-E004 cannot write standard output/);
    const closed = await execute([
      "sh",
      "-c",
      `'${tidemark}' summary '${recording}' --json --top 0 | true`,
    ]);
    expect([closed.status, closed.stderr]).toEqual([0, ""]);
  });
});

describe("run", () => {
  test("the program's environment gains no variable of the launching shell", async () => {
    const given = [`PATH=${process.env.PATH}`, "OTHER=two\nlines"];
    const own = ["LD_PRELOAD", "TIDEMARK"];
    const names = "import os; print(sorted(os.environ))";
    const words = ["run", "--quiet", "-f", "-o", "bare.tidemark", "--", python, "-S", "-c", names];
    const bare = await execute(["env", "-i", ...given, tidemark, ...words], { cwd: folder });
    const alone = await execute(["env", "-i", ...given, ...words.slice(6)], { cwd: folder });
    const list = (text: string) => JSON.parse(text.replaceAll("'", '"')) as string[];
    expect(list(bare.stdout).filter((name) => !own.includes(name))).toEqual(list(alone.stdout));
    const withPlace = await execute(["env", "-i", ...given, "PWD=/", tidemark, ...words], {
      cwd: folder,
    });
    expect(list(withPlace.stdout)).toContain("PWD");
  });

  test("passes the exit code, and prints everything on stderr", () => {
    expect([ran.status, ran.stdout]).toEqual([3, ""]);
    for (const word of [
      "exit code 3",
      "RSS",
      "Top sites at the peak",
      "app.py",
      "Precision",
      "tidemark report app.tidemark",
    ]) {
      expect(ran.stderr).toContain(word);
    }
    expect(ran.stderr).not.toContain("\x1b");
  });

  test("without a terminal nothing is truncated: a record is one line, and only COLUMNS wraps sentences", async () => {
    const place = join(scratch(), "a_folder_of_a_long_name", "and_another_that_is_longer_still");
    mkdirSync(place, { recursive: true });
    const name = `keep_${"very_".repeat(20)}long`;
    const path = join(place, "program_of_a_long_name.py");
    writeFileSync(
      path,
      `kept = []\ndef ${name}():\n  kept.append(bytearray(32 << 20))\n${name}()\n`,
    );
    await cli(["run", "--quiet", "-f", "-o", "wide.tidemark", path], { cwd: place });
    const words = ["summary", join(place, "wide.tidemark")];
    const { stdout } = await cli(words);
    const tables = stdout.match(/^Top sites/gm) ?? [];
    const site = stdout.split("\n").filter((line) => line.includes(name));
    expect(site).toEqual(
      tables.map(() => expect.stringMatching(/ MiB .* % .*program_of_a_long_name\.py:3.*Python/)),
    );
    expect(site).not.toEqual([]);
    expect(stdout).not.toContain("…");
    expect(stdout).toMatch(/^Precision .* CPU: agent .*$/m);
    const narrow = await cli(words, { env: { COLUMNS: "60" } });
    expect(narrow.stdout).toContain(name);
    const precision = /^Precision[\s\S]*?^\S/m.exec(narrow.stdout)?.[0].split("\n") ?? [];
    expect(precision.length).toBeGreaterThan(2);
    expect(precision.every((line) => line.length <= 60)).toBe(true);
    const help = (await cli(["run", "--help"], { env: { COLUMNS: "200" } })).stdout;
    expect(Math.max(...help.split("\n").map((line) => line.length))).toBeGreaterThan(100);
  });

  test("the time of the live peak is the peak's own, not that of the next snapshot", async () => {
    const place = scratch();
    const program = `
import time
time.sleep(0.4)
before = time.time()
block = bytearray(64 << 20)
time.sleep(0.02)
after = time.time()
del block
time.sleep(1.5)
print(before, after)
`;
    writeFileSync(join(place, "spike.py"), program);
    const words = ["run", "--quiet", "-f", "-o", "spike.tidemark", "spike.py"];
    const { stdout } = await cli(words, { cwd: place });
    const [before = 0, after = 0] = stdout.split(" ").map((seconds) => Number(seconds) * 1000);
    const summary = await cli(["summary", "spike.tidemark", "--json"], { cwd: place });
    const { livePeakMs } = JSON.parse(summary.stdout) as SummaryJson;
    expect(livePeakMs).toBeGreaterThanOrEqual(before - 10);
    expect(livePeakMs).toBeLessThanOrEqual(after + 10);
  });

  test("--quiet prints nothing, and the recording is written under a default name", async () => {
    const place = scratch();
    copyFileSync(join(folder, "app.py"), join(place, "app.py"));
    const words = ["run", "--quiet", "--", python, "-c", "print('hello')"];
    for (let time = 0; time < 2; time++) {
      expect(await cli(words, { cwd: place })).toMatchObject({
        status: 0,
        stdout: "hello\n",
        stderr: "",
      });
    }
    const names = readdirSync(place).filter((name) => name.endsWith(".tidemark"));
    expect(names).toHaveLength(2);
  });

  test("-f replaces a recording", async () => {
    const path = join(scratch(), "x.tidemark");
    const words = ["run", "--quiet", "-o", path, "--", "true"];
    expect((await cli(words)).status).toBe(0);
    expect((await cli(words)).status).toBe(2);
    expect((await cli(["run", "-f", ...words.slice(1)])).status).toBe(0);
  });

  test("options after the program belong to the program", async () => {
    const { stdout } = await cli([
      "run",
      "--quiet",
      "-f",
      "-o",
      join(folder, "args.tidemark"),
      python,
      "-c",
      "import sys; print(sys.argv)",
      "--json",
      "--",
      "-o",
      "x y",
    ]);
    expect(stdout).toBe("['-c', '--json', '--', '-o', 'x y']\n");
  });

  test("bytes pass unchanged in both directions", async () => {
    const input = Array.from({ length: 70_000 }, (_, i) => String.fromCharCode(32 + (i % 90))).join(
      "",
    );
    const copy = "import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)";
    const { status, stdout } = await cli(
      ["run", "--quiet", "-f", "-o", join(folder, "copy.tidemark"), "--", python, "-c", copy],
      { input },
    );
    expect(status).toBe(0);
    expect(stdout).toBe(input);
  });

  test("starts from another folder, through a link, under a path with spaces", async () => {
    const place = join(scratch(), "a folder with  spaces");
    mkdirSync(join(place, "bin"), { recursive: true });
    mkdirSync(join(place, "links"));
    copyFileSync(tidemark, join(place, "bin/tidemark"));
    symlinkSync(join(repository, "dist"), join(place, "dist"));
    symlinkSync("../bin/tidemark", join(place, "links/once"));
    symlinkSync("once", join(place, "links/twice again"));
    for (const start of ["bin/tidemark", "links/once", "links/twice again"]) {
      const outcome = await execute(
        [
          join(place, start),
          "run",
          "--quiet",
          "-f",
          "-o",
          "r.tidemark",
          "--",
          "sh",
          "-c",
          "exit 7",
        ],
        { cwd: join(place, "links") },
      );
      expect([outcome.status, outcome.stderr]).toEqual([7, ""]);
    }
  });

  test("starts by python -m in a clone", async () => {
    const env = { PYTHONPATH: join(repository, "python") };
    const started = await execute([python, "-m", "tidemark", "--version"], { env });
    expect(started).toEqual(await execute([tidemark, "--version"]));
  });

  test("reports why Node.js does not start", async () => {
    const env = { NODE_OPTIONS: "--cpu-prof" };
    const outcome = await execute([tidemark, "--version"], { env });
    expect(outcome.status).toBe(4);
    expect(errorLine(outcome)).toMatch(/TM-E012 .*--cpu-prof is not allowed in NODE_OPTIONS/);
  });

  test("reports how to build missing parts", async () => {
    const place = join(scratch(), "bare");
    mkdirSync(join(place, "bin"), { recursive: true });
    copyFileSync(tidemark, join(place, "bin/tidemark"));
    const outcome = await execute([join(place, "bin/tidemark"), "run", "--", "true"]);
    expect(outcome.status).toBe(4);
    expect(errorLine(outcome)).toMatch(/TM-E012 .*npm run build/);
  });
});

describe("outputs", () => {
  test.each([
    ["report", []],
    ["export", ["--format", "pprof"]],
    ["export", ["--format", "speedscope"]],
    ["export", ["--format", "csv"]],
    ["export", ["--format", "parquet"]],
    ["export", ["--format", "duckdb"]],
  ])("%s %j replaces what it wrote, and nothing else", async (command, options) => {
    const output = join(scratch(), "output");
    const words = [command, "app.tidemark", ...options, "-o", output];
    expect((await cli(words)).status).toBe(0);
    expect((await cli(words)).status).toBe(0);
    rmSync(output, { recursive: true });
    writeFileSync(output, "mine\n");
    const refused = await cli(words);
    expect(errorLine(refused)).toMatch(options.includes("parquet") ? /TM-E004/ : /TM-E017/);
    expect([refused.status, readFileSync(output, "utf8")]).toEqual([2, "mine\n"]);
    if (!options.includes("parquet")) {
      expect((await cli([...words, "--force"])).status).toBe(0);
      expect((await cli(words)).status).toBe(0);
    }
  });

  test("folded stacks have no place for a name, so they are replaced only with --force", async () => {
    const output = join(scratch(), "output");
    const words = ["export", "app.tidemark", "--format", "folded", "-o", output];
    expect((await cli(words)).status).toBe(0);
    expect(errorLine(await cli(words))).toMatch(/TM-E017/);
    expect((await cli([...words, "-f"])).status).toBe(0);
  });

  test("the JSON of run is a file like the others", async () => {
    const place = scratch();
    const words = ["run", "--quiet", "--json", "run.json", "--", "true"];
    expect((await cli(words, { cwd: place })).status).toBe(0);
    expect((await cli(words, { cwd: place })).status).toBe(0);
    expect(readdirSync(place).filter((name) => name.includes("part"))).toEqual([]);
  });

  test("a replaced recording stays complete for its readers", async () => {
    const path = join(scratch(), "x.tidemark");
    copyFileSync(recording, path);
    const reader = openSync(path, "r");
    expect((await cli(["run", "--quiet", "-f", "-o", path, "--", "true"])).status).toBe(0);
    expect(readFileSync(reader)).toEqual(readFileSync(recording));
    closeSync(reader);
    expect((await cli(["summary", path])).stdout).toContain("true");
  });
});
