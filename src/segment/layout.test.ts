import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { segmentLayout, segmentLayoutPath } from "../../scripts/generate/segment_layout.mjs";

it("layout.ts is what segment.h says (npm run generate mends it)", () => {
  expect(readFileSync(segmentLayoutPath, "utf8")).toBe(segmentLayout());
});
