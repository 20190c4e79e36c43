/**
 * A live process's RSS divided into parts. In this order, the process running on:
 *
 *   1 maps, Python's arenas (and, in full, each pool), glibc's heap (in full, each chunk)
 *   2 stack pointers of waiting threads, and stacks by their shape
 *   3 smaps: the sums that all is scaled to
 *   4 pagemap, for the mappings that are divided
 *
 * What changes between 1 and 4 blurs the border between used and free, never the sum.
 *
 * | failure | outcome |
 * |---|---|
 * | no such process, not ours to read | TM-E020, TM-E021 |
 * | no smaps (the kernel's configuration, a sandbox) | TM-E040 |
 * | no Python, no glibc, another allocator | the same memory by its mappings' names; `limits` says so |
 * | torn or damaged heap | what could be read; the rest of it counts as used, `limits` says how much |
 */
import { countPools, findArenas } from "../cpython/arenas.js";
import {
  openProcessMemory,
  readInterpreter,
  readSmaps,
  readStackPointers,
  readStatus,
} from "../linux/index.js";
import type { Memory } from "../linux/memory.js";
import type { ResidentMapping } from "../linux/smaps.js";
import { processGone } from "../model/errors.js";
import {
  LEDGER_PARTS,
  type Ledger,
  type LedgerPart,
  type LedgerPartName,
} from "../model/ledger.js";
import { noResidentFigures } from "../model/ledger_errors.js";
import type { Bytes, Pid } from "../model/units.js";
import { readGlibcHeap } from "../native/glibc_heap.js";
import { arenaRanges, type Claim, claimsOf } from "./claims.js";
import { divideMapping, wholePages } from "./divide.js";
import { limitsOf, mallocFigures, pythonFigures } from "./figures.js";
import { partsByName } from "./named_parts.js";
import { reclaimOf } from "./reclaim.js";
import { findThreadStacks } from "./thread_stacks.js";

/** Throws TM-E020 (gone) or TM-E021 (not permitted). */
export function readLedger(pid: Pid, depth: "cheap" | "full"): Ledger {
  const started = performance.now();
  const atMs = Date.now();
  const memory = openProcessMemory(pid);
  try {
    const arenas = findArenas(memory);
    const pools = arenas === null || depth === "cheap" ? null : countPools(memory, arenas);
    const heap = readGlibcHeap(memory, depth, arenas === null ? [] : arenaRanges(arenas));
    const stacks = findThreadStacks(memory, readStackPointers(pid));
    const claims = claimsOf({ arenas, pools, heap, stacks });
    const mappings = readSmaps(pid);
    const status = readStatus(pid);
    if (status === null || !memory.refresh()) {
      throw processGone(pid);
    }
    if (mappings === null || mappings.length === 0) {
      throw noResidentFigures(pid);
    }
    const divided = divide(memory, mappings, claims);
    const trimBytes =
      heap === null
        ? null
        : wholePages(heap.trimmable.starts, heap.trimmable.ends, (start, end) =>
            memory.resident(start, end),
          );
    const total = (of: (mapping: ResidentMapping) => Bytes) =>
      mappings.reduce((sum, mapping) => sum + of(mapping), 0);
    return {
      pid,
      atMs,
      depth,
      tookMs: Math.round((performance.now() - started) * 10) / 10,
      rssBytes: total(({ rssBytes }) => rssBytes),
      pssBytes: total(({ pssBytes }) => pssBytes),
      ussBytes: total((mapping) => mapping.privateCleanBytes + mapping.privateDirtyBytes),
      swapBytes: total(({ swapBytes }) => swapBytes),
      vmsBytes: status.vmsBytes,
      anonymousHugeBytes: total(({ anonymousHugeBytes }) => anonymousHugeBytes),
      hugetlbBytes: total(({ hugetlbBytes }) => hugetlbBytes),
      parts: partRows(divided, trimBytes),
      malloc: heap === null ? null : mallocFigures(heap),
      python: arenas === null ? null : pythonFigures(arenas, pools),
      limits: limitsOf(mappings, readInterpreter(pid), arenas, pools, heap),
    };
  } finally {
    memory.close();
  }
}

interface PartBytes {
  bytes: Bytes;
  clean: Bytes;
  dirty: Bytes;
}

type Divided = ReadonlyMap<LedgerPartName, PartBytes>;

function divide(
  memory: Memory,
  mappings: readonly ResidentMapping[],
  claims: readonly Claim[],
): Divided {
  const parts = new Map<LedgerPartName, PartBytes>();
  const add = (part: LedgerPartName, bytes: Bytes, clean: Bytes, dirty: Bytes) => {
    const sum = parts.get(part) ?? { bytes: 0, clean: 0, dirty: 0 };
    parts.set(part, {
      bytes: sum.bytes + bytes,
      clean: sum.clean + clean,
      dirty: sum.dirty + dirty,
    });
  };
  const names = partsByName(mappings);
  let claim = 0;
  mappings.forEach((mapping, index) => {
    const otherwise = names[index] as LedgerPartName;
    while (claim < claims.length && claims[claim]!.end <= mapping.start) {
      claim += 1;
    }
    const claimed = claim < claims.length && claims[claim]!.start < mapping.end;
    if (claimed && mapping.inode === 0 && mapping.rssBytes > 0) {
      const resident = memory.resident(mapping.start, mapping.end);
      for (const [part, bytes] of divideMapping(mapping, resident, claims, otherwise)) {
        add(part, bytes, 0, 0);
      }
    } else {
      add(
        otherwise,
        mapping.rssBytes,
        mapping.sharedCleanBytes + mapping.privateCleanBytes,
        mapping.sharedDirtyBytes + mapping.privateDirtyBytes,
      );
    }
  });
  return parts;
}

function partRows(divided: Divided, trimBytes: Bytes | null): LedgerPart[] {
  return LEDGER_PARTS.map((part) => {
    const { bytes, clean, dirty } = divided.get(part) ?? { bytes: 0, clean: 0, dirty: 0 };
    const whole = clean + dirty === bytes;
    return {
      part,
      bytes,
      cleanBytes: whole ? clean : 0,
      dirtyBytes: whole ? dirty : 0,
      ...reclaimOf(part, bytes, trimBytes),
    };
  });
}
