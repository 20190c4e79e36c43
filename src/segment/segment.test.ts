import { ftruncateSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { TidemarkError } from "../model/errors.js";
import { Domain, type ProfileLook, type ProfileTables } from "../model/profile.js";
import { ProfileAssembler } from "./assembler.js";
import { CONSTANTS, POOL_HEADER, SECTION, SEGMENT_HEADER, SITE, STACK_NODE } from "./layout.js";
import { PoolFixture, START_REALTIME_MS } from "./pool.fixture.js";
import { PoolReader } from "./pool.js";
import { SegmentReader } from "./reader.js";

let pool: PoolFixture;
afterEach(() => pool.close());

/** A pool with one process that has two threads, three sites and a few live allocations. */
function pythonProcess() {
  pool = new PoolFixture();
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

function readerOf(slot = 1): SegmentReader {
  const fd = pool.open();
  return new SegmentReader(fd, new PoolReader(fd).slotRange(slot));
}

function profileAfter(
  reader: SegmentReader,
  afterMs: number,
): { tables: ProfileTables; look: ProfileLook } {
  const assembler = new ProfileAssembler();
  const look = reader.look()!;
  assembler.renew(assembler.begin(look.header), look);
  return assembler.take(START_REALTIME_MS + afterMs);
}

/** "main;load" for each site. */
function stackTexts({ tables, look }: { tables: ProfileTables; look: ProfileLook }): string[] {
  return Array.from(look.sites.stack, (leaf) => {
    const names: string[] = [];
    for (let stack = leaf; stack !== 0; stack = tables.stacks.parent[stack]!) {
      const frame = tables.stacks.frame[stack]!;
      const name = tables.strings[tables.frames.function[frame]!]!;
      names.unshift(
        name ||
          `${tables.strings[tables.frames.file[frame]!]}+${tables.frames.address[frame]!.toString(16)}`,
      );
    }
    return names.join(";");
  });
}

describe("a pool", () => {
  it("names its claimed slots", () => {
    pythonProcess();
    const reader = new PoolReader(pool.open());
    expect(reader.header()).toMatchObject({
      slotCount: 4,
      runId: "0000000000abcdef",
      periodBytes: 65536,
    });
    expect(reader.slots()).toEqual([
      { index: 1, pid: 42, processStartTicks: 77, claimedMs: 0, image: 1 },
    ]);
    reader.freeSlot(1);
    expect(reader.slots()).toEqual([]);
    reader.setLease(123_456_789_012);
    expect(reader.header().leaseUntilMs).toBe(123_456_789_012);
  });

  it("is refused by name when it is of another kind, version or size", () => {
    pool = new PoolFixture();
    expect(() => new PoolReader(pool.open(new Uint8Array(0)))).toThrow("TM-E007");
    expect(() => new PoolReader(pool.open(new Uint8Array(9000).fill(0x41)))).toThrow("TM-E007");
    expect(() => new PoolReader(pool.open(pool.bytes.subarray(0, 60)))).toThrow("TM-E005");
    pool.view.setUint32(POOL_HEADER.version, 9, true);
    expect(() => new PoolReader(pool.open())).toThrow(/TM-E006 .*version 9.*newer/);
    pool.view.setUint32(POOL_HEADER.version, CONSTANTS.TM_SEGMENT_VERSION, true);
    pool.view.setUint32(POOL_HEADER.slot_count, 0xffffffff, true);
    expect(() => new PoolReader(pool.open())).toThrow("TM-E005");
    pool.view.setUint32(POOL_HEADER.slot_count, 4, true);
    pool.view.setBigUint64(POOL_HEADER.slot_stride, 2n ** 60n, true);
    expect(() => new PoolReader(pool.open())).toThrow("TM-E005");
  });
});

describe("a segment", () => {
  it("becomes a profile", () => {
    pythonProcess();
    const profile = profileAfter(readerOf(), 4000);
    const { tables, look } = profile;
    expect(stackTexts(profile)).toEqual(["main;load", "main;load;libx.so+1f0", "main;parse"]);
    expect([...look.sites.liveBytes]).toEqual([300_000, 5000, 0]);
    expect([...look.sites.allocatedBytes]).toEqual([900_000, 5000, 70_000]);
    expect([...look.sites.peakBytes]).toEqual([400_000, 0, 0]);
    expect([...look.sites.liveSamples]).toEqual([3, 1, 0]);
    expect([...look.sites.domain]).toEqual([Domain.python, Domain.native, Domain.python]);
    expect([...look.sites.lifetimes.subarray(48, 52)]).toEqual([1, 2, 3, 0]);
    expect(tables.processes).toEqual([
      {
        pid: 42,
        parentPid: 1,
        command: ["python", "app.py"],
        python: "3.11.7",
        startedMs: START_REALTIME_MS,
        periodBytes: 65536,
      },
    ]);
    expect(tables.threads.map(({ tid, name, isMain }) => [tid, name, isMain])).toEqual([
      [42, "python", true],
      [43, "loader", false],
    ]);
    const label = look.sites.label[1]!;
    expect(tables.strings[tables.labels.key[label]!]).toBe("endpoint");
    expect(tables.strings[tables.labels.value[label]!]).toBe("/x");
    expect(look.sites.label[0]).toBe(0);
    expect(look.durationMs).toBe(4000);
  });

  it("asks for the names of native frames, object by object, once", () => {
    const segment = pythonProcess();
    segment.site("main;libx.so+2a0", { live: 1 });
    const asked: unknown[] = [];
    const assembler = new ProfileAssembler({
      names: (pid, startedMs, path, addresses) => {
        asked.push([pid, startedMs, path, addresses]);
        return ["grow_buffer", ""];
      },
    });
    const reader = readerOf();
    const process = assembler.begin(reader.look()!.header);
    assembler.renew(process, reader.look()!);
    assembler.renew(process, reader.look()!);
    expect(asked).toEqual([[42, START_REALTIME_MS, "libx.so", [0x1f0, 0x2a0]]]);
    expect(stackTexts(assembler.take(START_REALTIME_MS + 1000))).toEqual([
      "main;load",
      "main;load;grow_buffer",
      "main;parse",
      "main;libx.so+2a0",
    ]);
  });

  it("shows when each site's bytes were born", () => {
    pythonProcess();
    const { look } = profileAfter(readerOf(), 4000);
    expect(look.cohorts).toHaveLength(16);
    expect(look.cohorts.at(-1)).toBe(START_REALTIME_MS + 4000);
    const row = [...look.sites.cohortBytes.subarray(0, 16)];
    expect(row[0]).toBeCloseTo(200_000);
    expect(row[15]).toBeCloseTo(100_000);
    for (let site = 0; site < look.sites.length; site++) {
      const cohorts = look.sites.cohortBytes.subarray(site * 16, site * 16 + 16);
      expect(cohorts.reduce((sum, bytes) => sum + bytes, 0)).toBeCloseTo(
        look.sites.liveBytes[site]!,
      );
    }
  });

  it("follows what its owner writes between looks", () => {
    const segment = pythonProcess();
    const reader = readerOf();
    const assembler = new ProfileAssembler();
    const first = reader.look()!;
    const process = assembler.begin(first.header);
    assembler.renew(process, first);
    segment.rewrite(0, { live: 1_000_000, liveSamples: 9 });
    segment.site("main;new", { live: 64 });
    pool.save();
    assembler.renew(process, reader.look()!);
    const profile = assembler.take(START_REALTIME_MS + 5000);
    expect(stackTexts(profile)).toContain("main;new");
    expect([...profile.look.sites.liveBytes]).toEqual([1_000_000, 5000, 0, 64]);
    assembler.end(process);
    const after = assembler.take(START_REALTIME_MS + 6000);
    expect([...after.look.sites.liveBytes]).toEqual([0, 0, 0, 0]);
    expect(after.look.sites.allocatedBytes[0]).toBe(1_000_000);
  });

  it("reads a block again only when its generation changed", () => {
    const segment = pythonProcess();
    const reader = readerOf();
    reader.look();
    const at = segment.record(CONSTANTS.TM_SECTION_SITES, 0);
    segment.view.setFloat64(at + SITE.live_bytes, 7, true);
    pool.save();
    expect(new DataView(reader.look()!.sites.bytes.buffer).getFloat64(SITE.live_bytes, true)).toBe(
      300_000,
    );
    segment.touch(CONSTANTS.TM_SECTION_SITES, 0);
    pool.save();
    expect(new DataView(reader.look()!.sites.bytes.buffer).getFloat64(SITE.live_bytes, true)).toBe(
      7,
    );
  });

  it("keeps the last whole copy of a record that stays torn, and says so", () => {
    const segment = pythonProcess();
    const reader = readerOf();
    const assembler = new ProfileAssembler();
    const first = reader.look()!;
    const process = assembler.begin(first.header);
    assembler.renew(process, first);
    const at = segment.record(CONSTANTS.TM_SECTION_SITES, 0);
    segment.view.setUint32(at + SITE.sequence_end, 99, true);
    segment.view.setFloat64(at + SITE.live_bytes, 1e15, true);
    segment.touch(CONSTANTS.TM_SECTION_SITES, 0);
    pool.save();
    const look = reader.look()!;
    expect(look.torn).toBe(1);
    assembler.renew(process, look);
    expect(assembler.take(START_REALTIME_MS + 5000).look.sites.liveBytes[0]).toBe(300_000);
    expect(assembler.limits()).toEqual(["process 42: 1 record was half written and left out"]);
    segment.view.setUint32(at + SITE.sequence_begin, 99, true);
    segment.view.setFloat64(at + SITE.live_bytes, 5, true);
    pool.save();
    expect(reader.look()!.torn).toBe(0);
  });

  it("counts peak figures only of the last peak", () => {
    const segment = pythonProcess();
    segment.view.setUint32(SEGMENT_HEADER.peak_number, 2, true);
    segment.rewrite(1, { live: 5, peak: 111, peakNumber: 2 });
    expect([...profileAfter(readerOf(), 4000).look.sites.peakBytes]).toEqual([0, 111, 0]);
  });

  it("takes a peak that was never finished with the one before", () => {
    const segment = pythonProcess();
    segment.rewrite(1, { live: 5, peak: 111, peakNumber: 2 });
    expect([...profileAfter(readerOf(), 4000).look.sites.peakBytes]).toEqual([400_000, 111, 0]);
  });

  it("gives steps and periods as events, each once, and counts those that the ring lost", () => {
    const segment = pythonProcess();
    const step = segment.label("step", "train");
    segment.event(CONSTANTS.TM_EVENT_STEP_BEGIN, 10, 1, step);
    segment.event(CONSTANTS.TM_EVENT_PERIOD, 20, 131072);
    const reader = readerOf();
    const assembler = new ProfileAssembler();
    const look = reader.look()!;
    const process = assembler.begin(look.header);
    assembler.renew(process, look);
    expect(assembler.takeEvents()).toEqual([
      { timeMs: START_REALTIME_MS + 10, pid: 42, kind: "step-begin", detail: "train", value: 1 },
      {
        timeMs: START_REALTIME_MS + 20,
        pid: 42,
        kind: "period",
        detail: "one sample every 131072 bytes",
        value: 131072,
      },
    ]);
    assembler.renew(process, reader.look()!);
    expect(assembler.takeEvents()).toEqual([]);
    for (let number = 0; number < 3000; number++) {
      segment.event(CONSTANTS.TM_EVENT_STEP_END, 30 + number, number, step);
    }
    pool.save();
    assembler.renew(process, reader.look()!);
    expect(assembler.takeEvents().map((event) => event.value)).toEqual(
      Array.from({ length: 2048 }, (_, index) => 952 + index),
    );
    expect(assembler.limits()[0]).toContain("952 events");
  });

  it("adds the oldest of many ended processes up as one, and loses no byte", () => {
    pythonProcess();
    const look = readerOf().look()!;
    const assembler = new ProfileAssembler();
    for (let pid = 1000; pid < 1600; pid++) {
      const process = assembler.begin(look.header, pid);
      assembler.renew(process, look);
      assembler.end(process);
    }
    const { tables, look: profile } = assembler.take(START_REALTIME_MS + 4000);
    const sum = (column: Float64Array) => column.reduce((total, value) => total + value, 0);
    expect(sum(profile.sites.allocatedBytes)).toBe(600 * 975_000);
    expect(sum(profile.sites.liveBytes)).toBe(0);
    expect(profile.sites.length).toBeLessThan(3 * 260);
    expect(tables.processes.some(({ command }) => command[0] === "ended processes")).toBe(true);
    expect(profile.peakMs).toHaveLength(tables.processes.length);
  });

  it("turns limits into sentences, one for many processes", () => {
    pool = new PoolFixture();
    for (const slot of [0, 1]) {
      const segment = pool.segment(slot, 50 + slot);
      segment.view.setUint32(
        SEGMENT_HEADER.limits,
        CONSTANTS.TM_LIMIT_UNKNOWN_PYTHON | (1 << 30),
        true,
      );
    }
    const fd = pool.open();
    const assembler = new ProfileAssembler();
    for (const { index } of new PoolReader(fd).slots()) {
      const look = new SegmentReader(fd, new PoolReader(fd).slotRange(index)).look()!;
      assembler.renew(assembler.begin(look.header), look);
    }
    expect(assembler.limits()).toEqual([
      "2 processes: Python 3.11.7 is not known to the agent: native memory only",
      "2 processes: the agent names a limit that this Tidemark does not know",
    ]);
  });

  it("waits for a moving layout, and reads one that will never settle", () => {
    const segment = pythonProcess();
    segment.view.setUint32(SEGMENT_HEADER.layout_generation, 7, true);
    expect(profileAfter(readerOf(), 4000).look.sites.length).toBe(3);
  });

  it("is null before its owner has set it up", () => {
    const segment = pythonProcess();
    segment.view.setUint32(SEGMENT_HEADER.state, CONSTANTS.TM_STATE_EMPTY, true);
    expect(readerOf().look()).toBeNull();
  });

  it("is refused when another process has taken it", () => {
    const segment = pythonProcess();
    const reader = readerOf();
    reader.look();
    segment.view.setUint32(SEGMENT_HEADER.pid, 99, true);
    pool.save();
    expect(() => reader.look()).toThrow("another process");
  });
});

describe("hostile segments", () => {
  it("cannot name what is not there", () => {
    const segment = pythonProcess();
    const stacks = segment.record(CONSTANTS.TM_SECTION_STACKS, 0);
    segment.view.setUint32(stacks + STACK_NODE.size + STACK_NODE.parent, 3, true); // a cycle
    segment.view.setUint32(stacks + 2 * STACK_NODE.size + STACK_NODE.frame, 0xfffffff0, true);
    const sites = segment.record(CONSTANTS.TM_SECTION_SITES, 1);
    segment.view.setUint32(sites + SITE.stack, 0xffffffff, true);
    segment.view.setUint32(sites + SITE.label, 0xffffffff, true);
    segment.view.setUint16(sites + SITE.thread, 0xffff, true);
    segment.view.setFloat64(sites + SITE.live_bytes, Number.NaN, true);
    segment.view.setFloat64(sites + SITE.allocated_bytes, -5, true);
    segment.view.setFloat64(sites + SITE.peak_bytes, 12, true);
    const { tables, look } = profileAfter(readerOf(), 4000);
    for (let row = 1; row < tables.stacks.length; row++) {
      expect(tables.stacks.parent[row]).toBeLessThan(row);
    }
    expect([...look.sites.liveBytes].every(Number.isFinite)).toBe(true);
    expect(look.sites.stack.every((stack) => stack < tables.stacks.length)).toBe(true);
  });

  it("cannot claim more than their slot", () => {
    for (const [field, value] of [
      [SECTION.capacity, 0xffffffff],
      [SECTION.stride, 1],
    ] as const) {
      const segment = pythonProcess();
      segment.view.setUint32(segment.section(CONSTANTS.TM_SECTION_SITES) + field, value, true);
      expect(() => readerOf().look()).toThrow("TM-E005");
      pool.close();
    }
    const segment = pythonProcess();
    segment.setCount(CONSTANTS.TM_SECTION_SITES, 0xffffffff);
    segment.view.setUint32(
      segment.section(CONSTANTS.TM_SECTION_SITES) + SECTION.block_records,
      0,
      true,
    );
    expect(profileAfter(readerOf(), 4000).look.sites.length).toBe(3);
  });

  it("may be cut off anywhere", () => {
    pythonProcess();
    const fd = pool.open();
    const range = new PoolReader(fd).slotRange(1);
    const end = range.offset + CONSTANTS.TM_PAGE + 7 * (64 << 10) - 100;
    for (let length = end; length >= 0; length -= length > 20_000 ? 4001 : 97) {
      ftruncateSync(fd, length);
      try {
        const reader = new SegmentReader(fd, new PoolReader(fd).slotRange(1));
        const look = reader.look();
        if (look !== null) {
          const assembler = new ProfileAssembler();
          assembler.renew(assembler.begin(look.header), look);
          assembler.take(START_REALTIME_MS + 4000);
          expect(look.missing).toBeGreaterThan(0);
        }
      } catch (error) {
        expect(error).toBeInstanceOf(TidemarkError);
      }
    }
  });

  it("may hold any bytes", () => {
    pythonProcess();
    const original = pool.bytes.slice();
    let seed = 1;
    const random = () => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      return seed / 2 ** 32;
    };
    const start = pool.slotsOffset + (1 << 20);
    for (let round = 0; round < 200; round++) {
      pool.bytes.set(original);
      for (let change = 0; change < 200; change++) {
        // Half of them within the header, the rest anywhere in the used part.
        const within = change % 2 === 0 ? 4096 : 540_000;
        pool.bytes[start + 12 + Math.floor(random() * within)] = Math.floor(random() * 256);
      }
      try {
        profileAfter(readerOf(), 4000);
      } catch (error) {
        expect(error).toBeInstanceOf(TidemarkError);
      }
      pool.close();
    }
  });
});
