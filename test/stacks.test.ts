/** `tidemark stacks` as a user runs it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StacksJson } from "../src/model/documents/stacks_document.js";
import { expectSpeaksClearly } from "./behaviour.js";
import { anyInterpreter } from "./environment.js";
import { startPython, type Waiting } from "./python_program.js";
import { execute, removeScratch, repository, tidemark } from "./run.js";

let program: Waiting;
beforeAll(async () => {
  program = await startPython(
    anyInterpreter(),
    `
def worker(): threading.Event().wait()
threading.Thread(target=worker, name="the worker", daemon=True).start()
say(1)
`,
  );
});
afterAll(async () => {
  await program.stop();
  removeScratch();
});

const stacks = (...words: string[]) => execute([tidemark, "stacks", ...words]);

test("the document matches its schema and names the threads", async () => {
  const { status, stdout, stderr } = await stacks(String(program.pid), "--json");
  expect([status, stderr]).toEqual([0, ""]);
  const document = JSON.parse(stdout) as StacksJson;
  const schema = JSON.parse(readFileSync(join(repository, "docs/json/stacks-1.json"), "utf8"));
  const check = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true }).compile(schema);
  expect(check(document), JSON.stringify(check.errors)).toBe(true);
  expect(document.threads.map(({ name }) => name)).toEqual(["MainThread", "the worker"]);
  expect(document.pauseMs).toBeGreaterThan(0);
});

test("the text shows them too; --filter and --top choose", async () => {
  const all = await stacks(String(program.pid));
  expect(all.stdout).toMatch(
    /thread \d+ "MainThread"[\s\S]*thread \d+ "the worker"[\s\S]* worker {2}/,
  );
  const one = await stacks(String(program.pid), "--filter", "the worker", "--quiet");
  expect(one.stdout).not.toContain("MainThread");
  expect(one.stdout).toContain("the worker");
  const none = await stacks(String(program.pid), "--filter", "zzz");
  expect([none.status, none.stdout]).toEqual([
    0,
    expect.stringMatching(/\nnothing matches --filter zzz\n$/),
  ]);
  const heap = await execute([tidemark, "heap", String(program.pid), "--filter", "zzz"]);
  expect(heap.stdout).toMatch(/objects[\s\S]*nothing matches --filter zzz\n/);
});

test.each([
  [["0"], 2, /process id/],
  [["none"], 2, /process id|whole number/],
  [["4194304"], 4, /TM-E020/],
  [[String(process.pid)], 4, /TM-E022 no Python interpreter/],
])("%j is refused with exit code %i and one line", async (words, code, message) => {
  const { status, stdout, stderr } = await stacks(...words);
  expect([status, stdout]).toEqual([code, ""]);
  expect(stderr).toMatch(message);
  expect(stderr.trim().split("\n")).toHaveLength(1);
  expectSpeaksClearly(stderr);
});
