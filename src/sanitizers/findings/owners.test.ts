import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { NativeFrame, Report } from "../reports/report.js";
import { explain } from "./explanations.js";
import { Owners } from "./owners.js";

const LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6";
const CFFI = "/venv/lib/python3.11/site-packages/_cffi_backend.cpython-311-x86_64-linux-gnu.so";
const CTYPES = "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so";
const PYTHON = "/usr/bin/python3.11";

const frame = (name: string, object: string): NativeFrame => ({
  ...{ address: "0x1", function: name, file: "", line: 0, object },
});

function report(kind: string, ...stack: NativeFrame[]): Report {
  return {
    ...{ isLeak: kind.startsWith("Leak_"), kind, message: "", pid: 1, thread: 1, stack },
    ...{ freed: [], allocated: [], bytes: 0, blocks: 0, offset: 0 },
  };
}

const ownerOf = (kind: string, ...stack: NativeFrame[]) =>
  new Owners(null).of(report(kind, ...stack)).owner;

test.each([
  [
    "cffi's wheel, with a libffi of its own",
    "Leak_DefinitelyLost",
    [frame("malloc", LIBC), frame("ffi_call_unix64", CFFI), frame("cffistatic_ffi_call", CFFI)],
    "cffi",
  ],
  ["a stripped wheel", "InvalidWrite", [frame("memset", LIBC), frame("", CFFI)], "cffi"],
  [
    "a pointer object of ctypes",
    "InvalidWrite",
    [frame("i_set", CTYPES), frame("_PyEval_EvalFrameDefault", PYTHON)],
    "ctypes",
  ],
  [
    "an interpreter that contains ctypes",
    "InvalidRead",
    [frame("strlen", LIBC), frame("ffi_call_unix64", PYTHON), frame("ffi_call", PYTHON)],
    "ctypes",
  ],
])("a call through %s is the program's own", (_, kind, stack, module) => {
  expect(ownerOf(kind, ...stack)).toEqual({ module, kind: "own" });
});

test.each([
  ["a library that the program loaded", [frame("drop", "/work/libown.so")], "libown"],
  ["cffi, because nothing refers to the buffer any more", [frame("cdata_dealloc", CFFI)], "cffi"],
])(
  "an access by a pointer object of cffi to memory freed by %s is the program's",
  (_, freed, module) => {
    const read = report(
      "InvalidRead",
      frame("PyBytes_FromStringAndSize", PYTHON),
      frame("convert_to_object", CFFI),
    );
    expect(new Owners(null).of({ ...read, freed: [frame("free", LIBC), ...freed] }).owner).toEqual({
      module,
      kind: "own",
    });
  },
);

test("the memory of a ctypes object, which Python freed, is no Python object, and its use the program's", () => {
  const read = {
    ...report("InvalidRead", frame("PyBytes_FromStringAndSize", PYTHON)),
    freed: [frame("free", LIBC), frame("PyCData_clear", CTYPES), frame("subtype_dealloc", PYTHON)],
    allocated: [
      frame("malloc", LIBC),
      frame("PyMem_Malloc", PYTHON),
      frame("PyCData_MallocBuffer", CTYPES),
    ],
  };
  expect(new Owners(null).of(read).owner).toEqual({ module: "ctypes", kind: "own" });
  expect(explain(read).title).toBe("Use after free");
  const object = {
    ...read,
    allocated: [frame("malloc", LIBC), frame("PyType_GenericAlloc", PYTHON)],
  };
  expect(explain(object).title).toMatch(/one reference too few/);
});

test("what ctypes or the shell allocates for itself is not the program's", () => {
  const made = [frame("malloc", LIBC), frame("PyCFuncPtrType_new", CTYPES)];
  expect(ownerOf("Leak_PossiblyLost", ...made).kind).toBe("interpreter");
  expect(ownerOf("Leak_DefinitelyLost", frame("xmalloc", "/usr/bin/bash")).kind).toBe("system");
  expect(ownerOf("InvalidWrite", frame("main", "/home/user/tool")).kind).toBe("own");
  for (const file of ["libpypy3.9-c.so", "pypy3.10", "libpython3.12.so.1.0", "python3.13t"]) {
    expect(ownerOf("InvalidWrite", frame("f", `/opt/lib/${file}`)).kind).toBe("interpreter");
  }
});

test("a package that was installed from a folder is the program's own", () => {
  const installed = mkdtempSync(join(tmpdir(), "tidemark-owners-"));
  try {
    for (const [name, url] of [
      ["bad", { url: "file:///src/bad", dir_info: {} }],
      ["a,b", { url: "file:///src/c", dir_info: {} }],
      ["other", { url: "file:///other.whl", archive_info: {} }],
    ] as const) {
      const about = join(installed, `${name}-1.dist-info`);
      mkdirSync(about);
      writeFileSync(join(about, "direct_url.json"), JSON.stringify(url));
      const library = `${name}.abi3.so`;
      const path = library.includes(",") ? `"${library}"` : library;
      writeFileSync(join(about, "RECORD"), `${name}.py,,\n${path},sha256=x,1\n`);
    }
    const python = { installed: [installed], standard: [] };
    const owners = new Owners(python as unknown as ConstructorParameters<typeof Owners>[0]);
    const kindOf = (name: string) => owners.ofObject(join(installed, `${name}.abi3.so`));
    expect(kindOf("bad")).toEqual({ module: "bad", kind: "own" });
    expect(kindOf("a,b")).toMatchObject({ kind: "own" });
    expect(kindOf("other")).toEqual({ module: "other", kind: "library" });
  } finally {
    rmSync(installed, { recursive: true });
  }
});
