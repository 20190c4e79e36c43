import type { Bytes } from "../model/base/units.js";
import type { LedgerPart, LedgerPartName, Reclaim } from "../model/profile/ledger.js";

const WAYS: Readonly<Record<LedgerPartName, Reclaim>> = {
  "python.used": "gc-collect",
  // Python releases an arena by itself, but only when its last block is freed.
  "python.free": "nothing",
  "malloc.used": "program",
  "malloc.free": "malloc-trim",
  "anon.other": "program",
  "file.mapped": "close-file",
  libraries: "nothing",
  stacks: "end-threads",
  shm: "unlink",
  "gpu.driver": "nothing",
  tidemark: "detach",
  unexplained: "nothing",
};

/**
 * How a part can be released, and how much, if known. `trimBytes`: whole resident pages inside free chunks; null where
 * there is no glibc heap. `poolBytes`: the agent's memory apart from its library.
 */
export function reclaimOf(
  part: LedgerPartName,
  bytes: Bytes,
  { trimBytes, poolBytes }: { readonly trimBytes: Bytes | null; readonly poolBytes: Bytes },
): Pick<LedgerPart, "reclaim" | "reclaimBytes"> {
  const reclaim = WAYS[part];
  switch (reclaim) {
    case "malloc-trim":
      return { reclaim, reclaimBytes: trimBytes === null ? null : Math.min(bytes, trimBytes) };
    case "detach":
      return { reclaim: poolBytes === 0 ? "nothing" : reclaim, reclaimBytes: poolBytes };
    case "close-file":
      return { reclaim, reclaimBytes: bytes };
    case "nothing":
      return { reclaim, reclaimBytes: 0 };
    default:
      return { reclaim, reclaimBytes: null };
  }
}
