/** Runs one case as a user would. */
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { capture } from "../command.mjs";
import { root } from "../setup.mjs";
import { isRight, score } from "./score.mjs";

/**
 * @typedef {object} CaseOptions
 * @property {string} [python] another interpreter than the set-up's
 * @property {import("./ways.mjs").Way} way
 * @property {number[]} windows seconds, ascending; none: the case's own
 */

/**
 * @param {import("./cases.mjs").LabelledCase} labelled
 * @param {import("../environment.mjs").Environment} environment
 * @param {CaseOptions} options
 * @returns {Promise<import("./score.mjs").CaseResult[]>} one for each window
 */
export async function runCase(labelled, environment, { python, way, windows }) {
  const { expect, folder } = labelled;
  const own = Number(process.env.LEAKBENCH_SECONDS ?? expect.seconds);
  const asked = windows.length > 0 ? windows : [own];
  const interpreter = python ?? (await interpreterFor(expect.packages, environment));
  if (interpreter === null) {
    const skipped = `needs ${expect.packages.join(", ")}`;
    return asked.map((window) => score(labelled, window, { skipped }));
  }
  const place = mkdtempSync(join(tmpdir(), "tidemark-leakbench-"));
  const command = [interpreter, join(folder, "case.py")];
  const beside = startBeside(folder, interpreter, Math.max(...asked));
  try {
    const outcomes = await way({ command, windows: asked, folder, place });
    return asked.map((window) => {
      const outcome = outcomes.get(window) ?? { skipped: "no recording yet" };
      const result = score(labelled, window, outcome);
      keepIfWrong(result, "recording" in outcome ? outcome.recording : undefined);
      return result;
    });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return asked.map((window) => score(labelled, window, { skipped: `no diagnosis: ${why}` }));
  } finally {
    beside?.kill("SIGTERM");
    rmSync(place, { recursive: true, force: true });
  }
}

/**
 * Keeps the recording of a misjudged case for inspection.
 * @param {import("./score.mjs").CaseResult} result
 * @param {string | undefined} recording
 */
function keepIfWrong(result, recording) {
  const kept = join(root, "leakbench/results", `${result.case}.${result.seconds}.tidemark`);
  rmSync(kept, { force: true });
  if (!isRight(result) && recording !== undefined && existsSync(recording)) {
    mkdirSync(dirname(kept), { recursive: true });
    copyFileSync(recording, kept);
  }
}

/**
 * Starts the case's other program (beside.py), if it has one, to run at the same time. It is not a child of the
 * watched program.
 * @param {string} folder @param {string} interpreter @param {number} seconds
 */
function startBeside(folder, interpreter, seconds) {
  const file = join(folder, "beside.py");
  return existsSync(file)
    ? spawn(interpreter, [file], {
        env: { ...process.env, LEAKBENCH_SECONDS: String(seconds) },
        stdio: "ignore",
      })
    : undefined;
}

/**
 * The set-up's interpreter that can import the packages; null if none can.
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
    if (!candidate) {
      continue;
    }
    const { status } = await capture(candidate, [
      "-c",
      packages.map((p) => `import ${p}`).join("\n"),
    ]);
    if (status === 0) {
      return candidate;
    }
  }
  return null;
}
