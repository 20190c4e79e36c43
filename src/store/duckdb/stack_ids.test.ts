import { expect, it } from "vitest";
import { contentId } from "./content_ids.js";
import { StackIds } from "./stack_ids.js";

it("gives the ids that are computed, also after it has forgotten some, and for hashes that collide", () => {
  const ids = new StackIds(10);
  const numbers = Array.from({ length: 8 }, (_, at) => contentId("frame", at));
  // The same low 32 bits, in another order and with other high bits.
  const words = [...numbers, 1n, 1n + (1n << 32n), 1n << 63n, 0n];
  for (let round = 0; round < 3; round++) {
    for (const parent of words) {
      for (const frame of words) {
        expect(ids.of(parent, frame)).toBe(contentId("stack", parent, frame));
        expect(ids.of(parent, frame)).toBe(contentId("stack", parent, frame));
      }
    }
  }
});
