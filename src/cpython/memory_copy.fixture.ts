/** A copy of a program's memory, page by page as it was requested, which can be damaged and read again. */
import type { Mapping, Memory } from "../linux/index.js";

const PAGE = 4096;

export class MemoryCopy implements Memory {
  readonly pid = null;
  readonly name = "a copy";
  readonly mappings: readonly Mapping[];
  readonly pages = new Map<number, Uint8Array>();
  /** Changes what a read returns; the copy stays unchanged. */
  damage: (page: number, bytes: Uint8Array) => Uint8Array = (_, bytes) => bytes;

  readonly #original: Memory;

  constructor(original: Memory) {
    this.#original = original;

    this.mappings = original.mappings;
  }

  refresh(): boolean {
    return true;
  }

  readInto(address: number, target: Uint8Array): number {
    let done = 0;
    while (done < target.length) {
      const at = address + done;
      const page = Math.floor(at / PAGE);
      const bytes = this.damage(page, this.#page(page));
      const piece = bytes.subarray(at - page * PAGE, at - page * PAGE + target.length - done);
      if (piece.length === 0) {
        break;
      }
      target.set(piece, done);
      done += piece.length;
    }
    return done;
  }

  /** Empty for a hole, and for pages that were not requested while the program ran. */
  #page(page: number): Uint8Array {
    let bytes = this.pages.get(page);
    if (bytes === undefined) {
      const buffer = new Uint8Array(PAGE);
      bytes = buffer.subarray(0, this.#original.readInto(page * PAGE, buffer));
      this.pages.set(page, bytes);
    }
    return bytes;
  }

  resident(start: number, end: number) {
    return this.#original.resident(start, end);
  }

  openFile(): null {
    return null;
  }

  close(): void {}
}
