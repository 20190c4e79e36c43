/** The replay beside a simulated allocator that counts what it holds in a second way. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { pickle } from "../../../test/gpu/pickle_writer.mjs";
import { type Schema, snapshotOf } from "../../../test/gpu/snapshot_file.mjs";
import { randomWorkload } from "../../../test/gpu/workload.mjs";
import { float64At, int32At, itemAt, uint32At } from "../../model/base/columns.js";
import { gapsAt, heldAt, rangesAt } from "../../model/gpu/gpu_replay.js";
import { type GpuSnapshot, gpuFramesOf } from "../../model/gpu/gpu_snapshot.js";
import { readSnapshot } from "../snapshot/read_snapshot.js";
import { replayForward } from "./forward_replay.js";
import { devicesOf, replayDevice } from "./replay.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-gpu-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
async function read(value: object, settings?: Parameters<typeof pickle>[1]): Promise<GpuSnapshot> {
  const path = join(folder, `${files++}.pickle`);
  writeFileSync(path, pickle(value, settings));
  return readSnapshot(path);
}

const SHAPES = [
  { name: "a whole trace", events: 3000 },
  { name: "a ring that overflowed", events: 4000, ring: 700 },
  { name: "a device that runs out", events: 3000, limit: 700 * 2 ** 20 },
  { name: "expandable segments", events: 3000, expandable: true },
  {
    name: "expandable segments, overflowed and short",
    events: 4000,
    expandable: true,
    ring: 900,
    limit: 1500 * 2 ** 20,
  },
];
const SCHEMAS: Schema[] = ["legacy", "plain", "pooled"];

describe.each(SHAPES)("$name", (shape) => {
  // Expandable segments came with 2.1: no legacy snapshot has any.
  const schemas = SCHEMAS.filter((schema) => schema !== "legacy" || shape.expandable !== true);
  test.each(schemas.flatMap((schema) => [1, 2, 3].map((seed) => ({ schema, seed }))))(
    "schema $schema, seed $seed: every moment equals the allocator's own state, to the byte",
    async ({ schema, seed }) => {
      const { allocator } = randomWorkload(seed, shape);
      const snapshot = await read(snapshotOf([allocator], schema));
      const replay = replayDevice(snapshot, 0);
      expect(replay.disagreements).toEqual([]);
      expect(replay.events).toBe(allocator.trace.length);
      expect([...replay.requested.slice(1)]).toEqual(allocator.history.map((at) => at.requested));
      expect([...replay.reserved.slice(1)]).toEqual(allocator.history.map((at) => at.reserved));
      expect(replay.complete).toBe(shape.ring === undefined);
      for (const moment of [1, replay.events >> 1, replay.events]) {
        const held = heldAt(replay, moment);
        const sum = held.reduce((total, row) => total + float64At(replay.allocations.size, row), 0);
        expect(sum).toBe(float64At(replay.requested, moment));
        const ranges = rangesAt(replay, moment);
        const mapped = ranges.reduce((total, row) => total + float64At(replay.ranges.size, row), 0);
        expect(mapped).toBe(float64At(replay.reserved, moment));
      }
      const free = gapsAt(replay, replay.events).reduce((total, gap) => total + gap.size, 0);
      expect(free).toBe(allocator.totals.reserved - allocator.totals.active);
      const forward = replayForward(snapshot, replay);
      expect(forward === null).toBe(!replay.complete);
      if (forward !== null) {
        expect(forward).toEqual({
          requested: allocator.totals.requested,
          reserved: allocator.totals.reserved,
          disagreements: [],
        });
      }
    },
  );
});

test("several devices, streams and private pools are kept separate", async () => {
  const devices = [0, 2].map(
    (device) => randomWorkload(9 + device, { events: 1500, device }).allocator,
  );
  const snapshot = await read(snapshotOf(devices, "plain"), { protocol: 5 });
  expect(devicesOf(snapshot)).toEqual([0, 2]);
  for (const allocator of devices) {
    const replay = replayDevice(snapshot, allocator.device);
    expect(replay.disagreements).toEqual([]);
    expect(replay.requested[replay.events]).toBe(allocator.totals.requested);
    const ofPool = new Map<string, number>();
    for (const row of heldAt(replay, replay.events)) {
      const pool = itemAt(snapshot.strings, uint32At(replay.allocations.pool, row));
      ofPool.set(pool, (ofPool.get(pool) ?? 0) + float64At(replay.allocations.size, row));
    }
    const truth = new Map<string, number>();
    for (const { pool, blocks } of allocator.segments) {
      const held = blocks.reduce((sum, { requested }) => sum + requested, 0);
      if (held > 0) {
        truth.set(`[${pool}]`, (truth.get(`[${pool}]`) ?? 0) + held);
      }
    }
    expect(ofPool).toEqual(truth);
  }
});

test("an allocation keeps its stack, and its lifetime matches the events", async () => {
  const { allocator } = randomWorkload(5, { events: 900 });
  const snapshot = await read(snapshotOf([allocator], "plain"));
  const { allocations } = replayDevice(snapshot, 0);
  for (let row = 0; row < allocations.length; row++) {
    const entry = itemAt(allocator.trace, int32At(allocations.start, row));
    expect(entry).toMatchObject({
      action: "alloc",
      addr: float64At(allocations.address, row),
      size: float64At(allocations.size, row),
    });
    expect(gpuFramesOf(snapshot, uint32At(allocations.stack, row))).toEqual(
      entry.frames.map(({ name, filename, line }) => ({ function: name, file: filename, line })),
    );
    if (int32At(allocations.end, row) < allocator.trace.length) {
      expect(allocator.trace[int32At(allocations.end, row)]).toMatchObject({
        action: "free_completed",
        addr: entry.addr,
      });
      expect(allocator.trace[int32At(allocations.freed, row)]).toMatchObject({
        action: "free_requested",
        addr: entry.addr,
      });
    }
  }
});

test.each([
  ["an alloc is lost", (entry: { action: string }) => entry.action === "alloc"],
  ["a free_completed is lost", (entry: { action: string }) => entry.action === "free_completed"],
  ["a segment_alloc is lost", (entry: { action: string }) => entry.action === "segment_alloc"],
])("if %s, the end is still exact and the place is reported", async (_, matches) => {
  const { allocator } = randomWorkload(7, { events: 1200 });
  const at = allocator.trace.findIndex((entry, row) => row > 500 && matches(entry));
  allocator.trace.splice(at, 1);
  const snapshot = await read(snapshotOf([allocator], "plain"));
  const replay = replayDevice(snapshot, 0);
  expect(replay.requested[replay.events]).toBe(allocator.totals.requested);
  expect(replay.reserved[replay.events]).toBe(allocator.totals.reserved);
  for (let moment = at + 1; moment <= replay.events; moment++) {
    expect(replay.reserved[moment]).toBe(itemAt(allocator.history, moment).reserved);
  }
  if (replay.disagreementCount === 0) {
    // A lost beginning is seen only as something that was there before the trace.
    expect(replay.complete).toBe(false);
  } else {
    expect(replay.disagreements.every(({ event }) => event <= at + 1 || event >= 0)).toBe(true);
  }
});
