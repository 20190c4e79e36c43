/**
 * The ways to get a verdict. Each takes a program and the requested windows, in seconds, and returns the diagnosis
 * at the end of each window. If the way makes a recording, one run of the longest window serves all windows: a copy of
 * the growing file at the end of a window is what a recorder killed at that moment would have left.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { capture } from "../command.mjs";
import { root } from "../setup.mjs";

const tidemark = join(root, "bin/tidemark");
const agent = join(root, "dist/native/libtidemark.so");

/**
 * @typedef {object} Trial
 * @property {string[]} command
 * @property {number[]} windows seconds, ascending
 * @property {string} folder of the case
 * @property {string} place an empty folder for recordings
 *
 * @typedef {object} Outcome
 * @property {any} diagnosis the verdict's document
 * @property {string} [recording] what it was made from
 *
 * @typedef {(trial: Trial) => Promise<Map<number, Outcome>>} Way by window
 */

/** How long a program runs before and after it is watched, so that it does not end in the meantime. */
const startSeconds = 4;
const leftSeconds = 30;

/** @type {ReadonlyMap<string, {way: Way, is: string}>} */
export const ways = new Map([
  ["run", { way: fromItsStart, is: "tidemark run, then diagnose RECORDING" }],
  [
    "attach",
    { way: (trial) => attached(trial, {}), is: "tidemark attach PID, then diagnose RECORDING" },
  ],
  ["diagnose", { way: (trial) => watched(trial, []), is: "tidemark diagnose PID" }],
  [
    "outside",
    { way: (trial) => watched(trial, ["--no-agent"]), is: "tidemark diagnose PID --no-agent" },
  ],
  ["preload", { way: preloaded, is: "started with LD_PRELOAD, then tidemark attach PID" }],
  ["import", { way: imported, is: "started with LD_PRELOAD, then tidemark import POOL" }],
]);

/** @type {Way} */
async function fromItsStart({ command, windows, folder, place }) {
  const recording = join(place, "case.tidemark");
  const longest = longestOf(windows);
  const copies = copiesOf(recording, windows);
  const run = await capture(tidemark, ["run", "-o", recording, "--", ...command], {
    cwd: folder,
    env: { ...process.env, LEAKBENCH_SECONDS: String(longest) },
  });
  if (run.status !== 0) {
    throw new Error(`the case ended with ${run.status}`);
  }
  return diagnosed(await copies);
}

/** @param {Trial} trial @param {NodeJS.ProcessEnv} env */
async function attached(trial, env) {
  const { windows, place } = trial;
  const recording = join(place, "case.tidemark");
  const longest = longestOf(windows);
  return besideProgram(trial, longest, env, async (pid) => {
    const copies = copiesOf(recording, windows);
    await asked(["attach", String(pid), "--for", `${longest}s`, "-o", recording, "--quiet"]);
    return diagnosed(await copies);
  });
}

/** @type {Way} */
function preloaded(trial) {
  return attached(trial, { LD_PRELOAD: agent, TIDEMARK: `dir=${trial.place}` });
}

/** Watches one program for one window after another. @param {Trial} trial @param {string[]} options */
async function watched(trial, options) {
  const all = trial.windows.reduce((sum, seconds) => sum + seconds + startSeconds, 0);
  return besideProgram(trial, all, {}, async (pid) => {
    /** @type {Map<number, Outcome>} */
    const outcomes = new Map();
    for (const seconds of trial.windows) {
      const words = ["diagnose", String(pid), "--for", `${seconds}s`, ...options];
      outcomes.set(seconds, { diagnosis: await documentOf(words) });
    }
    return outcomes;
  });
}

/** @type {Way} */
async function imported(trial) {
  const { windows, place } = trial;
  const env = { LD_PRELOAD: agent, TIDEMARK: `dir=${place}` };
  return besideProgram(trial, longestOf(windows), env, async () => {
    /** @type {Map<number, string>} */
    const recordings = new Map();
    let waited = startSeconds;
    for (const seconds of windows) {
      await pause((seconds - waited) * 1000);
      waited = seconds;
      const recording = join(place, `${seconds}.tidemark`);
      const pool = readdirSync(place).find((name) => name.endsWith(".pool"));
      await asked(["import", join(place, pool ?? "no.pool"), "-o", recording]);
      recordings.set(seconds, recording);
    }
    return diagnosed(recordings);
  });
}

/**
 * Starts the program by itself, does something with it, and ends it with its children.
 * @template Result
 * @param {Trial} trial
 * @param {number} seconds
 * @param {NodeJS.ProcessEnv} more
 * @param {(pid: number) => Promise<Result>} work
 * @returns {Promise<Result>}
 */
async function besideProgram({ command: [file = "", ...args], folder }, seconds, more, work) {
  const env = {
    ...process.env,
    ...more,
    LEAKBENCH_SECONDS: String(startSeconds + seconds + leftSeconds),
  };
  const program = spawn(file, args, { cwd: folder, env, stdio: "ignore", detached: true });
  await once(program, "spawn");
  const pid = /** @type {number} */ (program.pid);
  try {
    await pause(startSeconds * 1000);
    return await work(pid);
  } finally {
    endGroup(pid);
  }
}

/**
 * Copies a recording as it was when each window ended; for the longest window, it is the recording itself.
 * @param {string} recording
 * @param {number[]} windows
 * @returns {Promise<Map<number, string>>}
 */
async function copiesOf(recording, windows) {
  const longest = longestOf(windows);
  /** @type {Map<number, string>} */
  const copies = new Map();
  let waited = 0;
  for (const seconds of windows.filter((window) => window < longest)) {
    await pause((seconds - waited) * 1000);
    waited = seconds;
    const copy = `${recording}.${seconds}`;
    if (existsSync(recording)) {
      copyFileSync(recording, copy);
      copies.set(seconds, copy);
    }
  }
  return copies.set(longest, recording);
}

/** @param {Map<number, string>} recordings @returns {Promise<Map<number, Outcome>>} */
async function diagnosed(recordings) {
  /** @type {Map<number, Outcome>} */
  const outcomes = new Map();
  for (const [seconds, recording] of recordings) {
    outcomes.set(seconds, { diagnosis: await documentOf(["diagnose", recording]), recording });
  }
  return outcomes;
}

/** @param {string[]} words */
async function documentOf(words) {
  return JSON.parse(await asked([...words, "--json", "--quiet"]));
}

/** @param {string[]} words @returns {Promise<string>} what it printed */
async function asked(words) {
  const { status, output } = await capture(tidemark, words);
  if (status !== 0) {
    throw new Error(output.trim());
  }
  return output;
}

/** @param {number[]} windows */
function longestOf(windows) {
  return Math.max(...windows);
}

/** Ends a program with its children. @param {number} pid */
function endGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of them have ended.
  }
}
