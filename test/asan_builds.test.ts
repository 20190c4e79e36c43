/** `tidemark asan --build` with gcc and clang, of C++ and of packages with each build backend. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { MemcheckJson } from "../src/model/documents/memcheck_document.js";
import { findRuntime } from "../src/sanitizers/toolchain/tools.js";
import { expectSpeaksClearly } from "./behaviour.js";
import { environment } from "./environment.js";
import { python, validate } from "./recorded_app.js";
import { execute, type Outcome, removeScratch, scratch, tidemark } from "./run.js";

afterAll(removeScratch);

/** A ring of 8 numbers; `push(9)` writes the ninth. */
const RING = `#include <Python.h>
static PyObject *push(PyObject *self, PyObject *number) {
    long count = PyLong_AsLong(number);
    int *ring = (int *)malloc(8 * sizeof(int));
    for (long i = 0; i < count; i++)
        ring[i] = (int)i; /* here */
    int last = ring[count - 1];
    free(ring);
    return PyLong_FromLong(last);
}
static PyMethodDef methods[] = {{"push", push, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "ring", NULL, -1, methods};
PyMODINIT_FUNC PyInit_ring(void) { return PyModule_Create(&definition); }
`;
const SHAPE = `#include <stdexcept>
#include <string>
std::string describe(int sides) {
    if (sides < 3)
        throw std::invalid_argument("too few sides");
    return std::string(sides, '-');
}
`;
/** Throws and catches exceptions in another source; `dangling` reads a destroyed string. */
const SHAPES = `#include <Python.h>
#include <exception>
#include <string>
std::string describe(int sides);
static PyObject *draw(PyObject *, PyObject *sides) {
    try {
        return PyUnicode_FromString(describe((int)PyLong_AsLong(sides)).c_str());
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_ValueError, error.what());
        return nullptr;
    }
}
static PyObject *dangling(PyObject *, PyObject *) {
    const char *text = nullptr;
    {
        std::string line = describe(100);
        text = line.c_str();
    }
    return PyLong_FromLong(text[50]); // here
}
static PyMethodDef methods[] = {
    {"draw", draw, METH_O, nullptr}, {"dangling", dangling, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "shapes", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_shapes() { return PyModule_Create(&definition); }
`;
const lineOf = (source: string) =>
  source.split("\n").findIndex((line) => line.includes(" here")) + 1;

function hasRuntime(compiler: string): boolean {
  try {
    return findRuntime({ ...process.env, CC: compiler }).compiler !== null;
  } catch {
    return false;
  }
}

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = scratch();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

async function asan(
  folder: string,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ outcome: Outcome; document: MemcheckJson }> {
  const json = join(folder, "found.json");
  const outcome = await execute([tidemark, "asan", "--force", "--json", json, ...words], {
    cwd: folder,
    env,
  });
  expectSpeaksClearly(outcome.stderr);
  return {
    outcome,
    document: validate(readFileSync(json, "utf8"), "memcheck") as unknown as MemcheckJson,
  };
}

describe.each(["gcc", "clang"])("with %s", (compiler) => {
  describe.skipIf(!hasRuntime(compiler))("and its runtime", () => {
    test("builds C++ sources, lets exceptions pass, and explains a use after free", async () => {
      const folder = folderWith({ "shape.cpp": SHAPE, "shapes.cpp": SHAPES });
      const code = "import shapes\ntry: shapes.draw(1)\nexcept ValueError as error: print(error)";
      const env = { CC: compiler };
      const words = ["--build", ".", "--", python, "-c", code];
      const clean = await asan(folder, words, env);
      expect(clean.outcome.stdout, clean.outcome.stderr).toBe("too few sides\n");
      expect([clean.document.errors, clean.document.leaks]).toEqual([[], []]);
      expect(clean.document.toolVersion).toMatch(new RegExp(`^${compiler} \\d`));
      writeFileSync(join(folder, "app.py"), "import shapes\nshapes.dangling()\n");
      // Without CC: the build itself shows which compiler's runtime it needs.
      const built = { PYTHONPATH: join(folder, "build/tidemark-asan") };
      const { document } = await asan(folder, ["--", python, "app.py"], built);
      expect(document.errors).toMatchObject([
        { kind: "heap-use-after-free", owner: { module: "shapes" } },
      ]);
      const [error] = document.errors;
      expect(error?.title).toBe("Use after free");
      const at = error?.stack.find(({ function: name }) => name.startsWith("dangling"));
      expect(at?.line).toBe(lineOf(SHAPES));
      expect(error?.python?.stack[0]).toMatchObject({ line: 2 });
    });
  });
});

const builders = environment.packagingPython ?? "";
const canImport = (module: string) =>
  builders !== "" &&
  spawnSync(builders, ["-c", `import ${module}`], { stdio: "ignore" }).status === 0;

const PACKAGES: [backend: string, needs: string, files: Record<string, string>][] = [
  [
    "setuptools, by setup.py with a package",
    "setuptools",
    {
      "setup.py": `from setuptools import setup, Extension
setup(name="rings", packages=["rings"], ext_modules=[Extension("rings.ring", ["ring.c"])])
`,
      "rings/__init__.py": "from .ring import push\n",
      "ring.c": RING,
    },
  ],
  [
    "setuptools and Cython, by pyproject.toml",
    "Cython",
    {
      "pyproject.toml": `[build-system]
requires = ["setuptools", "cython"]
build-backend = "setuptools.build_meta"
[project]
name = "rings"
version = "1"
[tool.setuptools]
py-modules = []
ext-modules = [{name = "rings", sources = ["rings.pyx"]}]
`,
      "rings.pyx": `from libc.stdlib cimport malloc, free
def push(int count):
    cdef int i
    cdef int *ring = <int *>malloc(8 * sizeof(int))
    for i in range(count):
        ring[i] = i
    free(ring)
    return count
`,
    },
  ],
  [
    "meson-python",
    "mesonpy",
    {
      "pyproject.toml": `[build-system]
requires = ["meson-python"]
build-backend = "mesonpy"
[project]
name = "rings"
version = "1"
`,
      "meson.build": `project('rings', 'c', version: '1')
import('python').find_installation(pure: false).extension_module('rings', 'rings.c', install: true)
`,
      "rings.c": RING.replaceAll("PyInit_ring", "PyInit_rings"),
    },
  ],
  [
    "scikit-build-core",
    "scikit_build_core",
    {
      "pyproject.toml": `[build-system]
requires = ["scikit-build-core"]
build-backend = "scikit_build_core.build"
[project]
name = "rings"
version = "1"
`,
      "CMakeLists.txt": `cmake_minimum_required(VERSION 3.18)
project(rings LANGUAGES C)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
python_add_library(rings MODULE rings.c WITH_SOABI)
install(TARGETS rings DESTINATION .)
`,
      "rings.c": RING.replaceAll("PyInit_ring", "PyInit_rings"),
    },
  ],
];

describe.each(PACKAGES)("a package built by %s", (_, needs, files) => {
  test.skipIf(!canImport(needs))("is instrumented, and its overflow explained", async () => {
    // There is a module of the same name next to the program: the built one must take precedence.
    const folder = folderWith({ ...files, "app/rings.py": "push = print\n" });
    writeFileSync(join(folder, "app/app.py"), "import rings\nrings.push(9)\n");
    const words = ["--build", ".", "--", builders, "app/app.py"];
    const { outcome, document } = await asan(folder, words);
    expect(outcome.status, outcome.stderr).toBe(1);
    expect(document.errors).toMatchObject([{ kind: "heap-buffer-overflow" }]);
    expect(document.errors[0]?.stack[0]?.line).toBeGreaterThan(0);
    expect(document.errors[0]?.python?.stack.at(-1)).toMatchObject({ line: 2 });
  });
});

test("a build without its backend, or that makes no extension, ends with one line", async () => {
  const broken = folderWith({ "setup.py": "raise SystemExit('no compiler today')\n" });
  const cases: [string, RegExp][] = [
    [
      folderWith({ "pyproject.toml": "[project]\nname='p'\nversion='1'\n" }),
      /TM-E092 cannot build/,
    ],
    [broken, /TM-E092 cannot build .*no compiler today/],
    [join(broken, "setup.py"), /TM-E092 cannot build .*it is a file, not a folder/],
  ];
  for (const [place, line] of cases) {
    const words = ["asan", "--quiet", "--build", place, "--", builders || python, "-c", "pass"];
    const outcome = await execute([tidemark, ...words]);
    expect(outcome.status, outcome.stderr).toBe(2);
    expect(outcome.stderr).toMatch(line);
    expect(outcome.stderr.trimEnd().split("\n")).toHaveLength(1);
  }
  const without = await execute([tidemark, "asan", "--", python, "-c", "pass"], {
    env: { CC: "no-such-clang" },
  });
  expect([without.status, without.stderr]).toEqual([
    4,
    expect.stringMatching(/TM-E090 .*no-such-clang, which CC names, is not installed; install it/),
  ]);
});
