/** Reading what is a snapshot, and refusing in one line what is none. */

import { execFileSync } from "node:child_process";
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, inject, test } from "vitest";
import { PythonTuple, pickle } from "../../../test/gpu/pickle_writer.mjs";
import { snapshotOf } from "../../../test/gpu/snapshot_file.mjs";
import { randomFrom, randomWorkload, stackOf } from "../../../test/gpu/workload.mjs";
import { float64At, itemAt, uint8At, uint32At } from "../../model/base/columns.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { type GpuSnapshot, gpuFramesOf } from "../../model/gpu/gpu_snapshot.js";
import { devicesOf, replayDevice } from "../replay/replay.js";
import { readSnapshot } from "./read_snapshot.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-gpu-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
function fileOf(bytes: Uint8Array | string): string {
  const path = join(folder, `${files++}.pickle`);
  writeFileSync(path, bytes);
  return path;
}

const { allocator } = randomWorkload(3, { events: 1500 });
const whole = snapshotOf([allocator], "plain");
const bytes = pickle(whole);

/** Everything of a snapshot but how its strings, frames and stacks are numbered. */
function contentOf(snapshot: GpuSnapshot) {
  const { events, segments, blocks, strings, settings, streams } = snapshot;
  return {
    settings,
    action: [...events.action],
    address: [...events.address],
    size: [...events.size],
    stream: [...events.stream].map((row) => float64At(streams, row)),
    timeUs: [...events.timeUs],
    stacks: [...events.stack].map((stack) => gpuFramesOf(snapshot, stack)),
    segments: [...segments.address].map((address, row) => ({
      address,
      size: float64At(segments.size, row),
      pool: strings[uint32At(segments.pool, row)],
      type: strings[uint32At(segments.type, row)],
    })),
    blocks: [...blocks.address].map((address, row) => ({
      address,
      size: float64At(blocks.size, row),
      requested: float64At(blocks.requested, row),
      state: uint8At(blocks.state, row),
    })),
  };
}

describe("a snapshot", () => {
  test("is the same by every pickler", async () => {
    const content = contentOf(await readSnapshot(fileOf(bytes)));
    expect(content.action.length).toBe(allocator.trace.length);
    expect(content.stacks).toEqual(
      allocator.trace.map(({ frames }) =>
        frames.map(({ name, filename, line }) => ({ function: name, file: filename, line })),
      ),
    );
    for (const settings of [
      { protocol: 2 },
      { protocol: 3 },
      { protocol: 5 },
      { style: "native" },
    ] as const) {
      const other = await readSnapshot(fileOf(pickle(whole, settings)));
      expect(contentOf(other)).toEqual(content);
    }
  });

  test("is the same compressed, whatever its name", async () => {
    const content = contentOf(await readSnapshot(fileOf(bytes)));
    expect(contentOf(await readSnapshot(fileOf(gzipSync(bytes))))).toEqual(content);
    expect(contentOf(await readSnapshot(fileOf(storedZstd(bytes))))).toEqual(content);
  });

  test("compressed by zstd itself", async () => {
    const path = fileURLToPath(new URL("../../../test/data/gpu/small.pickle.zst", import.meta.url));
    const snapshot = await readSnapshot(path);
    expect(devicesOf(snapshot)).toEqual([0]);
    const replay = replayDevice(snapshot, 0);
    expect(replay.disagreements).toEqual([]);
    expect([
      replay.events,
      float64At(replay.requested, replay.events),
      float64At(replay.reserved, replay.events),
    ]).toEqual([401, 248_471_421, 880_803_840]);
  });

  test("may come from a pipe that stays open", async () => {
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    const writer = openSync(pipe, constants.O_RDWR);
    writeSync(writer, pickle(snapshotOf([randomWorkload(2, { events: 12 }).allocator], "plain")));
    expect((await readSnapshot(pipe)).events.length).toBeGreaterThan(10);
    closeSync(writer);
  });

  test("may be the plain list from memory_snapshot(), or empty", async () => {
    const bare = await readSnapshot(fileOf(pickle(whole.segments)));
    expect(bare.segments.length).toBe(whole.segments.length);
    expect(bare.events.length).toBe(0);
    const empty = await readSnapshot(fileOf(pickle({ segments: [], device_traces: [[], []] })));
    expect([empty.segments.length, devicesOf(empty)]).toEqual([0, []]);
  });

  test("has the frames that the memo held when the stack was written", async () => {
    const text = (value: string) =>
      Buffer.concat([Buffer.from([0x58, value.length, 0, 0, 0]), Buffer.from(value)]);
    const dictionary = (...items: readonly Uint8Array[]) =>
      Buffer.concat([Buffer.from("}("), ...items, Buffer.from("u")]);
    const number = Buffer.from([0x4b, 8]);
    /** A frame stored in a memo entry, which it may overwrite. */
    const frame = (name: string, entry: number) => {
      const fields = [text("name"), text(name), text("filename"), text("a.py")];
      return Buffer.concat([dictionary(...fields), Buffer.from([0x71, entry])]);
    };
    const event = (...more: readonly Uint8Array[]) => {
      const fields = [text("action"), text("alloc"), text("addr"), number, text("size"), number];
      const stack = Buffer.from([0x5d, 0x28, 0x68, 0, 0x68, 1, 0x65]);
      return dictionary(...fields, ...more, text("frames"), stack);
    };
    const trace = [
      event(text("a"), frame("first", 0), text("b"), frame("outer", 1)),
      event(),
      event(text("a"), frame("second", 0)),
    ];
    const [start, end] = [Buffer.from([0x80, 2, 0x7d, 0x28]), Buffer.from("eeu.")];
    const lists = Buffer.concat([text("device_traces"), Buffer.from("](](")]);
    const path = fileOf(Buffer.concat([start, lists, ...trace, end]));
    const snapshot = await readSnapshot(path);
    const names = [...snapshot.events.stack].map((stack) =>
      gpuFramesOf(snapshot, stack).map((frame) => frame.function),
    );
    expect(names).toEqual([
      ["first", "outer"],
      ["first", "outer"],
      ["second", "outer"],
    ]);
  });

  test("keeps what the program wrote outside the trace, and names unknown actions", async () => {
    const entry = { action: "alloc", addr: 512, size: 8, stream: 0, time_us: 1, frames: [] };
    const snapshot = await readSnapshot(
      fileOf(
        pickle({
          segments: [],
          device_traces: [
            [
              { ...entry, user_metadata: { step: 3, tags: ["a", new PythonTuple([1, null])] } },
              { ...entry, action: "teleport" },
            ],
          ],
        }),
      ),
    );
    expect(JSON.parse(itemAt(snapshot.strings, uint32At(snapshot.events.metadata, 0)))).toEqual({
      step: 3,
      tags: ["a", [1, null]],
    });
    expect(snapshot.unknownActions).toEqual(["teleport"]);
  });

  test("may have stacks deeper than one batch of a pickle", async () => {
    const deep = stackOf(...Array.from({ length: 2500 }, (_, depth) => `f${depth} /a.py:${depth}`));
    const trace = [{ action: "alloc", addr: 512, size: 8, stream: 0, frames: deep }];
    const snapshot = await readSnapshot(fileOf(pickle({ segments: [], device_traces: [trace] })));
    const frames = gpuFramesOf(snapshot, uint32At(snapshot.events.stack, 0));
    expect([frames.length, frames[0]?.line, frames[2499]?.line]).toEqual([2500, 0, 2499]);
  });

  test("takes under 150 bytes per event", async () => {
    const many = randomWorkload(1, { events: 60_000 }).allocator;
    const snapshot = await readSnapshot(fileOf(pickle(snapshotOf([many], "plain"))));
    const replay = replayDevice(snapshot, 0);
    const sizes = [snapshot.events, replay.allocations, replay.ranges].flatMap((table) =>
      Object.values(table as object).map((column) => (column as Uint8Array).byteLength ?? 0),
    );
    const held = sizes.reduce((sum, size) => sum + size, 0) + replay.requested.byteLength * 2;
    expect(held / many.trace.length).toBeLessThan(150);
  });
});

const refusals: [string, Uint8Array | string, string, RegExp][] = [
  ["nothing", "", "TM-E060", /it is empty/],
  ["a text", "epoch 3 loss 0.12\n", "TM-E060", /it is text/],
  ["a checkpoint", Buffer.from("PK\x03\x04....archive/data.pkl"), "TM-E060", /zip archive/],
  ["noise", Uint8Array.from([7, 200, 1, 0]), "TM-E060", /does not start like a pickle/],
  ["a pickle of something else", pickle({ model: [1, 2] }), "TM-E060", /contains no segments/],
  ["a number", pickle(42), "TM-E060", /contains no segments/],
  [
    "a call",
    Buffer.from("\x80\x04cos\nsystem\n(X\x02\x00\x00\x00idtR.", "latin1"),
    "TM-E061",
    /opcode GLOBAL at offset 2/,
  ],
  [
    "a call by stack",
    Buffer.concat([
      Buffer.from([0x80, 4, 0x8c, 2]),
      Buffer.from("os"),
      Buffer.from([0x94, 0x8c, 1, 0x78, 0x93]),
    ]),
    "TM-E061",
    /opcode STACK_GLOBAL at offset 10/,
  ],
  [
    "a tensor's bytes",
    Buffer.from([0x80, 4, 0x43, 1, 0]),
    "TM-E061",
    /opcode SHORT_BINBYTES at offset 2/,
  ],
  ["no opcode", Buffer.from([0x80, 4, 0xff]), "TM-E061", /opcode 0xff at offset 2/],
  [
    "an older checkpoint",
    Buffer.from([
      0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e,
    ]),
    "TM-E060",
    /contains no segments/,
  ],
  ["a newer pickle", Buffer.from([0x80, 9, 0x2e]), "TM-E063", /protocol 9/],
  [
    "a hole in the memo",
    Buffer.from([0x80, 4, 0x7d, 0x72, 0, 0, 0, 0x10, 0x2e]),
    "TM-E063",
    /leaves a gap/,
  ],
  ["a memo entry of nowhere", Buffer.from([0x80, 4, 0x68, 9, 0x2e]), "TM-E063", /never written/],
  [
    "a list in itself",
    Buffer.from([0x80, 4, 0x5d, 0x94, 0x68, 0, 0x61, 0x2e]),
    "TM-E063",
    /before it is filled/,
  ],
  ["an end without a beginning", Buffer.from([0x80, 4, 0x75, 0x2e]), "TM-E063", /never began/],
  [
    "endless nesting",
    Buffer.concat([Buffer.from([0x80, 4]), Buffer.alloc(5000, 0x28)]),
    "TM-E063",
    /nested too deeply/,
  ],
  [
    "a string without end",
    Buffer.from([0x80, 4, 0x8d, 0, 0, 0, 0, 1, 0, 0, 0]),
    "TM-E008",
    /string/,
  ],
  [
    "a size below zero",
    pickle({ segments: [{ device: 0, address: 0, total_size: -1 }] }),
    "TM-E063",
    /"total_size" is not a size/,
  ],
  [
    "an address of text",
    pickle({ segments: [{ device: 0, address: "x", total_size: 1 }] }),
    "TM-E063",
    /"address" is not a size/,
  ],
  [
    "segments of numbers",
    pickle({ segments: [1, 2] }),
    "TM-E063",
    /"segments" has an unexpected value/,
  ],
  [
    "traces of numbers",
    pickle({ segments: [], device_traces: [1] }),
    "TM-E063",
    /"device_traces" has an unexpected value/,
  ],
  [
    "gzip of nothing good",
    Buffer.concat([gzipSync(bytes).subarray(0, 10), Buffer.alloc(400, 7)]),
    "TM-E064",
    /decompress/,
  ],
  ["half a gzip", gzipSync(bytes).subarray(0, 2000), "TM-E064", /decompress/],
  ["half a zstd", storedZstd(bytes).subarray(0, 2000), "TM-E064", /decompress/],
  ["gzip in gzip", gzipSync(gzipSync(bytes)), "TM-E060", /compressed twice/],
];

describe("one line for", () => {
  test.each(refusals)("%s", async (_, content, id, words) => {
    const error = await readSnapshot(fileOf(content)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(TidemarkError);
    expect((error as TidemarkError).id).toBe(id);
    expect((error as TidemarkError).message).toMatch(words);
    expect((error as TidemarkError).message).not.toMatch(/\n/);
  });

  test("a directory and a missing file", async () => {
    mkdirSync(join(folder, "inside"));
    await expect(readSnapshot(join(folder, "inside"))).rejects.toMatchObject({ id: "TM-E004" });
    await expect(readSnapshot(join(folder, "missing"))).rejects.toMatchObject({ id: "TM-E003" });
  });

  test("a file is closed again, also if it is refused", async () => {
    const before = readdirSync("/proc/self/fd").length;
    for (const content of [
      bytes,
      bytes.subarray(0, 100),
      "text",
      gzipSync(bytes).subarray(0, 2000),
    ]) {
      await readSnapshot(fileOf(content)).catch(() => undefined);
    }
    expect(readdirSync("/proc/self/fd").length).toBe(before);
  });

  test("a snapshot truncated anywhere", async () => {
    const small = pickle(snapshotOf([randomWorkload(2, { events: 12 }).allocator], "plain"));
    for (let length = 1; length < small.length; length += 1 + (length >> 6)) {
      const error = await readSnapshot(fileOf(small.subarray(0, length))).catch((reason) => reason);
      expect(error).toMatchObject({ id: "TM-E062", exitCode: 2 });
    }
  });

  test("arbitrary bytes: a snapshot or one of our errors, nothing else", async () => {
    const random = randomFrom(77);
    const small = pickle(snapshotOf([randomWorkload(4, { events: 60 }).allocator], "pooled"));
    let read = 0;
    for (let round = 0; round < inject("counts").damagedSnapshots; round++) {
      const changed = Uint8Array.from(small);
      for (let count = 1 + Math.floor(random() * 4); count > 0; count--) {
        changed[2 + Math.floor(random() * (changed.length - 2))] = Math.floor(random() * 256);
      }
      try {
        const snapshot = await readSnapshot(fileOf(changed));
        for (const device of devicesOf(snapshot)) {
          replayDevice(snapshot, device);
        }
        read += 1;
      } catch (error) {
        if (!(error instanceof TidemarkError)) {
          throw error;
        }
      }
      files = files > 200 ? 100 : files;
    }
    expect(read).toBeGreaterThan(100);
  });

  test("random opcodes", async () => {
    const random = randomFrom(5);
    const opcodes = [...Buffer.from("()]}sueaKMJNq\x85\x86\x87\x88\x89\x94\x8c\x8ah.X", "latin1")];
    for (let round = 0; round < inject("counts").damagedSnapshots; round++) {
      const program = Array.from({ length: 3 + Math.floor(random() * 60) }, () =>
        random() < 0.8
          ? itemAt(opcodes, Math.floor(random() * opcodes.length))
          : Math.floor(random() * 8),
      );
      const error = await readSnapshot(fileOf(Uint8Array.from([0x80, 4, ...program]))).catch(
        (reason) => reason,
      );
      if (error instanceof Error) {
        expect(error).toBeInstanceOf(TidemarkError);
      }
      files = files > 200 ? 100 : files;
    }
  });
});

/** A zstd frame of stored blocks. */
function storedZstd(content: Uint8Array): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(content.length);
  const parts = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xa0]), size];
  for (let at = 0; at < content.length; at += 100_000) {
    const block = content.subarray(at, at + 100_000);
    const header = Buffer.alloc(3);
    header.writeUIntLE((block.length << 3) | (at + block.length >= content.length ? 1 : 0), 0, 3);
    parts.push(header, Buffer.from(block));
  }
  return Buffer.concat(parts);
}
