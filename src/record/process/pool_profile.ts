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
  type SegmentSnapshot,
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

/** An open pool file. */
export interface PoolFile {
  readonly descriptor: number;
  /** For messages. */
  readonly source: string;
}

/**
 * One snapshot of every segment of a pool, or of those of the process `only`, and of the children of these processes
 * that left pools of their own among `others`. Throws TidemarkError if it is not a pool or has another version.
 */
export function profilePool(
  file: PoolFile,
  only: Pid | null = null,
  others: readonly PoolFile[] = [],
): PoolProfile {
  const pool = new PoolReader(file.descriptor, file.source);
  const header = pool.header();
  const assembler = new ProfileAssembler({ symbols: new Symboliser() });
  const processes: SegmentHeader[] = [];
  const unread: string[] = [];
  const add = (found: SegmentSnapshot) => {
    assembler.renew(assembler.begin(found.header), found);
    processes.push(found.header);
  };
  segmentsOf(file, pool, unread, only).forEach(add);
  let waiting = others;
  for (let before = 0; before < processes.length; ) {
    before = processes.length;
    waiting = waiting.filter((other) => {
      const children = childrenIn(other, processes);
      children.forEach(add);
      return children.length === 0;
    });
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

/** The readable segments, or those of the process `only`. A process that overwrote its segment does not affect the profiles of the others. */
function segmentsOf(
  { descriptor, source }: PoolFile,
  pool: PoolReader,
  unread: string[],
  only: Pid | null = null,
): SegmentSnapshot[] {
  const slots = pool.slots().filter(({ pid }) => only === null || pid === only);
  return slots.flatMap((slot) => {
    try {
      return new SegmentReader(descriptor, pool.slotRange(slot.index), source).snapshot() ?? [];
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      unread.push(`process ${slot.pid}: its profile cannot be read: ${error.what}`);
      return [];
    }
  });
}

/** The children of known processes in another pool; none if it is damaged. */
function childrenIn(file: PoolFile, known: readonly SegmentHeader[]): SegmentSnapshot[] {
  try {
    return segmentsOf(file, new PoolReader(file.descriptor, file.source), []).filter(
      ({ header: { parentPid, startRealtimeMs } }) =>
        known.some((one) => one.pid === parentPid && one.startRealtimeMs <= startRealtimeMs),
    );
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    return [];
  }
}
