import { expect, test } from "vitest";
import type { Mapping, Memory } from "../linux/memory/memory.js";
import { ResidentWords } from "../linux/memory/resident_words.js";
import { regionsOf } from "./glibc_heaps.js";

const START = 0x5555_0000_0000;
const PAGE = 4096;

/** A heap by brk that has another length each time its mappings are read, in pages. */
class ChangingHeap implements Memory {
  readonly pid = 1;
  readonly name = "a heap that changes";
  readonly #lengths: readonly number[];
  #readings = 0;

  constructor(...lengths: number[]) {
    this.#lengths = lengths;
  }

  get mappings(): readonly Mapping[] {
    const pages = this.#lengths[Math.min(this.#readings, this.#lengths.length - 1)] ?? 0;
    return [
      {
        start: START,
        end: START + pages * PAGE,
        readable: true,
        writable: true,
        executable: false,
        shared: false,
        offset: 0,
        device: "00:00",
        inode: 0,
        path: "[heap]",
        deleted: false,
      },
    ];
  }

  refresh(): boolean {
    this.#readings += 1;
    return true;
  }

  readInto(): 0 {
    return 0;
  }

  resident(): [] {
    return [];
  }

  openFile(): null {
    return null;
  }

  close(): void {}
}

/** The main arena, as it was read between two readings of the mappings. */
function regions(memory: Memory, arena: { systemPages: number; topPage: number }) {
  const main = {
    bins: 0x7000_0000_0000,
    start: 0x7000_0000_0000,
    main: true,
    top: START + arena.topPage * PAGE,
    systemBytes: arena.systemPages * PAGE,
  };
  const parameters = { sbrkBase: START, mmappedChunks: 0, mmappedBytes: 0 };
  const state = { arenas: [main], arenasTorn: false, parameters };
  return regionsOf(memory, new ResidentWords(memory), main, state);
}

test("a heap that grew since its mappings were read is whole after they are read again", () => {
  expect(regions(new ChangingHeap(40, 100), { systemPages: 90, topPage: 80 })).toEqual({
    regions: [{ start: START, end: START + 90 * PAGE, firstChunk: START, top: START + 80 * PAGE }],
    torn: false,
  });
});

test("a heap that was trimmed below its top while it was read has no region, and is read again", () => {
  const arena = { systemPages: 120, topPage: 80 };
  expect(regions(new ChangingHeap(100, 40), arena)).toEqual({ regions: [], torn: true });
});
