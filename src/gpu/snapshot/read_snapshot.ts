/**
 * Opens a snapshot of any size: a plain file, .gz or .zst (detected by the first bytes, not the name). The file
 * is read in pieces into the columns of {@link GpuSnapshot}.
 */

import { type FileHandle, open } from "node:fs/promises";
import { createGunzip } from "node:zlib";
import { Decompress } from "fzstd";
import {
  compressionBroken,
  fileNotFound,
  fileUnusable,
  notASnapshot,
  TidemarkError,
} from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { GpuSnapshot } from "../../model/gpu/gpu_snapshot.js";
import { PickleMachine } from "../pickle/pickle_machine.js";
import { finishSnapshot } from "./finish_snapshot.js";
import { SnapshotShapes } from "./snapshot_shapes.js";

const PIECE_BYTES = 2 ** 20;

/** Called after each piece; `done` of `of` bytes of the file. */
type OnBytes = (done: number, of: number) => Promise<void>;

/** @throws TidemarkError TM-E003, TM-E004, TM-E008, TM-E060 to TM-E064 */
export async function readSnapshot(path: string, onProgress?: OnBytes): Promise<GpuSnapshot> {
  const shapes = new SnapshotShapes();
  const machine = new PickleMachine(path, shapes.strings, shapes);
  let started = false;
  for await (const piece of decompressed(path, piecesOf(path, onProgress))) {
    if (!started) {
      requirePickle(path, piece);
      started = true;
    }
    machine.push(piece);
    if (machine.ended) {
      break;
    }
  }
  if (!started) {
    throw notASnapshot(path, "it is empty");
  }
  return finishSnapshot(machine, shapes);
}

/** The bytes of a file. A piece is valid until the next one is asked for. */
async function* piecesOf(path: string, onProgress?: OnBytes): AsyncGenerator<Uint8Array> {
  let file: FileHandle | undefined;
  let reading: Promise<{ bytesRead: number; buffer: Uint8Array }> | undefined;
  try {
    file = await open(path, "r");
    const status = await file.stat();
    if (status.isDirectory()) {
      throw fileUnusable(path, "read", "it is a directory");
    }
    // One byte more than the file has, to detect the end; the size of a pipe is reported as 0.
    const bytes = Math.min(PIECE_BYTES, Math.max(status.size + 1, 65_536));
    const [first, second] = [new Uint8Array(bytes), new Uint8Array(bytes)];
    for (let done = 0; ; ) {
      reading ??= file.read(first);
      const { bytesRead, buffer } = await reading;
      if (bytesRead === 0) {
        return;
      }
      done += bytesRead;
      // Reads ahead, but not in a pipe, which may stay open without further bytes.
      reading = status.isFile() ? file.read(buffer === first ? second : first) : undefined;
      reading?.catch(() => undefined);
      yield buffer.subarray(0, bytesRead);
      await onProgress?.(Math.min(done, status.size), status.size);
    }
  } catch (error) {
    throw error instanceof TidemarkError ? error : unreadable(path, error);
  } finally {
    await reading?.catch(() => undefined);
    await file?.close();
  }
}

function unreadable(path: string, error: unknown): TidemarkError {
  const { code, message } = reasonOf(error);
  return code === "ENOENT" ? fileNotFound(path, "snapshot") : fileUnusable(path, "read", message);
}

async function* decompressed(
  path: string,
  pieces: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const first = await pieces.next();
  if (first.done === true) {
    return;
  }
  const all = (async function* () {
    yield first.value;
    yield* pieces;
  })();
  try {
    if (startsWith(first.value, [0x1f, 0x8b])) {
      yield* gunzipped(path, all);
    } else if (startsWith(first.value, [0x28, 0xb5, 0x2f, 0xfd])) {
      yield* unzstd(path, all);
    } else {
      yield* all;
    }
  } finally {
    await pieces.return(undefined);
  }
}

async function* gunzipped(
  path: string,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  const feeding = (async () => {
    for await (const piece of pieces) {
      if (gunzip.destroyed) {
        return;
      }
      if (!gunzip.write(piece.slice())) {
        await new Promise<void>((resume) => {
          gunzip.once("drain", resume).once("close", resume);
        });
      }
    }
    gunzip.end();
  })();
  feeding.catch((error: Error) => gunzip.destroy(error));
  try {
    yield* gunzip as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw error instanceof TidemarkError ? error : compressionBroken(path, reasonOf(error).message);
  } finally {
    gunzip.destroy();
  }
}

async function* unzstd(
  path: string,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const made: Uint8Array[] = [];
  let whole = false;
  const stream = new Decompress((piece, final) => {
    // The decompressor uses its output as its window.
    made.push(piece.slice());
    whole = final === true;
  });
  const feed = (piece: Uint8Array, final: boolean) => {
    try {
      stream.push(piece, final);
    } catch (error) {
      throw compressionBroken(path, reasonOf(error).message);
    }
  };
  for await (const piece of pieces) {
    feed(piece.slice(), false);
    yield* made.splice(0);
  }
  feed(new Uint8Array(0), true);
  yield* made.splice(0);
  if (!whole) {
    throw compressionBroken(path, "it ends too early");
  }
}

const OTHERS: readonly (readonly [readonly number[], string])[] = [
  [[0x50, 0x4b, 0x03, 0x04], "it is a zip archive, as torch.save writes checkpoints"],
  [[0x89, 0x48, 0x44, 0x46], "it is an HDF5 file"],
  [[0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59], "it is a NumPy array"],
  [[...Buffer.from("TIDEMARK")], "it is a recording, which tidemark summary reads"],
  [[...Buffer.from("TIDEHEAP")], "it is a saved heap, which tidemark heap diff reads"],
  [[...Buffer.from("TMRKPOOL")], "it is an agent's pool, which tidemark import reads"],
  [[0x7f, 0x45, 0x4c, 0x46], "it is an ELF file"],
  [[0x1f, 0x8b], "it is compressed twice"],
  [[0x28, 0xb5, 0x2f, 0xfd], "it is compressed twice"],
];

function requirePickle(path: string, bytes: Uint8Array): void {
  const known = OTHERS.find(([magic]) => startsWith(bytes, magic));
  if (known !== undefined) {
    throw notASnapshot(path, known[1]);
  }
  if (bytes[0] !== 0x80) {
    throw notASnapshot(path, kindOf(bytes));
  }
}

/** What a file that is not a pickle seems to be. */
function kindOf(bytes: Uint8Array): string {
  // Its header's length, in 8 bytes, and the header: JSON.
  if (bytes.length > 9 && startsWith(bytes.subarray(5), [0, 0, 0, 0x7b, 0x22])) {
    return "it is a safetensors file";
  }
  if (!isText(bytes)) {
    return "it does not start like a pickle";
  }
  const start = new TextDecoder().decode(bytes.subarray(0, 512)).trimStart();
  if (start.startsWith("<")) {
    return "it is a page of HTML or XML";
  }
  return /^[[{]/.test(start) ? "it is JSON" : "it is text";
}

function isText(bytes: Uint8Array): boolean {
  const start = bytes.subarray(0, 512);
  return start.every((byte) => byte >= 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d);
}

function startsWith(bytes: Uint8Array, magic: readonly number[]): boolean {
  return magic.every((byte, at) => bytes[at] === byte);
}
