/** Folders with files of every kind: what `tidemark run` makes of their names. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TidemarkError } from "../../../model/errors/errors.js";
import { chooseProgram } from "./choose_program.js";
import type { StartPlace } from "./choose_python.js";

let folder: string;
let place: StartPlace;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-choose-"));
  const program = Buffer.from("\x7fELF\x02\x01\x01\0", "latin1");
  for (const name of ["python3", "python3.12", "pytest", "both", "manage.py"]) {
    make(`bin/${name}`, program, 0o755);
  }
  for (const name of ["python", "pytest", "uvicorn"]) {
    make(`project/.venv/bin/${name}`, "#!/bin/sh\n", 0o755);
    make(`other/bin/${name}`, "#!/bin/sh\n", 0o755);
  }
  make("other/bin/flask", "#!/bin/sh\n", 0o755);
  make("project/app.py", "print()\n");
  make("project/empty.py", "");
  make("project/manage.py", "#!/usr/bin/env python\n", 0o755);
  make("project/marked.py", "#!/usr/bin/env python3\r\n", 0o755);
  make("project/plain_x.py", "print()\n", 0o755);
  make("project/uv.py", `#!${folder}/bin/both run --script\n`, 0o755);
  make("project/old.py", "#!/no/such/python2.7\n", 0o755);
  make("project/archive", "PK\x03\x04", 0o644);
  make("project/tool", "#!/bin/sh\n", 0o755);
  make("project/script.sh", "#!/bin/sh\n");
  make("project/notes.txt", "hello\n");
  make("project/data.bin", Buffer.from([1, 0, 2]));
  make("project/program", program);
  make("project/-odd.py", "");
  make("project/both", "#!/bin/sh\n", 0o755);
  make("project/both.py", "");
  make("project/plain/__main__.py", "");
  make("project/package/__main__.py", "");
  make("project/package/__init__.py", "");
  make("project/package/part.py", "");
  mkdirSync(join(folder, "project/nothing"));
  place = { cwd: join(folder, "project"), environment: { PATH: join(folder, "bin") } };
});
afterAll(() => rmSync(folder, { recursive: true }));

function make(name: string, content: string | Buffer, mode = 0o644): void {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, mode);
}

function chosen(words: string, python?: string, at = place): readonly string[] {
  return chooseProgram(words.split(" "), python, at).command;
}

function failure(words: string, python?: string, at: StartPlace = place): TidemarkError {
  try {
    chooseProgram(words.split(" "), python, at);
  } catch (error) {
    expect(error).toBeInstanceOf(TidemarkError);
    return error as TidemarkError;
  }
  throw new Error(`${words}: something is started`);
}

describe("started", () => {
  it.each([
    ["-m pytest -x --quiet", "python3 -m pytest -x --quiet"],
    ["-mpytest -x", "python3 -mpytest -x"],
    ["-c code word", "python3 -c code word"],
    ["- word", "python3 - word"],
    ["app.py -m x --json", "python3 app.py -m x --json"],
    ["./app.py", "python3 ./app.py"],
    ["empty.py", "python3 empty.py"],
    ["manage.py run", "python3 manage.py run"],
    ["marked.py", "python3 marked.py"],
    ["plain_x.py", "python3 plain_x.py"],
    ["uv.py word", "./uv.py word"],
    ["./uv.py", "./uv.py"],
    ["archive", "python3 archive"],
    ["-odd.py", "python3 ./-odd.py"],
    ["plain", "python3 plain"],
    ["./package", "python3 ./package"],
    ["package word", "python3 -m package word"],
    ["tool word", "./tool word"],
    ["pytest -k foo", "pytest -k foo"],
    ["both", "both"],
    ["./both", "./both"],
    ["uvicorn app:main", "./.venv/bin/uvicorn app:main"],
    ["python3 app.py", "python3 app.py"],
  ])("%s: %s", (words, command) => {
    expect(chosen(words).join(" ")).toBe(command);
  });

  it("by the Python of --python, with the commands that were installed for it", () => {
    expect(chosen("app.py", "3.12")).toEqual(["python3.12", "app.py"]);
    expect(chosen("app.py", "../other")).toEqual(["../other/bin/python", "app.py"]);
    expect(chosen("app.py", ".venv")).toEqual([".venv/bin/python", "app.py"]);
    const absolute = join(place.cwd, ".venv");
    expect(chosen("app.py", absolute)).toEqual([join(absolute, "bin/python"), "app.py"]);
    expect(chosen("app.py", "../other/bin/python")).toEqual(["../other/bin/python", "app.py"]);
    expect(chosen("flask run", "../other")).toEqual(["../other/bin/flask", "run"]);
    expect(chosen("old.py", "3.12")).toEqual(["python3.12", "./old.py"]);
  });

  it("by a virtual environment where PATH has no Python", () => {
    const bare = { ...place, environment: { PATH: join(folder, "none") } };
    expect(chosen("app.py", undefined, bare)).toEqual([".venv/bin/python", "app.py"]);
    const active = { PATH: join(folder, "none"), VIRTUAL_ENV: join(folder, "other") };
    expect(chosen("app.py", undefined, { ...place, environment: active })).toEqual([
      join(folder, "other/bin/python"),
      "app.py",
    ]);
    expect(chosen("flask run", undefined, { ...place, environment: active })).toEqual([
      join(folder, "other/bin/flask"),
      "run",
    ]);
  });

  it("never by Python 2", () => {
    make("two/python2.7", "", 0o755);
    symlinkSync("python2.7", join(folder, "two/python"));
    const environment = { PATH: `${join(folder, "two")}:${join(folder, "bin")}` };
    expect(chosen("app.py", undefined, { ...place, environment })).toEqual(["python3", "app.py"]);
  });

  it("reports which of two programs with one name it was", () => {
    expect(chooseProgram(["both"], undefined, place).note).toMatch(
      /^both is the command .*bin\/both; the file in this folder is \.\/both\.$/,
    );
    expect(chooseProgram(["manage.py"], undefined, place).note).toMatch(
      /^manage\.py is the file in this folder; the command of that name is .*bin\/manage\.py\.$/,
    );
    expect(chooseProgram(["pytest"], undefined, place).note).toBeNull();
  });
});

describe("refused in one line, with a shell's status", () => {
  it.each([
    ["apq.py", 127, /no such file; did you mean app\.py\?/],
    ["./ap.py", 127, /no such file; did you mean app\.py\?/],
    ["../project/ap.py", 127, /did you mean \.\.\/project\/app\.py\?/],
    ["nowhere/app.py", 127, /no folder nowhere/],
    ["xyz.py", 127, /no such file; check the name/],
    ["pytset", 127, /no such command on PATH; did you mean pytest\?/],
    ["package.part", 127, /for the module: tidemark run -m package\.part/],
    ["", 127, /cannot start ''/],
    ["nothing", 126, /folder without __main__\.py/],
    ["script.sh", 126, /not executable; run: chmod \+x script\.sh, or: tidemark run -- \/bin\/sh/],
    ["program", 126, /not executable; run: chmod \+x program/],
    ["notes.txt", 126, /neither its name nor its first line/],
    ["data.bin", 126, /data file.*tidemark data\.bin/],
    ["old.py", 127, /names an interpreter that does not exist: \/no\/such\/python2\.7; .*--python/],
    ["/dev/null", 126, /not a regular file/],
  ])("%s", (words, status, says) => {
    const { message, exitCode } = failure(words);
    expect(message).toMatch(says);
    expect(message).not.toContain("\n");
    expect(exitCode).toBe(status);
  });

  it("a missing Python, and the existing ones", () => {
    expect(failure("app.py", "3.99").message).toMatch(
      /python3\.99: it is not on PATH; found on PATH: python3, python3\.12$/,
    );
    expect(failure("app.py", "./no/python").message).toMatch(/no such program/);
    const bare = { cwd: folder, environment: { PATH: join(folder, "none") } };
    expect(failure("project/app.py", undefined, bare).message).toMatch(
      /neither python nor python3 is on PATH/,
    );
  });

  it("conflicting words", () => {
    expect(failure("-m").message).toMatch(/run -m needs the name of a module/);
    const memcheck = failure("-m", undefined, { cwd: folder, environment: {}, tool: "memcheck" });
    expect(memcheck.message).toMatch(/memcheck -m needs .*see tidemark memcheck --help/);
    expect(failure("python3 app.py", "3.12").message).toMatch(/omit one of them/);
    expect(failure("./tool", "3.12").message).toMatch(/is an executable program/);
    expect(failure("flask run", "3.12").message).toMatch(
      /no such command was installed for 3\.12 .*tidemark run --python 3\.12 -m flask/,
    );
  });
});
