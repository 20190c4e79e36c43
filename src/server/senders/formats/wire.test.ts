import { expect, it } from "vitest";
import { readMessage, WireReader, WireType } from "./wire.js";

/** As protocol buffers define it: groups of seven bits, the lowest first. */
function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, value);
  while (left > 127n) {
    bytes.push(Number(left & 127n) | 128);
    left >>= 7n;
  }
  return Buffer.from([...bytes, Number(left)]);
}

const BITS = Array.from({ length: 64 }, (_, bit) => 1n << BigInt(bit));
const NUMBERS = [0n, 1_732_800_000_123_456_789n, ...BITS, ...BITS.map((power) => power - 1n)];

it("reads numbers of every length as a bigint converts them", () => {
  for (const number of NUMBERS) {
    const reader = new WireReader(Buffer.concat([varint(number), Buffer.from([7])]));
    expect(reader.unsigned()).toBe(Number(number));
    expect(reader.unsigned()).toBe(7);
    expect(reader.hasMore).toBe(false);
  }
});

it("reads negative numbers, the small ones exactly", () => {
  for (const number of [...NUMBERS, ...NUMBERS.map((positive) => -positive)]) {
    const reader = new WireReader(Buffer.concat([varint(number), Buffer.from([7])]));
    expect(reader.signed()).toBe(Number(BigInt.asIntN(64, number)));
    expect(reader.unsigned()).toBe(7);
  }
});

it("refuses numbers without an end, and what ends within a field", () => {
  const unreadable = [
    Buffer.alloc(11, 0xff),
    Buffer.from([0x80]),
    Buffer.from([0x08]),
    Buffer.from([0x09, 1, 2, 3]),
    Buffer.from([0x0a, 5, 1]),
    Buffer.concat([Buffer.from([0x0a]), varint(1n << 63n)]),
    Buffer.from([0x0d, 1, 2]),
    Buffer.from([0x0b, 0x0c]),
    Buffer.from([0x0e]),
    Buffer.from([0x00]),
  ];
  for (const bytes of unreadable) {
    expect(() => readMessage(bytes, () => false)).toThrow("the profile cannot be read");
  }
});

it("keeps a message within its bounds", () => {
  // The inner message announces a number that would end after it.
  const bytes = Buffer.from([0x0a, 2, 0x08, 0x80, 0x10, 1]);
  const inner = (): void =>
    readMessage(bytes, (_field, type, reader) => {
      if (type === WireType.LengthDelimited) {
        readMessage(reader.message(), () => false);
        return true;
      }
      return false;
    });
  expect(inner).toThrow("it is cut off");
});
