/**
 * The bytes of a log as text: optionally gzipped, in UTF-8 or the UTF-16 that PowerShell 5 writes for `>`. A
 * truncated gzip file, or one with trailing data, yields everything that can be read, because logs of crashed
 * machines look like that.
 */
import { finished } from "node:stream";
import { createGunzip } from "node:zlib";

/** Why a log ends before its file does, in one sentence. */
interface LogDamage {
  readonly damage: string;
}

/** Compressed bytes that are decompressed at once; the output may be a thousand times larger. */
const PACKED_PIECE = 2 ** 14;
/** Compressed bytes kept, to decode the piece with the error again. */
const KEPT = 2 ** 24;

/** @throws errors of `input`, and the decompression error if nothing could be read */
export async function* unpacked(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer | LogDamage> {
  const iterator = input[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done === true) {
    return;
  }
  const whole = (async function* () {
    yield first.value;
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      yield next.value;
    }
  })();
  if (first.value[0] === 0x1f && first.value[1] === 0x8b) {
    yield* inflated(whole);
  } else {
    yield* whole;
  }
}

/** A failing stream discards unread output, so each piece is read as soon as it is available. */
async function* inflated(packed: AsyncIterable<Buffer>): AsyncGenerator<Buffer | LogDamage> {
  const inflater = new Inflater();
  const written = new Written();
  for await (const piece of packed) {
    for (let at = 0; at < piece.length && inflater.failure === undefined; at += PACKED_PIECE) {
      const part = piece.subarray(at, at + PACKED_PIECE);
      yield* await inflater.write(part);
      if (inflater.failure === undefined) {
        written.add(part);
      } else {
        yield* await written.rest(part, inflater.bytes);
      }
    }
    if (inflater.failure !== undefined) {
      break;
    }
  }
  if (inflater.failure === undefined) {
    yield* await inflater.end();
  }
  if (inflater.failure === undefined) {
    return;
  }
  if (inflater.bytes === 0 && written.rescued === 0) {
    throw inflater.failure;
  }
  yield {
    damage: `the .gz is damaged (${inflater.failure.message}): the part before the damage was read, the rest was not`,
  };
}

/** Compressed data as it is written, and its decompressed output. */
class Inflater {
  failure: Error | undefined;
  bytes = 0;
  readonly #gunzip = createGunzip();
  readonly #ready: Buffer[] = [];

  constructor() {
    this.#gunzip.on("data", (piece: Buffer) => {
      this.bytes += piece.length;
      this.#ready.push(piece);
    });
    this.#gunzip.on("error", (error) => {
      this.failure = error;
    });
  }

  async write(piece: Buffer): Promise<Buffer[]> {
    await new Promise<void>((resolve) => {
      // A stream that fails in the middle of a piece closes without calling back.
      this.#gunzip.once("close", resolve);
      this.#gunzip.write(piece, () => {
        this.#gunzip.off("close", resolve);
        resolve();
      });
    });
    return this.#ready.splice(0);
  }

  async end(): Promise<Buffer[]> {
    await new Promise<void>((resolve) => {
      finished(this.#gunzip, () => resolve());
      this.#gunzip.end();
    });
    return this.#ready.splice(0);
  }
}

/**
 * The piece that contains the error yields no output, not even before the error. It is therefore decoded again
 * byte by byte, from the start of the compressed data if that is still kept.
 */
class Written {
  rescued = 0;
  #parts: Buffer[] | undefined = [];
  #bytes = 0;

  add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > KEPT) {
      this.#parts = undefined;
    }
    this.#parts?.push(part);
  }

  /** @param given bytes of the text that were already returned */
  async rest(part: Buffer, given: number): Promise<Buffer[]> {
    if (this.#parts === undefined) {
      return [];
    }
    const again = new Inflater();
    for (const before of this.#parts) {
      await again.write(before);
    }
    const rest: Buffer[] = [];
    for (let at = 0; at < part.length && again.failure === undefined; at++) {
      rest.push(...(await again.write(part.subarray(at, at + 1))));
    }
    const text = Buffer.concat(rest);
    this.rescued = again.bytes - given;
    return [text.subarray(text.length - this.rescued)];
  }
}

/** Detected by the byte order mark, or by zeros in every second byte of ASCII text. */
export function decoderOf(first: Buffer): TextDecoder {
  if (first[0] === 0xff && first[1] === 0xfe) {
    return new TextDecoder("utf-16le");
  }
  if (first[0] === 0xfe && first[1] === 0xff) {
    return new TextDecoder("utf-16be");
  }
  let [even, odd] = [0, 0];
  const examined = Math.min(64, first.length & ~1);
  for (let at = 0; at < examined; at++) {
    if (first[at] === 0) {
      even += 1 - (at & 1);
      odd += at & 1;
    }
  }
  if (examined >= 16 && odd >= 0.9 * (examined / 2) && even === 0) {
    return new TextDecoder("utf-16le");
  }
  if (examined >= 16 && even >= 0.9 * (examined / 2) && odd === 0) {
    return new TextDecoder("utf-16be");
  }
  return new TextDecoder();
}
