/**
 * The PyPI packages that the whole-program tests run, in virtual environments in the user's cache
 * folder, made once for each content of the requirement files and each interpreter.
 */
import { mkdirSync, readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { capture, SetupError } from "../command.mjs";
import { root } from "../setup.mjs";
import { cached, cacheFolder } from "./cache.mjs";

/** @typedef {import("../environment.mjs").Interpreter} Interpreter */

/** Free disk under which `torch` (5 GB with its CUDA libraries) is left out. */
const torchNeedsGib = 12;
/** Versions by how new the packages pinned for them are, best first. */
const preferredVersions = ["3.12", "3.11", "3.13", "3.10", "3.9"];
const packages = join(root, "test/requirements.txt");
const torch = join(root, "test/requirements-torch.txt");

/**
 * @param {Interpreter[]} interpreters
 * @returns {Promise<string>} executable of a virtual environment that holds test/requirements.txt
 * @throws {SetupError} no interpreter can make one, or pip failed
 */
export function makePackages(interpreters) {
  return makeVirtualEnvironment("packages", interpreters, [packages]);
}

/**
 * @param {Interpreter[]} interpreters
 * @returns {Promise<string>} the same with test/requirements-torch.txt beside it
 * @throws {SetupError} too little disk, switched off, or as above
 */
export async function makeTorch(interpreters) {
  if (process.env.TIDEMARK_TEST_TORCH === "0") throw new SetupError("TIDEMARK_TEST_TORCH=0");
  mkdirSync(cacheFolder(), { recursive: true });
  return makeVirtualEnvironment("torch", interpreters, [packages, torch], () => {
    const disk = statfsSync(cacheFolder());
    const gib = (disk.bavail * disk.bsize) / 2 ** 30;
    if (gib < torchNeedsGib) {
      throw new SetupError(`${gib.toFixed(1)} GiB of disk free, ${torchNeedsGib} needed`);
    }
  });
}

/**
 * @param {string} name
 * @param {Interpreter[]} interpreters
 * @param {string[]} requirements files
 * @param {() => void} [beforeMaking] throws where it is not to be made
 */
async function makeVirtualEnvironment(name, interpreters, requirements, beforeMaking = () => {}) {
  const interpreter = await newestServed(interpreters);
  const ingredients = [
    interpreter.version,
    interpreter.path,
    ...requirements.map((file) => readFileSync(file, "utf8")),
  ];
  const make = async (/** @type {string} */ folder) => {
    beforeMaking();
    process.stderr.write(`installing ${name} for the tests into ${folder}\n`);
    await run(interpreter.path, ["-m", "venv", folder]);
    const files = requirements.flatMap((file) => ["-r", file]);
    const quiet = ["--quiet", "--no-cache-dir", "--disable-pip-version-check"];
    await run(join(folder, "bin/python"), ["-m", "pip", "install", ...quiet, ...files]);
  };
  // A virtual environment's scripts name their own path.
  return join(await cached(`venv-${name}`, ingredients, make, { fixedPath: true }), "bin/python");
}

/**
 * Debian splits `ensurepip` off into a package of its own: where it is missing the next one may have it.
 * @param {Interpreter[]} interpreters
 */
async function newestServed(interpreters) {
  const rank = (/** @type {Interpreter} */ { version }) => {
    const place = preferredVersions.indexOf(version.split(".").slice(0, 2).join("."));
    return place < 0 ? preferredVersions.length : place;
  };
  for (const interpreter of [...interpreters].sort((a, b) => rank(a) - rank(b))) {
    const test = ["-I", "-c", "import venv, ensurepip"];
    if ((await capture(interpreter.path, test)).status === 0) return interpreter;
  }
  throw new SetupError("no Python with the modules venv and ensurepip");
}

/** @param {string} program @param {string[]} args */
async function run(program, args) {
  const { status, output } = await capture(program, args);
  if (status === 0) return;
  throw new SetupError(`${args.slice(0, 3).join(" ")}: ${output.trim().split("\n").at(-1)}`);
}
