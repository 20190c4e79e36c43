/** The external tools: Valgrind, a compiler, its sanitizer runtimes. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import type { DoctorCheckJson } from "../../model/documents/doctor_document.js";
import { badUsage, fileNotFound, orNull } from "../../model/errors/errors.js";
import { toolMissing } from "../../model/errors/tool_errors.js";

/** First line of a program's output; null if it does not run. */
function firstLine(program: string, ...words: string[]): string | null {
  const { status, stdout } = spawnSync(program, words, { encoding: "utf8", timeout: 30_000 });
  return status === 0 ? (stdout.split("\n")[0] ?? "").trim() : null;
}

/** "valgrind-3.19.0". Throws TM-E090 if Valgrind is not on PATH. */
export function valgrindVersion(): string {
  const version = firstLine("valgrind", "--version");
  if (version === null) {
    throw toolMissing(
      "Valgrind",
      "sudo apt install valgrind, or conda install -c conda-forge valgrind",
    );
  }
  return version;
}

/**
 * Names of the entries in Valgrind's suppression files, after Valgrind has read them. Throws TM-E003 for a missing
 * file, TM-E002 with Valgrind's reason.
 */
export function readSuppressions(paths: readonly string[]): Set<string> {
  const names = new Set<string>();
  for (const path of paths) {
    if (!existsSync(path)) {
      throw fileNotFound(path, "file");
    }
    const { status, stderr } = spawnSync("valgrind", [`--suppressions=${path}`, "true"], {
      encoding: "utf8",
      timeout: 60_000,
    });
    if (status !== 0) {
      const lines = stderr.split("\n").map((line) => line.replace(/^==\d+==\s*(?:FATAL: )?/, ""));
      const at = lines.findIndex((line) => line.includes("suppressions file"));
      throw badUsage(
        `Valgrind cannot read --suppressions ${path}: ${lines.slice(at, at + 2).join(" ")}`,
        "Valgrind's manual describes the format; valgrind --gen-suppressions=all prints entries",
      );
    }
    for (const [, name = ""] of readFileSync(path, "utf8").matchAll(
      /^\s*\{\s*\n(?:\s*#.*\n|\s*\n)*[ \t]*(.+?)[ \t]*$/gm,
    )) {
      names.add(name);
    }
  }
  return names;
}

/** Whether `tidemark memcheck` can run here. */
export function hasValgrind(): boolean {
  return orNull(valgrindVersion) !== null;
}

/** Whether `tidemark asan --build` can run here. */
export function canCompileForAsan(): boolean {
  return (orNull(() => findRuntime())?.compiler ?? null) !== null;
}

/** Lines of `tidemark doctor`: what `memcheck` and `asan` need. */
export function toolChecks(): DoctorCheckJson[] {
  const line = (
    check: string,
    found: () => string,
    shortfall: [effect: string, remedy: string],
  ) => {
    const version = orNull(found);
    const [effect, remedy] = version === null ? shortfall : ["", ""];
    const state = version === null ? ("limited" as const) : ("ok" as const);
    return {
      area: "machine" as const,
      check,
      state,
      found: version ?? "not installed",
      effect,
      remedy,
    };
  };
  return [
    line("Valgrind", valgrindVersion, [
      "tidemark memcheck cannot run",
      "sudo apt install valgrind",
    ]),
    line("sanitizers", () => `AddressSanitizer of ${findRuntime().version}`, [
      "tidemark asan cannot run",
      "sudo apt install gcc",
    ]),
  ];
}

export interface SanitizerRuntime {
  /** Compiler to build extensions with; null: only the runtime is installed. */
  readonly compiler: string | null;
  readonly cxxCompiler: string;
  readonly isClang: boolean;
  /** "gcc 12.2.0". */
  readonly version: string;
  /** Libraries to preload: AddressSanitizer's first, UndefinedBehaviorSanitizer's if it is separate. */
  readonly libraries: readonly string[];
}

const INSTALL = "sudo apt install gcc, which brings libasan";
const FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];

/** The runtime of `CC`, otherwise of gcc or clang, in this order. Throws TM-E090 if there is none. */
export function findRuntime(environment: NodeJS.ProcessEnv = process.env): SanitizerRuntime {
  const words = (environment.CC ?? "").split(" ").filter((word) => word !== "");
  // CC="ccache gcc -m64"
  const given = words.find((word) => /cc$|gcc|clang/.test(basename(word))) ?? words[0];
  for (const compiler of given === undefined ? ["gcc", "cc", "clang"] : [given]) {
    const version = firstLine(compiler, "-dumpfullversion", "-dumpversion");
    const isClang = (firstLine(compiler, "--version") ?? "").includes("clang");
    const names = isClang
      ? ["libclang_rt.asan-x86_64.so", "libclang_rt.asan.so"]
      : ["libasan.so", "libubsan.so"];
    // C++ exceptions: the runtime looks for __cxa_throw when it starts, before an extension loads it.
    const cxxRuntime = firstLine(compiler, "-print-file-name=libstdc++.so.6") ?? "";
    const libraries = names.flatMap((name) => {
      const path = firstLine(compiler, `-print-file-name=${name}`);
      return path !== null && isAbsolute(path) && existsSync(path) ? [realpathSync(path)] : [];
    });
    if (version !== null && libraries.length > 0) {
      return {
        compiler,
        cxxCompiler: environment.CXX || cxxOf(compiler),
        isClang,
        version: `${basename(compiler)} ${version}`,
        libraries: [
          ...(isClang ? libraries.slice(0, 1) : libraries),
          ...(isAbsolute(cxxRuntime) ? [realpathSync(cxxRuntime)] : []),
        ],
      };
    }
  }
  if (given !== undefined) {
    throw toolMissing(
      `AddressSanitizer's runtime of ${given}, which CC names,`,
      `${given.includes("clang") ? "sudo apt install clang libclang-rt-dev" : INSTALL}, or unset CC`,
    );
  }
  for (const folder of FOLDERS) {
    const libraries = ["libasan.so.", "libubsan.so."].flatMap((start) => newest(folder, start));
    if (libraries.length > 0) {
      const version = basename(libraries[0] ?? "");
      return { compiler: null, cxxCompiler: "", isClang: false, version, libraries };
    }
  }
  throw toolMissing("AddressSanitizer's runtime", INSTALL);
}

/** "/usr/bin/gcc-12" -> "/usr/bin/g++-12"; "clang" -> "clang++"; "cc" -> "c++". */
function cxxOf(compiler: string): string {
  const name = basename(compiler)
    .replace(/^(.*?)gcc/, "$1g++")
    .replace(/^(.*?)clang/, "$1clang++")
    .replace(/^cc$/, "c++");
  return compiler.includes("/") ? join(dirname(compiler), name) : name;
}

function newest(folder: string, start: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names
    .filter((name) => name.startsWith(start))
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
    .slice(0, 1)
    .map((name) => realpathSync(join(folder, name)));
}
