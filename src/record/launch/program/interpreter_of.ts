/** The Python that a command starts, and where it keeps its libraries. */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";
import { onPath } from "./choose_python.js";

export interface StartedPython {
  /** Path as the command names it, with PATH searched. */
  readonly path: string;
  /** 100 * major + minor: 311. */
  readonly version: number;
  /** "cpython", "pypy", "graalpy". */
  readonly implementation: string;
  /** "3.11.7". */
  readonly fullVersion: string;
  /** sys.executable: may be a link, as in a virtual environment. */
  readonly started: string;
  /** The executable with links resolved, and when it was last changed: identify the build. */
  readonly executable: string;
  readonly executableMs: number;
  /** sys.prefix and sys.base_prefix. */
  readonly prefixes: readonly string[];
  /** Folders of the standard library, of its extensions, and of installed packages. */
  readonly standard: readonly string[];
  readonly installed: readonly string[];
}

const QUESTION = `import json, os, site, sys, sysconfig
exe = os.path.realpath(sys.executable)
standard = [sysconfig.get_path(n) for n in ("stdlib", "platstdlib")] + [sysconfig.get_config_var("DESTSHARED")]
installed = [sysconfig.get_path(n) for n in ("purelib", "platlib")] + (site.getsitepackages() if hasattr(site, "getsitepackages") else []) + [site.getusersitepackages() if hasattr(site, "getusersitepackages") else None]
real = lambda paths: sorted({os.path.realpath(p) for p in paths if p})
print(json.dumps({"version": sys.version_info[0] * 100 + sys.version_info[1], "started": sys.executable, "implementation": sys.implementation.name, "fullVersion": "%d.%d.%d" % sys.version_info[:3], "executable": exe, "executableMs": int(os.stat(exe).st_mtime * 1000), "prefixes": real([sys.prefix, sys.base_prefix]), "standard": real(standard), "installed": real(installed)}))`;

/** null if the command starts no Python that can be recognized: neither `python...` nor a script of one. */
export function interpreterOf(command: readonly string[]): StartedPython | null {
  const place = { cwd: process.cwd(), environment: process.env };
  const [word = ""] = command;
  const path = word.includes("/") ? word : onPath(word, place);
  if (path === null) {
    return null;
  }
  const python = /^(?:python|pypy)[\d.]*t?d?$/.test(basename(path)) ? path : shebangOf(path);
  if (python === null) {
    return null;
  }
  const asked = spawnSync(python, ["-c", QUESTION], {
    encoding: "utf8",
    timeout: 30_000,
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    return { path: python, ...(JSON.parse(asked.stdout) as Omit<StartedPython, "path">) };
  } catch {
    return null;
  }
}

/** The Python in a script's first line, also behind `/usr/bin/env`. */
function shebangOf(script: string): string | null {
  const head = Buffer.alloc(256);
  try {
    const descriptor = openSync(script, "r");
    try {
      readSync(descriptor, head);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return null;
  }
  const [line = ""] = head.toString("latin1").split("\n");
  const words = /^#!\s*(\S+)(?:\s+(\S+))?/.exec(line);
  const [, program = "", argument = ""] = words ?? [];
  const named = basename(program) === "env" ? argument : program;
  if (!/^(?:python|pypy)[\d.]*t?$/.test(basename(named))) {
    return null;
  }
  return named.includes("/")
    ? named
    : onPath(named, { cwd: process.cwd(), environment: process.env });
}
