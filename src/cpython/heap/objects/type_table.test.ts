import { expect, test } from "vitest";
import type { Memory } from "../../../linux/memory/memory.js";
import { present } from "../../../model/base/present.js";
import { heapLayout } from "../memory/layout.js";
import { TypeTable } from "./type_table.js";

const START = 0x5555_0000_0000;
/** Of a word that may be a type, in the memory that was read. */
const PLACE = 4096;

/** How often a table reads the program to decide about the word; `words`: the memory there, by offset in the type. */
function readsFor(words: Readonly<Record<number, number>>): number {
  let reads = 0;
  const memory = {
    readInto: () => {
      reads += 1;
      return 0;
    },
  } as Partial<Memory> as Memory;
  const types = new TypeTable(memory, present(heapLayout(12)));
  const read = new Uint32Array(4096);
  for (const [offset, word] of Object.entries(words)) {
    read[(PLACE + Number(offset)) / 4] = word;
  }
  types.setNear(START, START + read.byteLength, read);
  const address = START + PLACE;
  expect(types.find(address >>> 0, Math.floor(address / 2 ** 32))).toBeLessThan(0);
  return reads;
}

test("a word that points to memory which was just read, and which is no type, costs no read", () => {
  // 8 ob_type  32 tp_basicsize, which is too small, or 64 bits long  172 the upper half of tp_flags
  expect(readsFor({ 8: 0x1234_5670, 32: 8 })).toBe(0);
  expect(readsFor({ 8: 0x1234_5670, 32: 48, 36: 0x5555 })).toBe(0);
  expect(readsFor({ 8: 0x1234_5670, 32: 48, 172: 0x5555 })).toBe(0);
});

test("memory that looks like a type, or was not read, is read", () => {
  expect(readsFor({ 8: 0x1234_5670, 32: 48 })).toBe(1);
  expect(readsFor({})).toBe(1);
});
