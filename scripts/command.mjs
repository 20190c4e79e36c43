/** Runs commands for the set-up: prints nothing on success, the whole output on failure. */
import { spawn } from "node:child_process";
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/** Ends a script with one clear line and exit code 1; anything else that is thrown is a bug. */
export class SetupError extends Error {}

/**
 * First match of an executable on PATH, or undefined.
 * @param {string} name @returns {string | undefined}
 */
export function findOnPath(name) {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const candidate = join(folder, name);
    if (folder && isExecutable(candidate)) {
      return candidate;
    }
  }
  return undefined;
}

/** @param {string} path @returns {boolean} */
export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * Runs a command to its end and collects stdout and stderr together. Never throws for a failing
 * command; `status` is -1 if it could not be started, and `output` has the reason.
 * @param {string} file
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 * @returns {Promise<{status: number, output: string}>}
 */
export function capture(file, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(file, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("error", (error) => resolve({ status: -1, output: error.message }));
    child.on("close", (code, signal) => {
      resolve({ status: code ?? -1, output: signal ? `${output}killed by ${signal}\n` : output });
    });
  });
}

/**
 * Runs one step of the set-up or build: describes it in one line, and shows the command's output
 * only if it fails.
 * @param {string} label
 * @param {string} file
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 * @throws {SetupError} the command failed
 */
export async function step(label, file, args, options = {}) {
  const begun = Date.now();
  process.stdout.write(`${label} ... `);
  const { status, output } = await capture(file, args, options);
  if (status !== 0) {
    process.stdout.write("failed\n");
    process.stderr.write(output.endsWith("\n") ? output : `${output}\n`);
    throw new SetupError(`failed: ${[file, ...args].join(" ")}`);
  }
  process.stdout.write(`${seconds(Date.now() - begun)}\n`);
}

/**
 * Options of a script. An unknown option, or one without its value, ends the script with Node's message.
 * @template {import("node:util").ParseArgsConfig} Config
 * @param {Config} config
 * @returns {ReturnType<typeof parseArgs<Config>>}
 * @throws {SetupError}
 */
export function readOptions(config) {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new SetupError(/** @type {Error} */ (error).message);
  }
}

/** @param {number} ms @returns {string} */
export function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

/**
 * Runs a script's main function if the script was started directly, and turns a failure into one
 * line and an exit code.
 * @param {ImportMeta} meta
 * @param {() => Promise<number | void>} main resolves to the exit code
 */
export async function runAsScript(meta, main) {
  const started = process.argv[1];
  if (started === undefined || realpathSync(started) !== fileURLToPath(meta.url)) {
    return;
  }
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    if (!(error instanceof SetupError)) {
      throw error;
    }
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
