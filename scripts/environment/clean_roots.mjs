/**
 * Debian root file systems like a user's machine: Python with venv, no compiler, no Node, nothing from
 * Tidemark. The package tests install into copies of them (test/packages/clean_root.ts).
 */
import { existsSync } from "node:fs";
import { findOnPath, SetupError, step } from "../command.mjs";
import { cached } from "./cache.mjs";
import { debianMirror } from "./chroot.mjs";

/** @typedef {"bullseye" | "bookworm" | "trixie"} CleanSuite Debian 11, 12, 13: Python 3.9, 3.11, 3.13 */

const packages = ["python3", "python3-venv"];
const compilers = ["gcc", "libc6-dev", "make"];
const scripts = "/usr/share/debootstrap/scripts";

/**
 * @param {CleanSuite} suite
 * @returns {Promise<string>} absolute path of the root folder, which must not be changed
 * @throws {Error} why it is unavailable
 */
export function makeCleanRoot(suite) {
  return bootstrap(suite, suite, packages);
}

/**
 * The same with only a C compiler: the agent is built against its C library.
 * @param {CleanSuite} suite
 * @returns {Promise<string>}
 * @throws {Error} why it is unavailable
 */
export function makeBuildRoot(suite) {
  return bootstrap(`${suite}-build`, suite, compilers);
}

/** @param {string} name @param {CleanSuite} suite @param {string[]} wanted names of packages */
async function bootstrap(name, suite, wanted) {
  if (process.getuid?.() !== 0) {
    throw new SetupError("needs root");
  }
  const debootstrap = findOnPath("debootstrap");
  if (debootstrap === undefined) {
    throw new SetupError("needs debootstrap");
  }
  const mirror = debianMirror();
  // debootstrap may be older than the suite; every suite is set up like sid.
  const script = existsSync(`${scripts}/${suite}`) ? [] : [`${scripts}/sid`];
  return await cached(name, [...wanted, mirror], async (folder) => {
    await step(`Debian ${suite} with ${wanted.join(", ")} by debootstrap`, debootstrap, [
      ...["--variant=minbase", "--no-check-gpg", `--include=${wanted.join(",")}`],
      ...[suite, folder, mirror, ...script],
    ]);
    await step(`${suite}: apt-get clean`, "chroot", [folder, "apt-get", "clean"]);
  });
}
