/** The page carries the program's own Python files, and no other file that a recording names. */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { anyInterpreter } from "../../../test/environment.js";
import { open, record, removeScratch, scratch } from "../../../test/run.js";
import type { Recording } from "../../recording/types.js";
import { reportDocument } from "./index.js";
import { sourcesOf } from "./report_sources.js";

afterAll(removeScratch);

const PROGRAM = "import json\nkept = [bytes(1000) for _ in range(30_000)]\n";

async function filesOf(recording: Recording): Promise<string[]> {
  const { sources = [] } = await reportDocument(recording, async () => undefined, { source: true });
  return sources.map(({ file }) => file);
}

test("own files with their text; not those of other hosts, changed kinds, or too large", async () => {
  const path = join(scratch(), "app.py");
  writeFileSync(path, PROGRAM);
  const { path: recordingPath } = await record([anyInterpreter().path, path]);
  const recording = open(recordingPath);
  const report = await reportDocument(recording, async () => undefined, { source: true });
  expect(report.sources).toEqual([{ file: path, text: PROGRAM, changed: false }]);
  const without = await reportDocument(recording, async () => undefined, { source: false });
  expect(without.sources).toBeUndefined();
  const elsewhere = { ...recording.meta, host: "another" };
  expect(sourcesOf(elsewhere, report.tables, report.snapshots)).toEqual([]);
  writeFileSync(path, `${PROGRAM}# later\n`);
  const later = await reportDocument(recording, async () => undefined, { source: true });
  expect(later.sources?.[0]?.changed).toBe(true);
  writeFileSync(path, "x".repeat(600 << 10));
  expect(await filesOf(recording)).toEqual([]);
  writeFileSync(path, "binary\0");
  expect(await filesOf(recording)).toEqual([]);
  rmSync(path);
  expect(await filesOf(recording)).toEqual([]);
  execFileSync("mkfifo", [path]);
  expect(await filesOf(recording)).toEqual([]);
});
