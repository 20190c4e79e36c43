/** A small program and its recording, for the tests of the command line. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { expect } from "vitest";
import { anyInterpreter } from "./environment.js";
import { execute, type Outcome, type RunSettings, repository, scratch, tidemark } from "./run.js";

export const python = anyInterpreter().path;
const program = `import sys, time
kept = []
def keep(number):
    kept.append(bytearray(number << 20))
def scratch():
    return bytes(24 << 20)
scratch()
time.sleep(0.6)
for _ in range(16): keep(2)
time.sleep(1.2)
kept.clear()
sys.exit(3)
`;

export let folder: string;
export let recording: string;
export let ran: Outcome;

/** For `beforeAll`. */
export async function recordApp(): Promise<void> {
  folder = scratch();
  recording = join(folder, "app.tidemark");
  writeFileSync(join(folder, "app.py"), program);
  execFileSync("mkfifo", [join(folder, "pipe")]);
  ran = await execute(
    [tidemark, "run", "-o", recording, "--json", join(folder, "run.json"), "--", python, "app.py"],
    { cwd: folder },
  );
}

export function cli(words: readonly string[], settings: RunSettings = {}): Promise<Outcome> {
  return execute([tidemark, ...words], { cwd: folder, ...settings });
}

export function errorLine(outcome: Outcome): string {
  expect(outcome.stdout).toBe("");
  expect(outcome.stderr.trimEnd().split("\n"), outcome.stderr).toHaveLength(1);
  return outcome.stderr;
}

const ajv = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true });

/** Checks a document against the schema that it names itself. */
export function validate(text: string, name: string): Record<string, unknown> {
  const document = JSON.parse(text) as Record<string, unknown>;
  expect(document.schema).toMatch(new RegExp(`^tidemark\\.${name}/\\d+$`));
  const file = `${(document.schema as string).replace("tidemark.", "").replace("/", "-")}.json`;
  const schema = JSON.parse(readFileSync(join(repository, "docs/json", file), "utf8"));
  const check = ajv.compile(schema);
  expect(check(document), JSON.stringify(check.errors)).toBe(true);
  return document;
}
