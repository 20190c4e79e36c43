/**
 * Where the parts of this installation are. This file stays exactly one folder below `src/`: when compiled, it
 * runs from `dist/linux/` or, bundled with the rest of the program, from `dist/program/`. Both are two levels
 * below the installation's folder. That folder is a clone, the Python package `tidemark_profiler` in
 * site-packages, or the npm package `tidemark-profiler`, whose native parts are in a separate package.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../", import.meta.url));
const NATIVE_PACKAGE = "@tidemark-profiler/linux-x64";
const NATIVE_FOLDER = findNativeFolder();

export const LIBRARY_PATH = `${NATIVE_FOLDER}/libtidemark.so`;
/** The extension module that `tidemark memcheck` loads into a program under Valgrind. */
export const CALLS_PATH = `${NATIVE_FOLDER}/libtidemark-calls.so`;
export const GUARD_PATH = `${NATIVE_FOLDER}/tidemark-guard`;
/** Options that the launcher passes to Node. */
export const PROGRAM_PATH = `${FOLDER}dist/program/main.js`;
/** The launcher. */
export const LAUNCHER_PATH = `${FOLDER}bin/tidemark`;
/** The report page without data. */
export const PAGE_PATH = `${FOLDER}dist/web/index.html`;
/** The page of a plan without data. */
export const PLAN_PAGE_PATH = `${FOLDER}dist/web/plan.html`;
/** The page of GPU snapshots without data. */
export const GPU_PAGE_PATH = `${FOLDER}dist/web/gpu.html`;
/** The pages of a server: index.html and assets/. */
export const FLEET_PAGES_PATH = `${FOLDER}dist/web/fleet`;
/** The Python package that is loaded into a running program. */
export const PYTHON_FOLDER = `${FOLDER}python/tidemark`;
/** Folders for the front of PYTHONPATH, each with a sitecustomize.py. */
export const HOOKS_FOLDER = `${PYTHON_FOLDER}/_hooks`;

/** The version of this Tidemark. */
export const TIDEMARK_VERSION: string = JSON.parse(
  readFileSync(`${FOLDER}package.json`, "utf8"),
).version;

function findNativeFolder(): string {
  const own = `${FOLDER}dist/native`;
  if (existsSync(`${own}/libtidemark.so`)) {
    return own;
  }
  try {
    return dirname(
      createRequire(`${FOLDER}package.json`).resolve(`${NATIVE_PACKAGE}/package.json`),
    );
  } catch {
    return own;
  }
}
