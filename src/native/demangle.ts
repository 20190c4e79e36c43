/**
 * Demangles C++ (Itanium ABI) and Rust (legacy and v0) names with the demangler of Firefox Profiler: Rust's
 * cpp_demangle and rustc-demangle compiled to WebAssembly.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
// The package's entry point is written for bundlers, which import WebAssembly themselves. In Node we load the
// module, and its glue code has no types.
// @ts-expect-error
import * as glue from "gecko-profiler-demangle/index_bg.js";

/** Longer names are nested templates that nobody reads, and one takes as long as all others together. */
const LONGEST_MANGLED = 4096;

let loaded: ((name: string) => string) | null = null;

/** The demangled name; unchanged if it is not mangled or uses an unknown scheme. */
export function demangle(name: string): string {
  if (!/^_[ZR]/.test(name) || name.length > LONGEST_MANGLED) {
    return name;
  }
  loaded ??= instantiate();
  try {
    const demangled = loaded(name);
    // The demangler strips the underscore from names that it does not know.
    return demangled === "" || demangled === name.slice(1) ? name : demangled;
  } catch {
    loaded = (other) => other; // after a trap the instance can no longer be used
    return name;
  }
}

function instantiate(): (name: string) => string {
  const path = createRequire(import.meta.url).resolve("gecko-profiler-demangle/index_bg.wasm");
  const module = new WebAssembly.Module(readFileSync(path));
  const { exports } = new WebAssembly.Instance(module, { "./index_bg.js": glue });
  glue.__wbg_set_wasm(exports);
  (exports.__wbindgen_start as () => void)();
  return glue.demangle_any as (name: string) => string;
}
