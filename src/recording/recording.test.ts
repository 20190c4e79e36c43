/** The log, written and read back: whole, growing, resumed, of another version, and files that are none. */

import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { crc32 } from "./frames/checksum.js";
import { FORMAT_VERSION, FrameKind } from "./frames/frames.js";
import { openRecording } from "./reader.js";
import {
  frameEnds,
  newBuilder,
  SmallRecording,
  START_MS,
  smallSnapshot,
  writeSmallRecording,
} from "./recording.fixture.js";
import { upgrade } from "./upgrade.js";
import { RecordingWriter } from "./writer.js";

const MIB = 2 ** 20;
let small: SmallRecording;

beforeAll(() => {
  small = new SmallRecording();
});
afterAll(() => small.remove());

describe("reads back what was written", () => {
  test("description, processes, end", () => {
    const recording = small.open(small.bytes);
    expect(recording.meta).toMatchObject({
      formatVersion: FORMAT_VERSION,
      command: ["python", "app.py", "--name", "é"],
      pid: 100,
    });
    expect(
      recording.processes.map(({ pid, endedMs, profiled }) => ({ pid, endedMs, profiled })),
    ).toEqual([
      { pid: 100, endedMs: null, profiled: true },
      { pid: 101, endedMs: START_MS + 2500, profiled: false },
    ]);
    expect(recording.end).toMatchObject({ exitCode: 3, signal: null, maxRssBytes: 77 * MIB });
    expect(recording).toMatchObject({
      complete: true,
      damage: null,
      startMs: START_MS,
      endMs: START_MS + 3000,
    });
  });

  test("series: a column per metric, NaN if a poll did not read it", () => {
    const [root, child] = small.open(small.bytes).series;
    expect([...(root?.timesMs ?? [])]).toEqual([START_MS, START_MS + 1000, START_MS + 2000]);
    expect([...(root?.values.get("rssBytes") ?? [])]).toEqual([10 * MIB, 20 * MIB, 30 * MIB]);
    expect([...(root?.values.get("treePssBytes") ?? [])]).toEqual([9 * MIB, Number.NaN, 27 * MIB]);
    expect([...(child?.values.keys() ?? [])]).toEqual(["rssBytes"]);
  });

  test("events, with and without a value", () => {
    const { events } = small.open(small.bytes);
    expect(events).toHaveLength(6);
    expect(events[0]).toEqual({
      timeMs: START_MS,
      pid: 100,
      kind: "step-begin",
      detail: "step 0",
      value: 0,
    });
    expect(events[1]).toEqual({ timeMs: START_MS, pid: 101, kind: "exec", detail: "no value" });
  });

  test("censuses, and of holders the newest", () => {
    const { censuses, holderLookups } = small.open(small.bytes);
    expect(censuses.map(({ timeMs }) => timeMs - START_MS)).toEqual([0, 1000, 2000]);
    expect(censuses[2]).toEqual({
      timeMs: START_MS + 2000,
      pid: 100,
      types: ["app.Session", "str"],
      objects: Float64Array.of(20, 52),
      bytes: Float64Array.of(2 * MIB, 2 * MIB),
    });
    expect(holderLookups).toMatchObject([{ pid: 100, rows: [{ held: 47, entries: 300 }] }]);
  });

  test("snapshots: every column, with the shared dictionaries", () => {
    const recording = small.open(small.bytes);
    const builder = newBuilder();
    for (let n = 0; n < 3; n++) {
      const { snapshot } = smallSnapshot(builder, n);
      const profile = recording.profileOf(n);
      expect({ ...profile.sites }).toEqual(snapshot.sites);
      expect({ ...profile.files }).toEqual(snapshot.files);
      expect({ ...profile.copies }).toEqual(snapshot.copies);
      // Mapped files and copies are written, and count as no live memory.
      expect(recording.snapshots[n]?.liveBytes).toBe((n + 1) * 3 * MIB);
      expect(profile).toMatchObject({
        timeMs: snapshot.timeMs,
        durationMs: snapshot.durationMs,
        cohorts: snapshot.cohorts,
        peakMs: snapshot.peakMs,
      });
    }
    const expected = builder.tables();
    const { strings, frames, stacks, labels, processes, threads } = recording.profileAt("end");
    expect({ strings, frames, stacks, labels, processes, threads }).toEqual(expected);
  });

  test("limits: the agents' latest, and all of the recorder's", () => {
    expect(small.open(small.bytes).limits).toEqual([
      "a limit of the recorder",
      "an agent's limit, 2 times",
    ]);
  });

  test("moments", () => {
    const recording = small.open(small.bytes);
    expect(recording.profileAt("end").timeMs).toBe(START_MS + 3000);
    expect(recording.profileAt(START_MS + 2999).timeMs).toBe(START_MS + 2000);
    expect(recording.profileAt(START_MS).timeMs).toBe(START_MS + 1000);
    expect(recording.snapshotTimes).toEqual([1000, 2000, 3000].map((ms) => START_MS + ms));
  });

  test("the agent's own peak is above every snapshot", () => {
    const peak = small.open(small.bytes).profileAt("peak");
    expect(peak.timeMs).toBe(START_MS + 2900);
    expect([...peak.sites.liveBytes].sort()).toEqual([1.5 * 3 * MIB, 1.5 * 6 * MIB].sort());
    expect([...peak.sites.cohortBytes]).toEqual([...peak.sites.liveBytes]);
  });

  test("an unfinished recording that is continued reads as one recording", () => {
    const path = join(small.folder, "resumed.tidemark");
    writeSmallRecording(path, { snapshots: 2, end: false });
    const cut = readFileSync(path);
    appendFileSync(path, Buffer.from("half a frame"));
    const before = openRecording(path);
    const builder = newBuilder();
    smallSnapshot(builder, 0);
    smallSnapshot(builder, 1);
    const writer = RecordingWriter.resume(path, cut.length, before.profileOf(1), 2);
    const { tables, snapshot } = smallSnapshot(builder, 2);
    writer.snapshot(tables, snapshot, {
      kind: "end",
      agent: { samples: 1, lost: 0, cpuMs: 0, periodBytes: 1 },
    });
    writer.end({
      timeMs: snapshot.timeMs,
      exitCode: null,
      signal: null,
      maxRssBytes: 0,
      userMs: 0,
      systemMs: 0,
    });
    writer.close();
    const after = openRecording(path);
    expect(after).toMatchObject({ complete: true, damage: null });
    expect(after.profileOf(2).sites).toEqual(snapshot.sites);
    expect(after.profileOf(0).sites).toEqual(before.profileOf(0).sites);
  });
});

describe("other versions and other files", () => {
  test("a newer version is refused by name", () => {
    const newer = Buffer.from(small.bytes);
    newer.writeUInt32LE(FORMAT_VERSION + 1, 8);
    newer.writeUInt32LE(crc32(newer.subarray(0, 12)), 12);
    expect(() => small.open(newer)).toThrow(
      new RegExp(
        `TM-E006.*version ${FORMAT_VERSION + 1}, this Tidemark reads version ${FORMAT_VERSION}.*newer.*update`,
      ),
    );
  });

  test("older versions are read: 4 added the creators of handles, 5 the functions that add to a holder", () => {
    const older = Buffer.from(small.bytes);
    older.writeUInt32LE(3, 8);
    older.writeUInt32LE(crc32(older.subarray(0, 12)), 12);
    expect(small.open(older).meta.formatVersion).toBe(3);
    const row = { site: "100 python load app.py", looked: 3 };
    const batch = { pid: 100, rows: [row] };
    expect(upgrade(3, FrameKind.holders, batch)).toEqual({
      pid: 100,
      rows: [{ ...row, madeAt: null, putters: [] }],
    });
    expect(upgrade(3, FrameKind.events, batch)).toBe(batch);
    expect(upgrade(FORMAT_VERSION, FrameKind.holders, batch)).toBe(batch);
  });

  test("another file is not recognized", () => {
    expect(() => small.open(Buffer.from("PK\x03\x04 a zip"))).toThrow(
      /TM-E007.*not a Tidemark recording/,
    );
    expect(() => small.open(Buffer.alloc(0))).toThrow(/TM-E007|TM-E005/);
    expect(() => openRecording(small.folder)).toThrow(/TM-E00[47]/);
    expect(() => openRecording(join(small.folder, "missing"))).toThrow(/TM-E003/);
  });

  test("it grows: complete frames stay readable, and more are added", () => {
    const boundaries = frameEnds(small.bytes);
    const counts = boundaries.map((end) => small.open(small.bytes.subarray(0, end)).events.length);
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
    expect(counts.at(-1)).toBe(6);
  });
});
