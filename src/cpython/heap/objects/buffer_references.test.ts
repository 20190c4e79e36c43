import { expect, test } from "vitest";
import type { Memory } from "../../../linux/memory/memory.js";
import { HeapCopy } from "../memory/heap_copy.js";
import { BufferReferences } from "./buffer_references.js";

const START = 0x7000_0000_0000;
const ITEMS = START + 0x800;
const DESCRIPTOR = START + 0x400;

/** What an array.array with that many allocated items of 8 bytes owns. */
function ownedBy(allocated: bigint): [number, number][] {
  const page = new DataView(new ArrayBuffer(4096));
  page.setBigUint64(24, BigInt(ITEMS), true);
  page.setBigInt64(32, allocated, true);
  page.setBigUint64(40, BigInt(DESCRIPTOR), true);
  page.setUint32(DESCRIPTOR - START + 4, 8, true);
  const memory: Memory = {
    pid: 1,
    name: "a page with an array",
    mappings: [],
    refresh: () => true,
    readInto: (_, target) => {
      target.set(new Uint8Array(page.buffer, 0, target.length));
      return target.length;
    },
    resident: (start, end) => [{ start, end }],
    openFile: () => null,
    close: () => undefined,
  };
  const copy = new HeapCopy(memory, 4096);
  copy.fill([{ start: START, end: START + 4096 }]);
  const owned: [number, number][] = [];
  const sink = {
    edge: () => undefined,
    owns: (at: number, bytes: number) => owned.push([at, bytes]),
  };
  new BufferReferences(copy, sink, () => undefined).array(START);
  return owned;
}

test("an array owns its items, unless their number cannot be one", () => {
  expect(ownedBy(100n)).toEqual([[ITEMS, 800]]);
  expect(ownedBy(-100n)).toEqual([]);
  expect(ownedBy(2n ** 60n)).toEqual([]);
});
