/** Virtual environments with the PyPI packages that the tests of real programs use. */
import { mkdirSync, readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { capture, SetupError, step } from "../command.mjs";
import { root } from "../setup.mjs";
import { cached, cacheFolder } from "./cache.mjs";

/** @typedef {import("../environment.mjs").Interpreter} Interpreter */

/** The minor versions that every package of the requirements has wheels for, best first. */
const suitable = ["3.12", "3.11", "3.13"];
/** torch's CUDA libraries take 5 GB, and twice that while pip unpacks them. */
const torchNeedsBytes = 12e9;
/** The same for TensorFlow's 1.5 GB. */
const tensorflowNeedsBytes = 4e9;
const chdbNeedsBytes = 3e9;

/**
 * @param {Interpreter[]} interpreters
 * @returns {Promise<string>} executable of the environment with test/requirements.txt
 * @throws {Error} why it is unavailable
 */
export function makePackages(interpreters) {
  return makeVenv("packages", "test/requirements.txt", interpreters);
}

/**
 * @param {Interpreter[]} interpreters
 * @returns {Promise<string>} executable of the environment with test/requirements-torch.txt
 * @throws {Error} why it is unavailable
 */
export function makeTorch(interpreters) {
  if (process.env.TIDEMARK_TEST_TORCH === "0") {
    throw new SetupError("TIDEMARK_TEST_TORCH=0");
  }
  return makeVenv("torch", "test/requirements-torch.txt", interpreters, torchNeedsBytes);
}

/**
 * @param {Interpreter[]} interpreters
 * @param {boolean} long for `npm run test:long`
 * @returns {Promise<string>} executable of the environment with test/requirements-tensorflow.txt
 * @throws {Error} why it is unavailable
 */
export function makeTensorflow(interpreters, long) {
  if (!long && process.env.TIDEMARK_TEST_TENSORFLOW !== "1") {
    throw new SetupError("1.5 GB, only for npm run test:long or with TIDEMARK_TEST_TENSORFLOW=1");
  }
  return makeVenv(
    "tensorflow",
    "test/requirements-tensorflow.txt",
    interpreters,
    tensorflowNeedsBytes,
  );
}

/**
 * @param {Interpreter[]} interpreters
 * @param {boolean} long for `npm run test:long`
 * @returns {Promise<string>} executable of the environment with test/requirements-chdb.txt
 * @throws {Error} why it is unavailable
 */
export function makeChdb(interpreters, long) {
  if (!long && process.env.TIDEMARK_TEST_CHDB !== "1") {
    throw new SetupError("0.9 GB, only for npm run test:long or with TIDEMARK_TEST_CHDB=1");
  }
  return makeVenv("chdb", "test/requirements-chdb.txt", interpreters, chdbNeedsBytes);
}

/**
 * @param {Interpreter[]} interpreters
 * @returns {Promise<string>} executable of the environment with test/requirements-packaging.txt
 * @throws {Error} why it is unavailable
 */
export function makePackagingTools(interpreters) {
  return makeVenv("packaging", "test/requirements-packaging.txt", interpreters);
}

/**
 * @param {Interpreter[]} interpreters
 * @returns {Promise<string>} executable of the environment with test/requirements-senders.txt
 * @throws {Error} why it is unavailable
 */
export function makeSenders(interpreters) {
  return makeVenv("senders", "test/requirements-senders.txt", interpreters);
}

/**
 * @param {Interpreter[]} interpreters
 * @returns {Promise<string>} executable of the environment with test/requirements-kubernetes.txt
 * @throws {Error} why it is unavailable
 */
export function makeKubernetesSchemas(interpreters) {
  return makeVenv("kubernetes-schemas", "test/requirements-kubernetes.txt", interpreters);
}

/**
 * @param {string} name
 * @param {string} requirements path in the repository
 * @param {Interpreter[]} interpreters
 * @param {number} needsBytes free disk space that the installation needs
 * @returns {Promise<string>}
 */
export async function makeVenv(name, requirements, interpreters, needsBytes = 1e9) {
  const interpreter = await best(interpreters);
  const file = join(root, requirements);
  const ingredients = [interpreter.path, interpreter.version, readFileSync(file, "utf8")];
  const folder = await cached(name, ingredients, async (place) => {
    checkFreeSpace(needsBytes);
    const python = join(place, "bin/python");
    await step(`Python ${interpreter.version} environment for ${requirements}`, interpreter.path, [
      ...["-m", "venv", place],
    ]);
    await step(`pip install -r ${requirements}`, python, [
      ...["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"],
      ...["--no-cache-dir", "--only-binary", ":all:", "-r", file],
    ]);
  });
  return join(folder, "bin/python");
}

const wheels = ["manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64"];

/**
 * The same for one given interpreter, which does not need pip: a folder for PYTHONPATH.
 * @param {string} name
 * @param {string} requirements path in the repository
 * @param {Interpreter} interpreter
 * @param {Interpreter[]} interpreters whose pip may install it; the same minor version is preferred, because
 *   pip evaluates the requirements' markers for its own version
 * @returns {Promise<string>} absolute path of the folder
 * @throws {Error} why it is unavailable
 */
export async function makePackageFolder(name, requirements, interpreter, interpreters) {
  const minor = interpreter.version.split(".").slice(0, 2).join(".");
  const file = join(root, requirements);
  return await cached(`${name}-${minor}`, [readFileSync(file, "utf8")], async (place) => {
    const { path } = await pipFor(minor, interpreters);
    await step(`pip install -r ${requirements} for Python ${minor}`, path, [
      ...["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"],
      ...["--no-cache-dir", "--only-binary", ":all:", "--python-version", minor],
      ...wheels.flatMap((platform) => ["--platform", platform]),
      ...["--target", place, "-r", file],
    ]);
  });
}

/**
 * An interpreter on this machine with pip, preferably of the given minor version.
 * @param {string} minor @param {Interpreter[]} interpreters
 */
export async function pipFor(minor, interpreters) {
  const own = interpreters.filter(({ chroot }) => !chroot);
  const same = own.filter(({ version }) => version.startsWith(`${minor}.`));
  for (const interpreter of [...same, ...own.reverse()]) {
    const { status } = await capture(interpreter.path, ["-I", "-c", "import pip"]);
    if (status === 0) {
      return interpreter;
    }
  }
  throw new SetupError("needs an interpreter with pip");
}

/**
 * Debian has `ensurepip` in a separate package: where it is missing, another interpreter may have
 * it.
 * @param {Interpreter[]} interpreters
 */
async function best(interpreters) {
  for (const minor of suitable) {
    for (const interpreter of interpreters) {
      if (interpreter.freeThreaded || !interpreter.version.startsWith(`${minor}.`)) {
        continue;
      }
      const { status } = await capture(interpreter.path, ["-I", "-c", "import venv, ensurepip"]);
      if (status === 0) {
        return interpreter;
      }
    }
  }
  throw new SetupError(`needs one of Python ${suitable.join(", ")} with venv and ensurepip`);
}

/** @param {number} needsBytes */
function checkFreeSpace(needsBytes) {
  const folder = cacheFolder();
  mkdirSync(folder, { recursive: true });
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < needsBytes) {
    const free = (bavail * bsize) / 1e9;
    throw new SetupError(
      `needs ${(needsBytes / 1e9).toFixed(0)} GB free in ${folder}, there are ${free.toFixed(1)} GB`,
    );
  }
}
