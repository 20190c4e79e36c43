/** Prepares the native parts for publishing: without debug information, and for every glibc from 2.28 on. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { nativeFiles } from "../build/native.mjs";
import { capture, findOnPath, SetupError } from "../command.mjs";
import { root } from "../setup.mjs";

/** The version that the tag manylinux_2_28 promises and the docs name. */
const NEWEST_GLIBC = [2, 28];

/**
 * Strips copies of dist/native's files and checks the versions of the symbols that they need.
 * @param {string} folder where the copies go
 * @returns {Promise<{name: string, path: string}[]>}
 * @throws {SetupError} no binutils, or a symbol that glibc 2.28 lacks
 */
export async function stripNative(folder) {
  mkdirSync(folder, { recursive: true });
  const strip = tool("strip");
  const copies = nativeFiles.map((name) => ({ name, path: join(folder, name) }));
  for (const { name, path } of copies) {
    const source = join(root, "dist/native", name);
    const { status, output } = await capture(strip, ["--strip-unneeded", "-o", path, source]);
    if (status !== 0) {
      throw new SetupError(`strip ${source}: ${output.trim()}`);
    }
    const newer = newerSymbols(await symbolTable(path));
    if (newer.length > 0) {
      throw new SetupError(
        `${name} needs ${newer.join(", ")}, which glibc ${NEWEST_GLIBC.join(".")} lacks: ` +
          "bind an older version in agent/include/glibc_versions.h, or do without",
      );
    }
  }
  return copies;
}

/** @param {string} path @returns {Promise<string>} what `readelf --dyn-syms` prints */
async function symbolTable(path) {
  const { status, output } = await capture(tool("readelf"), ["--wide", "--dyn-syms", path]);
  if (status !== 0) {
    throw new SetupError(`readelf ${path}: ${output.trim()}`);
  }
  return output;
}

/**
 * @param {string} table what `readelf --wide --dyn-syms` prints
 * @returns {string[]} "name@GLIBC_2.34" for each undefined symbol of a version newer than 2.28
 */
export function newerSymbols(table) {
  const needed = [...table.matchAll(/ UND (\S+)@(GLIBC_[\w.]+)/g)];
  return needed.flatMap(([, name, version = ""]) => {
    const numbers = version.slice("GLIBC_".length).split(".").map(Number);
    return isNewer(numbers) ? [`${name}@${version}`] : [];
  });
}

/** @param {number[]} version numbers; GLIBC_PRIVATE and GLIBC_ABI_DT_RELR give NaN, and count as newer */
function isNewer([major = Number.NaN, minor = 0]) {
  const [newestMajor = 0, newestMinor = 0] = NEWEST_GLIBC;
  return !(major < newestMajor || (major === newestMajor && minor <= newestMinor));
}

/** @param {string} name @returns {string} path */
function tool(name) {
  const path = findOnPath(name);
  if (path === undefined) {
    throw new SetupError(
      `no ${name} on PATH; install it (Debian, Ubuntu: apt-get install binutils)`,
    );
  }
  return path;
}
