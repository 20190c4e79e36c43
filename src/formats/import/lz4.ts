/**
 * LZ4 frames, as memray compresses its files (lz4_Frame_format.md). Checksums are skipped: memray writes none.
 *
 *     magic 04 22 4D 18 | FLG BD [content size 8] [dictionary id 4] HC | blocks | 00 00 00 00
 *     block: length 4, its top bit set if it is stored | data [checksum 4 if FLG has bit 4]
 */
import { ForeignFault, MOST_CONTENT_BYTES } from "./importer.js";

const STORED = 0x8000_0000;
const LARGEST_BLOCK = 4 << 20;
const SHORTEST_MATCH = 4;

/** The content of all frames. Throws ForeignFault if it is damaged, `tooLarge()` if it exceeds the limit. */
export function decodeLz4(bytes: Buffer, tooLarge: () => Error): Buffer {
  const output = new Output(tooLarge);
  const flags = bytes[4] ?? 0;
  if (flags >> 6 !== 1) {
    throw new ForeignFault("its LZ4 data has an unknown version");
  }
  const blockChecksum = (flags & 0x10) !== 0 ? 4 : 0;
  let at = 7 + ((flags & 0x08) !== 0 ? 8 : 0) + ((flags & 0x01) !== 0 ? 4 : 0);
  for (;;) {
    if (at + 4 > bytes.length) {
      throw cutOff();
    }
    const word = bytes.readUInt32LE(at);
    at += 4;
    if (word === 0) {
      return output.content();
    }
    const length = word % STORED;
    if (length > LARGEST_BLOCK) {
      throw new ForeignFault("its LZ4 data has a block of an impossible size");
    }
    if (at + length > bytes.length) {
      throw cutOff();
    }
    const block = bytes.subarray(at, at + length);
    if (word >= STORED) {
      output.literals(block, 0, length);
    } else {
      decodeBlock(block, output);
    }
    at += length + blockChecksum;
  }
}

function cutOff(): ForeignFault {
  return new ForeignFault("its LZ4 data is cut off");
}

/** A block is a sequence of: token, literals, distance, match. The last one ends after its literals. */
function decodeBlock(block: Buffer, output: Output): void {
  let at = 0;
  const length = (start: number): number => {
    let sum = start;
    if (start === 15) {
      for (let more = 255; more === 255; ) {
        more = block[at++] ?? 0;
        sum += more;
      }
    }
    return sum;
  };
  while (at < block.length) {
    const token = block[at++] ?? 0;
    const literals = length(token >> 4);
    if (at + literals > block.length) {
      throw new ForeignFault("its LZ4 data is damaged");
    }
    output.literals(block, at, at + literals);
    at += literals;
    if (at >= block.length) {
      return;
    }
    const distance = (block[at] ?? 0) + (block[at + 1] ?? 0) * 256;
    at += 2;
    output.match(distance, length(token & 15) + SHORTEST_MATCH);
  }
}

/** Bytes that grow up to the limit. */
class Output {
  #bytes = Buffer.alloc(1 << 16);
  #length = 0;
  readonly #tooLarge: () => Error;

  constructor(tooLarge: () => Error) {
    this.#tooLarge = tooLarge;
  }

  content(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  literals(from: Buffer, start: number, end: number): void {
    this.#room(end - start);
    from.copy(this.#bytes, this.#length, start, end);
    this.#length += end - start;
  }

  /** The source may overlap the target, which repeats it. */
  match(distance: number, length: number): void {
    if (distance === 0 || distance > this.#length) {
      throw new ForeignFault("its LZ4 data is damaged");
    }
    this.#room(length);
    const bytes = this.#bytes;
    let to = this.#length;
    for (let from = to - distance, end = to + length; to < end; ) {
      bytes[to++] = bytes[from++] ?? 0;
    }
    this.#length = to;
  }

  #room(length: number): void {
    const needed = this.#length + length;
    if (needed > MOST_CONTENT_BYTES) {
      throw this.#tooLarge();
    }
    if (needed > this.#bytes.length) {
      const larger = Buffer.alloc(
        Math.min(MOST_CONTENT_BYTES, Math.max(needed, this.#bytes.length * 2)),
      );
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
  }
}
