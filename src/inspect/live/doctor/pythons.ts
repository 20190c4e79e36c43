/** The Python interpreters of this machine, and the packages of the one that `tidemark run` uses. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { NEWEST_PYTHON_MINOR, OLDEST_PYTHON_MINOR } from "../../../model/base/python_versions.js";
import type { DoctorCheckJson } from "../../../model/documents/doctor_document.js";
import {
  choosePython,
  environmentFolders,
  onPath,
  pythonsOnPath,
  type StartPlace,
} from "../../../record/index.js";
import { limited, missing, wordsOf, works } from "./check.js";

/** What an interpreter reports about itself. */
interface PythonFacts {
  readonly path: string;
  readonly implementation: string;
  readonly version: string;
  readonly freeThreaded: boolean;
  readonly bits: number;
  /** Folder of its packages, which is the same for two names of one interpreter. */
  readonly prefix: string;
  /** Version of torch; "" without it. */
  readonly torch: string;
  /** Version of a distribution named tidemark, and the path of a module of that name; "" if absent. */
  readonly stranger: string;
  readonly module: string;
}

const PATIENCE_MS = 20_000;
/** Number of interpreters started at the same time. */
const AT_ONCE = 4;
const ASK = `
import sys, json, struct, sysconfig, importlib.util
try:
    from importlib import metadata
except ImportError:
    metadata = None
def version(name):
    try:
        return metadata.version(name)
    except Exception:
        return ""
try:
    module = importlib.util.find_spec("tidemark")
except Exception:
    module = None
json.dump({
    "implementation": sys.implementation.name,
    "version": sys.version.split()[0],
    "freeThreaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "prefix": sys.prefix,
    "bits": struct.calcsize("P") * 8,
    "torch": version("torch"),
    "stranger": version("tidemark"),
    "module": (module.origin or "") if module else "",
}, sys.stdout)
`;

export interface PythonChecks {
  readonly checks: readonly DoctorCheckJson[];
  /** The command that starts the Python of `tidemark run`; null if there is none. */
  readonly chosen: string | null;
}

export async function pythonChecks(place: StartPlace): Promise<PythonChecks> {
  let chosen: string;
  try {
    chosen = choosePython(undefined, place);
  } catch (error) {
    const { found, remedy } = wordsOf(error);
    const shortfall = { effect: "run cannot start a script or a module", remedy };
    return { checks: [missing("python", "python", found, shortfall)], chosen: null };
  }
  const words = [
    ...pythonsOnPath(place),
    ...environmentFolders(place).map((bin) => join(bin, "python")),
  ];
  const found = await askAll([chosen, ...words], place);
  const [own] = found;
  return {
    checks: [
      ...found.map((facts, index) => describe(facts, index === 0)),
      ...(own === undefined ? [] : [packages(own)]),
    ],
    chosen,
  };
}

/**
 * Each interpreter once, under its first name. A command that does not answer, such as a shim without a
 * version, is not a Python.
 */
async function askAll(words: readonly string[], place: StartPlace): Promise<PythonFacts[]> {
  const paths = words.map((word) => onPath(word, place)).filter((path) => path !== null);
  const found = new Map<string, PythonFacts>();
  const waiting = [...new Set(paths)];
  while (waiting.length > 0) {
    const answers = await Promise.all(waiting.splice(0, AT_ONCE).map(ask));
    for (const facts of answers.filter((answer) => answer !== null)) {
      const key = `${facts.prefix} ${facts.version}`;
      found.set(key, found.get(key) ?? facts);
    }
  }
  return [...found.values()];
}

async function ask(path: string): Promise<PythonFacts | null> {
  try {
    const { stdout } = await promisify(execFile)(path, ["-c", ASK], {
      timeout: PATIENCE_MS,
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    });
    return { path, ...(JSON.parse(stdout) as Omit<PythonFacts, "path">) };
  } catch {
    return null;
  }
}

function describe(facts: PythonFacts, chosen: boolean): DoctorCheckJson {
  const { path, implementation, version, freeThreaded, bits } = facts;
  const build = freeThreaded ? " free-threaded" : bits === 64 ? "" : ` ${bits}-bit`;
  const name = implementation === "cpython" ? "" : `${implementation}, `;
  const found = `${name}${version}${build}${chosen ? ", used by tidemark run" : ""}`;
  const minor = Number(/^3\.(\d+)/.exec(version)?.[1] ?? Number.NaN);
  const known =
    implementation === "cpython" &&
    !freeThreaded &&
    bits === 64 &&
    minor >= OLDEST_PYTHON_MINOR &&
    minor <= NEWEST_PYTHON_MINOR;
  return known
    ? works("python", path, found)
    : limited("python", path, found, {
        effect: "only native memory is recorded, without Python frames; attach refuses it",
        remedy: `use CPython 3.${OLDEST_PYTHON_MINOR} to 3.${NEWEST_PYTHON_MINOR} with the GIL: tidemark run --python PATH`,
      });
}

/** Labels, steps and device snapshots need packages of the program's own Python. */
function packages({ torch, stranger, module, path }: PythonFacts): DoctorCheckJson {
  const parts = [torch === "" ? "no torch" : `torch ${torch}`];
  const foreign = module !== "" && !existsSync(join(dirname(module), "_agent.py"));
  if (stranger !== "" || foreign) {
    return limited("python", "packages", `tidemark ${stranger} of another project at ${module}`, {
      effect: "`import tidemark` in programs imports that package",
      remedy: `use: from tidemark_profiler import label, step; or: ${path} -m pip uninstall tidemark`,
    });
  }
  parts.push(module === "" ? "no tidemark (labels are optional)" : `tidemark from ${module}`);
  return works("python", "packages", parts.join(", "));
}
