import { expect, test } from "vitest";
import { randomFrom } from "../../../test/gpu/workload.mjs";
import { AddressMap } from "./address_map.js";

test("contains what a Map contains, whatever was added and removed", () => {
  const random = randomFrom(11);
  const own = new AddressMap();
  const truth = new Map<number, number>();
  // More than the first table holds; the last addresses are the largest possible.
  const addresses = Array.from({ length: 3000 }, (_, row) =>
    row < 2990 ? 0x7f0000000000 + 512 * row * (1 + (row % 3)) : Number.MAX_SAFE_INTEGER - row,
  );
  for (let step = 0; step < 60_000; step++) {
    const address = addresses[Math.floor(random() * addresses.length)] ?? 0;
    const slot = own.find(address);
    expect(slot < 0 ? undefined : own.at(slot)).toBe(truth.get(address));
    if (slot >= 0 && random() < (step < 30_000 ? 0.2 : 0.8)) {
      own.remove(slot);
      truth.delete(address);
    } else {
      own.set(address, step * 2 ** 20);
      truth.set(address, step * 2 ** 20);
    }
  }
  expect(own.size).toBe(truth.size);
  expect([...own.addresses()].sort()).toEqual([...truth.keys()].sort());
});
