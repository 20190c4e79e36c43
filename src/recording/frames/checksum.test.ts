import { expect, it } from "vitest";
import { continuedCrc32, crc32 } from "./checksum.js";

it("computes the checksum of zlib, whichever way", () => {
  const text = Buffer.from("123456789");
  // The check value of CRC-32/ISO-HDLC: https://reveng.sourceforge.io/crc-catalogue/17plus.htm
  expect(crc32(text)).toBe(0xcbf43926);
  expect(continuedCrc32(text, 0)).toBe(0xcbf43926);
  for (let at = 0; at <= text.length; at++) {
    const [start, rest] = [text.subarray(0, at), text.subarray(at)];
    expect(crc32(start, rest)).toBe(0xcbf43926);
    expect(continuedCrc32(rest, continuedCrc32(start, 0))).toBe(0xcbf43926);
  }
});
