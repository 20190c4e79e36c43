import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { present } from "../model/base/present.js";
import { LONGEST_LABEL_VALUE, MOST_LABELS } from "../model/wire/identity.js";
import { crc32 } from "./frames/checksum.js";
import { FILE_HEAD_BYTES, FRAME_HEAD_BYTES } from "./frames/frames.js";
import { type StreamLimits, StreamReader, wholeFrames } from "./stream_reader.js";
import { streamBytes } from "./streams.fixture.js";

const LIMITS: StreamLimits = { frameBytes: 1 << 20, callBytes: 4 << 20 };
const bytes = streamBytes({
  service: "shop",
  startedMs: Date.UTC(2026, 0, 2),
  pid: 42,
  rss: [
    [0, 1000],
    [1000, 2000],
  ],
  profiles: [[500, "main;load 1000"]],
  endedAfterMs: 2000,
});

/** Where each frame begins. */
function frameStarts(): number[] {
  const starts: number[] = [];
  for (let at = FILE_HEAD_BYTES; at < bytes.length; ) {
    starts.push(at);
    at += FRAME_HEAD_BYTES + bytes.readUInt32LE(at);
  }
  return starts;
}

describe("a stream", () => {
  it("gives the same items whole and in pieces", () => {
    const whole = new StreamReader("it", LIMITS).take(bytes).map(({ kind }) => kind);
    expect(whole).toEqual(["meta", "processes", "metrics", "profile", "metrics", "end"]);
    const reader = new StreamReader("it", LIMITS);
    const cuts = [...frameStarts().slice(1), bytes.length];
    let from = 0;
    const kinds = cuts.flatMap((to) => {
      const items = reader.take(bytes.subarray(from, to));
      from = to;
      return items.map(({ kind }) => kind);
    });
    expect(kinds).toEqual(whole);
    expect(reader.offset).toBe(bytes.length);
  });

  it("has bounded labels, whatever its sender wrote", () => {
    const labels = Object.fromEntries(
      Array.from({ length: 99 }, (_, n) => [`l${n}`, "x".repeat(9999)]),
    );
    const long = streamBytes({ service: "s".repeat(9999), startedMs: 1, pid: 1, labels });
    const [meta] = new StreamReader("it", LIMITS).take(long);
    const identity = present(meta?.kind === "meta" ? meta.meta.identity : undefined);
    expect(identity.service).toHaveLength(LONGEST_LABEL_VALUE);
    expect(Object.keys(identity.labels)).toHaveLength(MOST_LABELS);
    expect(identity.labels.l0).toHaveLength(LONGEST_LABEL_VALUE);
  });

  it("is refused if a frame is truncated, damaged, repeated, or follows the end", () => {
    const refusal = (given: Buffer) => () => new StreamReader("it", LIMITS).take(given);
    expect(refusal(bytes.subarray(0, bytes.length - 1))).toThrow(/is cut off/);
    const damaged = Buffer.from(bytes);
    damaged.writeUInt8(damaged.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
    expect(refusal(damaged)).toThrow(/checksum/);
    const [meta = 0, second = 0] = frameStarts();
    const twice = Buffer.concat([bytes.subarray(0, second), bytes.subarray(meta)]);
    expect(refusal(twice)).toThrow(/described twice/);
    const [last = 0] = frameStarts().slice(-1);
    expect(refusal(Buffer.concat([bytes, bytes.subarray(last)]))).toThrow(
      /after the recording's end/,
    );
    expect(refusal(bytes.subarray(0, 7))).toThrow(/within its head/);
    expect(refusal(Buffer.from("GET / HTTP/1.1\r\n\r\n"))).toThrow(/not a Tidemark recording/);
  });

  it("is refused if a frame inflates beyond the limit", () => {
    const payload = deflateSync(Buffer.alloc(64 << 20));
    const head = Buffer.alloc(FRAME_HEAD_BYTES);
    head.writeUInt32LE(payload.length, 0);
    head.writeUInt16LE(3, 4);
    head.writeUInt16LE(1, 6);
    head.writeDoubleLE(Date.UTC(2026, 0, 2), 8);
    head.writeUInt32LE(crc32(head.subarray(0, 16), payload), 16);
    const [, second = 0] = frameStarts();
    const bomb = Buffer.concat([bytes.subarray(0, second), head, payload]);
    expect(() => new StreamReader("it", LIMITS).take(bomb)).toThrow(/does not inflate/);
  });

  it("ends after its last whole frame", () => {
    const starts = frameStarts();
    const [last = 0] = starts.slice(-1);
    expect(wholeFrames(bytes.subarray(0, bytes.length - 1), 0, "it")).toBe(last);
    expect(wholeFrames(bytes.subarray(last), last, "it")).toBe(bytes.length - last);
    expect(wholeFrames(bytes.subarray(0, 5), 0, "it")).toBe(0);
  });
});
