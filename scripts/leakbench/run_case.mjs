/** One case, as a user would run it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { capture } from "../command.mjs";
import { root } from "../setup.mjs";
import { score } from "./score.mjs";

/**
 * @param {import("./cases.mjs").LabelledCase} labelled
 * @param {import("../environment.mjs").Environment} environment
 * @param {string | undefined} python another interpreter than the set-up's
 * @returns {Promise<import("./score.mjs").CaseResult>}
 */
export async function runCase(labelled, environment, python) {
  const { expect, folder, name } = labelled;
  const interpreter = python ?? (await interpreterFor(expect.packages, environment));
  if (interpreter === null)
    return score(labelled, { skipped: `needs ${expect.packages.join(", ")}` }, 0);
  const place = mkdtempSync(join(tmpdir(), "tidemark-leakbench-"));
  const recording = join(place, `${name}.tidemark`);
  const begun = Date.now();
  try {
    const seconds = process.env.LEAKBENCH_SECONDS ?? String(expect.seconds);
    const run = await capture(
      join(root, "bin/tidemark"),
      ["run", "-o", recording, "--", interpreter, join(folder, "case.py")],
      { cwd: folder, env: { ...process.env, LEAKBENCH_SECONDS: seconds } },
    );
    if (run.status !== 0)
      return score(labelled, { skipped: `the case ended with ${run.status}` }, Date.now() - begun);
    const diagnosed = await capture(join(root, "bin/tidemark"), [
      ...["diagnose", recording, "--json", "--quiet"],
    ]);
    const diagnosis = JSON.parse(diagnosed.output);
    return score(labelled, { diagnosis }, Date.now() - begun);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return score(labelled, { skipped: `no diagnosis: ${why}` }, Date.now() - begun);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/**
 * The set-up's interpreter that can import the packages; null where none can.
 * @param {string[]} packages
 * @param {import("../environment.mjs").Environment} environment
 */
async function interpreterFor(packages, environment) {
  const own = environment.interpreters.filter(
    ({ chroot, freeThreaded }) => !chroot && !freeThreaded,
  );
  const candidates =
    packages.length === 0
      ? [own.at(-1)?.path, "python3"]
      : [environment.packagesPython, environment.torchPython];
  for (const candidate of candidates) {
    if (!candidate) continue;
    const { status } = await capture(candidate, [
      "-c",
      packages.map((p) => `import ${p}`).join("\n"),
    ]);
    if (status === 0) return candidate;
  }
  return null;
}
