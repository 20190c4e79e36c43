/** The log, cut at any byte, changed at any byte, and with frames that are true and make no sense. */

import { deflateSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { crc32 } from "../../recording/frames/checksum.js";
import {
  encodeFrame,
  FILE_HEAD_BYTES,
  FRAME_HEAD_BYTES,
  FrameKind,
  MAX_BATCH_BYTES,
} from "../../recording/frames/frames.js";
import { frameEnds, SmallRecording, START_MS } from "../../recording/recording.fixture.js";
import type { Recording } from "../../recording/types.js";
import { diagnoseRecording } from "./diagnosis.js";
import { summarize } from "./summary.js";

/** Thousands of openings take their time on a busy machine. */
const PATIENCE_MS = 3_600_000;
let small: SmallRecording;

beforeAll(() => {
  small = new SmallRecording();
});
afterAll(() => small.remove());

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
    snapshots: recording.snapshots,
    profiles: recording.snapshots.map((_look, index) => recording.profileOf(index).sites),
  };
}

/** Opens damaged bytes: a clear refusal, or a part of the whole. Returns the recording, null for a refusal. */
function openDamaged(content: Uint8Array, whole: ReturnType<typeof contentOf>): Recording | null {
  let recording: Recording;
  try {
    recording = small.open(content);
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
  expect(whole.snapshots.slice(0, part.snapshots.length)).toEqual(part.snapshots);
  expect(whole.profiles.slice(0, part.profiles.length)).toEqual(part.profiles);
  part.series.forEach(({ timesMs, pid }, i) => {
    expect(whole.series[i]?.pid).toBe(pid);
    expect([...(whole.series[i]?.timesMs.subarray(0, timesMs.length) ?? [])]).toEqual([...timesMs]);
  });
  summarize(recording, "end");
  return recording;
}

test("a recording that ends after any of its frames has a summary and a verdict", async () => {
  for (const end of frameEnds(small.bytes)) {
    let recording: Recording;
    try {
      recording = small.open(small.bytes.subarray(0, end));
    } catch (error) {
      expect(error).toBeInstanceOf(TidemarkError); // it ends before the first frame does
      continue;
    }
    const { verdict } = await diagnoseRecording(recording, async () => {});
    expect(JSON.stringify([summarize(recording, "end"), verdict])).not.toMatch(/undefined|NaN/);
  }
});

describe("damage", () => {
  test("truncated at every byte: complete frames are read, and the truncation is reported", {
    timeout: PATIENCE_MS,
  }, () => {
    const whole = contentOf(small.open(small.bytes));
    const boundaries = frameEnds(small.bytes);
    for (let length = 0; length < small.bytes.length; length++) {
      const recording = openDamaged(small.bytes.subarray(0, length), whole);
      const described = length >= itemAt(boundaries, 0);
      expect(recording !== null, `cut at ${length}`).toBe(described);
      if (recording) {
        expect(recording.complete).toBe(false);
        expect(recording.damage === null, `cut at ${length}`).toBe(boundaries.includes(length));
        expect(recording.limits.some((line) => /damaged|killed/.test(line))).toBe(true);
      }
    }
  });

  test("any changed byte is reported, and never read as another value", {
    timeout: PATIENCE_MS,
  }, () => {
    const whole = contentOf(small.open(small.bytes));
    for (let at = 0; at < small.bytes.length; at++) {
      const changed = Buffer.from(small.bytes);
      changed[at] = present(changed[at]) ^ (1 << (at % 8));
      const recording = openDamaged(changed, whole);
      expect(recording === null || recording.damage !== null, `byte ${at}`).toBe(true);
    }
  });

  test("garbage, alone and after a valid header", { timeout: PATIENCE_MS }, () => {
    const whole = contentOf(small.open(small.bytes));
    let state = 12345;
    const random = (length: number) =>
      Buffer.from(
        Array.from({ length }, () => {
          state = (Math.imul(state, 1103515245) + 12345) >>> 0;
          return state >>> 24;
        }),
      );
    for (let length = 0; length < inject("counts").recordingGarbage; length++) {
      openDamaged(random(length), whole);
      openDamaged(Buffer.concat([small.bytes.subarray(0, FILE_HEAD_BYTES), random(length)]), whole);
      openDamaged(Buffer.concat([small.bytes, random(length)]), whole);
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
  ])("with a valid checksum, %s: reading stops there", (_name, frame) => {
    const recording = small.open(Buffer.concat([small.bytes, frame]));
    expect(recording.damage).toMatch(new RegExp(`byte ${small.bytes.length} is invalid`));
    expect(recording.snapshots).toHaveLength(3);
  });

  test.each([
    ["stacks that are not there", { stack: Uint32Array.of(99) }],
    ["threads that are not there", { thread: Uint32Array.of(99) }],
    ["processes that are not there", { process: Uint16Array.of(99) }],
    ["lifetimes of another width", { lifetimes: new Float32Array(5) }],
    ["figures that are none", { liveBytes: Float64Array.of(Number.NaN) }],
    ["figures below nothing", { liveBytes: Float64Array.of(-5) }],
  ])("a snapshot with %s is refused when it is requested", (_name, wrong) => {
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
    const recording = small.open(Buffer.concat([small.bytes, ...frames]));
    expect(recording.snapshots).toHaveLength(4);
    expect(() => recording.profileOf(3)).toThrow(/TM-E005.*is invalid/);
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
    const recording = small.open(Buffer.concat([small.bytes, frame]));
    expect(recording.damage).toMatch(/does not inflate/);
  });
});

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
