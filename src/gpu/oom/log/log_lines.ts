/** A log as lines, of any size and from any writer. */

import { createReadStream, type ReadStream, statSync } from "node:fs";
import { fileNotFound, fileUnusable, TidemarkError } from "../../../model/errors/errors.js";
import { reasonOf } from "../../../model/errors/reason.js";
import { decoderOf, unpacked } from "./log_bytes.js";

export interface LogLine {
  /** From 1. */
  readonly number: number;
  readonly text: string;
  /** Of the last line alone, where the file could not be read to its end: why. */
  readonly damage?: string;
}

/** A line of more than this is handed out in pieces of the same number. */
const LONGEST = 2 ** 17;

/** Called after each piece; `done` of `of` bytes of the file as it lies there. */
type TellBytes = (done: number, of: number) => Promise<void>;

/** Lines of a file (.gz and UTF-16 too), or of standard input for "-", as many at a time as a piece of it holds: a
 * turn of the event loop for each would cost more than the line. @throws TidemarkError TM-E003, TM-E004 */
export async function* logLines(
  path: string,
  tell?: TellBytes,
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
      // Progress bars end their lines by a carriage return alone.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      const read = lines.flatMap((text) => pieces(text, number++));
      if (rest.length > LONGEST) {
        read.push(...pieces(rest, number));
        rest = "";
      }
      yield read;
      if (whole > 0) {
        await tell?.((input as ReadStream).bytesRead, whole);
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
