/**
 * Makes a fresh clone ready to build: checks the machine's requirements, and installs the npm packages
 * that package-lock.json names. Depends on nothing but Node, and returns immediately if nothing is
 * missing. The tests' larger set-up (interpreters, PyPI packages) is in scripts/environment/.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { capture, findOnPath, runAsScript, SetupError, step } from "./command.mjs";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const oldestNode = 20;
/** @type {readonly [number, number]} */
const oldestPython = [3, 9];

export async function setUp() {
  checkPlatform();
  await checkPython();
  findCompiler();
  if (!packagesMatchLock()) {
    await step("npm ci: the packages of package-lock.json", ...npm("ci", "--prefer-offline"), {
      cwd: root,
    });
  }
}

/** The C compiler that builds the agent: `CC` if it is set, else the first of cc, gcc, clang. */
export function findCompiler() {
  const wanted = process.env.CC ? [process.env.CC] : ["cc", "gcc", "clang"];
  for (const name of wanted) {
    const path = name.includes("/") ? name : findOnPath(name);
    if (path !== undefined && existsSync(path)) {
      return path;
    }
  }
  throw new SetupError(
    `no C compiler (looked for ${wanted.join(", ")} on PATH): the agent is built with the system's; ` +
      "install one (Debian, Ubuntu: apt-get install gcc libc6-dev), or set CC",
  );
}

function checkPlatform() {
  if (Number(process.versions.node.split(".")[0]) < oldestNode) {
    throw new SetupError(
      `Node ${process.versions.node} is too old: ${oldestNode} or newer is needed`,
    );
  }
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new SetupError(
      `Tidemark runs on Linux x86-64 with glibc; this is ${process.platform} ${process.arch}`,
    );
  }
  if (!existsSync("/lib64/ld-linux-x86-64.so.2")) {
    throw new SetupError("Tidemark needs glibc 2.28 or newer; this system has another C library");
  }
}

async function checkPython() {
  const script = "import sys; print('%d.%d' % sys.version_info[:2])";
  const { status, output } = await capture("python3", ["-c", script]);
  const wanted = `python3 ${oldestPython.join(".")} or newer is needed on PATH`;
  if (status !== 0) {
    throw new SetupError(`python3 does not run here: ${wanted}`);
  }
  const [major = 0, minor = 0] = output.trim().split(".").map(Number);
  if (major < oldestPython[0] || (major === oldestPython[0] && minor < oldestPython[1])) {
    throw new SetupError(`python3 is ${output.trim()}: ${wanted}`);
  }
}

/**
 * Whether node_modules matches package-lock.json. npm writes its own lock file into node_modules as
 * the last step of an install, so an interrupted install is detected too. The only packages that may
 * be missing are optional ones for another platform.
 */
function packagesMatchLock() {
  const installedLock = join(root, "node_modules/.package-lock.json");
  if (!existsSync(installedLock)) {
    return false;
  }
  const wanted = readPackages(join(root, "package-lock.json"));
  const installed = readPackages(installedLock);
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === "") {
      continue;
    }
    const found = installed[path];
    if (found === undefined ? !entry.optional : found.integrity !== entry.integrity) {
      return false;
    }
    if (found !== undefined && !existsSync(join(root, path, "package.json"))) {
      return false;
    }
  }
  return Object.keys(installed).every((path) => path in wanted);
}

/** @param {string} path @returns {Record<string, {integrity?: string, optional?: boolean}>} */
function readPackages(path) {
  return JSON.parse(readFileSync(path, "utf8")).packages;
}

/**
 * The npm that started this script, else the one on PATH.
 * @param {string[]} args @returns {[string, string[]]}
 */
export function npm(...args) {
  const script = process.env.npm_execpath;
  return script?.endsWith("npm-cli.js") ? [process.execPath, [script, ...args]] : ["npm", args];
}

await runAsScript(import.meta, setUp);
