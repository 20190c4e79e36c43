/**
 * The commands that build the extensions of a folder with a sanitizer, according to the folder's own description of
 * its build.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { parse } from "smol-toml";
import type { SanitizerRuntime } from "./tools.js";

/**
 * Unoptimized: an optimizing compiler removes some errors together with the code that causes them. AddressSanitizer
 * covers object-size.
 */
const FLAGS =
  "-g -O0 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize=object-size";

/** How the folder is built: by its own set-up (setup.py, pyproject.toml), or from its sources alone. */
type Way = "package" | "sources";

export interface BuildPlaces {
  /** Absolute paths. */
  readonly source: string;
  readonly output: string;
  readonly python: string;
  readonly runtime: SanitizerRuntime & { readonly compiler: string };
}

/** null: nothing in the folder describes a build. */
export function wayOf(source: string): Way | null {
  if (["setup.py", "pyproject.toml"].some((name) => existsSync(join(source, name)))) {
    return "package";
  }
  return sourcesIn(source).some(({ module }) => module !== null) ? "sources" : null;
}

/** The variables from which setuptools, CMake and Meson take the compiler and its options. */
export function buildEnvironment({ runtime, python }: BuildPlaces): NodeJS.ProcessEnv {
  const { compiler, cxxCompiler } = runtime;
  const joined = (name: string, more: string) => `${process.env[name] ?? ""} ${more}`.trim();
  return {
    ...process.env,
    CC: compiler,
    CXX: cxxCompiler,
    CFLAGS: joined("CFLAGS", FLAGS),
    CXXFLAGS: joined("CXXFLAGS", FLAGS),
    LDFLAGS: joined("LDFLAGS", linkFlags(runtime)),
    // Without these, scikit-build-core optimizes and removes the line numbers.
    SKBUILD_CMAKE_BUILD_TYPE: "Debug",
    SKBUILD_INSTALL_STRIP: "false",
    // Build tools that are installed beside this Python: meson, cmake, ninja.
    PATH: [dirname(python), process.env.PATH].filter(Boolean).join(delimiter),
  };
}

/**
 * clang's runtime is shared only on request, and is in no folder of the loader: Meson refuses a compiler whose programs
 * do not run.
 */
function linkFlags({ isClang, libraries }: SanitizerRuntime): string {
  const shared = ` -shared-libasan -Wl,-rpath,${dirname(libraries[0] ?? "")}`;
  return `-fsanitize=address,undefined${isClang ? shared : ""}`;
}

export interface BuildWords {
  readonly words: readonly string[];
  /** More variables for this step. */
  readonly variables?: Readonly<Record<string, string>>;
}

export function stepsOf(way: Way, places: BuildPlaces): BuildWords[] {
  if (way === "sources") {
    return compileSteps(places).map((words) => ({ words }));
  }
  const { source, output, python } = places;
  const backend = backendOf(source);
  const isInstalled = canImport(python, backend);
  const pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  if (isInstalled && /^setuptools\b/.test(backend)) {
    // As for other backends: what the build requires and this Python lacks is installed for this build only.
    const absent = unmetRequirements(python, source);
    const added = join(source, "build", "tidemark-asan-requirements");
    const before = process.env.PYTHONPATH;
    const variables = { PYTHONPATH: before ? `${added}:${before}` : added };
    // Not by pip, because setuptools would reuse the objects of an earlier build.
    const setup = existsSync(join(source, "setup.py"))
      ? ["setup.py"]
      : ["-c", "import setuptools; setuptools.setup()"];
    const temporary = join(source, "build", "tidemark-asan-objects");
    const folders = ["--build-base", temporary, "--build-lib", output];
    const words = [python, ...setup, "--quiet", "build", "--force", ...folders];
    return absent.length === 0
      ? [{ words }]
      : [{ words: [...pip, "--upgrade", "--target", added, ...absent] }, { words, variables }];
  }
  const words = [
    ...[...pip, "--no-deps", "--no-cache-dir"],
    // Otherwise pip installs the requirements of the build into a separate environment.
    ...(isInstalled ? ["--no-build-isolation"] : []),
    ...["--target", output, source],
  ];
  return [{ words }];
}

/** Prints the requirements among its arguments that this Python does not meet. Without pip, none are known. */
const UNMET = `import sys
from importlib.metadata import PackageNotFoundError, version
from pip._vendor.packaging.requirements import Requirement
for text in sys.argv[1:]:
    need = Requirement(text)
    if need.marker is not None and not need.marker.evaluate():
        continue
    try:
        met = need.specifier.contains(version(need.name), prereleases=True)
    except PackageNotFoundError:
        met = False
    if not met:
        print(text)`;

/** Requirements of the build in pyproject.toml (PEP 518) that the Python does not meet. */
function unmetRequirements(python: string, source: string): string[] {
  const { requires } = buildSystemOf(source);
  const wanted = Array.isArray(requires) ? requires.map(String) : [];
  const asked = spawnSync(python, ["-c", UNMET, ...wanted], { encoding: "utf8" });
  return asked.status === 0 ? asked.stdout.split("\n").filter((line) => line !== "") : [];
}

/** Module of the build backend that pyproject.toml names; setuptools if it names none (PEP 517). */
export function backendOf(source: string): string {
  const backend = buildSystemOf(source)["build-backend"];
  return typeof backend === "string" ? (backend.split(":")[0] ?? "") : "setuptools";
}

/** The table of pyproject.toml; empty if there is no such file. The build itself reports an invalid one. */
function buildSystemOf(source: string): { "build-backend"?: unknown; requires?: unknown } {
  try {
    const text = readFileSync(join(source, "pyproject.toml"), "utf8");
    return (parse(text) as { "build-system"?: object })["build-system"] ?? {};
  } catch {
    return {};
  }
}

function canImport(python: string, module: string): boolean {
  return spawnSync(python, ["-c", `import ${module}`], { stdio: "ignore" }).status === 0;
}

interface Source {
  readonly file: string;
  /** Name of the extension module that it defines. */
  readonly module: string | null;
}

function sourcesIn(source: string): Source[] {
  return readdirSync(source)
    .filter((name) => /\.(?:c|cc|cpp|cxx)$/.test(name))
    .map((name) => {
      const file = join(source, name);
      const defines = /\bPyInit_(\w+)\s*\(|\bPYBIND11_MODULE\s*\(\s*(\w+)/;
      const [, plain, pybind] = defines.exec(readFileSync(file, "utf8")) ?? [];
      return { file, module: plain ?? pybind ?? null };
    });
}

/** Header folders that Python libraries report, for the headers that a source includes. */
const INCLUDES: readonly (readonly [RegExp, string])[] = [
  [/#\s*include\s*[<"]Python\.h/, "__import__('sysconfig').get_path('include')"],
  [/#\s*include\s*[<"]numpy\//, "__import__('numpy').get_include()"],
  [/#\s*include\s*[<"]pybind11\//, "__import__('pybind11').get_include()"],
];

/** Builds each module from its source and the folder's sources that define no module. */
function compileSteps({ source, output, python, runtime }: BuildPlaces): string[][] {
  const all = sourcesIn(source);
  const shared = all.flatMap(({ file, module }) =>
    module === null && !/\bmain\s*\(/.test(readFileSync(file, "utf8")) ? [file] : [],
  );
  const texts = all.map(({ file }) => readFileSync(file, "utf8"));
  const questions = INCLUDES.flatMap(([pattern, expression], index) =>
    index === 0 || texts.some((text) => pattern.test(text)) ? [expression] : [],
  );
  const asked = spawnSync(
    python,
    ["-c", `import sysconfig as s; print(s.get_config_var('EXT_SUFFIX'), ${questions}, sep='\\n')`],
    { encoding: "utf8" },
  );
  const [suffix = ".so", ...includes] = asked.stdout.trim().split("\n");
  return all.flatMap(({ file, module }) => {
    if (module === null) {
      return [];
    }
    const files = [file, ...shared];
    const isC = files.every((name) => name.endsWith(".c"));
    return [
      [
        ...[isC ? runtime.compiler : runtime.cxxCompiler, ...FLAGS.split(" ")],
        ...[...linkFlags(runtime).split(" "), "-shared", "-fPIC", `-I${source}`],
        ...[...includes.map((folder) => `-I${folder}`), ...files],
        ...["-o", join(output, module + suffix)],
      ],
    ];
  });
}
