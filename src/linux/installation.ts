/**
 * Where the parts of this installation are. This file stays exactly one folder below `src/`: compiled, it runs
 * from `dist/linux/` and, joined with the rest of the program, from `dist/program/`; both are two levels below the
 * installation's folder.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../", import.meta.url));

export const LIBRARY_PATH = `${FOLDER}dist/native/libtidemark.so`;
export const GUARD_PATH = `${FOLDER}dist/native/tidemark-guard`;
/** What the launcher gives to Node. */
export const PROGRAM_PATH = `${FOLDER}dist/program/main.js`;
/** The launcher. */
export const LAUNCHER_PATH = `${FOLDER}bin/tidemark`;
/** The report page, with an empty place for its data. */
export const PAGE_PATH = `${FOLDER}dist/web/index.html`;
/** Sources of the Python package that a running program is given. */
export const PYTHON_FOLDER = `${FOLDER}python/tidemark`;

/** The version of this Tidemark. */
export const TIDEMARK_VERSION: string = JSON.parse(
  readFileSync(`${FOLDER}package.json`, "utf8"),
).version;
