import type { Bytes, Pid } from "../base/units.js";
import type { FrameJson } from "./documents.js";

/** Whose code an error or leak is attributed to. */
export interface OwnerJson {
  /** "faulty", "numpy.linalg._umath_linalg"; "python" for the interpreter. */
  module: string;
  /** own: neither installed into site-packages nor the interpreter's. */
  kind: "own" | "library" | "interpreter" | "system";
}

/** The Python stack at an error. */
export interface PythonStackJson {
  /** Leaf first. */
  stack: FrameJson[];
  /** exact: the error occurred in the call at the leaf's line. near: between two calls or lines of the leaf function. */
  precision: "exact" | "near";
}

export interface MemoryErrorJson {
  /** "InvalidWrite" (Valgrind), "heap-buffer-overflow" (AddressSanitizer), "undefined-behavior". */
  kind: string;
  /** "Write outside a block". */
  title: string;
  count: number;
  message: string;
  owner: OwnerJson;
  /** C frames, leaf first. */
  stack: FrameJson[];
  /** Where the block was allocated, and where it was freed. */
  allocated?: FrameJson[];
  freed?: FrameJson[];
  python?: PythonStackJson;
  explanation: string;
  /** The usual causes, the most frequent first. */
  causes: string[];
  fix: string;
  pid: Pid;
}

export interface MemoryLeakJson {
  /** "definitely-lost", "possibly-lost", "leak". */
  kind: string;
  bytes: Bytes;
  blocks: number;
  owner: OwnerJson;
  /** Where the memory was allocated; C frames, leaf first. */
  stack: FrameJson[];
  explanation: string;
  causes: string[];
  fix: string;
}

/** `tidemark.memcheck/1`: of `tidemark memcheck` and `tidemark asan`. */
export interface MemcheckJson {
  schema: "tidemark.memcheck/1";
  tool: "memcheck" | "asan";
  /** "valgrind-3.19.0", "gcc 12". */
  toolVersion: string;
  command: string[];
  /** Of the program; null: ended by a signal. */
  exitCode: number | null;
  signal: string | null;
  processes: Pid[];
  /** The most severe first. */
  errors: MemoryErrorJson[];
  /** The largest first. */
  leaks: MemoryLeakJson[];
  /** Whether the whole program was searched for leaks; false: `leaks` may be incomplete, and `limits` gives the reason. */
  leaksKnown: boolean;
  /** Numbers of distinct reports that were left out. */
  suppressed: {
    /** Whether the same occurs if the interpreter only imports the libraries. */
    importOnly: number;
    interpreter: number;
    libraries: number;
    system: number;
    /** Errors and leaks, not distinct, that match a file of `--suppressions`. */
    suppressionFiles: number;
  };
  /** The installed packages of `suppressed.libraries`, those with the most reports first. */
  leftOutLibraries: { module: string; reports: number }[];
  /**
   * asan: whether the program or one of its own extensions was built with AddressSanitizer; otherwise only calls of
   * malloc, free, memcpy and the like were checked. Absent if it is not known.
   */
  instrumented?: boolean;
  /** What could not be seen, and why. */
  limits: string[];
}
