/**
 * The packages that the whole-program tests run: a virtual environment in the user's cache folder,
 * made once for each content of the requirement files and each interpreter.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { capture } from "../command.mjs";

/** Free disk under which `torch` (5 GB with its CUDA libraries) is left out. */
const torchNeedsBytes = 12 * 2 ** 30;
/** Versions by how new the packages pinned for them are, best first. */
const preferredVersions = ["3.12", "3.11", "3.13", "3.10", "3.9"];
/** Written last: a folder without it is a broken-off install. */
const marker = "complete.json";

/**
 * @typedef {{what: string, why: string}} Skip
 * @typedef {{path: string, version: string}} Interpreter version: "3.11.7"
 *
 * @param {object} given
 * @param {string} given.cache folder that outlives the clone
 * @param {string} given.tests folder with the requirement files
 * @param {Interpreter[]} given.interpreters
 * @param {(line: string) => void} given.say
 * @returns {Promise<{python: string | null, torch: boolean, skips: Skip[]}>}
 */
export async function ensureVenv({ cache, tests, interpreters, say }) {
  const packages = join(tests, "requirements.txt");
  const torchPackage = join(tests, "requirements-torch.txt");
  mkdirSync(cache, { recursive: true });
  for (const interpreter of byPreference(interpreters)) {
    const folder = join(cache, `venv-${keyOf([packages, torchPackage], interpreter)}`);
    const python = join(folder, "bin", "python");
    let made = readMarker(folder);
    if (made === null) {
      say(`making ${folder} with Python ${interpreter.version}: the packages that the tests run`);
      rmSync(folder, { recursive: true, force: true });
      // Where `venv` or `ensurepip` is missing (Debian splits them off) the next one may have it.
      if ((await capture(interpreter.path, ["-m", "venv", folder])).status !== 0) continue;
      const failure = await install(python, packages);
      if (failure !== null) return without("PyPI packages and torch", failure);
      made = writeMarker(folder, { torch: false });
    }
    if (!made.torch) {
      const why = whyNoTorch(cache) ?? (await installTorch(python, torchPackage, say));
      if (why !== null) return { python, torch: false, skips: [{ what: "torch", why }] };
      writeMarker(folder, { torch: true });
    }
    return { python, torch: true, skips: [] };
  }
  return without("PyPI packages and torch", "no Python with the modules venv and ensurepip found");
}

/** @param {string} what @param {string} why */
function without(what, why) {
  return { python: null, torch: false, skips: [{ what, why }] };
}

/** @param {Interpreter[]} interpreters */
function byPreference(interpreters) {
  /** @param {Interpreter} interpreter */
  const rank = ({ version }) => {
    const place = preferredVersions.indexOf(version.split(".").slice(0, 2).join("."));
    return place < 0 ? preferredVersions.length : place;
  };
  return [...interpreters].sort((a, b) => rank(a) - rank(b));
}

/** @param {string[]} files @param {Interpreter} interpreter */
function keyOf(files, interpreter) {
  const hash = createHash("sha256");
  for (const file of files) hash.update(readFileSync(file));
  return hash.update(`${interpreter.version}\0${interpreter.path}`).digest("hex").slice(0, 12);
}

/** @param {string} folder @returns {{torch: boolean} | null} */
function readMarker(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, marker), "utf8"));
  } catch {
    return null;
  }
}

/** @param {string} folder @param {{torch: boolean}} made */
function writeMarker(folder, made) {
  writeFileSync(join(folder, marker), `${JSON.stringify(made)}\n`);
  return made;
}

/** @param {string} cache */
function whyNoTorch(cache) {
  if (process.env.TIDEMARK_TEST_TORCH === "0") return "TIDEMARK_TEST_TORCH=0";
  const disk = statfsSync(cache);
  const gib = (disk.bavail * disk.bsize) / 2 ** 30;
  return gib * 2 ** 30 < torchNeedsBytes ? `${gib.toFixed(1)} GiB of disk free, 12 needed` : null;
}

/** @param {string} python @param {string} requirements @param {(line: string) => void} say */
function installTorch(python, requirements, say) {
  say("installing torch (5 GB with its CUDA libraries; TIDEMARK_TEST_TORCH=0 leaves it out)");
  return install(python, requirements);
}

/**
 * @param {string} python @param {string} requirements
 * @returns {Promise<string | null>} null when installed, else the last line that pip said
 */
async function install(python, requirements) {
  const options = ["--quiet", "--no-cache-dir", "--disable-pip-version-check"];
  const { status, output } = await capture(python, [
    "-m",
    "pip",
    "install",
    ...options,
    "-r",
    requirements,
  ]);
  return status === 0 ? null : `pip failed: ${output.trim().split("\n").at(-1)}`;
}
