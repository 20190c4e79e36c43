import { expect, test } from "vitest";
import type { Memory } from "./memory.js";
import { ResidentWords } from "./resident_words.js";

const START = 0x7000_0000_0000;

/** Resident everywhere; each byte is 1. */
const memory: Memory = {
  pid: 1,
  name: "memory of ones",
  mappings: [],
  refresh: () => true,
  resident: (start, end) => [{ start, end }],
  readInto: (_, target) => target.fill(1).length,
  openFile: () => null,
  close: () => undefined,
};

test("words at aligned addresses, and none at others: a pointer may change while it is read", () => {
  const words = new ResidentWords(memory);
  const lastWord = START + 16 * 4096 - 8;
  expect(words.word(lastWord)).toBe(0x0101_0101 * (2 ** 32 + 1));
  expect(words.word32(lastWord + 4)).toBe(0x0101_0101);
  for (const address of [lastWord + 4, lastWord + 1, Number.NaN, -8, 2 ** 60]) {
    expect(words.word(address)).toBeNaN();
  }
  expect(words.word32(lastWord + 2)).toBeNaN();
});
