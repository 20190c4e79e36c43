import { expect, it } from "vitest";
import { rankIn } from "./rank.js";

it("reads the global rank, and the local one only if no launcher set a global one", () => {
  expect(rankIn("PATH=/bin\0LOCAL_RANK=1\0RANK=5\0WORLD_SIZE=8\0")).toBe(5);
  expect(rankIn("LOCAL_RANK=1\0")).toBe(1);
  expect(rankIn("OMPI_COMM_WORLD_RANK=3\0")).toBe(3);
  expect(rankIn("RANK=\0GROUP_RANK=2\0")).toBeNull();
  expect(rankIn("RANK=first\0")).toBeNull();
  expect(rankIn("")).toBeNull();
});
