import { expect, test } from "vitest";
import { readArmPermission, refusalOf } from "./permission.js";

test("a process that has just ended is refused as ended, not as forbidden", () => {
  const noPid = 2 ** 22 + 1; // larger than every pid
  const permission = readArmPermission(noPid);
  expect(permission.ok).toBe(false);
  expect(refusalOf(noPid, permission).id).toBe("TM-E020");
  expect(refusalOf(process.pid, { ...permission, reason: "it is forbidden" }).id).toBe("TM-E021");
});
