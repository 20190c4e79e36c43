/** The Python that runs a script or a module, and its folders of commands. */
import { spawnSync } from "node:child_process";
import { readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { findProgram } from "../../../linux/index.js";
import { programNotStarted } from "../../../model/errors/program_errors.js";
import { inspectStartFile } from "./script_file.js";

/** The working directory of the command line, which relative names and PATH refer to. */
export interface StartPlace {
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The command of Tidemark, for hints; "run" by default. */
  readonly tool?: string;
}

/** The path that execvp uses if PATH is not set (confstr(3), _CS_PATH). */
const DEFAULT_PATH = "/bin:/usr/bin";

/** pyenv takes 0.1 s; a folder on a slow network several seconds. */
const SHIM_PATIENCE_MS = 20_000;

const PYTHON_NAME = /^python(?:3(?:\.\d+t?)?)?$/;

/** Conventional folders of a project's virtual environment. */
const ENVIRONMENT_FOLDERS = [".venv", "venv"];

/**
 * The command that starts Python: `wanted` (a path, a name on PATH, a version such as 3.12, or the folder of a virtual
 * environment), otherwise `python` or `python3` on PATH, otherwise that of a virtual environment. Throws TM-E009.
 */
export function choosePython(wanted: string | undefined, place: StartPlace): string {
  if (wanted !== undefined) {
    return wantedPython(wanted, place);
  }
  for (const name of ["python", "python3"]) {
    const path = onPath(name, place);
    const word = path === null || isPython2(path) ? null : behindShim(name, path, place);
    if (word !== null) {
      return word;
    }
  }
  for (const folder of environmentFolders(place)) {
    const path = join(folder, "python");
    if (onPath(path, place) !== null) {
      return path;
    }
  }
  throw programNotStarted(
    "Python",
    "neither python nor python3 is on PATH",
    127,
    `name one: tidemark ${place.tool ?? "run"} --python PATH ...`,
  );
}

function wantedPython(wanted: string, place: StartPlace): string {
  const inEnvironment = join(wanted, "bin", "python");
  if (onPath(resolve(place.cwd, inEnvironment), place) !== null) {
    return inEnvironment.includes("/") && !inEnvironment.startsWith("-")
      ? inEnvironment
      : `./${inEnvironment}`;
  }
  const name = /^\d+(\.\d+)?t?$/.test(wanted) ? `python${wanted}` : wanted;
  const path = onPath(name, place);
  const word = path === null ? null : name.includes("/") ? name : behindShim(name, path, place);
  if (word !== null) {
    return word;
  }
  const found = pythonNames(place).filter((other) => other !== name);
  const [version] = path === null ? [] : versionsBehind(path);
  if (version !== undefined) {
    throw programNotStarted(
      name,
      `pyenv has ${basename(version)}, but has not enabled it here`,
      127,
      `enable it with PYENV_VERSION=${basename(version)}, or name its path: --python ${join(version, "bin", name)}`,
    );
  }
  throw programNotStarted(
    name,
    name.includes("/")
      ? "there is no such program"
      : path === null
        ? "it is not on PATH"
        : `${path} is a script that does not start Python`,
    127,
    found.length === 0 ? "" : `found on PATH: ${found.join(", ")}`,
  );
}

/**
 * pyenv and asdf put a shell script named python on PATH, which starts about thirty processes to find the real
 * one. The real path is queried once and started instead. Returns `name` itself if it is not a script; null if
 * no Python answers.
 */
function behindShim(name: string, path: string, { cwd, environment }: StartPlace): string | null {
  if (inspectStartFile(path).interpreter.length === 0) {
    return name;
  }
  const { status, stdout } = spawnSync(
    path,
    ["-IS", "-c", "import sys; sys.stdout.write(sys.executable)"],
    { cwd, env: { ...environment }, encoding: "utf8", timeout: SHIM_PATIENCE_MS },
  );
  return status === 0 && stdout.startsWith("/") ? stdout : null;
}

/** pyenv's folders of the versions that have the program of a shim, the newest first; none for other scripts. */
function versionsBehind(shim: string): string[] {
  const root = /^(.*)\/shims\/[^/]+$/.exec(shim)?.[1];
  return root === undefined
    ? []
    : namesIn(join(root, "versions"))
        .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
        .map((name) => join(root, "versions", name))
        .filter((folder) => namesIn(join(folder, "bin")).includes(basename(shim)));
}

/** The absolute path of the program that a word starts; null if there is none. */
export function onPath(word: string, { cwd, environment }: StartPlace): string | null {
  const found = findProgram(word, { path: environment.PATH ?? DEFAULT_PATH, cwd });
  return typeof found === "string" ? found : null;
}

/** Folders of commands in addition to PATH: of the active virtual environment, then of one in the current folder. */
export function environmentFolders({ cwd, environment }: StartPlace): string[] {
  const active = environment.VIRTUAL_ENV;
  return [
    ...(active === undefined || active === "" ? [] : [join(active, "bin")]),
    ...ENVIRONMENT_FOLDERS.filter((name) => isFolder(join(cwd, name))).map(
      (name) => `./${name}/bin`,
    ),
  ];
}

/** The folder of the commands that were installed for a Python. */
export function commandsOf(python: string, place: StartPlace): string {
  return python.includes("/")
    ? dirname(python)
    : dirname(onPath(python, place) ?? resolve(place.cwd, python));
}

/** Absolute paths of all Python programs in the folders of PATH, in the order of PATH: python, python3, python3.12. */
export function pythonsOnPath(place: StartPlace): string[] {
  return pathFolders(place).flatMap((folder) =>
    namesIn(folder)
      .filter((name) => PYTHON_NAME.test(name))
      .sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
      .map((name) => join(folder, name)),
  );
}

/** Names of Python programs on PATH, each once. */
export function pythonNames(place: StartPlace = hereAndNow()): string[] {
  return [...new Set(pythonsOnPath(place).map((path) => basename(path)))];
}

/** Names of commands on PATH that begin with `start`. */
export function commandsOnPath(start: string): string[] {
  return commandNames(hereAndNow())
    .filter((name) => name.startsWith(start))
    .sort();
}

function hereAndNow(): StartPlace {
  return { cwd: process.cwd(), environment: process.env };
}

/** Names of all files in the folders of PATH. */
export function commandNames(place: StartPlace): string[] {
  return [...new Set(pathFolders(place).flatMap(namesIn))];
}

function pathFolders({ cwd, environment }: StartPlace): string[] {
  const folders = (environment.PATH ?? DEFAULT_PATH).split(":");
  return [...new Set(folders.map((folder) => resolve(cwd, folder)))];
}

/** Names of the entries of a folder; none if it cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** `python` is Python 2 on older distributions: a link to python2.7. */
function isPython2(path: string): boolean {
  try {
    return /^python2/.test(basename(realpathSync(path)));
  } catch {
    return false;
  }
}
