import type { Mapping } from "../linux/memory/memory.js";

/** libjemalloc.so.2, libtcmalloc_minimal.so.4, libmimalloc-secure.so.2.0, librpmalloc.so... */
const LIBRARY =
  /\/lib(jemalloc|tcmalloc|mimalloc|rpmalloc|hoard|snmalloc|tbbmalloc)[^/]*\.so[^/]*$/;
/** Names that allocators give to their mappings (prctl PR_SET_VMA_ANON_NAME). */
const NAMED = /^\[anon:(?:je_|(tcmalloc|mimalloc|jemalloc|scudo))/;

/** Whether the file is the library of an allocator. */
export function isAllocatorLibrary({ path }: Mapping): boolean {
  return LIBRARY.test(path);
}

/**
 * Names of the allocators other than glibc's that a program has loaded, each once. Their state depends on the
 * version and has no invariants by which it could be read from outside, so their memory is opaque.
 */
export function foreignAllocators(mappings: readonly Mapping[]): string[] {
  const names = new Set<string>();
  for (const { path } of mappings) {
    const library = LIBRARY.exec(path)?.[1];
    const named = NAMED.exec(path);
    if (library !== undefined) {
      names.add(library);
    } else if (named !== null) {
      names.add(named[1] ?? "jemalloc");
    }
  }
  return [...names];
}
