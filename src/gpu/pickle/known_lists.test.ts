import { describe, expect, test } from "vitest";
import { KnownLists } from "./known_lists.js";

/** The bytes of a list of memo entries, from behind its MARK on, and what follows it in a trace. */
function listOf(...entries: number[]): number[] {
  const bytes = entries.flatMap((entry) =>
    entry < 256
      ? [0x68, entry]
      : [0x6a, ...[0, 8, 16, 24].map((shift) => (entry >>> shift) & 0xff)],
  );
  return [...bytes, 0x65];
}

const FOLLOWING = [0x75, 0x7d, 0x94, 0x28, 0x68, 5, 0x68, 9];

function viewOf(bytes: readonly number[]): DataView {
  // Not at the beginning of its buffer, as a piece of a file.
  return new DataView(Uint8Array.from([1, 2, 3, ...bytes]).buffer, 3);
}

function add(lists: KnownLists, list: readonly number[], value: number): void {
  const view = viewOf([...list, ...FOLLOWING]);
  expect(lists.find(view, 0)).toBe(0);
  expect(lists.newEnd).toBe(list.length);
  lists.add(view, value);
}

function foundValue(lists: KnownLists, list: readonly number[]): number | undefined {
  const end = lists.find(viewOf([9, 9, ...list, ...FOLLOWING]), 2);
  expect([0, 2 + list.length]).toContain(end);
  return end === 0 ? undefined : lists.value;
}

describe("a list of fetched values", () => {
  test("is found among lists with the same beginning, and of each length", () => {
    const all: number[][] = [];
    for (const shared of [0, 1, 2, 3, 20]) {
      for (let last = 0; last < 40; last++) {
        const beginning = Array.from({ length: shared }, (_, at) => 250 + at);
        all.push(listOf(...beginning, 1000 * shared + 37 * last, ...beginning));
      }
    }
    const lists = new KnownLists();
    all.forEach((list, value) => {
      add(lists, list, value);
    });
    expect(all.map((list) => foundValue(lists, list))).toEqual(all.map((_, value) => value));
    expect(foundValue(lists, listOf(250, 251, 252, 7))).toBeUndefined();
  });

  test("is found if its bytes are those of no number, or differ only in their sign", () => {
    // Bytes 8 to 15 are a NaN, as a double.
    const notANumber = [300, 0x7ff0_6a00, 0x7ff07ff0, 0x7ff07ff1, 301, 302].map(
      (entry) => entry >>> 0,
    );
    const first = listOf(...notANumber);
    const second = listOf(...notANumber.slice(0, 5), 303);
    const negative = listOf(300, 0xfff0_6a00, ...notANumber.slice(2));
    const lists = new KnownLists();
    for (const [value, list] of [first, second, negative].entries()) {
      add(lists, list, value);
    }
    expect([first, second, negative].map((list) => foundValue(lists, list))).toEqual([0, 1, 2]);
  });

  test("is not known after the memo changed, or if it became no stack", () => {
    const lists = new KnownLists();
    add(lists, listOf(400, 401), 1);
    add(lists, listOf(500, 501), -1);
    expect(foundValue(lists, listOf(500, 501))).toBeUndefined();
    expect(foundValue(lists, listOf(400, 401))).toBe(1);
    lists.clear();
    expect(foundValue(lists, listOf(400, 401))).toBeUndefined();
    add(lists, listOf(400, 401), 2);
    expect(foundValue(lists, listOf(400, 401))).toBe(2);
  });

  test("is not kept if it contains anything else or is incomplete", () => {
    const lists = new KnownLists();
    const incomplete = listOf(400, 401, 402).slice(0, -1);
    for (const bytes of [incomplete, [], [0x65], [...incomplete, 0x4b, 1, 0x65]]) {
      expect(lists.find(viewOf(bytes), 0)).toBe(0);
      expect(lists.newEnd).toBe(0);
    }
  });

  test("is found in any part of a piece, but not beyond its end", () => {
    const list = listOf(400, 401, 402);
    const lists = new KnownLists();
    add(lists, list, 7);
    for (let length = 0; length < list.length + FOLLOWING.length; length++) {
      const end = lists.find(viewOf([...list, ...FOLLOWING].slice(0, length)), 0);
      expect(end === 0 || (end === list.length && length >= end)).toBe(true);
    }
    expect(lists.find(viewOf([...list, ...FOLLOWING]), 0)).toBe(list.length);
  });
});
