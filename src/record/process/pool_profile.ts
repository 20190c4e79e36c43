import type { Pid } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { Symboliser } from "../../native/index.js";
import {
  type PoolHeader,
  PoolReader,
  ProfileAssembler,
  poolLimits,
  type SegmentHeader,
  SegmentReader,
} from "../../segment/index.js";

/** The contents of a pool without a recorder. */
interface PoolProfile {
  readonly header: PoolHeader;
  /** One per process image with a readable segment, in the order of the slots. */
  readonly processes: readonly SegmentHeader[];
  readonly assembler: ProfileAssembler;
  /** Sentences about what the profile cannot show, and why. */
  readonly limits: readonly string[];
}

/**
 * One snapshot of every segment of a pool, or of those of the process `only`. Throws TidemarkError if it is not
 * a pool or has another version.
 */
export function profilePool(
  descriptor: number,
  source: string,
  only: Pid | null = null,
): PoolProfile {
  const pool = new PoolReader(descriptor, source);
  const header = pool.header();
  const assembler = new ProfileAssembler({ symbols: new Symboliser() });
  const processes: SegmentHeader[] = [];
  const unread: string[] = [];
  for (const slot of pool.slots()) {
    if (only !== null && slot.pid !== only) {
      continue;
    }
    try {
      const found = new SegmentReader(descriptor, pool.slotRange(slot.index), source).snapshot();
      if (found) {
        assembler.renew(assembler.begin(found.header), found);
        processes.push(found.header);
      }
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      // A process that overwrote its segment does not affect the profiles of the others.
      unread.push(`process ${slot.pid}: its profile cannot be read: ${error.what}`);
    }
  }
  return {
    header,
    processes,
    assembler,
    limits: [
      ...assembler.limits(),
      ...unread,
      ...poolLimits(header.unserved, header.unservedReason),
    ],
  };
}
