import { expect, test } from "vitest";
import { isImageOf, readBuildId } from "./core_file_build_id.js";

const ID = "00112233445566778899aabbccddeeff00112233";
const PAGE = 0x1000;

/**
 * A library whose headers were changed by a tool: its note is in a segment after all others.
 *
 *   file      0 headers | 0x2000 note
 *   memory    0 headers | 0x7000 note
 */
function patchedLibrary(): { file: Buffer; image: Buffer } {
  const head = Buffer.alloc(PAGE);
  head.write("\x7fELF\x02\x01\x01", 0, "latin1");
  head.writeBigUInt64LE(64n, 32); // program headers follow
  head.writeUInt16LE(3, 56);
  const segment = (row: number, type: number, offset: bigint, address: bigint, bytes: bigint) => {
    const at = 64 + 56 * row;
    head.writeUInt32LE(type, at);
    head.writeBigUInt64LE(offset, at + 8);
    head.writeBigUInt64LE(address, at + 16);
    head.writeBigUInt64LE(bytes, at + 32);
  };
  segment(0, 1, 0n, 0n, BigInt(PAGE));
  segment(1, 1, 0x2000n, 0x7000n, BigInt(PAGE));
  segment(2, 4, 0x2000n, 0x7000n, 36n);
  const note = Buffer.alloc(36);
  note.writeUInt32LE(4, 0);
  note.writeUInt32LE(20, 4);
  note.writeUInt32LE(3, 8);
  note.write("GNU\0", 12, "latin1");
  note.write(ID, 16, "hex");
  const file = Buffer.alloc(3 * PAGE);
  head.copy(file);
  note.copy(file, 0x2000);
  const image = Buffer.alloc(8 * PAGE);
  head.copy(image);
  note.copy(image, 0x7000);
  return { file, image };
}

const reader = (bytes: Buffer) => (offset: number, length: number) =>
  bytes.subarray(offset, offset + length);

test("a build id is at the place given in the headers: in a file by offset, in memory by address", () => {
  const { file, image } = patchedLibrary();
  expect(readBuildId(reader(file), "file")).toBe(ID);
  expect(readBuildId(reader(image), "image")).toBe(ID);
  expect(readBuildId(reader(image), "file")).toBeNull();
});

test("a program that is not position-independent", () => {
  const { image } = patchedLibrary();
  for (const [row, address] of [0n, 0x7000n, 0x7000n].entries()) {
    image.writeBigUInt64LE(0x400000n + address, 64 + 56 * row + 16);
  }
  expect(readBuildId(reader(image), "image")).toBe(ID);
});

test("without the note, the headers identify the file", () => {
  const { file, image } = patchedLibrary();
  const held = reader(image.subarray(0, PAGE));
  expect(readBuildId(held, "image")).toBeNull();
  expect(isImageOf(held, reader(file))).toBe(true);
  const other = Buffer.from(file);
  other.writeBigUInt64LE(0x8000n, 64 + 56 + 16);
  expect(isImageOf(held, reader(other))).toBe(false);
});

test("with the note, another build of the same shape is another file", () => {
  const { file, image } = patchedLibrary();
  expect(isImageOf(reader(image), reader(file))).toBe(true);
  file[0x2000 + 16] = 0xff;
  expect(isImageOf(reader(image), reader(file))).toBe(false);
});

test("a file that is not ELF, or truncated in its headers, is not the image of anything", () => {
  const { file } = patchedLibrary();
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.alloc(PAGE),
    file.subarray(0, 63),
    file.subarray(0, 100),
  ]) {
    expect(readBuildId(reader(bytes), "file")).toBeNull();
    expect(isImageOf(reader(bytes), reader(bytes))).toBe(false);
  }
});
