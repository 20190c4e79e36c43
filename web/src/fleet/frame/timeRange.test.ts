import { expect, it } from "vitest";
import { rangeIn } from "./timeRange.js";

const HOUR = 3_600_000;

it("reads a range from the address, and uses the last hour if it names none", () => {
  expect(rangeIn("", 10 * HOUR)).toEqual({
    span: "1h",
    range: { startMs: 9 * HOUR, endMs: 10 * HOUR },
  });
  expect(rangeIn("since=6h", 10 * HOUR).range.startMs).toBe(4 * HOUR);
  expect(rangeIn("since=never&by=version", 10 * HOUR).span).toBe("1h");
  expect(rangeIn("from=5&to=9", 10 * HOUR)).toEqual({
    span: null,
    range: { startMs: 5, endMs: 9 },
  });
  expect(rangeIn("from=9&to=5", 10 * HOUR).span).toBe("1h");
});
