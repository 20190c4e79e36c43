/** Built by hand: the bits next to a tensor's type are set by torch, or are left as malloc returned them. */
import { expect, test } from "vitest";
import type { Memory } from "../../../linux/memory/memory.js";
import { readRowLength, readTensorShape } from "./tensor_shape.js";

const TENSOR = 0x1000;
const INT64 = 4n;

/** 7 words of other fields, then a row of 400 elements behind 1,600 others, and the word with its type. */
function tensor(typeWord: bigint): Memory {
  return memoryOf([1n, 400n, 0n, 0n, 0n, 0n, 1n, 0n, 0n, 0n, 0n, 1600n, 400n, typeWord]);
}

function memoryOf(fields: readonly bigint[]): Memory {
  const words = new BigUint64Array(512);
  words.set(fields, 7);
  const bytes = new Uint8Array(words.buffer);
  return {
    readInto(address: number, target: Uint8Array) {
      target.set(bytes.subarray(address - TENSOR, address - TENSOR + target.length));
      return target.length;
    },
  } as unknown as Memory;
}

test.each([
  ["none", 0n],
  ["the flags that are torch's", 0x1_4101_ff00_0000n],
  ["up to the last bit", 0x8001_4101_ff00_0000n],
])("type and length beside flags: %s", (_, flags) => {
  const memory = tensor(INT64 | flags);
  expect(readTensorShape(memory, TENSOR, 2000 * 8)).toEqual({ shape: [400], dtype: "int64" });
  expect(readRowLength(memory, TENSOR)).toBe(400);
});

test("a tensor that is not a row of indices has no length", () => {
  const float32 = 6n;
  expect(readRowLength(tensor(float32), TENSOR)).toBeNull();
});

test("a matrix whose unused strides are 0, as on an H200 with torch 2.11, is not read as a scalar", () => {
  const [rows, columns] = [64n, 1n << 20n];
  const sizes = [rows, columns, 0n, 0n, 0n];
  const strides = [columns, 1n, 0n, 0n, 0n];
  const memory = memoryOf([2n, ...sizes, ...strides, 0n, rows * columns, 6n]);
  expect(readTensorShape(memory, TENSOR, 2 ** 28)).toEqual({
    shape: [64, 2 ** 20],
    dtype: "float32",
  });
});
