import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { segmentLayout, segmentLayoutPath } from "../../scripts/generate/segment_layout.mjs";
import { COPIES_DOMAIN, Domain, FILES_DOMAIN } from "../model/profile/profile.js";
import { CONSTANTS } from "./layout.js";

it("layout.ts matches segment.h (npm run generate updates it)", () => {
  expect(readFileSync(segmentLayoutPath, "utf8")).toBe(segmentLayout());
});

it("the model's domains are the agent's", () => {
  expect({ ...Domain, files: FILES_DOMAIN, copies: COPIES_DOMAIN }).toEqual({
    python: CONSTANTS.TM_DOMAIN_PYTHON,
    native: CONSTANTS.TM_DOMAIN_NATIVE,
    mapped: CONSTANTS.TM_DOMAIN_MAPPED,
    files: CONSTANTS.TM_DOMAIN_FILES,
    copies: CONSTANTS.TM_DOMAIN_COPIES,
  });
  expect(CONSTANTS.TM_DOMAIN_COUNT).toBe(COPIES_DOMAIN + 1);
});
