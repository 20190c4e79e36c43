/** Whose code a report is attributed to. */
import { basename } from "node:path";
import type { StartedPython } from "../../inspect/index.js";
import type { OwnerJson } from "../../model/documents/memcheck_document.js";
import type { NativeFrame, Report } from "../reports/report.js";
import { localExtensions } from "./local_packages.js";

/** Libraries of the system and of the tools: they act on behalf of their callers. */
const SYSTEM =
  /^(?:vgpreload_|lib(?:asan|ubsan|lsan|clang_rt)|libc[.-]|ld-linux|libpthread|libm[.-]|libdl[.-]|librt[.-]|libutil|libstdc\+\+|libgcc_s|libgomp|memcheck-|linux-vdso|libtidemark)/;
const INTERPRETER =
  /^(?:(?:python|pypy|graalpy)[\d.]*t?d?|lib(?:python[\d.]+t?d?|pypy[\d.]*-c|pythonvm)\.so[\d.]*)$/;
const STANDARD = /\/lib-dynload\//;
const INSTALLED = /\/(?:site|dist)-packages\//;
/** Programs that the system brings, such as the shell of a script. */
const OF_SYSTEM = /^\/(?:usr\/)?s?bin\//;
/** libffi's call of a C function; cffi's wheels contain a libffi whose names have a prefix. */
const CALLS_FOREIGN = /(?:^|_)ffi_call(?:_|$)/;
const FOREIGN_MODULE = /^_(ctypes|cffi)(?:_backend)?\./;
/** Accesses to an address. */
const ACCESS =
  /^(?:Invalid(?:Read|Write|Jump)|FatalSignal|SEGV|BUS)$|-(?:over|under)flow$|^heap-use-after-free$/;
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
  readonly #local: ReadonlySet<string>;

  /** `python` null: folders are recognized by their names alone. */
  constructor(python: StartedPython | null) {
    this.#standard = python?.standard ?? [];
    this.#installed = python?.installed ?? [];
    this.#local = localExtensions(this.#installed);
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
      return { module: installed, kind: this.#local.has(path) ? "own" : "library" };
    }
    if (isInterpreter(path) || this.#standard.some((folder) => path.startsWith(`${folder}/`))) {
      return { module: "python", kind: "interpreter" };
    }
    if (OF_SYSTEM.test(path)) {
      return { module: name, kind: "system" };
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
   * the one that allocated it. A call, or an access to memory, by ctypes or cffi belongs to the program.
   */
  of(report: Report): { owner: OwnerJson; frame: NativeFrame | undefined } {
    const { kind, stack, freed, allocated } = report;
    let interpreter: { owner: OwnerJson; frame: NativeFrame } | null = null;
    let accessor: { owner: OwnerJson; frame: NativeFrame | undefined } | null = null;
    for (const frames of [stack, freed, allocated]) {
      // A read or write through a pointer object of ctypes or cffi is the program's, too.
      let isForeign = frames === stack && ACCESS.test(kind) && freed.length === 0;
      for (const frame of frames) {
        const { function: name, object } = frame;
        const owner = this.ofObject(object);
        const caller = foreignCaller(frame, owner);
        isForeign ||= CALLS_FOREIGN.test(name) || (name === "" && caller === "cffi");
        const found = { owner: { module: caller ?? "", kind: "own" as const }, frame: frames[0] };
        if (isForeign && caller !== null) {
          // The program calls C by hand: these modules only pass its arguments on.
          return found;
        }
        if (caller === "cffi" && (accessor !== null || isAfterFree(report, frames))) {
          accessor ??= found; // the extension that freed the block has precedence
          break;
        }
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
    if (ACCESS.test(kind) && freed.length > 0 && isBufferOfCtypes(allocated)) {
      accessor ??= { owner: { module: "ctypes", kind: "own" }, frame: stack[0] };
    }
    return (
      accessor ??
      interpreter ?? { owner: { module: "unknown", kind: "system" }, frame: stack[0] ?? undefined }
    );
  }
}

/** Whether the frames are those of an access to a block that was freed before. */
function isAfterFree({ kind, stack, freed }: Report, frames: readonly NativeFrame[]): boolean {
  return frames === stack && ACCESS.test(kind) && freed.length > 0;
}

/** "ctypes" or "cffi" if the frame is theirs. Some builds of Python contain ctypes and libffi in the interpreter. */
function foreignCaller({ function: name, object }: NativeFrame, owner: OwnerJson): string | null {
  const module = FOREIGN_MODULE.exec(basename(object))?.[1];
  return module ?? (owner.kind === "interpreter" && CALLS_FOREIGN.test(name) ? "ctypes" : null);
}

/** Whether the block is the memory of a ctypes object, whose address the program can keep, not the object itself. */
export function isBufferOfCtypes(allocated: readonly NativeFrame[]): boolean {
  const isAllocator = ({ function: name, object }: NativeFrame) =>
    object === "" || isSystem(object) || /^_?Py(?:Mem|Object)_(?:Raw)?[MC]alloc$/.test(name);
  const maker = allocated.find((frame) => !isAllocator(frame));
  return (
    maker !== undefined &&
    (/^_ctypes\./.test(basename(maker.object)) || maker.function.startsWith("PyCData_"))
  );
}

/** Whether ctypes, or cffi without a compiler, took part: they call C functions through libffi. */
export function isForeignCall(stack: readonly NativeFrame[]): boolean {
  return stack.some(
    ({ function: name, object }) =>
      CALLS_FOREIGN.test(name) || FOREIGN_MODULE.test(basename(object)),
  );
}

/** "_umath_linalg.cpython-311-x86_64-linux-gnu.so" -> "_umath_linalg". */
function moduleName(file: string): string {
  return file.replace(/\.(?:cpython-|abi3|pypy).*$|\.so[.\d]*$/, "");
}
