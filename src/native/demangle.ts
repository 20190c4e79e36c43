/** C++ (Itanium ABI) and Rust (legacy and v0) names, by the demangler of Firefox Profiler: Rust's
 * cpp_demangle and rustc-demangle compiled to WebAssembly. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
// The package's own entry is written for bundlers, which import WebAssembly by themselves. Node gets
// the module from us, and the glue beside it has no types.
// @ts-expect-error
import * as glue from "gecko-profiler-demangle/index_bg.js";

/** Longer names are nested templates that nobody reads, and take as long as all others together. */
const LONGEST_MANGLED = 4096;

let loaded: ((name: string) => string) | null = null;

/** The demangled name; unchanged if it is not mangled, or in an unknown scheme. */
export function demangle(name: string): string {
  if (!/^_[ZR]/.test(name) || name.length > LONGEST_MANGLED) {
    return name;
  }
  loaded ??= instantiate();
  try {
    const demangled = loaded(name);
    // It strips the underscore of what it does not know.
    return demangled === "" || demangled === name.slice(1) ? name : demangled;
  } catch {
    loaded = (other) => other; // after a trap the instance cannot be used any more
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
