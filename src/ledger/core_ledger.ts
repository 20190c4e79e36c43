/**
 * The ledger of a core file: the same parts as for a live program, for the contents of the file. A core file
 * has no RSS, which only the kernel of a live process knows. Instead, the bytes in the file are used, without
 * pages of zeroes (held_pages.ts).
 *
 * | failure | outcome |
 * |---|---|
 * | cut off, or written without some mappings | the existing part is divided; `limits` states how much is missing |
 * | the allocators' own data are missing | the memory is attributed by mapping names; `limits` reports it |
 * | no names of files in it (a damaged note) | their memory is in anon.other |
 */

import { locatePython } from "../cpython/index.js";
import { countPools, findArenas } from "../cpython/interpreter/arenas.js";
import type { CoreMemory } from "../linux/index.js";
import { TidemarkError } from "../model/errors/errors.js";
import type { CoreLedger } from "../model/profile/ledger.js";
import { bundledAllocators } from "../native/bundled_allocators.js";
import { readGlibcHeap } from "../native/glibc_heap.js";
import { arenaRanges, claimsOf } from "./claims.js";
import { wholePages } from "./divide.js";
import { hasMuchUnknown, limitsOf, mallocFigures, pythonFigures } from "./figures.js";
import { HeldPages } from "./held_pages.js";
import { divideAll } from "./parts.js";
import { findThreadStacks } from "./thread_stacks.js";

export function readCoreLedger(core: CoreMemory): CoreLedger {
  const started = performance.now();
  const python = pythonOf(core);
  const arenas = findArenas(core);
  const pools = arenas === null ? null : countPools(core, arenas);
  const heap = readGlibcHeap(core, "full", arenas === null ? [] : arenaRanges(arenas));
  const stacks = findThreadStacks(core, core.stackPointers);
  const pages = new HeldPages(core);
  const presentOf = (start: number, end: number) => pages.within(start, end);
  const mappings = core.mappings.map((mapping) => {
    const present = presentOf(mapping.start, mapping.end);
    const rssBytes = present.reduce((sum, { start, end }) => sum + end - start, 0);
    return { ...mapping, rssBytes, cleanBytes: 0, dirtyBytes: 0 };
  });
  const trimBytes =
    heap === null ? null : wholePages(heap.trimmable.starts, heap.trimmable.ends, presentOf);
  const claims = claimsOf({ arenas, pools, heap, stacks });
  const parts = divideAll(mappings, presentOf, claims, trimBytes);
  const bundled = hasMuchUnknown(parts) ? bundledAllocators(core) : [];
  return {
    pid: core.leftBy,
    python: python?.version ?? "",
    atMs: core.writtenMs,
    tookMs: Math.round((performance.now() - started) * 10) / 10,
    bytes: pages.heldBytes - pages.zeroBytes,
    heldBytes: pages.heldBytes,
    zeroBytes: pages.zeroBytes,
    vmsBytes: mappings.reduce((sum, { start, end }) => sum + end - start, 0),
    truncatedBytes: core.gaps.truncatedBytes,
    leftOutBytes: core.gaps.leftOutBytes,
    parts,
    malloc: heap === null ? null : mallocFigures(heap),
    pymalloc: arenas === null ? null : pythonFigures(arenas, pools),
    limits: limitsOf(core.mappings, python, arenas, pools, heap, bundled),
  };
}

/** null if the program has no Python; without a version if its Python is unknown or incomplete. */
function pythonOf(core: CoreMemory): { version: string; freeThreaded: boolean } | null {
  const freeThreaded = core.mappings.some(({ path }) => FREE_THREADED.test(path));
  try {
    return { version: locatePython(core).version, freeThreaded };
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    return error.id === "TM-E022" && core.gaps.truncatedBytes === 0
      ? null
      : { version: "", freeThreaded };
  }
}

const FREE_THREADED = /\/(?:lib)?python3\.\d+t(?:\.so[^/]*)?$/;
