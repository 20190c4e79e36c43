import { freemem } from "node:os";
import { expect, test } from "vitest";
import type { Memory } from "../../../linux/memory/memory.js";
import { HeapCopy } from "./heap_copy.js";

const GIB = 2 ** 30;
const START = 0x7000_0000_0000;

/** Memory in which each page begins with its number. */
function numberedPages(): Memory {
  const gone = () => {
    throw new Error("not asked of a copy's source");
  };
  return {
    pid: null,
    name: "numbered pages",
    mappings: [],
    refresh: () => true,
    readInto(address, target) {
      for (let at = 0; at < target.length; at += 4096) {
        new DataView(target.buffer, target.byteOffset + at).setFloat64(0, (address + at) / 4096);
      }
      return target.length;
    },
    resident: (start, end) => [{ start, end }],
    openFile: gone,
    close: gone,
  };
}

const numberAt = (copy: HeapCopy, address: number) => {
  const bytes = new Uint8Array(8);
  expect(copy.readInto(address, bytes)).toBe(8);
  return new DataView(bytes.buffer).getFloat64(0);
};

test.skipIf(freemem() < 10 * GIB)("pages behind 4 GiB are copied, found and renewed", () => {
  const end = START + 4 * GIB + 64 * 2 ** 20;
  const copy = new HeapCopy(numberedPages(), end - START);
  copy.fill([{ start: START, end }]);
  expect(copy.pages * 4096).toBeGreaterThan(4 * GIB);
  for (const address of [START, START + 4 * GIB - 4096, START + 4 * GIB, end - 4096]) {
    expect(numberAt(copy, address)).toBe(address / 4096);
    const index = copy.index(address);
    expect(new DataView(copy.words.buffer).getFloat64(index * 4)).toBe(address / 4096);
    copy.words[index] = 0;
    copy.renew(address, 4096);
    expect(numberAt(copy, address)).toBe(address / 4096);
  }
});
