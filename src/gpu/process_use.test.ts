import { expect, it } from "vitest";
import { parseDeviceUse } from "./process_use.js";

it("sums a process over its devices and leaves out what the driver keeps back", () => {
  const text = "4242, 1536\n4242, 512\n77, [N/A]\nNo devices were found\n 9, 1\n";
  expect([...parseDeviceUse(text)]).toEqual([
    [4242, 2048 * 2 ** 20],
    [9, 2 ** 20],
  ]);
  expect(parseDeviceUse("").size).toBe(0);
});
