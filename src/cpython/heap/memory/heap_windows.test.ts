import { expect, test } from "vitest";
import type { AddressRange, Memory } from "../../../linux/memory/memory.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import { HeapWindows } from "./heap_windows.js";

const MIB = 2 ** 20;
const PAGE = 4096;
const START = 0x7000_0000_0000;

/** Memory in which each word is its own address, plus `moment`. */
class AddressedMemory implements Memory {
  readonly pid = null;
  readonly name = "addressed words";
  readonly mappings = [];
  moment = 0;
  /** Reads outside of these would make pages resident. */
  readonly present: AddressRange[];
  readonly read: AddressRange[] = [];

  constructor(...present: AddressRange[]) {
    this.present = present;
  }

  refresh(): boolean {
    return true;
  }

  readInto(address: Address, target: Uint8Array): Bytes {
    this.read.push({ start: address, end: address + target.length });
    const view = new DataView(target.buffer, target.byteOffset, target.length);
    for (let at = (8 - (address % 8)) % 8; at + 8 <= target.length; at += 8) {
      view.setBigUint64(at, BigInt(address + at + this.moment), true);
    }
    return target.length;
  }

  resident(start: Address, end: Address): AddressRange[] {
    return this.present
      .map((range) => ({ start: Math.max(start, range.start), end: Math.min(end, range.end) }))
      .filter((range) => range.start < range.end);
  }

  openFile(): null {
    return null;
  }

  close(): void {}
}

const range = (start: number, bytes: Bytes) => ({ start, end: start + bytes });

test("a heap of any size is read through a window of the same size", () => {
  const heap = range(START, 64 * MIB);
  const memory = new AddressedMemory(heap);
  const windows = new HeapWindows(memory, [heap]);
  expect(windows.isLive).toBe(true);
  expect(memory.read).toEqual([]);
  expect(windows.words.byteLength).toBeLessThanOrEqual(16 * MIB);
  // Forwards, then far apart: what was replaced is read again.
  const step = 8 * PAGE + 8;
  for (let address = START; address < heap.end; address += step) {
    expect(windows.word(address)).toBe(address);
  }
  for (let n = 0; n < 300; n++) {
    const address = START + ((n * 7_919_000) % (64 * MIB - 8));
    expect(windows.word(address - (address % 8))).toBe(address - (address % 8));
  }
  expect(windows.word(heap.end)).toBe(-1);
});

test("a few scattered bytes are read without their blocks, until one is wanted repeatedly", () => {
  const heap = range(START, 64 * MIB);
  const memory = new AddressedMemory(heap);
  const windows = new HeapWindows(memory, [heap]);
  const bytes = new Uint8Array(16);
  const readAt = (address: number) => {
    expect(windows.readInto(address, bytes)).toBe(bytes.length);
    expect(new DataView(bytes.buffer).getBigUint64(0, true)).toBe(BigInt(address));
  };
  for (let address = START + 64; address < heap.end; address += MIB) {
    readAt(address);
  }
  expect(memory.read).toHaveLength(64);
  expect(memory.read.every(({ start, end }) => end - start === bytes.length)).toBe(true);
  for (let n = 0; n < 20; n++) {
    readAt(START + n * 160);
  }
  expect(memory.read.length).toBeLessThan(64 + 20);
  // Words that are no addresses do not hide pages.
  expect(windows.pageAt(START >>> 0, 2 ** 31 + Math.floor(START / 2 ** 32))).toBe(0);
  readAt(START + 8);
});

test("a small heap is a copy of one moment, the newest memory last", () => {
  const heap = range(START, 3 * MIB);
  const memory = new AddressedMemory(heap);
  const windows = new HeapWindows(memory, [heap]);
  expect(windows.isLive).toBe(false);
  const starts = memory.read.map(({ start }) => start);
  expect(starts).toEqual([...starts].sort((a, b) => b - a));
  memory.moment = 8;
  expect(windows.word(START + MIB)).toBe(START + MIB);
  windows.renew(START + MIB, 16);
  expect(windows.word(START + MIB)).toBe(START + MIB + 8);
  expect(windows.word(START + MIB + 16)).toBe(START + MIB + 16);
});

test("only pages that are there are read, and those that come later only when they are renewed", () => {
  const [first, second] = [range(START, PAGE), range(START + 3 * PAGE, 2 * PAGE)];
  const memory = new AddressedMemory(first, second);
  const windows = new HeapWindows(memory, [first, second]);
  const isPresent = ({ start, end }: AddressRange) =>
    memory.present.some((present) => start >= present.start && end <= present.end);
  expect(memory.read.every(isPresent)).toBe(true);
  expect(windows.word(START + PAGE)).toBe(-1);
  memory.present.push(range(START + PAGE, PAGE), range(START + 64 * MIB, PAGE));
  windows.renew(START + PAGE, 8);
  windows.renew(START + 64 * MIB, 8);
  expect(windows.word(START + PAGE)).toBe(START + PAGE);
  expect(windows.word(START + 64 * MIB)).toBe(START + 64 * MIB);
  expect(memory.read.every(isPresent)).toBe(true);
});

/** A word of each page, so that blocks are replaced. */
function readFrom(windows: HeapWindows, start: number, end: number): void {
  for (let address = start; address < end; address += PAGE) {
    windows.word(address);
  }
}

test("what was kept stays, however much is read after it", () => {
  const heap = range(START, 64 * MIB);
  const memory = new AddressedMemory(heap);
  const windows = new HeapWindows(memory, [heap], 0, MIB);
  windows.renew(START, 64);
  windows.keep(START, 64);
  memory.moment = 8;
  readFrom(windows, START + MIB, heap.end);
  expect(windows.word(START)).toBe(START);
  expect(windows.word(START + MIB)).toBe(START + MIB + 8);
});

test("reading again takes no room from what is kept", () => {
  const heap = range(START, 64 * MIB);
  const memory = new AddressedMemory(heap);
  const windows = new HeapWindows(memory, [heap], 0, MIB);
  for (let address = START + MIB; address < heap.end; address += MIB) {
    windows.word(address);
    windows.renew(address, 64);
  }
  windows.word(START);
  windows.renew(START, 64);
  windows.keep(START, 64);
  memory.moment = 8;
  readFrom(windows, START + MIB, heap.end);
  expect(windows.word(START)).toBe(START);
});

test("a header that goes on in the next block, and the whole contents, are read across blocks", () => {
  const heap = range(START, MIB);
  const windows = new HeapWindows(new AddressedMemory(heap), [heap], 0, 4 * 16_448);
  const at = windows.index(START + 16_384 - 16);
  const words = new BigUint64Array(windows.words.slice(at, at + 10).buffer);
  expect(Array.from(words, Number)).toEqual(
    Array.from({ length: 5 }, (_, n) => START + 16_384 - 16 + n * 8),
  );
  const bytes = new Uint8Array(40);
  expect(windows.readInto(START + 16_384 - 16, bytes)).toBe(40);
  expect(new DataView(bytes.buffer).getBigUint64(32, true)).toBe(BigInt(START + 16_384 + 16));
  let next = START;
  for (const { start, words: piece } of windows.contents()) {
    expect(start).toBe(next);
    next += piece.length * 4;
  }
  expect(next).toBe(heap.end);
});
