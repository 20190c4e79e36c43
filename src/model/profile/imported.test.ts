import { expect, it } from "vitest";
import { sharesDomains } from "./imported.js";

it("allocators are compared only between recordings of one tool that knows them", () => {
  const memray = { tool: "memray (format 13)", unknown: [] };
  const older = { tool: "memray (format 12)", unknown: [] };
  const tracemalloc = { tool: "tracemalloc", unknown: [] };
  const blind = { tool: "memray (format 13)", unknown: ["python" as const] };
  expect(sharesDomains(undefined, undefined)).toBe(true);
  expect(sharesDomains(memray, older)).toBe(true);
  expect(sharesDomains(memray, tracemalloc)).toBe(false);
  expect(sharesDomains(undefined, memray)).toBe(false);
  expect(sharesDomains(memray, blind)).toBe(false);
});
