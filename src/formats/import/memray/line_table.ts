/** The source line of an instruction, from the table of its code object (CPython, Objects/locations.md). */

const NO_LINE = -128;

/**
 * `offset`: of the instruction as the frame holds it, in bytes (CPython 3.11 and newer, 3.9 and older) or in
 * instructions of two bytes (3.10). Returns `firstLine` if the table is empty, 0 if it does not cover the offset.
 */
export function lineAt(
  table: Buffer,
  offset: number,
  firstLine: number,
  pythonVersion: number,
): number {
  if (table.length === 0) {
    return firstLine;
  }
  if (offset < 0) {
    return 0;
  }
  if (pythonVersion >= 0x030b0000) {
    return lineFromLocations(table, Math.floor(offset / 2), firstLine);
  }
  return pythonVersion >= 0x030a0000
    ? lineFromPairs(table, offset * 2, firstLine, true)
    : lineFromPairs(table, offset, firstLine, false);
}

/**
 * An entry begins with a byte 1CCCCLLL: code C, and the number of instructions less one. The codes 14 (long) and
 * 13 (no columns) have the change of the line as a number of 6 bits a byte, 10 to 12 have it in the code.
 */
function lineFromLocations(table: Buffer, instruction: number, firstLine: number): number {
  let at = 0;
  const number = (): number => {
    let value = 0;
    let scale = 1;
    for (let more = 64; (more & 64) !== 0 && at < table.length; ) {
      more = table[at++] ?? 0;
      value += (more & 63) * scale;
      scale *= 64;
    }
    return value;
  };
  const signed = (): number => {
    const value = number();
    return value % 2 === 1 ? -Math.floor(value / 2) : value / 2;
  };
  let line = firstLine;
  let end = 0;
  while (at < table.length) {
    const first = table[at++] ?? 0;
    const code = (first >> 3) & 15;
    end += (first & 7) + 1;
    if (code === 14) {
      line += signed();
      number();
      number();
      number();
    } else if (code === 13) {
      line += signed();
    } else if (code >= 10 && code <= 12) {
      line += code - 10;
      at += 2;
    } else if (code < 10) {
      at += 1;
    }
    if (instruction < end) {
      return code === 15 ? 0 : line;
    }
  }
  return 0;
}

/** Pairs of a change of the offset and a signed change of the line; 3.10 changes the line first. */
function lineFromPairs(
  table: Buffer,
  offset: number,
  firstLine: number,
  lineFirst: boolean,
): number {
  let line = firstLine;
  let at = 0;
  for (let pair = 0; pair + 1 < table.length; pair += 2) {
    at += table[pair] ?? 0;
    const change = table.readInt8(pair + 1);
    if (!lineFirst && at > offset) {
      break;
    }
    line += lineFirst && change === NO_LINE ? 0 : change;
    if (lineFirst && at > offset) {
      break;
    }
  }
  return line;
}
