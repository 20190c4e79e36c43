import { readSync } from "node:fs";
import type { Bytes } from "../../model/base/units.js";

const PIECE_BYTES: Bytes = 256 << 10;
/** A text of at most this length that crosses the end of a piece is whole in the next one. */
export const OVERLAP_BYTES: Bytes = 512;

/**
 * A file from its current position to its end, in pieces that overlap by {@link OVERLAP_BYTES}. All are in the same memory, so that
 * a search costs a recorder no room for an interpreter of 30 MiB, which its heap would keep. Throws as `readSync` does.
 */
export function* filePieces(descriptor: number): Generator<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
  for (let kept = 0; ; ) {
    const got = readSync(descriptor, buffer, kept, buffer.length - kept, null);
    if (got === 0) {
      return;
    }
    const piece = buffer.subarray(0, kept + got);
    yield piece;
    kept = Math.min(OVERLAP_BYTES, piece.length);
    buffer.copyWithin(0, piece.length - kept, piece.length);
  }
}
