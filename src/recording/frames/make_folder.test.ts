import { expect, test } from "vitest";
import { makeFolder } from "./make_folder.js";

test("a folder that may not be made is reported with a remedy for folders", () => {
  // The kernel lets nobody make a folder there.
  expect(() => makeFolder("/sys/kernel/tidemark/recordings")).toThrow(
    expect.objectContaining({ id: "TM-E004", next: expect.stringContaining("name a folder") }),
  );
});
