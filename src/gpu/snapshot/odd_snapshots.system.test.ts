/** Snapshots that no version wrote so: each gets an answer without a wrong number, or one clear line. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, inject, test } from "vitest";
import { PythonFloat, PythonTuple, pickle } from "../../../test/gpu/pickle_writer.mjs";
import { snapshotOf } from "../../../test/gpu/snapshot_file.mjs";
import { randomFrom, randomWorkload, stackOf } from "../../../test/gpu/workload.mjs";
import type { GpuJson } from "../../model/documents/gpu/gpu_document.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { HOST_MEMORY } from "../../model/gpu/gpu_snapshot.js";
import { analyse } from "../analysis/analyse.js";
import { pageDocument } from "../analysis/page_document.js";
import { compareRanks } from "../analysis/ranks.js";
import { readSnapshot } from "./read_snapshot.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-odd-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, "odd.pickle");

async function analysed(value: unknown): Promise<GpuJson> {
  writeFileSync(path, pickle(value));
  return analyse(await readSnapshot(path), "odd.pickle");
}

async function refused(content: unknown): Promise<TidemarkError> {
  const bytes =
    typeof content === "string" || content instanceof Uint8Array ? content : pickle(content);
  writeFileSync(path, bytes);
  const error = await readSnapshot(path).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(TidemarkError);
  expect((error as TidemarkError).message).not.toContain("\n");
  return error as TidemarkError;
}

const MIB = 2 ** 20;
const BASE = 0x7f0000000000;
const frames = stackOf("forward /srv/model.py:12", "main /srv/train.py:7");

const segment = (more: object = {}) => ({
  device: 0,
  address: BASE,
  total_size: 2 * MIB,
  allocated_size: 512,
  active_size: 512,
  requested_size: 500,
  stream: 0,
  segment_type: "small",
  segment_pool_id: new PythonTuple([0, 0]),
  is_expandable: false,
  frames: [],
  blocks: [
    { address: BASE, size: 512, requested_size: 500, state: "active_allocated", frames },
    { address: BASE + 512, size: 2 * MIB - 512, requested_size: 0, state: "inactive", frames: [] },
  ],
  ...more,
});
const entry = (action: string, more: object = {}) => ({
  action,
  addr: BASE,
  size: 500,
  stream: 0,
  time_us: 1_700_000_000_000_000,
  compile_context: "N/A",
  user_metadata: "",
  frames,
  ...more,
});
const TRACE = [entry("segment_alloc", { size: 2 * MIB }), entry("alloc")];

test("settings of another kind are left out", async () => {
  for (const allocator_settings of ["oom", "", 7, null, [1], new PythonTuple([])]) {
    writeFileSync(path, pickle({ segments: [segment()], device_traces: [], allocator_settings }));
    expect((await readSnapshot(path)).settings).toEqual({});
  }
});

test("a time before 1970 is unknown", async () => {
  const [first, ...more] = TRACE;
  const odd = [first, ...more.map((event) => ({ ...event, time_us: -1 }))];
  const { devices } = await analysed({ segments: [segment()], device_traces: [odd] });
  expect(devices[0]?.peak.timeUs).toBe(0);
});

describe("versions to come", () => {
  test("pinned host memory is replayed like a device, but counted for none", async () => {
    const blocks = [{ address: 2 * BASE, size: 2 * MIB, requested_size: 0, state: "inactive" }];
    const host = segment({ address: 2 * BASE, blocks, allocated_size: 0, active_size: 0 });
    const hostEntry = entry("segment_alloc", { addr: 2 * BASE, size: 2 * MIB });
    const snapshot = {
      segments: [segment()],
      device_traces: [TRACE],
      host_segments: [host],
    };
    for (const host_traces of [[hostEntry], [[hostEntry]], [[], [hostEntry]]]) {
      const document = await analysed({ ...snapshot, host_traces });
      expect(
        document.devices.map(({ device, events, complete, end }) => [
          ...[device, events, complete],
          end.reservedBytes,
        ]),
      ).toEqual([
        [0, 2, true, 2 * MIB],
        [HOST_MEMORY, 1, true, 2 * MIB],
      ]);
      expect(compareRanks([document]).ranks.map(({ device }) => device)).toEqual([0]);
    }
    const none = await analysed({ ...snapshot, host_segments: [], host_traces: [] });
    expect(none.devices.map(({ device }) => device)).toEqual([0]);
    const before = await analysed({ host_traces: [hostEntry], ...snapshot });
    expect(before.devices.length).toBe(2);
  });

  test("the forward stack of a backward pass names the site", async () => {
    const backward = { frames: stackOf("at::empty_cuda ??:0"), forward_frames: frames };
    const document = await analysed({
      segments: [segment({ blocks: [{ ...segment().blocks[0], ...backward }] })],
      device_traces: [[TRACE[0], entry("alloc", backward)]],
    });
    const site = document.devices[0]?.sites[0];
    expect(site?.stack.map(({ function: name }) => name)).toEqual([
      ...["at::empty_cuda", "backward", "forward", "main"],
    ]);
    expect(site?.category).toBe("gradients");
  });

  test("notes, internal marks, compile contexts and fx frames are ignored", async () => {
    const fx = { ...frames[0], fx_node_op: "call_function", fx_node_name: "linear" };
    const document = await analysed({
      segments: [segment()],
      device_traces: [
        [
          TRACE[0],
          entry("alloc", { frames: [fx], compile_context: "0/0", internal_metadata: "prefix" }),
          entry("annotate", { user_metadata: "saved for backward", size: 0 }),
          entry("annotate", { user_metadata: "again" }),
        ],
      ],
      trace_alloc_overflowed: [true],
      something_else: { nested: [1, new PythonTuple([2, null])] },
    });
    const device = document.devices[0];
    expect([device?.complete, device?.disagreements.count]).toEqual([true, 0]);
    expect(document.limits.join()).not.toContain("unknown kinds");
  });

  test("unknown actions are named, whatever fields they have", async () => {
    const document = await analysed({
      segments: [segment()],
      device_traces: [
        [
          TRACE[0],
          { action: "teleport", frames: [], time_us: 3 },
          { action: "compact", stream: 0, addr: BASE },
          TRACE[1],
        ],
      ],
    });
    expect(document.limits).toContain("entries of unknown kinds were ignored: teleport, compact");
    expect(document.devices[0]?.complete).toBe(true);
  });
});

describe("extreme figures", () => {
  test("an empty trace with segments, a trace without segments, a ring with one entry left", async () => {
    const ended = await analysed({ segments: [segment()], device_traces: [[]] });
    expect(ended.devices[0]?.end.requestedBytes).toBe(500);
    expect(ended.limits.join()).toContain("has no trace");
    const gone = await analysed({
      segments: [],
      device_traces: [
        [
          ...TRACE,
          entry("free_requested"),
          entry("free_completed"),
          entry("segment_free", { size: 2 * MIB }),
        ],
      ],
    });
    expect(gone.devices[0]).toMatchObject({
      complete: true,
      end: { reservedBytes: 0 },
      peak: { requestedBytes: 500, reservedBytes: 2 * MIB },
    });
    const ring = await analysed({ segments: [segment()], device_traces: [[TRACE[1]]] });
    expect(ring.devices[0]).toMatchObject({ complete: false, disagreements: { count: 0 } });
  });

  test("a free block keeps its last requested size from before it was split", async () => {
    const [used, free] = segment().blocks;
    const blocks = [used, { ...free, requested_size: 9 * MIB }];
    const document = await analysed({ segments: [segment({ blocks })], device_traces: [[]] });
    expect(document.devices[0]?.end.requestedBytes).toBe(500);
  });

  test("a device of 2^47 bytes, and many devices", async () => {
    const huge = 2 ** 47;
    const blocks = [{ address: BASE, size: huge, requested_size: huge, state: "active_allocated" }];
    const document = await analysed({ segments: [segment({ total_size: huge, blocks })] });
    expect(document.devices[0]?.end.requestedBytes).toBe(huge);
    const segments = Array.from({ length: 700 }, (_, device) => segment({ device }));
    const device_traces = Array.from({ length: 700 }, () => TRACE);
    expect(
      (await analysed({ segments, device_traces: device_traces.map(() => []) })).devices.length,
    ).toBe(700);
  });

  test.each([
    ["an address beyond 2^53", segment({ address: 2 ** 60 }), "TM-E063", /larger than any address/],
    [
      "a size that is not a whole number",
      segment({ total_size: new PythonFloat(1.5) }),
      "TM-E063",
      /larger than any address/,
    ],
    [
      "a size of infinity",
      segment({ total_size: new PythonFloat(Infinity) }),
      "TM-E063",
      /larger than any address|not a size/,
    ],
    ["a device below zero", segment({ device: -1 }), "TM-E063", /is not a device/],
    ["a device of a million", segment({ device: 1e6 }), "TM-E063", /is not a device/],
    [
      "a stream that is not a number",
      segment({ stream: new PythonFloat(Number.NaN) }),
      "TM-E063",
      /is not a stream/,
    ],
    [
      "more asked for than there is",
      segment({
        blocks: [{ address: BASE, size: 512, requested_size: 513, state: "active_allocated" }],
      }),
      "TM-E063",
      /a requested size of 513/,
    ],
    [
      "a block larger than its segment",
      segment({ total_size: 1024 }),
      "TM-E063",
      /blocks of 2097152 bytes in a segment of 1024/,
    ],
    [
      "blocks of a segment that are text",
      segment({ blocks: "all" }),
      "TM-E063",
      /blocks have another type/,
    ],
  ])("%s is refused", async (_, odd, id, words) => {
    const error = await refused({ segments: [odd], device_traces: [] });
    expect([error.id, error.message]).toEqual([id, expect.stringMatching(words)]);
  });
});

describe("files of another kind", () => {
  const header = Buffer.from('{"weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}');
  const length = Buffer.alloc(8);
  length.writeUInt32LE(header.length);
  test.each([
    ["a safetensors file", Buffer.concat([length, header, Buffer.alloc(4)]), /a safetensors file/],
    ["JSON", '{"traceEvents": []}', /it is JSON/],
    ["the page of another viewer", "<!DOCTYPE html><html></html>", /it is a page of HTML/],
    ["a pickle of protocol 0", "(dp0\nS'segments'\np1\n", /it is text/],
  ])("%s", async (_, content, words) => {
    const error = await refused(content);
    expect([error.id, error.exitCode]).toEqual(["TM-E060", 2]);
    expect(error.message).toMatch(words);
  });
});

/** Every number finite and none below zero but differences; strings without end are cut elsewhere. */
function checkFigures(value: unknown, where: string): void {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) {
      throw new Error(`${where} is ${value}`);
    }
    if (value < 0 && !/device$|stream$/i.test(where)) {
      throw new Error(`${where} is ${value}`);
    }
  } else if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) {
      checkFigures(item, `${where}[${at}]`);
    }
  } else if (value !== null && typeof value === "object") {
    for (const [key, item] of Object.entries(value)) {
      checkFigures(item, `${where}.${key}`);
    }
  }
}

test("any value in any place: a consistent answer, or one of our errors", async () => {
  const random = randomFrom(2026);
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item; // which may be null
  const oddities: readonly unknown[] = [
    ...[null, true, "", "x", "active_allocated", "oom", 0, 1, 511, -1, 2 ** 31, 2 ** 40],
    ...[
      2 ** 53,
      2 ** 62,
      new PythonFloat(0.5),
      new PythonFloat(Number.NaN),
      new PythonFloat(-1e300),
    ],
    ...[[], {}, [[]], [1], { a: 1 }, frames, new PythonTuple([]), new PythonTuple([7, "y"])],
  ];
  let answered = 0;
  for (let round = 0; round < inject("counts").oddSnapshots; round++) {
    const { allocator } = randomWorkload(1 + (round % 7), {
      events: 40,
      ...(round % 3 === 0 ? { ring: 25 } : {}),
      expandable: round % 2 === 0,
    });
    const whole = structuredSnapshot(snapshotOf([allocator], pick(["plain", "pooled", "legacy"])));
    const all = placesOf(whole);
    const ofSegments = all.filter(([holder]) => "total_size" in holder || "state" in holder);
    const places = random() < 0.5 ? all : ofSegments;
    for (let count = 1 + Math.floor(random() * 3); count > 0; count--) {
      const [holder, key] = pick(places);
      if (random() < 0.2) {
        delete (holder as Record<string, unknown>)[key];
      } else {
        (holder as Record<string, unknown>)[key] = pick(oddities);
      }
    }
    writeFileSync(path, pickle(whole));
    try {
      const snapshot = await readSnapshot(path);
      const document = analyse(snapshot, "odd");
      pageDocument(snapshot, "odd", "odd");
      checkFigures(document, "gpu");
      for (const { end, waste } of document.devices) {
        const parts = waste.roundingBytes + waste.splitBytes + waste.cachedBytes;
        expect(end.requestedBytes + parts).toBe(end.reservedBytes);
      }
      answered += 1;
    } catch (error) {
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      expect(error.exitCode).toBe(2);
    }
  }
  expect(answered).toBeGreaterThan(50);
});

/** A copy whose every object may be changed: frames and shared entries are copied too. */
function structuredSnapshot(value: unknown): unknown {
  if (value instanceof PythonTuple || value instanceof PythonFloat) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map(structuredSnapshot);
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, structuredSnapshot(item)]),
  );
}

function placesOf(value: unknown): [holder: object, key: string][] {
  if (value === null || typeof value !== "object" || value instanceof PythonTuple) {
    return [];
  }
  return Object.entries(value).flatMap(([key, item]) => [[value, key], ...placesOf(item)]);
}
