/**
 * A recording with fewer profiles, written in place of the whole one when the disk runs short. Its series, processes, events
 * and ends stay.
 *
 *     kept bytes │ meta processes metrics dictionary profile samples profile samples metrics ... end
 *     unchanged  │ ✓    ✓         ✓       ✓          one in `distanceMs`, and the last       ✓       ✓
 *
 * Frames are copied as they are, so the result is a recording. The first bytes stay the same, because a server may have
 * them: a stream continues at an offset.
 */
import { closeSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import type { Bytes, Millis, TimeMs } from "../model/base/units.js";
import { type FramePlace, scanFrames } from "./frames/frame_file.js";
import { FRAME_HEAD_BYTES, FrameKind } from "./frames/frames.js";

/** Of all profiles that are left out, so are the names in them, and what holds their memory. */
const OF_PROFILES: ReadonlySet<number> = new Set([
  FrameKind.dictionary,
  FrameKind.profile,
  FrameKind.samples,
  FrameKind.holders,
  FrameKind.census,
]);
const REMOVABLE: ReadonlySet<number> = new Set([
  FrameKind.profile,
  FrameKind.samples,
  FrameKind.census,
]);
const PIECE_BYTES: Bytes = 1 << 20;
/** Follows the recording's name while the thinned copy is written; it remains if the process is killed. */
export const THINNED = ".thinned";

interface ThinnedOptions {
  /** So many bytes stay as they are. */
  readonly keptBytes: Bytes;
  /** Shortest time between two profiles that stay; infinite: none stays. */
  readonly distanceMs: Millis;
}

/** @returns how much smaller the file is now. Throws TidemarkError for a file that is not a recording, or an Error of the disk. */
export function thinRecording(path: string, { keptBytes, distanceMs }: ThinnedOptions): Bytes {
  const places: FramePlace[] = [];
  const { endOffset } = scanFrames(
    { path, memory: null },
    (place) => places.push(place),
    () => "",
  );
  const stays = staying(places, keptBytes, distanceMs);
  const removed = places.reduce(
    (sum, place, at) => sum + (stays[at] === true ? 0 : sizeOf(place)),
    0,
  );
  if (removed === 0) {
    return 0;
  }
  const fresh = `${path}${THINNED}`;
  try {
    copy(path, fresh, [
      { offset: 0, bytes: places[0]?.offset ?? endOffset },
      ...places.flatMap((place, at) =>
        stays[at] === true ? [{ offset: place.offset, bytes: sizeOf(place) }] : [],
      ),
    ]);
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
  return removed;
}

/** Offset after the last whole frame. Throws TidemarkError for a file that is not a recording. */
export function wholeBytesOf(path: string): Bytes {
  return scanFrames(
    { path, memory: null },
    () => {},
    () => "",
  ).endOffset;
}

/** A profile is two frames, which stay or go together. */
function staying(places: readonly FramePlace[], keptBytes: Bytes, distanceMs: Millis): boolean[] {
  const dropped = Number.isFinite(distanceMs) ? REMOVABLE : OF_PROFILES;
  const last = places.findLastIndex(({ head }) => head.kind === FrameKind.profile);
  let profileMs: TimeMs = Number.NEGATIVE_INFINITY;
  let stays = false;
  return places.map(({ offset, head: { kind, timeMs } }, at) => {
    if (kind === FrameKind.profile) {
      stays =
        Number.isFinite(distanceMs) &&
        (offset < keptBytes || at === last || timeMs - profileMs >= distanceMs);
      profileMs = stays ? timeMs : profileMs;
    }
    const isOfProfile = kind === FrameKind.profile || kind === FrameKind.samples;
    return offset < keptBytes || !dropped.has(kind) || (isOfProfile && stays);
  });
}

function sizeOf({ head }: FramePlace): Bytes {
  return FRAME_HEAD_BYTES + head.length;
}

function copy(
  from: string,
  to: string,
  ranges: readonly { readonly offset: number; readonly bytes: Bytes }[],
): void {
  const source = openSync(from, "r");
  try {
    const target = openSync(to, "wx", 0o600);
    try {
      const piece = Buffer.alloc(PIECE_BYTES);
      for (const { offset, bytes } of ranges) {
        for (let at = offset; at < offset + bytes; ) {
          const got = readSync(source, piece, 0, Math.min(PIECE_BYTES, offset + bytes - at), at);
          if (got === 0) {
            throw new Error(`${from} changed while it was being copied`);
          }
          for (let sent = 0; sent < got; ) {
            sent += writeSync(target, piece, sent, got - sent);
          }
          at += got;
        }
      }
    } finally {
      closeSync(target);
    }
  } finally {
    closeSync(source);
  }
}
