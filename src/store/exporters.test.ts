import { expect, it } from "vitest";
import { EXPORTERS } from "./exporters.js";

it("gives each format its own name and extension, and a description of one line", () => {
  const names = EXPORTERS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(new Set(EXPORTERS.map(({ extension }) => extension)).size).toBe(names.length);
  for (const { name, extension, description } of EXPORTERS) {
    expect(name).toMatch(/^[a-z0-9-]+$/);
    expect(extension).toMatch(/^(\.[a-z0-9]+)+$/);
    expect(description).toMatch(/^[^\n]{10,66}$/);
  }
});
