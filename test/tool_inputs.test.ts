/** `tidemark memcheck`, `asan` and `allocators` with programs and files that they cannot use: one clear line each. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectSpeaksClearly } from "./behaviour.js";
import { environment } from "./environment.js";
import { python } from "./recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "./run.js";

afterAll(removeScratch);

const folder = scratch();
const tools = [
  ...(environment.tools.valgrind === null ? [] : ["memcheck"]),
  ...["asan", "allocators"],
];

beforeAll(() => {
  mkdirSync(join(folder, "folder"));
  writeFileSync(join(folder, "script.sh"), "#!/bin/sh\necho done\n");
  chmodSync(join(folder, "script.sh"), 0o755);
  writeFileSync(join(folder, "text"), "words\n");
  writeFileSync(join(folder, "foreign.json"), '{"mine": true}\n');
  writeFileSync(join(folder, "main.c"), "int main(void) { return 0; }\n");
  execFileSync("cc", ["-static", "main.c", "-o", "static"], { cwd: folder });
  // The program would leave this file if it ran.
  writeFileSync(join(folder, "runs.py"), 'open("has-run", "w").close()\n');
});

const runs = [python, "runs.py"];
describe.each(tools)("tidemark %s", (tool) => {
  test.each<[string, readonly string[], number, RegExp]>([
    ["no program", [], 2, /TM-E002 .* needs /],
    ["a command that is missing", ["--", "no-such-command"], 127, /TM-E009 .*no such command/],
    ["a file that is missing", ["--", "./missing.py"], 127, /TM-E009 .*no such file/],
    ["a folder", ["--", "./folder"], 126, /TM-E009 .*a folder without __main__\.py/],
    ["a text file", ["--", "./text"], 126, /TM-E009 .*name the interpreter: python3 \.\/text/],
    ["a static program", ["--", "./static"], 126, /TM-E009 .*statically linked/],
    ["an unknown option", ["--nonsense", "--", ...runs], 2, /TM-E002 .*--nonsense/],
  ])("%s", async (_, words, status, line) => {
    const outcome = await execute([tidemark, tool, ...words], { cwd: folder });
    expectSpeaksClearly(outcome.stderr);
    expect([outcome.status, outcome.stdout]).toEqual([status, ""]);
    expect(outcome.stderr).toMatch(line);
    expect(outcome.stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

describe.each(tools.filter((tool) => tool !== "allocators"))("tidemark %s --json", (tool) => {
  test.each<[string, string, RegExp]>([
    ["a folder", "folder", /TM-E004 .*it is a directory/],
    ["a file in a folder that is missing", "missing/found.json", /TM-E004 .*no such file/],
    ["a place where nobody may write", "/proc/found.json", /TM-E004 cannot write/],
    ["a file of another program", "foreign.json", /TM-E017 /],
  ])("%s: refused before the program runs", async (_, file, line) => {
    const words = [tidemark, tool, "--json", file, "--", ...runs];
    const outcome = await execute(words, { cwd: folder });
    expect([outcome.status, outcome.stdout]).toEqual([2, ""]);
    expect(outcome.stderr).toMatch(line);
    expect(outcome.stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("a shell script, without HOME, in a folder and with a cache where nobody may write", async () => {
    const words = ["env", "-u", "HOME", "XDG_CACHE_HOME=/proc", tidemark, tool, "--quiet", "--"];
    const outcome = await execute([...words, join(folder, "script.sh")], { cwd: "/proc" });
    expect([outcome.status, outcome.stdout, outcome.stderr]).toEqual([0, "done\n", ""]);
  });
});
