/** What is said of a snapshot, where the simulated program knows the answer. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { pickle } from "../../../test/gpu/pickle_writer.mjs";
import type { CachingAllocator } from "../../../test/gpu/simulator.mjs";
import { snapshotOf } from "../../../test/gpu/snapshot_file.mjs";
import { randomWorkload, runOut, trainingRun } from "../../../test/gpu/workload.mjs";
import { itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import type { GpuJson } from "../../model/documents/gpu/gpu_document.js";
import { readSnapshot } from "../snapshot/read_snapshot.js";
import { analyse } from "./analyse.js";
import { compareSnapshots } from "./compare.js";
import { compareRanks } from "./ranks.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-gpu-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MIB = 2 ** 20;
let files = 0;

async function analysed(
  allocators: CachingAllocator[],
  more: Parameters<typeof snapshotOf>[2] = {},
): Promise<GpuJson> {
  const path = join(folder, `rank${files++}.pickle`);
  writeFileSync(path, pickle(snapshotOf(allocators, "plain", more)));
  return analyse(await readSnapshot(path), path);
}

/**
 * A real snapshot: PyTorch 2.11 on an H200 ran out of memory. Its program kept a tensor of 1 GiB in each round of
 * `loss = model(batch).square().mean(); loss.backward()`, without an optimizer.
 */
test("a loop that calls backward without an optimizer has steps, and what it keeps is a leak", async () => {
  const path = join(folder, "kept_tensors.pickle");
  writeFileSync(path, gunzipSync(readFileSync("test/data/gpu/kept_tensors.pickle.gz")));
  const [device] = analyse(await readSnapshot(path), path).devices;
  expect(device?.stepsFrom).toBe("pattern");
  expect(device?.growth).toHaveLength(1);
  expect(device?.growth[0]).toMatchObject({ bytesPerStep: 2 ** 30, allocations: 138 });
  expect(device?.growth[0]?.stack[0]).toMatchObject({ function: "step", line: 7 });
});

const ids = (document: GpuJson) => document.advice.map(({ id }) => id);

test.each([{ events: 2500 }, { events: 2500, ring: 600 }, { events: 2500, expandable: true }])(
  "totals and waste are the allocator's own: %o",
  async (shape) => {
    for (const seed of [21, 22]) {
      const { allocator } = randomWorkload(seed, shape);
      const [device] = (await analysed([allocator])).devices;
      const { totals, segments } = allocator;
      expect(device?.end).toEqual({
        reservedBytes: totals.reserved,
        allocatedBytes: totals.allocated,
        activeBytes: totals.active,
        requestedBytes: totals.requested,
      });
      const { roundingBytes, splitBytes, cachedBytes } = present(device).waste;
      expect(totals.requested + roundingBytes + splitBytes + cachedBytes).toBe(totals.reserved);
      const free = segments.flatMap(({ blocks }) => blocks).filter(({ state }) => state === "free");
      expect(device?.largestFreeBytes).toBe(Math.max(0, ...free.map(({ size }) => size)));
      expect(device?.fragmentation.reduce((sum, { freeBytes }) => sum + freeBytes, 0)).toBe(
        free.reduce((sum, { size }) => sum + size, 0),
      );
      const inTrace = Math.max(...allocator.history.map(({ requested }) => requested));
      expect(device?.peak.requestedBytes).toBe(inTrace);
      expect(device?.peak.sites.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(inTrace);
    }
  },
);

describe("a training program", () => {
  test("the peak is what is live when the optimizer's state is created, by category", async () => {
    const { allocator } = trainingRun({ steps: 6 });
    const [device] = (await analysed([allocator])).devices;
    const peak = present(device).peak;
    expect(peak.requestedBytes).toBe(allocator.highest.requested);
    const byCategory = new Map(peak.sites.map((site) => [site.category, site.bytes]));
    expect(byCategory).toEqual(
      new Map([
        ["parameters", 24 * MIB],
        ["optimizer state", 48 * MIB],
        ["activations", 48 * MIB],
        ["gradients", 4 * MIB],
      ]),
    );
    expect(device?.growth).toEqual([]);
  });

  test.each([
    ["annotations", { marks: true }],
    ["optimizer", { marks: false, scratch: 2 ** 18 }],
  ])("a leak of 2 MiB a step is found by %s, and nothing else", async (from, how) => {
    const { allocator, annotations } = trainingRun({ steps: 30, leak: 2 * MIB, ...how });
    const document = await analysed([allocator], { annotations });
    const [device] = document.devices;
    expect(device?.stepsFrom).toBe(from);
    expect(device?.growth.length).toBe(1);
    expect(device?.growth[0]).toMatchObject({ bytesPerStep: 2 * MIB, steps: 30 });
    expect(device?.growth[0]?.stack.map((frame) => frame.function)).toContain("log_loss");
    expect(ids(document)).toContain("TM-A106");
  });

  test("without detected steps none are invented", async () => {
    const { allocator } = trainingRun({ steps: 30, leak: 2 * MIB, marks: false });
    const [device] = (await analysed([allocator])).devices;
    expect([device?.stepsFrom, device?.growth]).toEqual(["", []]);
  });

  test("a leak is also found in a ring that lost the first half", async () => {
    const { allocator, annotations } = trainingRun({ steps: 60, leak: MIB, ring: 1500 });
    const [device] = (await analysed([allocator], { annotations })).devices;
    expect(device?.complete).toBe(false);
    expect(device?.growth.map(({ bytesPerStep }) => bytesPerStep)).toEqual([MIB]);
  });

  test("steady training has no growth, whatever its activations do", async () => {
    for (const marks of [true, false]) {
      const { allocator, annotations } = trainingRun({ steps: 40, marks });
      const [device] = (await analysed([allocator], { annotations })).devices;
      expect(device?.growth).toEqual([]);
    }
  });
});

describe("out of memory", () => {
  test("in pieces: fragmentation, with the state just before", async () => {
    const document = await analysed([runOut()]);
    const [event] = itemAt(document.devices, 0).outOfMemory;
    expect(event).toMatchObject({
      kind: "fragmentation",
      requestedBytes: 200 * MIB,
      liveBytes: 500 * MIB,
      reservedBytes: 1000 * MIB,
      deviceFreeBytes: 0,
      freeInSegmentsBytes: 500 * MIB,
      largestFreeBytes: 20 * MIB,
    });
    expect(event?.stack.map((frame) => frame.function)).toContain("log_loss");
    expect(ids(document)).toContain("TM-A101");
  });

  test("a full device is out of memory", async () => {
    const document = await analysed([runOut({ pieces: false })]);
    expect(itemAt(document.devices, 0).outOfMemory[0]).toMatchObject({
      kind: "genuine",
      liveBytes: 1000 * MIB,
      largestFreeBytes: 0,
    });
    expect(ids(document)).toContain("TM-A115");
    expect(ids(document)).not.toContain("TM-A101");
  });

  test("cache alone is never called fragmentation", async () => {
    const { allocator } = trainingRun({ steps: 3, size: 64 * MIB });
    const document = await analysed([allocator]);
    expect(itemAt(document.devices, 0).waste.cachedBytes).toBeGreaterThan(200 * MIB);
    expect(ids(document)).toContain("TM-A111");
    expect(ids(document)).not.toContain("TM-A101");
  });
});

test("two snapshots: what appeared, grew and disappeared", async () => {
  const a = await analysed([trainingRun({ steps: 4, leak: 3 * MIB }).allocator]);
  const b = await analysed([trainingRun({ steps: 9, leak: 3 * MIB, layers: 5 }).allocator]);
  const document = compareSnapshots(a, b);
  const changes = document.sites.map(({ change, growthBytes, category }) => [
    change,
    growthBytes,
    category,
  ]);
  expect(changes).toEqual([
    ["grew", 15 * MIB, "unknown"],
    ["shrank", -4 * MIB, "parameters"],
    ["shrank", -8 * MIB, "optimizer state"],
  ]);
  const reverse = compareSnapshots(await analysed([trainingRun({ steps: 4 }).allocator]), a);
  expect(reverse.sites[0]).toMatchObject({ change: "appeared", growthBytes: 12 * MIB });
});

test("ranks: the outlier is named with the reason; equal ones are not", async () => {
  const equal = await Promise.all(
    [1, 2, 3, 4].map(() => analysed([trainingRun({ steps: 4 }).allocator])),
  );
  expect(compareRanks(equal).ranks.map(({ odd }) => odd)).toEqual([false, false, false, false]);
  const odd = await analysed([trainingRun({ steps: 4, leak: 20 * MIB }).allocator]);
  const { ranks } = compareRanks([...equal, odd]);
  expect(ranks.map((rank) => rank.odd)).toEqual([false, false, false, false, true]);
  expect(ranks[4]?.why).toMatch(/more than the others .*clone|log_loss/);
});
