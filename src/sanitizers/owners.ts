/** Whose code a report is attributed to. */
import { basename } from "node:path";
import type { StartedPython } from "../inspect/index.js";
import type { OwnerJson } from "../model/documents/memcheck_document.js";
import type { NativeFrame, Report } from "./report.js";

/** Libraries of the system and of the tools: they act on behalf of their callers. */
const SYSTEM =
  /^(?:vgpreload_|lib(?:asan|ubsan|lsan|clang_rt)|libc[.-]|ld-linux|libpthread|libm[.-]|libdl[.-]|librt[.-]|libutil|libstdc\+\+|libgcc_s|libgomp|memcheck-|linux-vdso|libtidemark)/;
const INTERPRETER = /^(?:python[\d.]*t?d?|libpython[\d.]+t?d?\.so[\d.]*)$/;
const STANDARD = /\/lib-dynload\//;
const INSTALLED = /\/(?:site|dist)-packages\//;
/** Runs Python code: frames below it belong to whoever called that code. */
const EVALUATES = /^_?PyEval_(?:EvalFrame\w*|EvalCode|Vector)/;

/** Whether the path is a library of the system or of the tool. */
export function isSystem(path: string): boolean {
  return SYSTEM.test(basename(path));
}

/** Whether the path is Python itself or one of its own extensions. */
export function isInterpreter(path: string): boolean {
  return INTERPRETER.test(basename(path)) || STANDARD.test(path);
}

export class Owners {
  readonly #standard: readonly string[];
  readonly #installed: readonly string[];

  /** `python` null: folders are recognized by their names alone. */
  constructor(python: StartedPython | null) {
    this.#standard = python?.standard ?? [];
    this.#installed = python?.installed ?? [];
  }

  ofObject(path: string): OwnerJson {
    const name = basename(path);
    if (name === "" || path.startsWith("[")) {
      return { module: "unknown", kind: "system" }; // no file: "[stack]", "[heap]", memory of a JIT compiler
    }
    if (isSystem(path)) {
      return { module: name, kind: "system" };
    }
    const installed = this.#moduleIn(path);
    if (installed !== null) {
      return { module: installed, kind: "library" };
    }
    if (isInterpreter(path) || this.#standard.some((folder) => path.startsWith(`${folder}/`))) {
      return { module: "python", kind: "interpreter" };
    }
    const isExtension = /\.(?:cpython-|abi3)|\.so$/.test(name) && !/^lib.*\.so[.\d]*$/.test(name);
    const isShared = /^\/(?:usr\/)?lib/.test(path);
    return isExtension || !isShared
      ? { module: moduleName(name), kind: "own" }
      : { module: name, kind: "system" };
  }

  /** The dotted name of an extension in a folder of installed packages. */
  #moduleIn(path: string): string | null {
    const folder =
      this.#installed.find((installed) => path.startsWith(`${installed}/`)) ??
      /^.*\/(?:site|dist)-packages(?=\/)/.exec(path)?.[0];
    if (folder === undefined || !(INSTALLED.test(path) || this.#installed.includes(folder))) {
      return null;
    }
    const parts = path.slice(folder.length + 1).split("/");
    return [...parts.slice(0, -1), moduleName(parts.at(-1) ?? "")].join(".");
  }

  /**
   * The owner of a report: the nearest extension in its stack, otherwise in the stack that freed the block, then in
   * the one that allocated it. A call by ctypes or cffi belongs to the program.
   */
  of({ stack, freed, allocated }: Report): { owner: OwnerJson; frame: NativeFrame | undefined } {
    let interpreter: { owner: OwnerJson; frame: NativeFrame } | null = null;
    for (const frames of [stack, freed, allocated]) {
      let isForeign = false;
      for (const frame of frames) {
        isForeign ||= frame.function === "ffi_call";
        const [, caller] = /^_(ctypes|cffi)(?:_backend)?\./.exec(basename(frame.object)) ?? [];
        if (isForeign && caller !== undefined) {
          // The program calls C by hand: these modules only pass its arguments on.
          return { owner: { module: caller, kind: "own" }, frame: frames[0] };
        }
        const owner = this.ofObject(frame.object);
        if (owner.kind === "own" || owner.kind === "library") {
          return { owner, frame };
        }
        if (owner.kind === "interpreter") {
          interpreter ??= { owner, frame };
          if (EVALUATES.test(frame.function)) {
            break;
          }
        }
      }
    }
    return (
      interpreter ?? { owner: { module: "unknown", kind: "system" }, frame: stack[0] ?? undefined }
    );
  }
}

/** "_umath_linalg.cpython-311-x86_64-linux-gnu.so" -> "_umath_linalg". */
function moduleName(file: string): string {
  return file.replace(/\.(?:cpython-|abi3|pypy).*$|\.so[.\d]*$/, "");
}
