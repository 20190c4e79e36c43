/**
 * The source line of an instruction, like CPython's PyCode_Addr2Line.
 *
 *   3.9     co_lnotab: pairs of (u8 bytes of code, i8 lines); Objects/lnotab_notes.txt
 *   3.10    co_linetable: pairs of (u8 bytes of code, i8 lines), -128: no line; PEP 626
 *   3.11+   co_linetable: entries that begin with a byte above 127; Objects/locations.md (InternalDocs):
 *           1 kind:4 length-1:3   length counts instructions of 2 bytes
 *           kind 0-9: same line, 1 byte more   10-12: line + (kind - 10), 2 more
 *           13: svarint   14: svarint, 3 varints   15: no line
 */

import { uint8At } from "../../model/base/columns.js";
import type { VersionFacts } from "../interpreter/version_facts.js";

/** @param offset of the instruction in bytes; negative: before the first one
 * @returns 0 if the instruction has no line */
export function lineAt(
  encoding: VersionFacts["lineTable"],
  table: Uint8Array,
  firstLine: number,
  offset: number,
): number {
  if (offset < 0) {
    return firstLine;
  }
  switch (encoding) {
    case "locations":
      return lineOfLocations(table, firstLine, offset);
    case "ranges":
      return lineOfRanges(table, firstLine, offset);
    case "pairs":
      return lineOfPairs(table, firstLine, offset);
  }
}

function lineOfPairs(table: Uint8Array, firstLine: number, offset: number): number {
  let line = firstLine;
  let address = 0;
  for (let at = 0; at + 1 < table.length; at += 2) {
    address += uint8At(table, at);
    if (address > offset) {
      break;
    }
    line += signed(uint8At(table, at + 1));
  }
  return line;
}

const NO_LINE = -128;

function lineOfRanges(table: Uint8Array, firstLine: number, offset: number): number {
  let line = firstLine;
  let end = 0;
  for (let at = 0; at + 1 < table.length; at += 2) {
    const delta = signed(uint8At(table, at + 1));
    end += uint8At(table, at);
    if (delta !== NO_LINE) {
      line += delta;
    }
    if (offset < end) {
      return delta === NO_LINE ? 0 : line;
    }
  }
  return 0;
}

function signed(byte: number): number {
  return (byte << 24) >> 24;
}

const ENTRY_START = 0x80;
const NO_COLUMNS = 13;
const LONG = 14;
const NO_LOCATION = 15;
const INSTRUCTION_BYTES = 2;

function lineOfLocations(table: Uint8Array, firstLine: number, offset: number): number {
  let line = firstLine;
  let end = 0;
  let at = 0;
  while (at < table.length) {
    const head = uint8At(table, at);
    const kind = (head >> 3) & 15;
    end += ((head & 7) + 1) * INSTRUCTION_BYTES;
    if (kind === NO_COLUMNS || kind === LONG) {
      line += signedVarint(table, at + 1);
    } else if (kind >= 10 && kind < NO_COLUMNS) {
      line += kind - 10;
    }
    if (offset < end) {
      return kind === NO_LOCATION ? 0 : line;
    }
    do {
      at++;
    } while (at < table.length && (uint8At(table, at) & ENTRY_START) === 0);
  }
  return 0;
}

/** Groups of 6 bits, lowest first, with bit 6 set if another follows; the lowest bit of the value is the sign. */
function signedVarint(table: Uint8Array, start: number): number {
  let value = 0;
  let shift = 0;
  for (let at = start; at < table.length && shift < 36; at++, shift += 6) {
    const byte = uint8At(table, at);
    value += (byte & 63) * 2 ** shift;
    if ((byte & 64) === 0) {
      break;
    }
  }
  const magnitude = Math.floor(value / 2);
  return value % 2 === 1 ? -magnitude : magnitude;
}
