/** `tidemark live` on a program that is being recorded. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SummaryJson } from "../src/model/documents/summary_document.js";
import { anyInterpreter } from "./environment.js";
import { execute, plainEnvironment, removeScratch, scratch, tidemark, until } from "./run.js";
import { Terminal } from "./terminal.js";

/** Keeps 4 MiB in every iteration, and prints its pid; ends when its input does. */
const GROWING = `import os, select, sys
print(os.getpid(), flush=True)
kept = []
def keep(): kept.append(bytearray(4 << 20))
while not select.select([sys.stdin], [], [], 0.25)[0]: keep()
`;

let folder: string;
let running: ChildProcess;
let pid: number;

beforeAll(async () => {
  folder = scratch();
  writeFileSync(join(folder, "growing.py"), GROWING);
  running = spawn(
    tidemark,
    ["run", "-o", "growing.tidemark", "--", anyInterpreter().path, "growing.py"],
    { cwd: folder, env: plainEnvironment(folder), stdio: ["pipe", "pipe", "ignore"] },
  );
  const [first] = await once(running.stdout as NodeJS.ReadableStream, "data");
  pid = Number(String(first));
});
afterAll(() => {
  running.stdin?.end();
  removeScratch();
});

test("by pid: the largest line, its growth, and the program's end", async () => {
  const words = [tidemark, "live", String(pid)];
  // The recording opens a moment after the program's start.
  await until(() => existsSync(join(folder, "growing.tidemark")));
  const terminal = await Terminal.open(words, { cwd: folder, columns: 100 });
  try {
    const screen = await terminal.shows(/MiB .*\+[\d.]+ [KMG]iB .*keep {2}growing\.py:4/);
    expect(screen).toMatch(/tidemark live .*growing\.py/);
    expect(screen).toMatch(new RegExp(`pid ${pid} · recording`));
    terminal.type("g");
    await terminal.shows(/now by growth/);
    const { stdout } = await execute([tidemark, "live", String(pid), "--json"]);
    const document: SummaryJson = JSON.parse(stdout);
    expect(document).toMatchObject({ schema: "tidemark.summary/1", target: { pid } });
    running.stdin?.end();
    await terminal.shows(/exit code 0/);
    terminal.type("q");
    expect(await terminal.ended()).toBe(0);
  } finally {
    terminal.kill();
  }
});

test("a site that leaks slowly compared with its size shows its growth", async () => {
  // It starts with 64 MiB of small blocks, whose sampling error (2 MiB) is twice what the leak adds in ten seconds.
  const program = `import select, sys, time
kept = []
def keep(count): kept.extend([bytearray(2000) for _ in range(count)])
keep(33_000)
while not select.select([sys.stdin], [], [], 0.1)[0]: keep(5)
`;
  writeFileSync(join(folder, "slow.py"), program);
  const child = spawn(
    tidemark,
    ["run", "-o", "slow.tidemark", "--", anyInterpreter().path, "slow.py"],
    { cwd: folder, env: plainEnvironment(folder), stdio: ["pipe", "ignore", "ignore"] },
  );
  await until(() => existsSync(join(folder, "slow.tidemark")));
  const terminal = await Terminal.open([tidemark, "live", "slow.tidemark"], {
    cwd: folder,
    columns: 100,
  });
  try {
    await terminal.shows(/[5-9]\d\.\d MiB .*\+[\d.]+ [KM]iB .*slow\.py:3/);
  } finally {
    terminal.kill();
    child.stdin?.end();
    await once(child, "exit");
  }
});

test("for a process that is not being recorded, the message names the next command", async () => {
  const { status, stderr } = await execute([tidemark, "live", String(process.pid)]);
  expect(status).toBe(2);
  expect(stderr).toMatch(/process \d+ is not being recorded.*tidemark attach \d+/);
});
