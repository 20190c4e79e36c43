import { ftruncateSync } from "node:fs";
import { afterEach, describe, expect, inject, it } from "vitest";
import { TidemarkError } from "../model/errors/errors.js";
import { ProfileAssembler } from "./assembler.js";
import { CONSTANTS, SECTION, SITE, STACK_NODE } from "./layout.js";
import { PoolFixture, type SegmentFixture, START_REALTIME_MS } from "./pool.fixture.js";
import { PoolReader } from "./pool.js";
import { SegmentReader } from "./reader.js";
import { addPythonProcess, profileAfter, readerOf } from "./snapshots.fixture.js";

let pool: PoolFixture;
afterEach(() => pool.close());

function pythonProcess(): SegmentFixture {
  pool = new PoolFixture();
  return addPythonProcess(pool);
}

describe("hostile segments", () => {
  it("cannot refer to missing records", () => {
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
    const { tables, snapshot } = profileAfter(readerOf(pool), 4000);
    for (let row = 1; row < tables.stacks.length; row++) {
      expect(tables.stacks.parent[row]).toBeLessThan(row);
    }
    expect([...snapshot.sites.liveBytes].every(Number.isFinite)).toBe(true);
    expect(snapshot.sites.stack.every((stack) => stack < tables.stacks.length)).toBe(true);
  });

  it("cannot claim more than their slot", () => {
    for (const [field, value] of [
      [SECTION.capacity, 0xffffffff],
      [SECTION.stride, 1],
    ] as const) {
      const segment = pythonProcess();
      segment.view.setUint32(segment.section(CONSTANTS.TM_SECTION_SITES) + field, value, true);
      expect(() => readerOf(pool).snapshot()).toThrow("TM-E005");
      pool.close();
    }
    const segment = pythonProcess();
    segment.setCount(CONSTANTS.TM_SECTION_SITES, 0xffffffff);
    segment.view.setUint32(
      segment.section(CONSTANTS.TM_SECTION_SITES) + SECTION.block_records,
      0,
      true,
    );
    expect(profileAfter(readerOf(pool), 4000).snapshot.sites.length).toBe(3);
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
        const snapshot = reader.snapshot();
        if (snapshot !== null) {
          const assembler = new ProfileAssembler();
          assembler.renew(assembler.begin(snapshot.header), snapshot);
          assembler.take(START_REALTIME_MS + 4000);
          expect(snapshot.missing).toBeGreaterThan(0);
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
    for (let round = 0; round < inject("counts").hostileSegments; round++) {
      pool.bytes.set(original);
      for (let change = 0; change < 200; change++) {
        // Half of them within the header, the rest anywhere in the used part.
        const within = change % 2 === 0 ? 4096 : 540_000;
        pool.bytes[start + 12 + Math.floor(random() * within)] = Math.floor(random() * 256);
      }
      try {
        profileAfter(readerOf(pool), 4000);
      } catch (error) {
        expect(error).toBeInstanceOf(TidemarkError);
      }
      pool.close();
    }
  });
});
