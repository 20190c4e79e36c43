/** `tidemark top` at a real terminal. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { PsJson } from "../src/model/documents/documents.js";
import { anyInterpreter } from "./environment.js";
import { execute, removeScratch, repository, scratch, tidemark } from "./run.js";
import { Terminal } from "./terminal.js";

const before = "$ make coffee\r\ncoffee is ready\r\n$ tidemark top\r\n";
/** Two programs, parent and child; the parent grows on request. */
const PARENT = `import subprocess, sys
child = subprocess.Popen([sys.executable, "the-child.py"], stdin=subprocess.PIPE)
kept = []
for line in sys.stdin: kept.append(b"x" * (64 << 20))
`;
const CHILD = `import sys
print("up", flush=True)
sys.stdin.read()
`;

let folder: string;
let parent: ChildProcess;
let terminal: Terminal | null = null;

beforeAll(async () => {
  folder = scratch();
  writeFileSync(join(folder, "the-parent.py"), PARENT);
  writeFileSync(join(folder, "the-child.py"), CHILD);
  parent = spawn(anyInterpreter().path, ["the-parent.py"], {
    cwd: folder,
    stdio: ["pipe", "pipe", "inherit"],
  });
  await once(parent.stdout as NodeJS.ReadableStream, "data");
});
afterEach(() => {
  terminal?.kill();
  terminal = null;
});
afterAll(() => {
  parent.stdin?.end();
  removeScratch();
});

const open = async (...words: string[]) => {
  terminal = await Terminal.open([tidemark, "top", ...words], {
    cwd: folder,
    columns: 110,
    before,
  });
  await terminal.shows(/by RSS/);
  terminal.type("/the-\r");
  await terminal.shows(/2 Python processes.*\n.*"the-"/);
  return terminal;
};

/** Rows of the two processes, in the order shown. */
const rowsOf = (screen: string) =>
  screen.split("\n").filter((line) => /the-(parent|child)\.py/.test(line));

test("keys sort, filter, make a tree; growth shows; q leaves the screen as it was", async () => {
  const view = await open("--interval", "200ms");
  expect(view.buffer).toBe("alternate");
  const first = view.screen();
  expect(first).toMatch(/RSS .* · by RSS/);
  expect(first).toMatch(/RSS TREND/);
  expect(first.split("\n").every((line) => line.length <= 110)).toBe(true);

  view.type("p");
  await view.shows(/by pid/);
  expect(rowsOf(view.screen()).map((row) => /the-\w+/.exec(row)?.[0])).toEqual([
    "the-parent",
    "the-child",
  ]);
  view.type("t");
  await view.shows((screen) => {
    const [above, below] = rowsOf(screen);
    return (below?.search(/\S*python/) ?? 0) === (above?.search(/\S*python/) ?? 0) + 2;
  });
  parent.stdin?.write("\n");
  await view.shows(/\+6\d\.\d MiB.*the-parent/);
  // The column MIN, the minimum before it grew, comes after RSS and growth.
  expect(view.screen()).toMatch(/RSS .*GROWTH .*MIN /);
  view.type("/the-child\r");
  await view.shows((screen) => rowsOf(screen).length === 1 && /1 Python process /.test(screen));

  view.type("q");
  expect(await view.ended()).toBe(0);
  expect(view.buffer).toBe("normal");
  expect(view.screen()).toBe(before.replaceAll("\r", "").trimEnd());
});

test.each(["\x03", "SIGTERM", "SIGHUP"] as const)(
  "leaves the screen as it was at %j",
  async (end) => {
    const view = await open();
    if (end === "\x03") {
      view.type(end);
    } else {
      process.kill(view.pid, end);
    }
    expect(await view.ended()).toBe({ "\x03": 0, SIGTERM: 143, SIGHUP: 129 }[end]);
    expect(view.buffer).toBe("normal");
    expect(view.screen()).toBe(before.replaceAll("\r", "").trimEnd());
  },
);

test("without a terminal it names what to use; --json is a document of ps", async () => {
  const refused = await execute([tidemark, "top"]);
  expect(refused).toMatchObject({ status: 2, stdout: "" });
  expect(refused.stderr).toMatch(/top needs a terminal.*tidemark ps/);
  const { stdout } = await execute([tidemark, "top", "--json", "--filter", "the-parent"]);
  const document = JSON.parse(stdout);
  const schema = JSON.parse(readFileSync(join(repository, "docs/json/ps-1.json"), "utf8"));
  expect(new Ajv({ strict: false }).validate(schema, document)).toBe(true);
  expect(document.processes).toMatchObject([{ pid: parent.pid, children: 1 }]);
});

test("device memory is shown for a process, summed over devices, if a driver answers", async () => {
  const driver = scratch();
  const answers = `${parent.pid}, GPU-aa, 1536\\n${parent.pid}, GPU-bb, 512\\n1, GPU-aa, [N/A]\\n`;
  writeFileSync(join(driver, "nvidia-smi"), `#!/bin/sh\nprintf '${answers}'\n`, { mode: 0o755 });
  const { stdout } = await execute([tidemark, "ps", "--json", "--filter", "the-"], {
    env: { PATH: `${driver}:${process.env.PATH}` },
  });
  const { processes } = JSON.parse(stdout) as PsJson;
  expect(processes.map(({ pid, gpuBytes }) => [pid, gpuBytes]).sort()).toEqual(
    [
      [parent.pid, 2048 * 2 ** 20],
      [processes.find(({ pid }) => pid !== parent.pid)?.pid, 0],
    ].sort(),
  );
});

test("ps explains its growth columns in one line, and only those that are shown", async () => {
  const ps = () => execute([tidemark, "ps", "--filter", "the-"]);
  await ps();
  const { stdout } = await ps();
  expect(stdout).toMatch(
    /\n {2}GROWTH: change of RSS since the last tidemark ps, [\d.]+ m?s ago · MIN: the lowest RSS seen so far\n/,
  );
  expect(stdout).not.toContain("PER HOUR");
});
