/** The tools that other people install: Valgrind, a compiler, its sanitizer runtimes. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { basename, isAbsolute, join } from "node:path";
import { orNull } from "../model/errors/errors.js";
import { toolMissing } from "../model/errors/tool_errors.js";

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

/** Whether `tidemark memcheck` can run here. */
export function hasValgrind(): boolean {
  return orNull(valgrindVersion) !== null;
}

/** Whether `tidemark asan --build` can run here. */
export function canCompileForAsan(): boolean {
  return (orNull(() => findRuntime())?.compiler ?? null) !== null;
}

export interface SanitizerRuntime {
  /** Compiler to build extensions with; null: only the runtime is installed. */
  readonly compiler: string | null;
  /** "gcc 12.2.0". */
  readonly version: string;
  /** Libraries to preload: AddressSanitizer's first, UndefinedBehaviorSanitizer's if it is separate. */
  readonly libraries: readonly string[];
}

const INSTALL = "sudo apt install gcc, which brings libasan";
const FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];

/** Of `CC`, gcc or clang, in this order. Throws TM-E090 if there is none. */
export function findRuntime(environment: NodeJS.ProcessEnv = process.env): SanitizerRuntime {
  const [given = ""] = (environment.CC ?? "").split(" ");
  for (const compiler of [given, "gcc", "cc", "clang"].filter((name) => name !== "")) {
    const version = firstLine(compiler, "-dumpfullversion", "-dumpversion");
    const isClang = (firstLine(compiler, "--version") ?? "").includes("clang");
    const names = isClang
      ? ["libclang_rt.asan-x86_64.so", "libclang_rt.asan.so"]
      : ["libasan.so", "libubsan.so"];
    const libraries = names.flatMap((name) => {
      const path = firstLine(compiler, `-print-file-name=${name}`);
      return path !== null && isAbsolute(path) && existsSync(path) ? [realpathSync(path)] : [];
    });
    if (version !== null && libraries.length > 0) {
      return {
        compiler,
        version: `${basename(compiler)} ${version}`,
        libraries: isClang ? libraries.slice(0, 1) : libraries,
      };
    }
  }
  for (const folder of FOLDERS) {
    const libraries = ["libasan.so.", "libubsan.so."].flatMap((start) => newest(folder, start));
    if (libraries.length > 0) {
      return { compiler: null, version: basename(libraries[0] ?? ""), libraries };
    }
  }
  throw toolMissing("AddressSanitizer's runtime", INSTALL);
}

function newest(folder: string, start: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names
    .filter((name) => name.startsWith(start))
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
    .slice(0, 1)
    .map((name) => realpathSync(join(folder, name)));
}
