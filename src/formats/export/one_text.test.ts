import { expect, it } from "vitest";
import { oneText } from "./one_text.js";

it("names the format that is too large, and passes other errors on", () => {
  const piece = "x".repeat(2 ** 20);
  expect(() => oneText("csv", () => Array(1024).fill(piece).join(""))).toThrow("TM-E008");
  expect(() => oneText("csv", () => (null as unknown as string).trim())).toThrow(TypeError);
  expect(oneText("csv", () => "a")).toBe("a");
});
