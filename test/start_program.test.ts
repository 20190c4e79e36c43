/** `tidemark run SCRIPT`, `-m MODULE`, `COMMAND`, and `tidemark PID` or `FILE`: real programs by short command lines. */
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { environment } from "./environment.js";
import { cli, errorLine, folder, python, recordApp } from "./recorded_app.js";
import { execute, removeScratch, repository, scratch, tidemark } from "./run.js";

const ARGUMENTS = "import sys; print(sys.argv[1:], __name__, __package__)\n";
let project: string;
/** A PATH with only the tests' Python, as python3, and what Tidemark itself needs. */
let path: string;

beforeAll(async () => {
  await recordApp();
  project = scratch();
  const bin = scratch();
  symlinkSync(python, join(bin, "python3"));
  for (const tool of ["node", "sh", "env", "tr", "readlink"]) {
    symlinkSync(await where(tool), join(bin, tool));
  }
  path = bin;
  write("app.py", ARGUMENTS);
  write("package/__init__.py", "");
  write("package/__main__.py", `from . import part\n${ARGUMENTS}`);
  write("package/part.py", "");
  write("plain/__main__.py", ARGUMENTS);
  write("marked.py", `#!/usr/bin/env python\n${ARGUMENTS}`, 0o755);
  write("unmarked.py", ARGUMENTS, 0o755);
  write("shell", '#!/bin/sh\necho "[$*]"\n', 0o755);
  write("failing.py", "raise SystemExit(7)\n");
});
afterAll(removeScratch);

function write(name: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(project, name)), { recursive: true });
  writeFileSync(join(project, name), text);
  chmodSync(join(project, name), mode);
}

async function where(tool: string): Promise<string> {
  return (await execute(["sh", "-c", `command -v ${tool}`])).stdout.trim();
}

function run(words: readonly string[], settings: { path?: string; env?: object } = {}) {
  const env = { PATH: settings.path ?? path, ...settings.env };
  return execute([tidemark, "run", "--quiet", "-f", "-o", "r.tidemark", ...words], {
    cwd: project,
    env,
  });
}

describe("run", () => {
  test.each([
    [
      "a script",
      ["app.py", "--json", "-o", "x", "--", "--help"],
      "['--json', '-o', 'x', '--', '--help'] __main__ None",
    ],
    ["a script by its path", ["./app.py", "a"], "['a'] __main__ None"],
    ["a script behind --", ["--", "app.py", "a"], "['a'] __main__ None"],
    ["a script with another python's line", ["./marked.py", "a"], "['a'] __main__ None"],
    ["an executable script without a line", ["./unmarked.py", "a"], "['a'] __main__ None"],
    [
      "a module and its options",
      ["-m", "package", "--quiet", "-m", "x"],
      "['--quiet', '-m', 'x'] __main__ package",
    ],
    ["a package by its name", ["package", "a"], "['a'] __main__ package"],
    ["a folder", ["plain", "a"], "['a'] __main__ "],
    ["code", ["-c", ARGUMENTS, "-c", "--native"], "['-c', '--native'] __main__ None"],
    ["a shell script", ["./shell", "--native", "x"], "[--native x]"],
    [
      "an option before it",
      ["--native", "--period", "1M", "app.py", "--period"],
      "['--period'] __main__ None",
    ],
  ])("%s", async (_name, words, says) => {
    expect(await run(words)).toMatchObject({ status: 0, stdout: `${says}\n`, stderr: "" });
  });

  test("a script from stdin, and its exit code", async () => {
    const outcome = await execute(
      [tidemark, "run", "--quiet", "-f", "-o", "r.tidemark", "-", "word"],
      { cwd: project, env: { PATH: path }, input: `${ARGUMENTS}sys.exit(5)` },
    );
    expect(outcome).toMatchObject({ status: 5, stdout: "['word'] __main__ None\n", stderr: "" });
    expect((await run(["failing.py"])).status).toBe(7);
  });

  test("arguments that are not UTF-8 arrive as they are", async () => {
    const words = `'${tidemark}' run --quiet -f -o r.tidemark -m package "$(printf 'a\\377b')"`;
    const outcome = await execute(["sh", "-c", words], {
      cwd: project,
      env: { PATH: `${path}:${process.env.PATH}` },
    });
    expect(outcome.stdout).toBe("['a\\udcffb'] __main__ package\n");
  });

  test("a console script of a virtual environment, by its name only", async () => {
    const own = environment.packagesPython;
    expect(own, "npm test makes it").not.toBeNull();
    const bin = dirname(own as string);
    const words = ["pytest", "--version", "-k", "x"];
    for (const settings of [{ path: `${bin}:${path}` }, { env: { VIRTUAL_ENV: dirname(bin) } }]) {
      expect((await run(words, settings)).stdout).toMatch(/^pytest \d/);
    }
    expect((await run(["--python", own as string, ...words])).stdout).toMatch(/^pytest \d/);
    symlinkSync(dirname(bin), join(project, ".venv"));
    expect((await run(words)).stdout).toMatch(/^pytest \d/);
    expect((await run(["--python", ".venv", "-m", ...words])).stdout).toMatch(/^pytest \d/);
    renameSync(join(project, ".venv"), join(project, "unused"));
    expect(errorLine(await run(words))).toMatch(/no such command on PATH/);
  });

  test("the Python behind a version manager's shim", async () => {
    const shims = scratch();
    writeFileSync(join(shims, "python"), `#!/bin/sh\nexec ${python} "$@"\n`, { mode: 0o755 });
    const outcome = await run(["-c", "import sys; print(sys.executable)"], {
      path: `${shims}:${path}`,
    });
    expect(outcome).toMatchObject({ status: 0, stdout: `${python}\n` });
    writeFileSync(join(shims, "python"), "#!/bin/sh\necho no version is set >&2; exit 127\n");
    expect(await run(["app.py"], { path: `${shims}:${path}` })).toMatchObject({
      status: 0,
      stdout: "[] __main__ None\n",
      stderr: "",
    });
  });

  test.each([
    [
      "a misspelt script",
      ["ap.py"],
      127,
      /cannot start ap\.py: there is no such file; did you mean app\.py\?/,
    ],
    [
      "a misspelt option",
      ["--natve", "app.py"],
      2,
      /unknown option '--natve'; did you mean --native\?/,
    ],
    ["a Python that is not there", ["--python", "3.99", "app.py"], 127, /found on PATH: python3/],
    ["-m alone", ["-m"], 2, /run -m needs the name of a module/],
  ])("%s: one line", async (_name, words, status, says) => {
    const outcome = await run(words);
    expect(errorLine(outcome)).toMatch(says);
    expect(outcome.status).toBe(status);
  });
});

describe("without a command", () => {
  test("a pid that does not exist", async () => {
    const outcome = await cli(["2147483646", "--for", "1s"]);
    expect(errorLine(outcome)).toMatch(/TM-E020 .*2147483646/);
    expect(outcome.status).toBe(4);
    expect(errorLine(await cli(["0"]))).toMatch(/attach takes a process id such as 4242/);
  });

  test("a pid is attached to", async () => {
    const program =
      "import time\nkept = []\nwhile True: kept.append(bytearray(4096)); time.sleep(0.001)";
    const outcome = await execute([python, "-c", program], {
      cwd: folder,
      async started(child) {
        const attached = await cli([
          String(child.pid),
          "--for",
          "2s",
          "-o",
          "attached.tidemark",
          "--json",
        ]);
        child.kill("SIGTERM");
        expect(attached.status, attached.stderr).toBe(0);
        expect(JSON.parse(attached.stdout).target.pid).toBe(child.pid);
      },
    });
    expect(outcome.signal).toBe("SIGTERM");
  });

  test("a recording under any name is summarized, two are compared", async () => {
    symlinkSync("app.tidemark", join(folder, "renamed.json"));
    const summary = await cli(["summary", "app.tidemark"]);
    expect(summary.stdout).toContain("Verdict");
    const opened = await cli(["renamed.json"]);
    expect(opened.stdout.replaceAll("renamed.json", "app.tidemark")).toBe(summary.stdout);
    expect(JSON.parse((await cli(["renamed.json", "--json"])).stdout).schema).toBe(
      "tidemark.summary/1",
    );
    expect((await cli(["app.tidemark", "attached.tidemark"])).stdout).toMatch(
      /grew|shrank|GROWTH/i,
    );
  });

  test("a snapshot and an out-of-memory log are opened by their content", async () => {
    copyFileSync(join(repository, "test/data/gpu/small.pickle.zst"), join(folder, "one.bin"));
    copyFileSync(join(repository, "test/data/gpu/tensorflow_cpu.log"), join(folder, "two.bin"));
    const json = async (...words: string[]) => JSON.parse((await cli([...words, "--json"])).stdout);
    expect((await json("one.bin")).schema).toBe("tidemark.gpu/1");
    expect((await json("two.bin")).schema).toBe("tidemark.oom/1");
  });

  test.each([
    ["app.py", /TM-E016 app\.py is a Python script; run it: tidemark run app\.py/],
    [".", /TM-E016 \. is a folder/],
    ["/dev/null", /TM-E016 \/dev\/null is not a regular file/],
    ["pipe", /TM-E016 pipe is not a regular file/],
    ["app.tidemrk", /no file and no command app\.tidemrk; did you mean app\.tidemark\?/],
    ["./ap.tidemark", /did you mean \.\/app\.tidemark\?/],
    ["sumary", /unknown command 'sumary'; did you mean summary\?/],
    ["", /no file and no command ''/],
  ])("'%s': one line", async (word, says) => {
    const outcome = await cli([word]);
    expect(errorLine(outcome)).toMatch(says);
    expect(outcome.status).toBe(2);
  });
});
