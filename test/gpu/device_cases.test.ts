/** The cases of device_cases.mjs, scored as the leak bench scores programs: verdict, and culprit at rank 1. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { diagnose, evidenceOfSnapshots } from "../../src/diagnose/index.js";
import { ADVICE } from "../../src/diagnose/wording/advice.js";
import { GPU_ADVICE } from "../../src/gpu/analysis/advice.js";
import { analyse } from "../../src/gpu/analysis/analyse.js";
import { readSnapshot } from "../../src/gpu/snapshot/read_snapshot.js";
import { present } from "../../src/model/base/present.js";
import type { DiagnosisJson } from "../../src/model/documents/diagnosis_document.js";
import { validate } from "../recorded_app.js";
import { execute, removeScratch, scratch, tidemark } from "../run.js";
import { DEVICE_CASES } from "./device_cases.mjs";
import { pickle } from "./pickle_writer.mjs";

const folder = scratch();
afterAll(removeScratch);

async function diagnosed(name: string, make: () => object): Promise<DiagnosisJson> {
  const path = join(folder, `${name.replace(/\W+/g, "_")}.pickle`);
  writeFileSync(path, pickle(make()));
  return diagnose(evidenceOfSnapshots([analyse(await readSnapshot(path), path)]));
}

test.each(DEVICE_CASES)("$name: $verdict", async ({ name, verdict, culprit, negative, make }) => {
  const document = await diagnosed(name, make);
  const { kind, summary } = document.verdict;
  expect(verdict, `${kind}: ${summary}`).toContain(kind);
  if (culprit !== undefined) {
    const functions = document.suspects[0]?.stack.map((frame) => frame.function);
    expect(
      functions?.some((of) => culprit.includes(of)),
      String(functions),
    ).toBe(true);
    expect(document.suspects[0]?.growthBytesPerStep).toBeGreaterThan(500_000);
  }
  const advice = [...document.advice, ...document.suspects.flatMap((suspect) => suspect.advice)];
  expect(advice.length > 0).toBe(negative !== true || kind === "insufficient-evidence");
  const known: string[] = [...ADVICE.map(({ id }) => id), ...Object.keys(GPU_ADVICE)];
  expect(advice.filter(({ id }) => !known.includes(id))).toEqual([]);
});

test("a device that is too small: the largest saving comes first", async () => {
  const { make } = DEVICE_CASES.find(({ name }) => name.endsWith("first step")) as {
    make: () => object;
  };
  const { advice } = await diagnosed("savings", make);
  expect(advice[0]?.id).toBe("TM-A104");
  expect(advice[0]?.text).toMatch(/half the batch saves about \d+ MiB, of \d+ MiB of activations/);
});

test("the command: a snapshot's verdict, its exit code, its document", async () => {
  const path = join(folder, "command.pickle");
  writeFileSync(path, pickle(present(DEVICE_CASES[0]?.make())));
  const { stdout } = await execute([tidemark, "diagnose", path, "--json"]);
  expect(validate(stdout, "diagnosis")).toMatchObject({ verdict: { kind: "gpu-leak" } });
  const text = await execute([tidemark, "diagnose", path, "--fail-on", "gpu-leak"]);
  expect(text.status).toBe(1);
  expect(text.stdout).toMatch(/Verdict +gpu-leak/);
  expect(text.stdout).toMatch(/Suspect 1 +\+4\.00 MiB a step/);
  writeFileSync(join(folder, "text.log"), "no snapshot");
  expect((await execute([tidemark, "diagnose", join(folder, "text.log")])).status).toBe(2);
});
