/**
 * The log of a recording: conversion between bytes and frames. docs/recording.md describes it for other programs.
 *
 *   file     0  "TIDEMARK"   8  u32 format version   12  u32 CRC-32 of bytes 0-11   16  frames, to the end
 *   frame    0  u32 payload length   4  u16 kind   6  u16 flags   8  f64 time, ms since 1970
 *            16 u32 CRC-32 of bytes 0-15 and the payload          20 payload
 *
 * Little-endian. Flag 1: the payload is deflated (zlib). Frames are only ever appended.
 */

import { deflateSync, inflateSync } from "node:zlib";
import type { TimeMs } from "../../model/base/units.js";
import { decodeColumns, encodeColumns } from "../../model/documents/columns.js";
import { damagedInput, notOurs, tooLarge, unknownVersion } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { crc32 } from "./checksum.js";

/** Raised whenever the meaning of a frame changes; `UPGRADERS` in upgrade.ts then gets another step. */
export const FORMAT_VERSION = 7;

export const FrameKind = {
  meta: 1,
  processes: 2,
  metrics: 3,
  dictionary: 4,
  profile: 5,
  samples: 6,
  events: 7,
  limits: 8,
  end: 9,
  holders: 10,
  census: 11,
  memoryEnds: 12,
} as const;
export type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];

export const FILE_HEAD_BYTES = 16;
export const FRAME_HEAD_BYTES = 20;
/** The largest batch, which bounds the memory that a hostile payload may make a reader allocate. */
export const MAX_BATCH_BYTES = 256 << 20;
/** No writer makes a larger payload; a larger length is damage. */
export const MAX_PAYLOAD_BYTES = MAX_BATCH_BYTES + (1 << 20);
const FLAG_DEFLATED = 1;
const MAGIC = Buffer.from("TIDEMARK");
/** Below this, deflate's overhead exceeds its savings. */
const WORTH_DEFLATING = 128;
/** Level 1: a profile costs the recorder a third of the time of level 6, for a tenth more bytes. */
const MANY = { level: 1 };
/** A collector writes a small frame a minute for each program: without 256 KiB of tables and 16 KiB of room for each. */
const FEW = { level: 1, windowBits: 12, memLevel: 5, chunkSize: 1024 };
const FEW_BYTES = 2 ** FEW.windowBits;

export interface FrameHead {
  readonly length: number;
  readonly kind: number;
  readonly flags: number;
  readonly timeMs: TimeMs;
  readonly checksum: number;
}

export function encodeFileHead(): Buffer {
  const head = Buffer.alloc(FILE_HEAD_BYTES);
  MAGIC.copy(head);
  head.writeUInt32LE(FORMAT_VERSION, 8);
  head.writeUInt32LE(crc32(head.subarray(0, 12)), 12);
  return head;
}

/**
 * The format version. Throws TidemarkError if this is not a recording, is truncated, or comes from a newer Tidemark.
 */
export function decodeFileHead(head: Buffer, source: string): number {
  if (head.length === 0) {
    throw damagedInput(source, "it is empty");
  }
  if (!head.subarray(0, 8).equals(MAGIC.subarray(0, Math.min(8, head.length)))) {
    throw notOurs(source, "a Tidemark recording");
  }
  if (head.length < FILE_HEAD_BYTES) {
    throw damagedInput(source, `it ends after ${head.length} bytes, within its header`);
  }
  if (head.readUInt32LE(12) !== crc32(head.subarray(0, 12))) {
    throw damagedInput(source, "the checksum of its header is wrong");
  }
  const version = head.readUInt32LE(8);
  if (version > FORMAT_VERSION || version === 0) {
    throw unknownVersion(source, version, FORMAT_VERSION);
  }
  return version;
}

/** Throws TidemarkError (TM-E008) for a batch that readers would refuse. */
export function encodeFrame(kind: FrameKind, timeMs: TimeMs, batch: unknown): Buffer {
  const plain = encodeColumns(batch);
  if (plain.length > MAX_BATCH_BYTES) {
    throw tooLarge("a snapshot of the profile", `${MAX_BATCH_BYTES >> 20} MiB`);
  }
  const deflated = plain.length >= WORTH_DEFLATING;
  const payload = deflated ? deflateSync(plain, plain.length <= FEW_BYTES ? FEW : MANY) : plain;
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt32LE(payload.length, 0);
  head.writeUInt16LE(kind, 4);
  head.writeUInt16LE(deflated ? FLAG_DEFLATED : 0, 6);
  head.writeDoubleLE(timeMs, 8);
  head.writeUInt32LE(crc32(head.subarray(0, 16), payload), 16);
  return Buffer.concat([head, payload]);
}

export function decodeFrameHead(head: Buffer): FrameHead {
  return {
    length: head.readUInt32LE(0),
    kind: head.readUInt16LE(4),
    flags: head.readUInt16LE(6),
    timeMs: head.readDoubleLE(8),
    checksum: head.readUInt32LE(16),
  };
}

export function frameIsWhole(head: Buffer, payload: Buffer): boolean {
  return head.readUInt32LE(16) === crc32(head.subarray(0, 16), payload);
}

/** The batch of a frame with a correct checksum. Throws TidemarkError if it is still invalid. */
export function decodePayload(head: FrameHead, payload: Buffer, source: string): unknown {
  return decodeColumns(plainPayload(head, payload, source, MAX_BATCH_BYTES), source);
}

/** The bytes of a batch, inflated, of at most `mostBytes`. Throws TidemarkError. */
export function plainPayload(
  head: FrameHead,
  payload: Buffer,
  source: string,
  mostBytes: number,
): Uint8Array {
  if ((head.flags & ~FLAG_DEFLATED) !== 0) {
    throw damagedInput(source, `a frame has unknown flags ${head.flags}`);
  }
  const isDeflated = (head.flags & FLAG_DEFLATED) !== 0;
  const plain = isDeflated ? inflate(payload, source, mostBytes) : payload;
  // Columns must be plain typed arrays, but parts of a Buffer are Buffers.
  return new Uint8Array(plain.buffer, plain.byteOffset, plain.length);
}

function inflate(payload: Buffer, source: string, mostBytes: number): Buffer {
  try {
    return inflateSync(payload, { maxOutputLength: mostBytes });
  } catch (error) {
    throw damagedInput(source, `a frame does not inflate: ${reasonOf(error).message}`);
  }
}
