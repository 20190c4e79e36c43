/** One case, as a user would run it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { capture } from "../command.mjs";
import { root } from "../setup.mjs";
import { isRight, score } from "./score.mjs";

const tidemark = join(root, "bin/tidemark");

/**
 * A program's command and what it needs -> the verdict's document.
 * @typedef {{command: string[], seconds: number, folder: string, recording: string}} Trial
 * @typedef {(trial: Trial) => Promise<any>} Way
 */

/** How long a program runs before it is watched, and after: it has started, and does not end meanwhile. */
const startSeconds = 4;
const leftSeconds = 30;

/** @type {ReadonlyMap<string, Way>} */
export const ways = new Map([
  ["run", fromItsStart],
  ["attach", (trial) => asItRuns(trial, [])],
  ["outside", (trial) => asItRuns(trial, ["--no-agent"])],
]);

/**
 * @param {import("./cases.mjs").LabelledCase} labelled
 * @param {import("../environment.mjs").Environment} environment
 * @param {{python?: string, way: Way}} options another interpreter than the set-up's
 * @returns {Promise<import("./score.mjs").CaseResult>}
 */
export async function runCase(labelled, environment, { python, way }) {
  const { expect, folder } = labelled;
  const interpreter = python ?? (await interpreterFor(expect.packages, environment));
  if (interpreter === null) {
    return score(labelled, { skipped: `needs ${expect.packages.join(", ")}` }, 0);
  }
  const place = mkdtempSync(join(tmpdir(), "tidemark-leakbench-"));
  const recording = join(place, "case.tidemark");
  const seconds = Number(process.env.LEAKBENCH_SECONDS ?? expect.seconds);
  const command = [interpreter, join(folder, "case.py")];
  const begun = Date.now();
  const beside = startBeside(folder, interpreter, seconds);
  const kept = join(root, "leakbench/results", `${labelled.name}.tidemark`);
  rmSync(kept, { force: true });
  try {
    const diagnosis = await way({ command, seconds, folder, recording });
    const result = score(labelled, { diagnosis }, Date.now() - begun);
    // What was judged wrongly is looked at again.
    if (!isRight(result) && existsSync(recording)) {
      mkdirSync(dirname(kept), { recursive: true });
      copyFileSync(recording, kept);
    }
    return result;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return score(labelled, { skipped: `no diagnosis: ${why}` }, Date.now() - begun);
  } finally {
    beside?.kill("SIGTERM");
    rmSync(place, { recursive: true, force: true });
  }
}

/**
 * Another program of the machine that runs meanwhile, where the case has one: beside.py. It is no child of the
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

/** @param {Trial} trial */
async function fromItsStart({ command, seconds, folder, recording }) {
  const env = { ...process.env, LEAKBENCH_SECONDS: String(seconds) };
  const run = await capture(tidemark, ["run", "-o", recording, "--", ...command], {
    cwd: folder,
    env,
  });
  if (run.status !== 0) {
    throw new Error(`the case ended with ${run.status}`);
  }
  return diagnosed([recording]);
}

/** @param {Trial} trial @param {string[]} options */
async function asItRuns({ command: [file = "", ...args], seconds, folder }, options) {
  const env = {
    ...process.env,
    LEAKBENCH_SECONDS: String(startSeconds + seconds + leftSeconds),
  };
  const program = spawn(file, args, { cwd: folder, env, stdio: "ignore", detached: true });
  await once(program, "spawn");
  try {
    await pause(startSeconds * 1000);
    return await diagnosed([String(program.pid), "--for", `${seconds}s`, ...options]);
  } finally {
    endGroup(/** @type {number} */ (program.pid));
  }
}

/** Ends a program with its children. @param {number} pid */
function endGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of them have ended.
  }
}

/** @param {string[]} args */
async function diagnosed(args) {
  const { status, output } = await capture(tidemark, ["diagnose", ...args, "--json", "--quiet"]);
  if (status !== 0) {
    throw new Error(output.trim());
  }
  return JSON.parse(output);
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
