import { expect, it } from "vitest";
import { parsePeriod } from "./period.js";

it("takes sizes that the agent takes, and refuses others", () => {
  expect(parsePeriod("16K")).toBe(16_384);
  expect(parsePeriod("1T")).toBe(2 ** 40);
  for (const text of ["0", "1.1T", "99T"]) {
    expect(() => parsePeriod(text)).toThrow(/a size from 1 to 1TiB/);
  }
});
