/**
 * Decides what `tidemark run WORDS` starts.
 *
 * | first word | starts |
 * |---|---|
 * | `-m`, `-c`, `-` | Python, with all words |
 * | a path | the file: a Python file by Python, everything else as a shell would |
 * | a name that ends in `.py` and is in the current folder | that file |
 * | a name on PATH | that command, as a shell would |
 * | a name in the current folder | that file or folder |
 * | a name in `$VIRTUAL_ENV/bin`, `.venv/bin`, `venv/bin` | that command |
 *
 * With `python` (`--python`), a command is the one that was installed for that Python.
 */
import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { inspectProgram } from "../../../linux/index.js";
import { didYouMean, nearNames } from "../../../model/base/near_miss.js";
import { badUsage, type TidemarkError } from "../../../model/errors/errors.js";
import { programNotStarted } from "../../../model/errors/program_errors.js";
import {
  choosePython,
  commandNames,
  commandsOf,
  environmentFolders,
  namesIn,
  onPath,
  type StartPlace,
} from "./choose_python.js";
import { inspectStartFile, type StartFile } from "./script_file.js";

export interface ChosenProgram {
  /** The arguments of execvp. */
  readonly command: readonly string[];
  /** A sentence about an unexpected choice, or null. */
  readonly note: string | null;
}

/** Throws TM-E009 if nothing can be started, TM-E002 for an invalid combination of words. */
export function chooseProgram(
  words: readonly string[],
  python: string | undefined,
  { cwd = process.cwd(), environment = process.env, tool = "run" }: Partial<StartPlace> = {},
): ChosenProgram {
  const place: StartPlace = { cwd, environment, tool };
  const [first = "", ...rest] = words;
  if (first === "-" || /^-[mc]/.test(first)) {
    if (words.length === 1 && first.length === 2) {
      throw badUsage(
        `${tool} ${first} needs ${first === "-m" ? "the name of a module" : "code"} after it`,
        `see tidemark ${tool} --help`,
      );
    }
    return plain([choosePython(python, place), ...words]);
  }
  const chooser = new Chooser(first, rest, python, place);
  return first.includes("/") ? chooser.file() : chooser.named();
}

function plain(command: readonly string[]): ChosenProgram {
  return { command, note: null };
}

class Chooser {
  readonly #name: string;
  readonly #rest: readonly string[];
  readonly #python: string | undefined;
  readonly #place: StartPlace;

  constructor(
    name: string,
    rest: readonly string[],
    python: string | undefined,
    place: StartPlace,
  ) {
    this.#name = name;
    this.#rest = rest;
    this.#python = python;
    this.#place = place;
  }

  /** A name without a slash. */
  named(): ChosenProgram {
    const name = this.#name;
    const rest = this.#rest;
    const place = this.#place;
    if (this.#python !== undefined && isPythonName(name)) {
      throw badUsage(
        `--python chooses the interpreter of a script, but ${name} is an interpreter itself`,
        "omit one of them",
      );
    }
    if (name === "") {
      throw programNotStarted(name, "the name is empty", 127);
    }
    const here = inspectStartFile(resolve(place.cwd, name));
    const startable = ["python", "program", "python folder", "package"].includes(here.kind);
    const isScript = /\.pyz?w?$/.test(name) && startable;
    const command = this.#command();
    if (isScript || (command === null && here.kind !== "missing")) {
      const { command: words } = this.file();
      return {
        command: words,
        note:
          command === null
            ? null
            : `${name} is the file in this folder; the command of that name is ${onPath(command, place) ?? command}.`,
      };
    }
    if (command === null) {
      throw this.#notFound();
    }
    return {
      command: [command, ...rest],
      note: startable
        ? `${name} is the command ${onPath(command, place) ?? command}; the file in this folder is ./${name}.`
        : null,
    };
  }

  /** The word that starts a command: its name if it is on PATH. */
  #command(): string | null {
    const name = this.#name;
    const place = this.#place;
    const python = this.#python;
    if (python !== undefined) {
      const beside = join(commandsOf(choosePython(python, place), place), name);
      return onPath(withSlash(beside), place) === null ? null : withSlash(beside);
    }
    if (onPath(name, place) !== null) {
      return name;
    }
    const folder = environmentFolders(place).find(
      (candidate) => onPath(`${candidate}/${name}`, place) !== null,
    );
    return folder === undefined ? null : `${folder}/${name}`;
  }

  /** A path, or a name in the current folder. */
  file(): ChosenProgram {
    const name = this.#name;
    const rest = this.#rest;
    const place = this.#place;
    const file = inspectStartFile(resolve(place.cwd, name));
    const { kind } = file;
    if (kind === "package" && /^[A-Za-z_]\w*$/.test(name)) {
      return plain([this.#interpreter(), "-m", name, ...rest]);
    }
    if (kind === "python" || kind === "python folder" || kind === "package") {
      const script = name.startsWith("-") ? `./${name}` : name;
      return plain([this.#interpreter(), script, ...rest]);
    }
    if (kind === "program") {
      return this.#program(file);
    }
    throw this.#notStartable(file);
  }

  #interpreter(): string {
    return choosePython(this.#python, this.#place);
  }

  /** An executable file, as a shell would start it. */
  #program({ interpreter }: StartFile): ChosenProgram {
    const name = this.#name;
    const rest = this.#rest;
    const place = this.#place;
    const python = this.#python;
    const path = withSlash(name);
    const byPython = interpreter.some((word) => isPythonName(basename(word)));
    if (python !== undefined) {
      if (!byPython) {
        throw badUsage(
          `--python chooses the interpreter of a script, but ${name} is an executable program`,
          "omit --python",
        );
      }
      return plain([choosePython(python, place), path, ...rest]);
    }
    const { kind } = inspectProgram([path], { path: place.environment.PATH ?? "", cwd: place.cwd });
    if (interpreter.length > 0 && kind === "missing") {
      throw programNotStarted(
        name,
        `its first line names an interpreter that does not exist: ${interpreter.join(" ")}`,
        127,
        byPython ? `choose another: tidemark ${place.tool} --python python3 ${name}` : "",
      );
    }
    return plain([path, ...rest]);
  }

  #notStartable({ kind, interpreter }: StartFile): TidemarkError {
    const name = this.#name;
    const { tool } = this.#place;
    switch (kind) {
      case "missing":
        return this.#notFound();
      case "folder":
        return programNotStarted(
          name,
          "it is a folder without __main__.py",
          126,
          "name a script in it, or a module: -m MODULE",
        );
      case "unreadable":
        return programNotStarted(name, "permission denied", 126, "check its permissions");
      case "not executable":
        return programNotStarted(
          name,
          "it is not executable",
          126,
          interpreter.length > 0
            ? `run: chmod +x ${name}, or: tidemark ${tool} -- ${interpreter.join(" ")} ${name}`
            : `run: chmod +x ${name}`,
        );
      case "text":
        return programNotStarted(
          name,
          "it is not executable, and neither its name nor its first line identifies it as Python",
          126,
          `if it is Python, name the interpreter: python3 ${name}`,
        );
      case "data":
        return programNotStarted(
          name,
          "it is a data file, not a program",
          126,
          `to read a recording or profile: tidemark ${name}`,
        );
      default:
        return programNotStarted(name, "it is not a regular file", 126);
    }
  }

  #notFound(): TidemarkError {
    const name = this.#name;
    const place = this.#place;
    const python = this.#python;
    const folder = resolve(place.cwd, dirname(name));
    if (name.includes("/") && !existsSync(folder)) {
      return programNotStarted(
        name,
        "there is no such file",
        127,
        `there is no folder ${dirname(name)} either`,
      );
    }
    const [file] = nearNames(
      basename(name),
      namesIn(folder).filter((entry) => isStartable(join(folder, entry))),
    );
    if (file !== undefined) {
      const near = name.includes("/") ? join(dirname(name), file) : file;
      return programNotStarted(name, "there is no such file", 127, `did you mean ${near}?`);
    }
    if (name.includes("/") || /\.py$/.test(name)) {
      return programNotStarted(name, "there is no such file", 127);
    }
    if (python !== undefined) {
      const beside = commandsOf(choosePython(python, place), place);
      return programNotStarted(
        name,
        `no such command was installed for ${python} (${beside})`,
        127,
        `try its module: tidemark ${place.tool} --python ${python} -m ${name}`,
      );
    }
    const module = moduleHere(name, place);
    return programNotStarted(
      name,
      "there is no such file here, and no such command on PATH",
      127,
      module ?? (didYouMean(name, commandNames(place)) || "check the name"),
    );
  }
}

/** Hint for a module of the current folder that was named without -m. */
function moduleHere(name: string, { cwd, tool }: StartPlace): string | null {
  const path = join(cwd, ...name.split("."));
  return /^[A-Za-z_][\w.]*$/.test(name) &&
    (existsSync(`${path}.py`) || existsSync(join(path, "__main__.py")))
    ? `for the module: tidemark ${tool} -m ${name}`
    : null;
}

function isStartable(path: string): boolean {
  return ["python", "program", "python folder", "package"].includes(inspectStartFile(path).kind);
}

function isPythonName(name: string): boolean {
  return /^python[\d.]*t?$/.test(name);
}

/** execvp searches a name without a slash only on PATH. */
function withSlash(path: string): string {
  return path.includes("/") ? path : `./${path}`;
}
