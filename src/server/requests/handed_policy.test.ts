/** A handed-out policy that cannot be read is neither withdrawn nor said again for each collector. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HandedPolicy } from "./handed_policy.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-policy-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function policy() {
  const said: string[] = [];
  return { said, handed: new HandedPolicy((text) => said.push(text)) };
}

test("the text that was read last stays; each reason is one line", () => {
  const { said, handed } = policy();
  const path = join(folder, "policy.yaml");
  writeFileSync(path, "a");
  expect(handed.text(path)).toBe("a");
  renameSync(path, `${path}.away`);
  for (let call = 0; call < 5; call++) {
    expect(handed.text(path)).toBe("a");
  }
  expect(said).toEqual([expect.stringContaining("no such file or directory")]);
  writeFileSync(path, "x".repeat(300_000));
  expect([handed.text(path), handed.text(path)]).toEqual(["a", "a"]);
  expect(said.slice(1)).toEqual([expect.stringContaining("larger than 256 KiB")]);
  rmSync(path);
  writeFileSync(path, "b");
  expect(handed.text(path)).toBe("b");
  expect(said).toHaveLength(2);
});

test("after a restart with an unreadable file the policy is unknown; without a file there is none", () => {
  const { said, handed } = policy();
  const path = join(folder, "folder");
  mkdirSync(path);
  expect([handed.text(path), handed.text(path)]).toEqual([undefined, undefined]);
  expect(said).toEqual([expect.stringContaining("it is not an ordinary file")]);
  expect(handed.text(null)).toBeNull();
  writeFileSync(join(folder, "known"), "a");
  expect(handed.text(join(folder, "known"))).toBe("a");
  expect(handed.text(join(folder, "missing"))).toBeUndefined();
});
