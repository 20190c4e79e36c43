/** Finds every CPython 3.9 or newer: on PATH, in pyenv, in the system's folders, in a chroot. */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { capture, isExecutable } from "../command.mjs";

/** @typedef {import("../environment.mjs").Interpreter} Interpreter */

const describe = `
import json, re, sys, sysconfig
if sys.implementation.name == "cpython":
    version = "%d.%d.%d" % sys.version_info[:3]
    if sys.version_info.releaselevel != "final":
        version += sys.version_info.releaselevel[0] + str(sys.version_info.serial)
    print(json.dumps({
        "version": version,
        "path": sys.executable,
        # Debian builds the library and links its executable without it.
        "sharedLibrary": bool(re.search(rb"libpython3\\.\\d+\\w*\\.so", open(sys.executable, "rb").read())),
        "freeThreaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "prefix": sys.base_prefix,
    }))
`;

/** @param {string[]} folders @returns {Promise<Interpreter[]>} oldest first */
export async function interpretersIn(folders) {
  return await describeAll(folders.flatMap(pythonsIn), []);
}

/** @returns {Promise<Interpreter[]>} oldest first */
export async function findInterpreters() {
  const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), ".pyenv"), "versions");
  return await interpretersIn([
    ...(process.env.PATH ?? "").split(delimiter),
    ...list(pyenv).map((version) => join(pyenv, version, "bin")),
    "/usr/local/bin",
    "/usr/bin",
  ]);
}

/**
 * @param {string} chroot absolute path of a root folder
 * @returns {Promise<Interpreter[]>} oldest first; empty where chroot(8) is not permitted
 */
export async function interpretersInChroot(chroot) {
  const inside = pythonsIn(join(chroot, "usr/bin")).map((path) => path.slice(chroot.length));
  const found = await describeAll(inside, ["chroot", chroot]);
  return found.map((interpreter) => ({ ...interpreter, chroot }));
}

/**
 * @param {string[]} paths
 * @param {string[]} before words of the command before the interpreter's path
 * @returns {Promise<Interpreter[]>} one for each version and installation
 */
async function describeAll(paths, before) {
  const distinct = [...new Set(before.length ? paths : paths.map((path) => realpathSync(path)))];
  const answers = await Promise.all(
    distinct.map((path) => {
      const [file = "", ...args] = [...before, path, "-I", "-c", describe];
      return capture(file, args);
    }),
  );
  /** @type {Map<string, Interpreter>} */
  const byPlace = new Map();
  for (const { status, output } of answers) {
    if (status !== 0 || !output.startsWith("{")) {
      continue;
    }
    const { prefix, ...interpreter } = JSON.parse(output);
    const place = `${interpreter.version} ${prefix}`;
    if (isSupported(interpreter.version) && !byPlace.has(place)) {
      byPlace.set(place, interpreter);
    }
  }
  return [...byPlace.values()].sort((a, b) =>
    a.version.localeCompare(b.version, "en", { numeric: true }),
  );
}

/** @param {string} version */
function isSupported(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major === 3 && minor >= 9;
}

/** @param {string} folder @returns {string[]} executables named python3 or python3.N, with a t or not */
function pythonsIn(folder) {
  return list(folder)
    .filter((name) => /^python3(\.\d+t?)?$/.test(name))
    .map((name) => join(folder, name))
    .filter(isExecutable);
}

/** @param {string} folder @returns {string[]} */
function list(folder) {
  return folder !== "" && existsSync(folder) ? readdirSync(folder) : [];
}
