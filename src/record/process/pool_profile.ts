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

/** What a pool holds that no recorder watches any more. */
interface PoolProfile {
  readonly header: PoolHeader;
  /** One a process image whose segment could be read, in the order of the slots. */
  readonly processes: readonly SegmentHeader[];
  readonly assembler: ProfileAssembler;
  /** What the profile cannot show, and why: sentences. */
  readonly limits: readonly string[];
}

/** One look at every segment of a pool, or at those of the process `only`. Throws TidemarkError where it is no pool, or
 * of another version. */
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
      const found = new SegmentReader(descriptor, pool.slotRange(slot.index), source).look();
      if (found) {
        assembler.renew(assembler.begin(found.header), found);
        processes.push(found.header);
      }
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      // One process that wrote where it should not does not take the others' profiles along.
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
