/** `tidemark ledger` as people and programs use it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { LedgerJson } from "../src/model/documents/ledger_document.js";
import { anyInterpreter, environment, isRoot } from "./environment.js";
import { execute, removeScratch, repository, tidemark } from "./run.js";
import { Terminal } from "./terminal.js";

/** A parent with 64 MiB, which its child shares except for 16 MiB that the child wrote to. */
const PROGRAM = `import os, sys, time
block = bytearray(64 << 20)
for at in range(0, len(block), 4096): block[at] = 1
child = os.fork()
if child == 0:
    for at in range(0, 16 << 20, 4096): block[at] = 2
    print("up", flush=True)
    sys.stdin.read()
    os._exit(0)
sys.stdin.read()
`;
const MIB = 2 ** 20;

let program: ChildProcess;
let pid: string;
let terminal: Terminal | null = null;

beforeAll(async () => {
  program = spawn(anyInterpreter().path, ["-c", PROGRAM], { stdio: ["pipe", "pipe", "inherit"] });
  await once(program.stdout as NodeJS.ReadableStream, "data");
  pid = String(program.pid);
});
afterEach(() => {
  terminal?.kill();
  terminal = null;
});
afterAll(() => {
  program.stdin?.end();
  removeScratch();
});

const ledger = (...words: string[]) => execute([tidemark, "ledger", ...words]);

async function document(...words: string[]): Promise<LedgerJson> {
  const { status, stdout, stderr } = await ledger(pid, "--json", ...words);
  expect([status, stderr]).toEqual([0, ""]);
  const found = JSON.parse(stdout) as LedgerJson;
  const schema = JSON.parse(readFileSync(join(repository, "docs/json/ledger-1.json"), "utf8"));
  const check = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true }).compile(schema);
  expect(check(found), JSON.stringify(check.errors)).toBe(true);
  return found;
}

describe("the document", () => {
  test.each([[], ["--cheap"]])("adds up to RSS: %j", async (...words: string[]) => {
    const found = await document(...words);
    expect(found.parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(found.rssBytes);
    expect(found.target).toMatchObject({ pid: Number(pid), python: anyInterpreter().version });
    expect(found.unexplainedBytes).toBeLessThan(0.02 * found.rssBytes);
    const malloc = found.parts.find(({ part }) => part === "malloc.used")?.bytes ?? 0;
    expect(malloc).toBeGreaterThan(64 * MIB);
    expect(found.children).toEqual([]);
  });

  test("children with shared and private dirty memory", async () => {
    const { children } = await document("--children");
    expect(children).toHaveLength(1);
    const [child] = children;
    expect(child?.parentPid).toBe(Number(pid));
    expect(child?.privateDirtyBytes).toBeGreaterThan(16 * MIB);
    expect(child?.privateDirtyBytes).toBeLessThan(24 * MIB);
    expect(child?.sharedBytes).toBeGreaterThan(47 * MIB);
    expect((await document("--children", "--min", "10GiB")).children).toEqual([]);
    expect((await document("--children", "--filter", "nothing of this")).children).toEqual([]);
  });
});

describe("the text", () => {
  test("names the parts in plain text and truncates nothing", async () => {
    const { status, stdout, stderr } = await ledger(pid, "--children");
    expect([status, stderr]).toEqual([0, ""]);
    for (const word of ["RSS", "PSS", "USS", "malloc.used", "libraries", "malloc_trim", "CHILD"]) {
      expect(stdout).toContain(word);
    }
    expect(stdout).not.toContain("\x1b");
    expect(stdout).not.toContain("…");
    expect(stdout).toContain("without a pause");
    expect((await ledger(pid, "--quiet")).stdout).not.toContain("without a pause");
  });

  test("--watch refreshes and restores the terminal, also on Ctrl-C", async () => {
    for (const leave of ["q", "\x03"]) {
      terminal = await Terminal.open([tidemark, "ledger", pid, "--watch"], {
        columns: 100,
        before: "$ tidemark ledger --watch\r\n",
      });
      await terminal.shows(/malloc\.used/);
      expect(terminal.buffer).toBe("alternate");
      terminal.type(leave);
      await terminal.ended();
      expect(terminal.buffer).toBe("normal");
      expect(terminal.screen()).toBe("$ tidemark ledger --watch");
    }
  });

  test("--watch ends with one line when its process does", async () => {
    const short = spawn(
      anyInterpreter().path,
      ["-c", "import sys; print(1, flush=True); sys.stdin.read()"],
      {
        stdio: ["pipe", "pipe", "inherit"],
      },
    );
    await once(short.stdout as NodeJS.ReadableStream, "data");
    terminal = await Terminal.open([tidemark, "ledger", String(short.pid), "--watch"], {
      columns: 120,
    });
    await terminal.shows(/libraries/);
    short.stdin.end();
    expect(await terminal.ended()).toBe(4);
    expect(terminal.screen()).toMatch(/^tidemark: TM-E020 .*\b\d+/);
  });
});

describe("mistakes", () => {
  test.each([
    [["ledger"], 2, /ledger needs <target>, as in: tidemark ledger 4242/],
    [["ledger", "soon"], 2, /TM-E003 no such process or core file/],
    [["ledger", tidemark], 2, /TM-E007/],
    [["ledger", "0"], 2, /process id/],
    [["ledger", "4194303"], 4, /TM-E020/],
    [["ledger", "1", "--watch"], 2, /needs a terminal/],
  ])("%j", async (words, code, says) => {
    const { status, stdout, stderr } = await execute([tidemark, ...words]);
    expect(stdout).toBe("");
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(says);
    expect(status).toBe(code);
  });
});

test.skipIf(!isRoot || environment.tools.unshare === null)(
  "a kernel that does not report resident memory is named as the reason",
  async () => {
    const files = [`/proc/${pid}/smaps`, `/proc/${pid}/task/${pid}/smaps`];
    const mounts = files.map((file) => `mount --bind /dev/null ${file}`).join(" && ");
    const hidden = `${mounts} && exec "$0" ledger ${pid}`;
    const words = ["unshare", "--mount", "sh", "-c", hidden, tidemark];
    const { status, stdout, stderr } = await execute(words);
    expect([status, stdout]).toEqual([4, ""]);
    expect(stderr).toMatch(/^tidemark: TM-E040 .*tidemark ps\n$/);
  },
);
