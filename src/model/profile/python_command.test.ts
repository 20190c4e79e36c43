import { expect, test } from "vitest";
import { programName, runsCodeOfParent } from "./program_name.js";
import { pythonSource } from "./python_command.js";

const CODE = { kind: "code" };
const NOTHING = { kind: "nothing" };
const script = (name: string) => ({ kind: "script", name });
const module = (name: string) => ({ kind: "module", name });

test.each([
  ["-c CODE", CODE],
  ["-cCODE", CODE],
  ["-uc CODE", CODE],
  ["-Ic CODE app.py", CODE],
  ["-Bucpass", CODE],
  ["-u -c CODE", CODE],
  ["-W ignore -uc CODE", CODE],
  ["-Wc app.py", script("app.py")],
  ["-W c app.py", script("app.py")],
  ["-uW c app.py", script("app.py")],
  ["-Xdev app.py", script("app.py")],
  ["-BXimporttime -Em shop.jobs", module("shop.jobs")],
  ["-m shop -c CODE", module("shop")],
  ["-mshop", module("shop")],
  ["-um shop", module("shop")],
  ["--check-hash-based-pycs never -s app.py", script("app.py")],
  ["-- -c", script("-c")],
  ["app.py -c CODE", script("app.py")],
  ["-OO app.py", script("app.py")],
  ["- app.py", NOTHING],
  ["-- -", NOTHING],
  ["-i", NOTHING],
  ["-um", NOTHING],
  ["--help-xoptions", NOTHING],
  ["", NOTHING],
])("python %s", (words, source) => {
  const command = ["/usr/bin/python3", ...words.split(" ").filter((word) => word !== "")];
  expect(pythonSource(command)).toEqual(source);
  expect(pythonSource(["pypy3", ...command.slice(1)])).toBeNull();
});

test("code is no name of a program, however its option is written", () => {
  const code = "import time; time.sleep(9)";
  for (const words of [["-c"], ["-uc"], ["-Ic"], ["-B", "-Ec"], ["-W", "ignore", "-uc"]]) {
    const command = ["python3", ...words, code];
    expect(programName(command)).toBe("python3");
    expect(runsCodeOfParent(command)).toBe(true);
  }
});
