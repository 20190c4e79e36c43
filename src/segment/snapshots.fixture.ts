/** The process that most tests read, and snapshots of it. */

import { float64At, itemAt, uint32At } from "../model/base/columns.js";
import { present } from "../model/base/present.js";
import { Domain, type ProfileSnapshot, type ProfileTables } from "../model/profile/profile.js";
import { ProfileAssembler } from "./assembler.js";
import { type PoolFixture, type SegmentFixture, START_REALTIME_MS } from "./pool.fixture.js";
import { PoolReader } from "./pool.js";
import { SegmentReader } from "./reader.js";

/** A pool with one process that has two threads, three sites and a few live allocations. */
export function addPythonProcess(pool: PoolFixture): SegmentFixture {
  const segment = pool.segment(1, 42);
  const main = segment.thread(42, "python");
  const worker = segment.thread(43, "loader");
  const label = segment.label("endpoint", "/x");
  const load = segment.site("main;load", {
    live: 300_000,
    liveSamples: 3,
    allocated: 900_000,
    peak: 400_000,
  });
  segment.site("main;load;libx.so+1f0", {
    live: 5000,
    domain: Domain.native,
    thread: worker,
    label,
  });
  segment.site("main;parse", { allocated: 70_000, thread: main, lifetimes: [1, 2, 3] });
  segment.live(5, load, 100_000, 100);
  segment.live(900, load, 100_000, 100);
  segment.live(901, load, 100_000, 3900);
  return segment;
}

/** A reader of slot 1 as the pool is now. */
export function readerOf(pool: PoolFixture): SegmentReader {
  const fd = pool.open();
  return new SegmentReader(fd, new PoolReader(fd).slotRange(1));
}

/** A snapshot taken so long after the start. */
export function profileAfter(
  reader: SegmentReader,
  afterMs: number,
): { tables: ProfileTables; snapshot: ProfileSnapshot } {
  const assembler = new ProfileAssembler();
  const snapshot = present(reader.snapshot());
  assembler.renew(assembler.begin(snapshot.header), snapshot);
  return assembler.take(START_REALTIME_MS + afterMs);
}

/** "main;load" for each site. */
export function stackTexts({
  tables,
  snapshot,
}: {
  tables: ProfileTables;
  snapshot: ProfileSnapshot;
}): string[] {
  return Array.from(snapshot.sites.stack, (leaf) => {
    const names: string[] = [];
    for (let stack = leaf; stack !== 0; stack = uint32At(tables.stacks.parent, stack)) {
      const frame = uint32At(tables.stacks.frame, stack);
      const name = itemAt(tables.strings, uint32At(tables.frames.function, frame));
      names.unshift(
        name ||
          `${tables.strings[uint32At(tables.frames.file, frame)]}+${float64At(tables.frames.address, frame).toString(16)}`,
      );
    }
    return names.join(";");
  });
}
