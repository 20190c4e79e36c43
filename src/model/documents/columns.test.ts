import { describe, expect, it } from "vitest";
import { uint8At } from "../base/columns.js";
import { TidemarkError } from "../errors/errors.js";
import { decodeColumns, encodeColumns } from "./columns.js";

const document = {
  name: "täst\u0000🙂",
  none: null,
  numbers: [0, -1, 1.5, Number.NaN, 2 ** 40, -(2 ** 33)],
  a: new Float64Array([1.5, Number.NaN, -0, Number.POSITIVE_INFINITY]),
  b: new Uint32Array([0, 1, 0xffffffff]),
  c: new Uint16Array([7, 65535]),
  d: new Float32Array([0.5]),
  e: new Int32Array([-5]),
  f: new Int16Array([-6]),
  g: new Int8Array([-7]),
  h: new Uint8Array([1, 2, 3]),
  empty: new Float64Array(0),
  map: new Map<string, unknown>([
    ["rssBytes", new Float64Array([3, 4])],
    ["inner", new Map([[1, new Uint32Array([9])]])],
  ]),
};

describe("encodeColumns and decodeColumns", () => {
  it("return what was encoded, with its classes", () => {
    expect(decodeColumns(encodeColumns(document), "test")).toEqual(document);
  });

  it("leave out undefined values", () => {
    expect(decodeColumns(encodeColumns({ a: undefined, b: 1 }), "test")).toEqual({ b: 1 });
  });

  it("copy nothing when the buffer is aligned, also within Maps", () => {
    const bytes = encodeColumns(document);
    const decoded = decodeColumns(bytes, "test") as typeof document;
    expect(decoded.a.buffer).toBe(bytes.buffer);
    expect(decoded.c.buffer).toBe(bytes.buffer);
    expect((decoded.map.get("rssBytes") as Float64Array).buffer).toBe(bytes.buffer);
  });

  it("read a buffer at any alignment", () => {
    const bytes = encodeColumns(document);
    for (let shift = 1; shift < 8; shift++) {
      const shifted = new Uint8Array(bytes.length + shift);
      shifted.set(bytes, shift);
      expect(decodeColumns(shifted.subarray(shift), "test")).toEqual(document);
    }
  });

  it("refuse every truncation", () => {
    const bytes = encodeColumns(document);
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeColumns(bytes.subarray(0, length), "test")).toThrow(TidemarkError);
    }
    const longer = new Uint8Array(bytes.length + 1);
    longer.set(bytes);
    expect(() => decodeColumns(longer, "test")).toThrow("more bytes");
  });

  it("each changed byte gives a value or a TidemarkError", () => {
    const bytes = encodeColumns(document);
    for (let index = 0; index < bytes.length; index++) {
      for (const change of [0x01, 0x40, 0xff]) {
        const damaged = bytes.slice();
        damaged[index] = uint8At(damaged, index) ^ change;
        try {
          decodeColumns(damaged, "test");
        } catch (error) {
          expect(error).toBeInstanceOf(TidemarkError);
        }
      }
    }
  });

  it("excessive sizes allocate nothing", () => {
    const wild = [
      [0xdd, 0x7f, 0xff, 0xff, 0xff], // array of 2 G
      [0xdf, 0x7f, 0xff, 0xff, 0xff], // object of 2 G keys
      [0xc9, 0xff, 0xff, 0xff, 0xff, 8], // Float64Array of 4 GB
    ];
    for (const bytes of wild) {
      expect(() => decodeColumns(Uint8Array.from(bytes), "test")).toThrow(TidemarkError);
    }
    const claims = new Uint8Array(5 << 20);
    for (let offset = 0; offset < claims.length; offset += 5) {
      claims.set([0xdd, 0x00, 0x40, 0x00, 0x00], offset); // each within the file's own size
    }
    expect(() => decodeColumns(claims, "test")).toThrow(TidemarkError);
    expect(() => decodeColumns(new Uint8Array(1 << 20).fill(0x91), "test")).toThrow("nested");
  });

  it("refuse Maps nested without end", () => {
    let inner: unknown = 1;
    for (let depth = 0; depth < 40; depth++) {
      inner = new Map([[1, inner]]);
    }
    expect(() => decodeColumns(encodeColumns(inner), "test")).toThrow("nested too deeply");
  });
});
