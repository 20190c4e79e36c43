import { writeSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { CONSTANTS, POOL_HEADER, POOL_SLOT } from "./layout.js";
import { PoolFixture } from "./pool.fixture.js";
import { PoolReader } from "./pool.js";

let pool: PoolFixture;
afterEach(() => pool.close());

describe("a pool", () => {
  it("lists its claimed slots", () => {
    pool = new PoolFixture();
    pool.segment(1, 42);
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

  it("reuses a freed slot without its last owner's id: the next owner has none until it signs", () => {
    pool = new PoolFixture();
    pool.segment(1, 42);
    const descriptor = pool.open();
    const reader = new PoolReader(descriptor);
    reader.freeSlot(1);
    const state = new Uint8Array(4);
    new DataView(state.buffer).setUint32(0, CONSTANTS.TM_SLOT_CLAIMED, true);
    writeSync(descriptor, state, 0, 4, CONSTANTS.TM_PAGE + POOL_SLOT.size);
    expect(reader.slots()).toEqual([]);
  });

  it("is refused if it is of another kind, version or size", () => {
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
