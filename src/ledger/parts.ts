/** All mappings of a program divided among the ledger's parts. */

import type { AddressRange, Mapping } from "../linux/memory/memory.js";
import { itemAt } from "../model/base/columns.js";
import type { Address, Bytes } from "../model/base/units.js";
import { LEDGER_PARTS, type LedgerPart, type LedgerPartName } from "../model/profile/ledger.js";
import type { Claim } from "./claims.js";
import { divideMapping } from "./divide.js";
import { endsWithDetach, partsByName } from "./named_parts.js";
import { reclaimOf } from "./reclaim.js";

/** The present part of a mapping: resident, or in the core file. */
export interface PresentMapping extends Mapping {
  readonly rssBytes: Bytes;
  /** As in smaps; 0 if unknown. */
  readonly cleanBytes: Bytes;
  readonly dirtyBytes: Bytes;
}

/** The present pages of [start, end). */
type PresentPages = (start: Address, end: Address) => readonly AddressRange[];

/**
 * One row for each of {@link LEDGER_PARTS}; they add up to the mappings' bytes. `trimBytes`: the bytes that
 * malloc_trim(0) would release; null if there is no glibc heap.
 */
export function divideAll(
  mappings: readonly PresentMapping[],
  presentOf: PresentPages,
  claims: readonly Claim[],
  trimBytes: Bytes | null,
): LedgerPart[] {
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
    const otherwise = itemAt(names, index);
    while (claim < claims.length && itemAt(claims, claim).end <= mapping.start) {
      claim += 1;
    }
    const claimed = claim < claims.length && itemAt(claims, claim).start < mapping.end;
    if (claimed && mapping.inode === 0 && mapping.rssBytes > 0) {
      const present = presentOf(mapping.start, mapping.end);
      for (const [part, bytes] of divideMapping(mapping, present, claims, otherwise)) {
        add(part, bytes, 0, 0);
      }
    } else {
      add(otherwise, mapping.rssBytes, mapping.cleanBytes, mapping.dirtyBytes);
    }
  });
  const poolBytes = mappings
    .filter(endsWithDetach)
    .reduce((sum, { rssBytes }) => sum + rssBytes, 0);
  return partRows(parts, { trimBytes, poolBytes });
}

interface PartBytes {
  readonly bytes: Bytes;
  readonly clean: Bytes;
  readonly dirty: Bytes;
}

function partRows(
  divided: ReadonlyMap<LedgerPartName, PartBytes>,
  reclaimable: Parameters<typeof reclaimOf>[2],
): LedgerPart[] {
  return LEDGER_PARTS.map((part) => {
    const { bytes, clean, dirty } = divided.get(part) ?? { bytes: 0, clean: 0, dirty: 0 };
    const whole = clean + dirty === bytes;
    return {
      part,
      bytes,
      cleanBytes: whole ? clean : 0,
      dirtyBytes: whole ? dirty : 0,
      ...reclaimOf(part, bytes, reclaimable),
    };
  });
}
