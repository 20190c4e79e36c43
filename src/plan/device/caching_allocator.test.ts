import { describe, expect, it } from "vitest";
import { CachingAllocator } from "./caching_allocator.js";

const MIB = 2 ** 20;

/** What is reserved after requests of so many bytes. */
function reserved(...requests: number[]): number {
  const allocator = new CachingAllocator(Number.POSITIVE_INFINITY);
  for (const bytes of requests) {
    allocator.allocate(bytes);
  }
  return allocator.peakReserved;
}

describe("CachingAllocator", () => {
  it.each([
    ["a small request takes a segment of 2 MiB", [1], 2 * MIB],
    ["small requests share it", [MIB, MIB], 2 * MIB],
    ["a request above 1 MiB takes a segment of 20 MiB", [MIB + 1], 20 * MIB],
    ["two of 8 MiB share it, a third does not", [8 * MIB, 8 * MIB, 8 * MIB], 40 * MIB],
    ["a request from 10 MiB on has its own segment", [10 * MIB, 10 * MIB + 1], 22 * MIB],
  ])("%s", (_, requests, expected) => {
    expect(reserved(...requests)).toBe(expected);
  });

  it("counts blocks of 512 B", () => {
    const allocator = new CachingAllocator(Number.POSITIVE_INFINITY);
    allocator.allocate(1);
    allocator.allocate(513);
    expect(allocator.peakAllocated).toBe(3 * 512);
  });

  it("takes the smallest free block, and joins free neighbours", () => {
    const allocator = new CachingAllocator(Number.POSITIVE_INFINITY);
    const large = allocator.allocate(100 * MIB);
    const middle = allocator.allocate(50 * MIB);
    allocator.free(large);
    allocator.free(middle);
    const parts = Array.from({ length: 5 }, () => allocator.allocate(20 * MIB));
    expect(allocator.peakReserved).toBe(150 * MIB);
    for (const part of parts) {
      allocator.free(part);
    }
    allocator.allocate(100 * MIB);
    expect(allocator.peakReserved).toBe(150 * MIB);
  });

  it("leaves a block that a lasting tensor split: the next large request needs a new segment", () => {
    const allocator = new CachingAllocator(Number.POSITIVE_INFINITY);
    allocator.free(allocator.allocate(64 * MIB));
    allocator.allocate(4 * MIB);
    allocator.allocate(64 * MIB);
    // The 4 MiB come from the free block: it fits, and no segment of 20 MiB is there.
    expect(allocator.peakReserved).toBe(128 * MIB);
  });

  it("returns free segments before it exceeds the device", () => {
    const allocator = new CachingAllocator(100 * MIB);
    allocator.free(allocator.allocate(60 * MIB));
    allocator.allocate(80 * MIB);
    expect(allocator.peakReserved).toBe(80 * MIB);
  });
});
