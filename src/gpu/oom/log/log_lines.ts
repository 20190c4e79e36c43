/** A log of any size, from any writer, as lines. */

import { createReadStream, type ReadStream, statSync } from "node:fs";
import { fileNotFound, fileUnusable, TidemarkError } from "../../../model/errors/errors.js";
import { reasonOf } from "../../../model/errors/reason.js";
import { decoderOf, unpacked } from "./log_bytes.js";

export interface LogLine {
  /** From 1. */
  readonly number: number;
  readonly text: string;
  /** Set only for the last line, if the file could not be read to its end: the reason. */
  readonly damage?: string;
}

/** A longer line is returned in pieces with the same number. */
const LONGEST = 2 ** 17;

/** Called after each piece; `done` of `of` bytes of the file on disk. */
type OnBytes = (done: number, of: number) => Promise<void>;

/**
 * Lines of a file (also .gz and UTF-16), or of standard input for "-". They are returned in batches, because
 * one turn of the event loop per line would cost more than the line. @throws TidemarkError TM-E003, TM-E004
 */
export async function* logLines(
  path: string,
  onProgress?: OnBytes,
): AsyncGenerator<readonly LogLine[]> {
  const input = path === "-" ? process.stdin : createReadStream(path, { highWaterMark: 2 ** 18 });
  const whole = path === "-" ? 0 : (statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  let number = 1;
  let rest = "";
  let decoder: TextDecoder | undefined;
  let damage: string | undefined;
  try {
    for await (const piece of unpacked(input)) {
      if ("damage" in piece) {
        damage = piece.damage;
        continue;
      }
      decoder ??= decoderOf(piece);
      rest += decoder.decode(piece, { stream: true });
      // Progress bars end their lines with only a carriage return.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      const read = lines.flatMap((text) => pieces(text, number++));
      if (rest.length > LONGEST) {
        read.push(...pieces(rest, number));
        rest = "";
      }
      yield read;
      if (whole > 0) {
        await onProgress?.((input as ReadStream).bytesRead, whole);
      }
    }
  } catch (error) {
    throw error instanceof TidemarkError ? error : unreadable(path, error);
  }
  rest += decoder?.decode() ?? "";
  if (rest !== "") {
    yield pieces(rest.replace(/\r$/, ""), number);
  }
  if (damage !== undefined) {
    yield [{ number: rest === "" ? number - 1 : number, text: "", damage }];
  }
}

function pieces(text: string, number: number): LogLine[] {
  if (text.length <= LONGEST) {
    return [{ number, text }];
  }
  return Array.from({ length: Math.ceil(text.length / LONGEST) }, (_, piece) => ({
    number,
    text: text.slice(piece * LONGEST, (piece + 1) * LONGEST),
  }));
}

function unreadable(path: string, error: unknown): TidemarkError {
  const { code, message } = reasonOf(error);
  return code === "ENOENT" ? fileNotFound(path, "log") : fileUnusable(path, "read", message);
}
