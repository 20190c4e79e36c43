/** Imports files with the command, as a user does, and reads its documents. */
import { join } from "node:path";
import { expect } from "vitest";
import type { DiffJson, LinesJson, SummaryJson } from "../../src/model/documents/documents.js";
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
  const json = async (command: string) =>
    JSON.parse((await run([tidemark, command, recording, "--json"])).stdout);
  await run([tidemark, "report", recording, "-o", `${recording}.html`, "--force"]);
  const lines: LinesJson = await json("lines");
  return { recording, summary: await json("summary"), lines: lines.lines };
}

export async function diffOf(a: string, b: string): Promise<DiffJson> {
  return JSON.parse((await run([tidemark, "diff", a, b, "--json"])).stdout);
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
