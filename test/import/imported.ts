/** Imports files with the command, as a user does, and reads its documents. */
import { join } from "node:path";
import { expect } from "vitest";
import type { DiffJson, LinesJson } from "../../src/model/documents/documents.js";
import type { SummaryJson } from "../../src/model/documents/summary_document.js";
import { commandHere } from "../command_here.js";
import { execute, type Outcome, type RunSettings, tidemark } from "../run.js";

export interface Imported {
  readonly recording: string;
  readonly summary: SummaryJson;
  readonly lines: LinesJson["lines"];
}

/** Fails if a command fails. */
export async function run(
  command: readonly string[],
  settings: RunSettings = {},
): Promise<Outcome> {
  const outcome = await execute(command, settings);
  expect(outcome.status, `${command.join(" ")}\n${outcome.stdout}${outcome.stderr}`).toBe(0);
  return outcome;
}

export async function importOf(
  folder: string,
  file: string,
  ...options: string[]
): Promise<Imported> {
  const recording = `${join(folder, file)}.tidemark`;
  await run([tidemark, "import", join(folder, file), "-f", "-o", recording, ...options]);
  await runHere("report", recording, "-o", `${recording}.html`, "--force");
  const { lines } = await jsonOf<LinesJson>("lines", recording);
  return { recording, summary: await jsonOf("summary", recording), lines };
}

export async function diffOf(a: string, b: string, ...options: string[]): Promise<DiffJson> {
  return jsonOf("diff", a, b, ...options);
}

/** The document of a command. */
export async function jsonOf<Document>(...command: string[]): Promise<Document> {
  return JSON.parse(await runHere(...command, "--json"));
}

/** @returns the standard output of a command that succeeds; within this process */
export async function runHere(...command: string[]): Promise<string> {
  const { status, stdout, stderr } = await commandHere(...command);
  expect(status, `${command.join(" ")}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

/** The row of a line: "app.py:4". */
export function rowAt({ lines }: Imported, place: string): LinesJson["lines"][number] {
  const found = lines.find(({ file, line }) => `${file}:${line}`.endsWith(place));
  expect(
    found,
    `${place} in ${lines.map(({ file, line }) => `${file}:${line}`).join(" ")}`,
  ).toBeDefined();
  return found as LinesJson["lines"][number];
}
