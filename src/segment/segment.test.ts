import { afterEach, describe, expect, it } from "vitest";
import { float64At, uint32At } from "../model/base/columns.js";
import { present } from "../model/base/present.js";
import { Domain } from "../model/profile/profile.js";
import { ProfileAssembler } from "./assembler.js";
import { CONSTANTS, SEGMENT_HEADER, SITE } from "./layout.js";
import { PoolFixture, type SegmentFixture, START_REALTIME_MS } from "./pool.fixture.js";
import { PoolReader } from "./pool.js";
import { SegmentReader } from "./reader.js";
import { addPythonProcess, profileAfter, readerOf, stackTexts } from "./snapshots.fixture.js";

let pool: PoolFixture;
afterEach(() => pool.close());

function pythonProcess(): SegmentFixture {
  pool = new PoolFixture();
  return addPythonProcess(pool);
}

describe("a segment", () => {
  it("becomes a profile", () => {
    pythonProcess();
    const profile = profileAfter(readerOf(pool), 4000);
    const { tables, snapshot } = profile;
    expect(stackTexts(profile)).toEqual(["main;load", "main;load;libx.so+1f0", "main;parse"]);
    expect([...snapshot.sites.liveBytes]).toEqual([300_000, 5000, 0]);
    expect([...snapshot.sites.allocatedBytes]).toEqual([900_000, 5000, 70_000]);
    expect([...snapshot.sites.peakBytes]).toEqual([400_000, 0, 0]);
    expect([...snapshot.sites.liveSamples]).toEqual([3, 1, 0]);
    expect([...snapshot.sites.domain]).toEqual([Domain.python, Domain.native, Domain.python]);
    expect([...snapshot.sites.lifetimes.subarray(48, 52)]).toEqual([1, 2, 3, 0]);
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
      [42, "MainThread", true],
      [43, "loader", false],
    ]);
    const label = uint32At(snapshot.sites.label, 1);
    expect(tables.strings[uint32At(tables.labels.key, label)]).toBe("endpoint");
    expect(tables.strings[uint32At(tables.labels.value, label)]).toBe("/x");
    expect(snapshot.sites.label[0]).toBe(0);
    expect(snapshot.durationMs).toBe(4000);
  });

  it("asks for the names of native frames, object by object, once", () => {
    const segment = pythonProcess();
    segment.site("main;libx.so+2a0", { live: 1 });
    const asked: unknown[] = [];
    const assembler = new ProfileAssembler({
      symbols: {
        names: (pid, startedMs, path, addresses) => {
          asked.push([pid, startedMs, path, addresses]);
          return ["grow_buffer", ""];
        },
      },
    });
    const reader = readerOf(pool);
    const process = assembler.begin(present(reader.snapshot()).header);
    assembler.renew(process, present(reader.snapshot()));
    assembler.renew(process, present(reader.snapshot()));
    expect(asked).toEqual([[42, START_REALTIME_MS, "libx.so", [0x1f0, 0x2a0]]]);
    expect(stackTexts(assembler.take(START_REALTIME_MS + 1000))).toEqual([
      "main;load",
      "main;load;grow_buffer",
      "main;parse",
      "main;libx.so+2a0",
    ]);
  });

  it("requests the program's thread names: not for a single main thread, and not forever", () => {
    pool = new PoolFixture();
    const segment = pool.segment(1, 42);
    const main = segment.thread(42, "python");
    segment.site("main", { live: 1, thread: main });
    let [asked, known] = [0, null as ReadonlyMap<number, string> | null];
    const names = () => {
      asked += 1;
      return known;
    };
    const assembler = new ProfileAssembler({ threads: { names } });
    const reader = readerOf(pool);
    const process = assembler.begin(present(reader.snapshot()).header);
    const snapshot = () => {
      pool.save();
      assembler.renew(process, present(reader.snapshot()));
      const { threads } = assembler.take(START_REALTIME_MS + 1000).tables;
      return threads.map(({ tid, name }) => `${tid} ${name}`);
    };
    expect(snapshot()).toEqual(["42 MainThread"]);
    expect(asked).toBe(0);
    segment.thread(43, "python");
    segment.thread(44, "grpc");
    segment.thread(43, "python"); // the kernel gave the number of a thread that has ended again
    expect(snapshot()).toEqual(["42 MainThread", "43 python", "44 grpc", "43 python"]);
    known = new Map([
      [42, "acceptor"],
      [43, "loader"],
    ]);
    for (let again = 0; again < 5; again++) {
      expect(snapshot()).toEqual(["42 acceptor", "43 python", "44 grpc", "43 loader"]);
    }
    expect(asked).toBe(1 + 3);
  });

  it("shows when each site's bytes were allocated", () => {
    pythonProcess();
    const { snapshot } = profileAfter(readerOf(pool), 4000);
    expect(snapshot.cohorts).toHaveLength(16);
    expect(snapshot.cohorts.at(-1)).toBe(START_REALTIME_MS + 4000);
    const row = [...snapshot.sites.cohortBytes.subarray(0, 16)];
    expect(row[0]).toBeCloseTo(200_000);
    expect(row[15]).toBeCloseTo(100_000);
    for (let site = 0; site < snapshot.sites.length; site++) {
      const cohorts = snapshot.sites.cohortBytes.subarray(site * 16, site * 16 + 16);
      expect(cohorts.reduce((sum, bytes) => sum + bytes, 0)).toBeCloseTo(
        float64At(snapshot.sites.liveBytes, site),
      );
    }
  });

  it("follows what its owner writes between readings", () => {
    const segment = pythonProcess();
    const reader = readerOf(pool);
    const assembler = new ProfileAssembler();
    const first = present(reader.snapshot());
    const process = assembler.begin(first.header);
    assembler.renew(process, first);
    segment.rewrite(0, { live: 1_000_000, liveSamples: 9 });
    segment.site("main;new", { live: 64 });
    pool.save();
    assembler.renew(process, present(reader.snapshot()));
    const profile = assembler.take(START_REALTIME_MS + 5000);
    expect(stackTexts(profile)).toContain("main;new");
    expect([...profile.snapshot.sites.liveBytes]).toEqual([1_000_000, 5000, 0, 64]);
    assembler.end(process);
    const after = assembler.take(START_REALTIME_MS + 6000);
    expect([...after.snapshot.sites.liveBytes]).toEqual([0, 0, 0, 0]);
    expect(after.snapshot.sites.allocatedBytes[0]).toBe(1_000_000);
  });

  it("reports the stack that opened each descriptor last", () => {
    const segment = pythonProcess();
    segment.opening(3, "main;load", 2);
    segment.opening(70, "main;parse", 3);
    const reader = readerOf(pool);
    const assembler = new ProfileAssembler();
    const process = assembler.begin(present(reader.snapshot()).header);
    const openings = () => {
      assembler.renew(process, present(reader.snapshot()));
      return assembler
        .openings()
        .get(42)
        ?.map(({ descriptor, openedMs }) => [descriptor, openedMs - START_REALTIME_MS]);
    };
    expect(openings()).toEqual([
      [3, 2000],
      [70, 3000],
    ]);
    segment.opening(3, "", 4); // opened again, by an unknown stack
    segment.opening(70, "main;load", 9);
    pool.save();
    expect(openings()).toEqual([[70, 9000]]);
  });

  it("reads a block again only when its generation changed", () => {
    const segment = pythonProcess();
    const reader = readerOf(pool);
    reader.snapshot();
    const at = segment.record(CONSTANTS.TM_SECTION_SITES, 0);
    segment.view.setFloat64(at + SITE.live_bytes, 7, true);
    pool.save();
    expect(
      new DataView(present(reader.snapshot()).sites.bytes.buffer).getFloat64(SITE.live_bytes, true),
    ).toBe(300_000);
    segment.touch(CONSTANTS.TM_SECTION_SITES, 0);
    pool.save();
    expect(
      new DataView(present(reader.snapshot()).sites.bytes.buffer).getFloat64(SITE.live_bytes, true),
    ).toBe(7);
  });

  it("keeps the last complete copy of a record that stays torn, and reports it", () => {
    const segment = pythonProcess();
    const reader = readerOf(pool);
    const assembler = new ProfileAssembler();
    const first = present(reader.snapshot());
    const process = assembler.begin(first.header);
    assembler.renew(process, first);
    const at = segment.record(CONSTANTS.TM_SECTION_SITES, 0);
    segment.view.setUint32(at + SITE.sequence_end, 99, true);
    segment.view.setFloat64(at + SITE.live_bytes, 1e15, true);
    segment.touch(CONSTANTS.TM_SECTION_SITES, 0);
    pool.save();
    const snapshot = present(reader.snapshot());
    expect(snapshot.torn).toBe(1);
    assembler.renew(process, snapshot);
    expect(assembler.take(START_REALTIME_MS + 5000).snapshot.sites.liveBytes[0]).toBe(300_000);
    expect(assembler.limits()).toEqual(["process 42: 1 record was incomplete and ignored"]);
    segment.view.setUint32(at + SITE.sequence_begin, 99, true);
    segment.view.setFloat64(at + SITE.live_bytes, 5, true);
    pool.save();
    expect(present(reader.snapshot()).torn).toBe(0);
  });

  it("uses the current figure of a site that has not changed since the peak as its figure at the peak", () => {
    const segment = pythonProcess();
    segment.view.setUint32(SEGMENT_HEADER.peak_number, 2, true);
    segment.rewrite(0, { live: 7, peak: 400_000, peakNumber: 1 });
    segment.rewrite(1, { live: 5, peak: 111, peakNumber: 2 });
    segment.rewrite(2, { live: 0, allocated: 70_000, peak: 222, peakNumber: 1 });
    expect([...profileAfter(readerOf(pool), 4000).snapshot.sites.peakBytes]).toEqual([7, 111, 0]);
  });

  it("uses the figures that a site kept when it changed after a newer peak than the header's", () => {
    const segment = pythonProcess();
    segment.rewrite(1, { live: 5, peak: 111, peakNumber: 2 });
    expect([...profileAfter(readerOf(pool), 4000).snapshot.sites.peakBytes]).toEqual([
      400_000, 111, 0,
    ]);
  });

  it("gives steps and periods as events, each once, and counts those that the ring lost", () => {
    const segment = pythonProcess();
    const step = segment.label("step", "train");
    segment.event(CONSTANTS.TM_EVENT_STEP_BEGIN, 10, 1, step);
    segment.event(CONSTANTS.TM_EVENT_PERIOD, 20, 131072);
    const reader = readerOf(pool);
    const assembler = new ProfileAssembler();
    const snapshot = present(reader.snapshot());
    const process = assembler.begin(snapshot.header);
    assembler.renew(process, snapshot);
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
    assembler.renew(process, present(reader.snapshot()));
    expect(assembler.takeEvents()).toEqual([]);
    for (let number = 0; number < 3000; number++) {
      segment.event(CONSTANTS.TM_EVENT_STEP_END, 30 + number, number, step);
    }
    pool.save();
    assembler.renew(process, present(reader.snapshot()));
    expect(assembler.takeEvents().map((event) => event.value)).toEqual(
      Array.from({ length: 2048 }, (_, index) => 952 + index),
    );
    expect(assembler.limits()[0]).toContain("952 events");
  });

  it("merges the oldest of many ended processes, and loses no byte", () => {
    pythonProcess();
    const snapshot = present(readerOf(pool).snapshot());
    const assembler = new ProfileAssembler();
    for (let pid = 1000; pid < 1600; pid++) {
      const process = assembler.begin(snapshot.header, pid);
      assembler.renew(process, snapshot);
      assembler.end(process);
    }
    const { tables, snapshot: profile } = assembler.take(START_REALTIME_MS + 4000);
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
      const snapshot = present(
        new SegmentReader(fd, new PoolReader(fd).slotRange(index)).snapshot(),
      );
      assembler.renew(assembler.begin(snapshot.header), snapshot);
    }
    expect(assembler.limits()).toEqual([
      "2 processes: Python 3.11.7 is not supported by the agent: only native memory is recorded",
      "2 processes: the agent reports a limit that this Tidemark does not know",
    ]);
  });

  it("waits for a moving layout, and reads one that never settles", () => {
    const segment = pythonProcess();
    segment.view.setUint32(SEGMENT_HEADER.layout_generation, 7, true);
    expect(profileAfter(readerOf(pool), 4000).snapshot.sites.length).toBe(3);
  });

  it("is null before its owner has set it up", () => {
    const segment = pythonProcess();
    segment.view.setUint32(SEGMENT_HEADER.state, CONSTANTS.TM_STATE_EMPTY, true);
    expect(readerOf(pool).snapshot()).toBeNull();
  });

  it("is refused when another process has taken it", () => {
    const segment = pythonProcess();
    const reader = readerOf(pool);
    reader.snapshot();
    segment.view.setUint32(SEGMENT_HEADER.pid, 99, true);
    pool.save();
    expect(() => reader.snapshot()).toThrow("another process");
  });
});
