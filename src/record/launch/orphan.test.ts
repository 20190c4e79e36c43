/** Recordings whose recorder was killed, finished from what the agents left. The guard's own side of it is
 * in guard.test.ts, all of it together in test/bad/kill.test.ts. */

import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { float64At, uint32At } from "../../model/base/columns.js";
import { FileSink } from "../../recording/frames/file_sink.js";
import { RecordingWriter } from "../../recording/writer.js";
import { PoolReader, ProfileAssembler, SegmentReader } from "../../segment/index.js";
import { PoolFixture, START_REALTIME_MS } from "../../segment/pool.fixture.js";
import { openRecording } from "../process/open_recording.js";
import { finishOrphan } from "./orphan.js";

let folder: string;
let path: string;
let orphan: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-orphan-"));
  path = join(folder, "run.tidemark");
  orphan = `${path}.orphan`;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A pool of two processes; the second has ended and was drained where `both` is false. */
function newPool(live: number, both: boolean): PoolFixture {
  const pool = new PoolFixture();
  const root = pool.segment(0, 100);
  root.thread(100, "MainThread");
  root.live(0, root.site("main;load", { live, allocated: 2 * live, peak: live }), live, 100);
  if (live > 4096) {
    root.live(1, root.site("main;late", { live: 2048 }), 2048, 900);
  }
  if (both) {
    const child = pool.segment(1, 200);
    child.live(0, child.site("work", { live: 8192, allocated: 16384 }), 8192, 50);
  }
  return pool;
}

/** A recording with one snapshot of `pool`, left by its recorder. */
function leave(pool: PoolFixture, recorder = { pid: 0, startTicks: 0 }): void {
  const descriptor = pool.open();
  const reader = new PoolReader(descriptor);
  const assembler = new ProfileAssembler();
  for (const slot of reader.slots()) {
    const snapshot = new SegmentReader(descriptor, reader.slotRange(slot.index)).snapshot();
    if (snapshot) {
      assembler.renew(assembler.begin(snapshot.header), snapshot);
    }
  }
  const writer = new RecordingWriter(FileSink.open(path));
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
    recorder,
  });
  const { tables, snapshot } = assembler.take(START_REALTIME_MS + 500);
  writer.snapshot(tables, snapshot, { kind: "poll", agent: assembler.totals() });
  writer.close();
  pool.close();
}

/** Live and allocated bytes by the leaf's function. */
function figures() {
  const profile = openRecording(path).profileAt("end");
  const { strings, frames, stacks, sites } = profile;
  return Object.fromEntries(
    Array.from(sites.stack, (stack, row) => [
      strings[uint32At(frames.function, uint32At(stacks.frame, stack))],
      [float64At(sites.liveBytes, row), float64At(sites.allocatedBytes, row)],
    ]),
  );
}

describe("an orphan beside the recording", () => {
  test("is merged once: new sites, old dictionaries, ended processes without memory", () => {
    leave(newPool(4096, true));
    expect(figures()).toEqual({ load: [4096, 8192], work: [8192, 16384] });
    writeFileSync(orphan, newPool(16384, false).bytes);
    expect(finishOrphan(path)).toMatch(/recorder was killed/);
    expect(existsSync(orphan)).toBe(false);
    const recording = openRecording(path);
    expect(recording).toMatchObject({ complete: true, damage: null, end: { exitCode: null } });
    expect(recording.snapshots.map(({ kind }) => kind)).toEqual(["poll", "end"]);
    expect(recording.limits.join()).toMatch(/recorder was killed/);
    expect(figures()).toEqual({ load: [16384, 32768], late: [2048, 2048], work: [0, 16384] });
    expect(recording.profileOf(0).processes).toHaveLength(2);
    const before = readFileSync(path);
    expect(finishOrphan(path)).toBeNull();
    expect(readFileSync(path)).toEqual(before);
  });

  test("also if the last frame is incomplete", () => {
    leave(newPool(4096, true));
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(33)]).subarray(0, -20));
    writeFileSync(orphan, newPool(16384, true).bytes);
    finishOrphan(path);
    expect(openRecording(path)).toMatchObject({ complete: true, damage: null });
    expect(figures()).toMatchObject({ load: [16384, 32768], work: [8192, 16384] });
  });

  test("of another run is refused and stays", () => {
    leave(newPool(4096, true));
    const other = newPool(4096, true);
    other.view.setBigUint64(32, 0x999n, true);
    writeFileSync(orphan, other.bytes);
    expect(() => finishOrphan(path)).toThrow(/TM-E005.*another run/);
    expect(readdirSync(folder).sort()).toEqual(["run.tidemark", "run.tidemark.orphan"]);
    expect(openRecording(path).snapshots).toHaveLength(1);
  });

  test.each([
    ["garbage", Buffer.from("no pool at all, but some text of some length")],
    ["nothing", Buffer.alloc(0)],
    ["a head that is cut", Buffer.from(new PoolFixture().bytes.subarray(0, 40))],
    ["another version", withVersion(9)],
  ])("%s: refused in one line, and the recording stays as it was", (_name, content) => {
    leave(newPool(4096, true));
    const before = readFileSync(path);
    writeFileSync(orphan, content);
    expect(() => finishOrphan(path)).toThrow(/^TM-E00[567] [^\n]+$/);
    expect(readFileSync(path)).toEqual(before);
    expect(existsSync(orphan)).toBe(true);
  });

  test("of another user is not touched", () => {
    if (process.getuid?.() !== 0) {
      return;
    }
    leave(newPool(4096, true));
    writeFileSync(orphan, newPool(16384, true).bytes);
    chownSync(orphan, 1234, 1234);
    expect(finishOrphan(path)).toMatch(/cannot be completed.*user 1234/);
    expect(existsSync(orphan)).toBe(true);
    expect(openRecording(path).complete).toBe(false);
  });

  test("a link or a directory in its place is ignored", () => {
    leave(newPool(4096, true));
    const elsewhere = join(folder, "elsewhere");
    writeFileSync(elsewhere, newPool(16384, true).bytes);
    symlinkSync(elsewhere, orphan);
    expect(finishOrphan(path)).toMatch(/cannot be completed/);
    expect(existsSync(elsewhere)).toBe(true);
    rmSync(orphan);
    mkdirSync(orphan);
    expect(() => finishOrphan(path)).toThrow(/TM-E00[47]/);
  });
});

describe("nothing to do", () => {
  test("while the recorder lives", () => {
    const stat = readFileSync("/proc/self/stat", "utf8");
    const startTicks = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
    leave(newPool(4096, true), { pid: process.pid, startTicks });
    writeFileSync(orphan, newPool(16384, true).bytes);
    expect(finishOrphan(path)).toBeNull();
    expect(openRecording(path).limits).toEqual([]);
  });

  test("without an orphan: the limits report that the recorder was killed", () => {
    leave(newPool(4096, true));
    expect(finishOrphan(path)).toBeNull();
    expect(openRecording(path).limits.join()).toMatch(/recorder was killed/);
  });

  test("no recording at all is an error", () => {
    expect(() => finishOrphan(join(folder, "none"))).toThrow(/TM-E003/);
  });
});

function withVersion(version: number): Buffer {
  const pool = new PoolFixture();
  pool.view.setUint32(8, version, true);
  return Buffer.from(pool.bytes);
}
