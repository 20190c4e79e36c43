/** The log, written and read back: whole, cut at any byte, damaged, of another version, hostile. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TidemarkError } from "../model/errors.js";
import { crc32 } from "./checksum.js";
import { newBuilder, START_MS, smallLook, writeSmallRecording } from "./fixtures/recording.js";
import {
  encodeFrame,
  FILE_HEAD_BYTES,
  FORMAT_VERSION,
  FRAME_HEAD_BYTES,
  FrameKind,
  MAX_BATCH_BYTES,
} from "./frames.js";
import { openRecording } from "./reader.js";
import { summarize } from "./summary.js";
import type { Recording } from "./types.js";
import { RecordingWriter } from "./writer.js";

const MIB = 2 ** 20;
/** Thousands of openings take their time on a busy machine. */
const PATIENCE_MS = 600_000;
let folder: string;
let bytes: Buffer;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-recording-"));
  const path = join(folder, "small.tidemark");
  writeSmallRecording(path);
  bytes = readFileSync(path);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function openBytes(content: Uint8Array): Recording {
  const path = join(folder, "case.tidemark");
  writeFileSync(path, content);
  return openRecording(path);
}

/** Everything that a recording answers, as plain values. */
function contentOf(recording: Recording) {
  return {
    processes: recording.processes,
    events: recording.events,
    series: recording.series.map(({ pid, timesMs, values }) => ({
      pid,
      timesMs,
      values: [...values],
    })),
    looks: recording.looks,
    profiles: recording.looks.map((_look, index) => recording.profileOf(index).sites),
  };
}

describe("what was written is read back", () => {
  test("description, processes, end", () => {
    const recording = openBytes(bytes);
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

  test("series: a column a metric, NaN where a poll did not read it", () => {
    const [root, child] = openBytes(bytes).series;
    expect([...(root?.timesMs ?? [])]).toEqual([START_MS, START_MS + 1000, START_MS + 2000]);
    expect([...(root?.values.get("rssBytes") ?? [])]).toEqual([10 * MIB, 20 * MIB, 30 * MIB]);
    expect([...(root?.values.get("treePssBytes") ?? [])]).toEqual([9 * MIB, Number.NaN, 27 * MIB]);
    expect([...(child?.values.keys() ?? [])]).toEqual(["rssBytes"]);
  });

  test("events, with and without a value", () => {
    const { events } = openBytes(bytes);
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

  test("looks: every column, with the dictionaries of all", () => {
    const recording = openBytes(bytes);
    const builder = newBuilder();
    for (let n = 0; n < 3; n++) {
      const { look } = smallLook(builder, n);
      const profile = recording.profileOf(n);
      expect({ ...profile.sites }).toEqual(look.sites);
      expect(profile).toMatchObject({
        timeMs: look.timeMs,
        durationMs: look.durationMs,
        cohorts: look.cohorts,
        peakMs: look.peakMs,
      });
    }
    const expected = builder.tables();
    const { strings, frames, stacks, labels, processes, threads } = recording.profileAt("end");
    expect({ strings, frames, stacks, labels, processes, threads }).toEqual(expected);
  });

  test("limits: the agents' last word, and all of the recorder's", () => {
    expect(openBytes(bytes).limits).toEqual([
      "a limit of the recorder",
      "an agent's limit, 2 times",
    ]);
  });

  test("moments", () => {
    const recording = openBytes(bytes);
    expect(recording.profileAt("end").timeMs).toBe(START_MS + 3000);
    expect(recording.profileAt(START_MS + 2999).timeMs).toBe(START_MS + 2000);
    expect(recording.profileAt(START_MS).timeMs).toBe(START_MS + 1000);
    expect(recording.lookTimes).toEqual([1000, 2000, 3000].map((ms) => START_MS + ms));
  });

  test("the agent's own peak is above any look", () => {
    const peak = openBytes(bytes).profileAt("peak");
    expect(peak.timeMs).toBe(START_MS + 2900);
    expect([...peak.sites.liveBytes].sort()).toEqual([1.5 * 3 * MIB, 1.5 * 6 * MIB].sort());
    expect([...peak.sites.cohortBytes]).toEqual([...peak.sites.liveBytes]);
  });

  test("an unfinished one, resumed, reads as one", () => {
    const path = join(folder, "resumed.tidemark");
    writeSmallRecording(path, { looks: 2, end: false });
    const cut = readFileSync(path);
    appendFileSync(path, Buffer.from("half a frame"));
    const before = openRecording(path);
    const builder = newBuilder();
    smallLook(builder, 0);
    smallLook(builder, 1);
    const writer = RecordingWriter.resume(path, cut.length, before.profileOf(1), 2);
    const { tables, look } = smallLook(builder, 2);
    writer.look(tables, look, {
      kind: "end",
      agent: { samples: 1, lost: 0, cpuMs: 0, periodBytes: 1 },
    });
    writer.end({
      timeMs: look.timeMs,
      exitCode: null,
      signal: null,
      maxRssBytes: 0,
      userMs: 0,
      systemMs: 0,
    });
    writer.close();
    const after = openRecording(path);
    expect(after).toMatchObject({ complete: true, damage: null });
    expect(after.profileOf(2).sites).toEqual(look.sites);
    expect(after.profileOf(0).sites).toEqual(before.profileOf(0).sites);
  });
});

/** Opens damaged bytes: a clear refusal, or a part of the whole. Returns the recording, null for a refusal. */
function openDamaged(content: Uint8Array, whole: ReturnType<typeof contentOf>): Recording | null {
  let recording: Recording;
  try {
    recording = openBytes(content);
  } catch (error) {
    if (!(error instanceof TidemarkError)) {
      throw error;
    }
    expect(error.message).not.toContain("\n");
    expect(error.exitCode).toBe(2);
    return null;
  }
  const part = contentOf(recording);
  expect(whole.events.slice(0, part.events.length)).toEqual(part.events);
  expect(whole.looks.slice(0, part.looks.length)).toEqual(part.looks);
  expect(whole.profiles.slice(0, part.profiles.length)).toEqual(part.profiles);
  part.series.forEach(({ timesMs, pid }, i) => {
    expect(whole.series[i]?.pid).toBe(pid);
    expect([...(whole.series[i]?.timesMs.subarray(0, timesMs.length) ?? [])]).toEqual([...timesMs]);
  });
  summarize(recording, "end");
  return recording;
}

describe("damage", () => {
  test("cut at every byte: what is whole is read, and the cut is told", {
    timeout: PATIENCE_MS,
  }, () => {
    const whole = contentOf(openBytes(bytes));
    const boundaries = frameEnds(bytes);
    for (let length = 0; length < bytes.length; length++) {
      const recording = openDamaged(bytes.subarray(0, length), whole);
      const described = length >= (boundaries[0] as number);
      expect(recording !== null, `cut at ${length}`).toBe(described);
      if (recording) {
        expect(recording.complete).toBe(false);
        expect(recording.damage === null, `cut at ${length}`).toBe(boundaries.includes(length));
        expect(recording.limits.some((line) => /damaged|killed/.test(line))).toBe(true);
      }
    }
  });

  test("any byte changed: told, and never read as another figure", { timeout: PATIENCE_MS }, () => {
    const whole = contentOf(openBytes(bytes));
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] as number) ^ (1 << (at % 8));
      const recording = openDamaged(changed, whole);
      expect(recording === null || recording.damage !== null, `byte ${at}`).toBe(true);
    }
  });

  test("garbage, alone and behind a true head", { timeout: PATIENCE_MS }, () => {
    const whole = contentOf(openBytes(bytes));
    let state = 12345;
    const random = (length: number) =>
      Buffer.from(
        Array.from({ length }, () => {
          state = (Math.imul(state, 1103515245) + 12345) >>> 0;
          return state >>> 24;
        }),
      );
    for (let length = 0; length < 300; length++) {
      openDamaged(random(length), whole);
      openDamaged(Buffer.concat([bytes.subarray(0, FILE_HEAD_BYTES), random(length)]), whole);
      openDamaged(Buffer.concat([bytes, random(length)]), whole);
    }
  });

  test.each([
    ["a frame of unknown kind", encodeFrame(77 as FrameKind, START_MS, {})],
    ["a second description", encodeFrame(FrameKind.meta, START_MS, {})],
    ["columns of unequal length", metricsFrame({ value: new Float64Array(2) })],
    ["columns of another type", metricsFrame({ series: new Float64Array(1) })],
    ["an unknown process", metricsFrame({ series: Uint32Array.of(9) })],
    ["an unknown metric", metricsFrame({ names: ["bogusBytes"] })],
    ["a poll before the last", metricsFrame({ timeMs: Float64Array.of(5) })],
    ["a time that is none", metricsFrame({ timeMs: Float64Array.of(Number.NaN) })],
    [
      "an event of unknown kind",
      encodeFrame(FrameKind.events, START_MS, {
        timeMs: new Float64Array(1),
        pid: new Uint32Array(1),
        kind: ["bogus"],
        detail: [""],
        value: new Float64Array(1),
      }),
    ],
    ["no table at all", encodeFrame(FrameKind.events, START_MS, null)],
    ["a list for a table", encodeFrame(FrameKind.processes, START_MS, [1, 2])],
    [
      "dictionaries that do not follow on",
      encodeFrame(FrameKind.dictionary, START_MS, dictionary({ from: 99 })),
    ],
    ["a frame of unknown strings", encodeFrame(FrameKind.dictionary, START_MS, dictionary({}))],
  ])("with a true checksum, %s: reading stops there", (_name, frame) => {
    const recording = openBytes(Buffer.concat([bytes, frame]));
    expect(recording.damage).toMatch(new RegExp(`byte ${bytes.length} makes no sense`));
    expect(recording.looks).toHaveLength(3);
  });

  test.each([
    ["stacks that are not there", { stack: Uint32Array.of(99) }],
    ["threads that are not there", { thread: Uint32Array.of(99) }],
    ["processes that are not there", { process: Uint16Array.of(99) }],
    ["lifetimes of another width", { lifetimes: new Float32Array(5) }],
    ["figures that are none", { liveBytes: Float64Array.of(Number.NaN) }],
    ["figures below nothing", { liveBytes: Float64Array.of(-5) }],
  ])("a look with %s is refused when it is asked for", (_name, wrong) => {
    const announced = {
      profile: 3,
      kind: "poll",
      timeMs: START_MS + 4000,
      durationMs: 1,
      liveBytes: 1,
      agent: { samples: 1, lost: 0, cpuMs: 0, periodBytes: 1 },
    };
    const frames = [
      encodeFrame(FrameKind.profile, START_MS + 4000, announced),
      encodeFrame(FrameKind.samples, START_MS + 4000, { ...oneSample(), ...wrong }),
    ];
    const recording = openBytes(Buffer.concat([bytes, ...frames]));
    expect(recording.looks).toHaveLength(4);
    expect(() => recording.profileOf(3)).toThrow(/TM-E005.*makes no sense/);
    expect(recording.profileOf(2).sites.length).toBe(2);
  });

  test("a payload that inflates without end is refused", () => {
    const payload = deflateSync(Buffer.alloc(MAX_BATCH_BYTES + 1), { level: 1 });
    const head = Buffer.alloc(FRAME_HEAD_BYTES);
    head.writeUInt32LE(payload.length, 0);
    head.writeUInt16LE(FrameKind.limits, 4);
    head.writeUInt16LE(1, 6);
    head.writeUInt32LE(crc32(head.subarray(0, 16), payload), 16);
    const frame = Buffer.concat([head, payload]);
    const recording = openBytes(Buffer.concat([bytes, frame]));
    expect(recording.damage).toMatch(/does not inflate/);
  });
});

describe("versions and files that are none", () => {
  test("a newer one is refused by name", () => {
    const newer = Buffer.from(bytes);
    newer.writeUInt32LE(FORMAT_VERSION + 1, 8);
    newer.writeUInt32LE(crc32(newer.subarray(0, 12)), 12);
    expect(() => openBytes(newer)).toThrow(
      /TM-E006.*version 3, this Tidemark reads version 2.*newer.*update/,
    );
  });

  test("something else is not ours", () => {
    expect(() => openBytes(Buffer.from("PK\x03\x04 a zip"))).toThrow(
      /TM-E007.*not a Tidemark recording/,
    );
    expect(() => openBytes(Buffer.alloc(0))).toThrow(/TM-E007|TM-E005/);
    expect(() => openRecording(folder)).toThrow(/TM-E00[47]/);
    expect(() => openRecording(join(folder, "missing"))).toThrow(/TM-E003/);
  });

  test("it grows: what was whole before stays readable, and more comes", () => {
    const boundaries = frameEnds(bytes);
    const counts = boundaries.map((end) => openBytes(bytes.subarray(0, end)).events.length);
    expect(counts).toEqual([...counts].sort((a, b) => a - b));
    expect(counts.at(-1)).toBe(6);
  });
});

function frameEnds(content: Buffer): number[] {
  const ends: number[] = [];
  for (let at = FILE_HEAD_BYTES; at < content.length; ) {
    at += FRAME_HEAD_BYTES + content.readUInt32LE(at);
    ends.push(at);
  }
  return ends;
}

function metricsFrame(wrong: object): Buffer {
  return encodeFrame(FrameKind.metrics, START_MS + 5000, {
    names: ["rssBytes"],
    timeMs: Float64Array.of(START_MS + 5000),
    series: Uint32Array.of(0),
    name: Uint8Array.of(0),
    value: Float64Array.of(1),
    ...wrong,
  });
}

function dictionary({ from = 6 }: { from?: number }) {
  const none = new Uint32Array(0);
  return {
    strings: { from, values: [] },
    frames: {
      from: 4,
      function: Uint32Array.of(500),
      file: Uint32Array.of(0),
      line: Uint32Array.of(1),
      firstLine: Uint32Array.of(1),
      kind: Uint8Array.of(0),
      address: Float64Array.of(0),
    },
    stacks: { from: 5, parent: none, frame: none },
    labels: { from: 1, parent: none, key: none, value: none },
    threads: { row: none, process: none, tid: none, name: [], isMain: new Uint8Array(0) },
    processes: {
      row: none,
      pid: none,
      parentPid: none,
      command: [],
      python: [],
      startedMs: new Float64Array(0),
    },
  };
}

function oneSample() {
  const one = () => Float64Array.of(1);
  return {
    profile: 3,
    periodBytes: one(),
    peakMs: one(),
    cohorts: Float64Array.of(START_MS + 4001),
    stack: Uint32Array.of(1),
    process: Uint16Array.of(0),
    thread: Uint32Array.of(0),
    label: Uint32Array.of(0),
    domain: Uint8Array.of(0),
    liveBytes: one(),
    liveObjects: one(),
    liveVariance: one(),
    liveSamples: Uint32Array.of(1),
    allocatedBytes: one(),
    allocatedObjects: one(),
    allocatedVariance: one(),
    peakBytes: one(),
    peakObjects: one(),
    peakVariance: one(),
    lifetimes: new Float32Array(24),
    cohortBytes: one(),
  };
}
