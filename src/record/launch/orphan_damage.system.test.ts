/** What the guard left, cut at any byte, changed, of another kind or version: one typed line, or what is whole of it. */

import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { TidemarkError } from "../../model/errors/errors.js";
import { FileSink } from "../../recording/frames/file_sink.js";
import { RecordingWriter } from "../../recording/writer.js";
import { PoolReader, ProfileAssembler, SegmentReader } from "../../segment/index.js";
import { CONSTANTS, POOL_HEADER, SEGMENT_HEADER } from "../../segment/layout.js";
import { PoolFixture, START_REALTIME_MS } from "../../segment/pool.fixture.js";
import { openRecording } from "../process/open_recording.js";
import { finishOrphan } from "./orphan.js";

/** Aggregating several thousand times takes long on a busy machine. */
const PATIENCE_MS = 3_600_000;
let folder: string;
let left: string;
let whole: Buffer;
/** Byte after the last one of the segment that is not zero. */
let usedBytes: number;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-orphan-damage-"));
  left = join(folder, "left.tidemark");
  const pool = new PoolFixture();
  const root = pool.segment(0, 100);
  root.thread(100, "MainThread");
  root.live(0, root.site("main;load", { live: 1 << 20, allocated: 2 << 20 }), 1 << 20, 100);
  const descriptor = pool.open();
  const reader = new PoolReader(descriptor);
  const snapshot = new SegmentReader(descriptor, reader.slotRange(0)).snapshot();
  const assembler = new ProfileAssembler();
  if (snapshot) {
    assembler.renew(assembler.begin(snapshot.header), snapshot);
  }
  const writer = new RecordingWriter(FileSink.open(left));
  writer.begin({
    tidemarkVersion: "0.1.0",
    command: ["python", "app.py"],
    pid: 100,
    startedMs: START_REALTIME_MS,
    host: "host",
    kernel: "6.1",
    runId: reader.header().runId,
    periodBytes: 65536,
    keeper: null,
    recorder: { pid: 0, startTicks: 0 },
  });
  const taken = assembler.take(START_REALTIME_MS + 500);
  writer.snapshot(taken.tables, taken.snapshot, { kind: "poll", agent: assembler.totals() });
  writer.close();
  whole = Buffer.from(pool.bytes);
  usedBytes = whole.length;
  while (whole[usedBytes - 1] === 0) {
    usedBytes--;
  }
  pool.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Folds these bytes in and reads all that came of it. */
function fold(bytes: Uint8Array): "folded" | "refused" {
  const path = join(folder, "run.tidemark");
  copyFileSync(left, path);
  writeFileSync(`${path}.orphan`, bytes);
  try {
    finishOrphan(path);
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    expect(error.id).toMatch(/^TM-E00[5-7]$/);
    expect(error.exitCode).toBe(2);
    expect(error.message).not.toMatch(/\n|undefined|NaN/);
    // The recording itself still opens.
    expect(openRecording(path).damage).toBeNull();
    return "refused";
  }
  const recording = openRecording(path);
  expect(recording.damage).toBeNull();
  const { sites } = recording.profileAt("end");
  for (const figure of [sites.liveBytes, sites.allocatedBytes, sites.liveObjects]) {
    expect(figure.every((value) => Number.isFinite(value) && value >= 0)).toBe(true);
  }
  return "folded";
}

test("complete: merged", () => {
  expect(fold(whole)).toBe("folded");
});

test(
  "truncated at many bytes",
  () => {
    const step = Math.max(1, Math.floor(usedBytes / inject("counts").orphanBytes));
    for (let length = 0; length < usedBytes; length += length < 200 ? 1 : step) {
      const answer = fold(whole.subarray(0, length));
      if (length < POOL_HEADER.size) {
        expect(answer, `${length} bytes`).toBe("refused");
      }
    }
  },
  PATIENCE_MS,
);

test(
  "any byte changed",
  () => {
    const step = Math.max(1, Math.floor(usedBytes / inject("counts").orphanBytes));
    for (let offset = 0; offset < usedBytes; offset += offset < 128 ? 1 : step) {
      for (const mask of [1, 0x80, 0xff]) {
        const changed = Buffer.from(whole);
        changed.writeUInt8(changed.readUInt8(offset) ^ mask, offset);
        fold(changed);
      }
    }
  },
  PATIENCE_MS,
);

test(
  "garbage instead of a header's fields, a section, or everything",
  () => {
    let state = 4711;
    const noise = (length: number) =>
      Buffer.from(
        Array.from({ length }, () => {
          state = (Math.imul(state, 1103515245) + 12345) >>> 0;
          return state >>> 24;
        }),
      );
    for (const length of [0, 1, 7, 8, 11, 12, 100, 4096, 70_000]) {
      expect(fold(noise(length)), `${length} bytes`).toBe("refused");
    }
    for (let from = 12; from < usedBytes; from += 509) {
      const changed = Buffer.from(whole);
      noise(Math.min(300, usedBytes - from)).copy(changed, from);
      fold(changed);
    }
  },
  PATIENCE_MS,
);

test("another version of the pool is refused, another version of a segment is reported", () => {
  const other = CONSTANTS.TM_SEGMENT_VERSION + 41;
  const pool = Buffer.from(whole);
  pool.writeUInt32LE(other, POOL_HEADER.version);
  const path = join(folder, "run.tidemark");
  copyFileSync(left, path);
  writeFileSync(`${path}.orphan`, pool);
  expect(() => finishOrphan(path)).toThrow(new RegExp(`TM-E006.*version ${other}`));

  const segment = Buffer.from(whole);
  const at = Number(segment.readBigUInt64LE(POOL_HEADER.slots_offset));
  segment.writeUInt32LE(other, at + SEGMENT_HEADER.version);
  expect(fold(segment)).toBe("folded");
  expect(openRecording(path).limits.join("\n")).toMatch(
    new RegExp(`process 100: .*version ${other}`),
  );
});
